"""Finds, counts and deletes the items of tasks and owners in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.model import encode_name, path
from a2a_serverless.store import items, keys
from a2a_serverless.store.stores import owner_pause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.domain.new_task import IdempotencyRecord
    from a2a_serverless.store.table import Table

PAGE: Final = 100


class ErasureStore:
    """All stored items of tasks and owners, expired or not, for erasure. Every method may be repeated."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def list_tasks(
        self, principal: Principal, context_id: str | None, after: str | None
    ) -> tuple[list[TaskKey], str | None]:
        """A page of the owner's tasks (of a context, or all), and where the next starts. Eventually consistent."""
        owner = path(principal.tenant, principal.owner)
        index, partition = "by_owner", ("own", owner)
        if context_id is not None:
            index, partition = "by_context", ("own_ctx", f"{owner}/{encode_name(context_id)}")
        items = self._table.query_index(index, partition, after, PAGE)
        return [keys.task_key(item["pk"]["S"]) for item in items], items[-1]["st"]["S"] if len(items) == PAGE else None

    def count_items(self, key: TaskKey) -> int:
        """How many items a task has, without idempotency records and callback addresses."""
        return sum(1 for _ in self._table.list_keys(keys.task(key)))

    def erase_related(self, key: TaskKey, records: Iterable[IdempotencyRecord], callbacks: Iterable[str]) -> int:
        """Erases a task's idempotency records and callbacks."""
        beside = [(keys.idempotency(key, one.agent, one.message_id, one.kind), keys.RECEIPT) for one in records]
        beside += [(keys.callback(name), keys.CALL) for name in callbacks]
        return self._table.erase(items.make_place(pk, sk) for pk, sk in beside)

    def erase_task(self, key: TaskKey) -> int:
        """Erases all other items of a task, the head last. Returns how many."""
        places = list(self._table.list_keys(keys.task(key)))
        return self._table.erase(sorted(places, key=lambda place: place["sk"]["S"] == keys.HEAD))

    def count_context_items(self, principal: Principal, context_id: str) -> int:
        """How many values are stored of a conversation."""
        return sum(1 for _ in self._table.list_keys(keys.owner(principal), keys.context(context_id)))

    def erase_context(self, principal: Principal, context_id: str) -> int:
        """Erases the values of a conversation. Returns how many."""
        return self._table.erase(list(self._table.list_keys(keys.owner(principal), keys.context(context_id))))

    def count_owner_items(self, principal: Principal) -> int:
        """How many items are stored about the owner itself."""
        return sum(1 for _ in self._table.list_keys(keys.owner(principal)))

    def erase_owner(self, principal: Principal) -> int:
        """Erases the items about the owner itself, and its pause. Returns how many, without the pause."""
        places = list(self._table.list_keys(keys.owner(principal)))
        streams = [place["sk"] for place in places if place["sk"]["S"].startswith(keys.STREAMS)]
        self._table.erase({"pk": {"S": keys.OPEN}, "sk": sk} for sk in streams)
        self._table.erase([items.make_place(keys.PAUSES, owner_pause(principal))])
        return self._table.erase(places)
