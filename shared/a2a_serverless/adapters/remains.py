"""Whatever is stored of tasks and owners, in the table and in memory, so that nothing is left once it is erased."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters import keys
from a2a_serverless.domain.model import Principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.adapters.memory import MemoryTable
    from a2a_serverless.adapters.owners import MemoryOwners
    from a2a_serverless.adapters.table import Table
    from a2a_serverless.domain.model import TaskKey

PAGE: Final = 100


class DynamoRemains:
    """``ports.Remains``."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def tasks(self, who: Principal, context_id: str | None, after: str | None) -> tuple[list[TaskKey], str | None]:
        owner = keys.path(who.tenant, who.owner)
        index, held = "by_owner", ("own", owner)
        if context_id is not None:
            index, held = "by_context", ("own_ctx", f"{owner}/{keys.part(context_id)}")
        found = self._table.listed(index, held, after, PAGE)
        return [keys.task_key(item["pk"]["S"]) for item in found], found[-1]["st"]["S"] if len(found) == PAGE else None

    def items(self, key: TaskKey) -> int:
        return sum(1 for _ in self._table.places(keys.task(key)))

    def erase_beside(self, key: TaskKey, receipts: Iterable[tuple[str, str]], callbacks: Iterable[str]) -> int:
        self._table.erase([{"pk": {"S": keys.owner(key)}, "sk": {"S": keys.UNFINISHED}}])
        beside = [(keys.receipt(key, agent, message), keys.RECEIPT) for agent, message in receipts]
        beside += [(keys.callback(name), keys.CALL) for name in callbacks]
        return self._table.erase({"pk": {"S": pk}, "sk": {"S": sk}} for pk, sk in beside)

    def erase_task(self, key: TaskKey) -> int:
        places = list(self._table.places(keys.task(key)))
        return self._table.erase(sorted(places, key=lambda place: place["sk"]["S"] == keys.HEAD))

    def owned(self, who: Principal) -> int:
        return sum(1 for _ in self._table.places(keys.owner(who)))

    def erase_owner(self, who: Principal) -> int:
        places = list(self._table.places(keys.owner(who)))
        streams = [place["sk"] for place in places if place["sk"]["S"].startswith(keys.STREAMS)]
        self._table.erase({"pk": {"S": keys.OPEN}, "sk": sk} for sk in streams)
        return self._table.erase(places)


class MemoryRemains:
    """The twin."""

    def __init__(self, table: MemoryTable, owners: MemoryOwners) -> None:
        self._table = table
        self._owners = owners

    def tasks(self, who: Principal, context_id: str | None, after: str | None) -> tuple[list[TaskKey], str | None]:
        del after
        return self._table.stored(who, context_id), None

    def items(self, key: TaskKey) -> int:
        return self._table.erase(key, really=False)

    def erase_beside(self, key: TaskKey, receipts: Iterable[tuple[str, str]], callbacks: Iterable[str]) -> int:
        self._owners.count_anew(Principal(key.tenant, key.owner))
        return self._table.erase_beside(key, receipts, callbacks)

    def erase_task(self, key: TaskKey) -> int:
        return self._table.erase(key)

    def owned(self, who: Principal) -> int:
        return self._table.erase_owner(who, really=False) + self._owners.erase(who, really=False)

    def erase_owner(self, who: Principal) -> int:
        return self._table.erase_owner(who) + self._owners.erase(who)
