"""Copies into a deployment's table what it lacks of another table: of a backup, or of a restore to a point in time.

DynamoDB restores into a new table, which has no stream, no TTL, no alarms and none of the functions' rights. So the
stack keeps its table, and gets the items. Nothing that the stack has is changed: a task that it has is left alone, as
it may have gone on since. Whoever was interrupted starts again: the head of a task is copied last, because tasks are
found by it.

DynamoDB notes at a restored table which table it is a copy of. A copy of another stack's table is refused: the objects
of its tasks are in another bucket, and their secrets are sealed under another key.

A webhook that was behind is restored as given up: how far it got after the backup is not known, so its receiver could
get events twice. An operator lists these webhooks and redrives them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain.cursors import Cursor, CursorState
from a2a_serverless.store import keys
from a2a_serverless.store.items import make_item, read_or_skip, record_of
from a2a_serverless.store.push_store import cursor_item
from a2a_serverless.store.table import PutNew
from a2a_serverless_tools.operators.deployed import NoCopy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from a2a_serverless.domain.head import CurrentHead
    from a2a_serverless.ports.system import Clock
    from a2a_serverless.store.items import Item
    from a2a_serverless.store.table import Table
    from a2a_serverless.store.task_log import TaskLog

# Documents, open streams, circuit breakers and pauses belong to the deployment that runs, and not to a backup.
_OF_THE_DEPLOYMENT: Final = (keys.PUBLIC, keys.OPEN, keys.HOSTS, keys.PAUSES)


class RestoredCounts(NamedTuple):
    """How many tasks, unfinished tasks among them, their webhooks that are given up, and items outside of tasks."""

    tasks: int = 0
    unfinished: int = 0
    webhooks: int = 0
    others: int = 0


@dataclass(frozen=True, slots=True)
class Restoration:
    """Copies from ``source``, whose tasks are in ``log``, to ``target``. ``clock`` is the deployment's."""

    source: Table
    log: TaskLog
    target: Table
    clock: Clock

    def count(self) -> RestoredCounts:
        """How many tasks the deployment lacks. Writes nothing."""
        counts = RestoredCounts()
        for current in self._missing_tasks():
            counts = _with_task(
                counts, current, sum(1 for item in self._items(current) if self._given_up(item, current))
            )
        return counts

    def restore(self, report: Callable[[RestoredCounts], object]) -> RestoredCounts:
        """Copies what the deployment lacks; ``report`` gets the counts after each task."""
        counts = RestoredCounts(others=copy_missing(self._other_items(), self.target))
        for current in self._missing_tasks():
            webhooks = 0
            for item in self._items(current):
                given_up = self._given_up(item, current)
                webhooks += given_up is not None
                self.target.write(PutNew(given_up or item))
            counts = _with_task(counts, current, webhooks)
            report(counts)
        return counts

    def _other_items(self) -> Iterator[Item]:
        """The items outside of tasks: first, so that a message that a client sends again starts no second task."""
        kept = (*_OF_THE_DEPLOYMENT, keys.TASKS)
        return (item for item in self.source.scan() if not item["pk"]["S"].startswith(kept))

    def _missing_tasks(self) -> Iterator[CurrentHead]:
        for item in self.source.scan(keys.HEAD):
            pk = item["pk"]["S"]
            if not self.target.has_any(pk, keys.HEAD):
                current = read_or_skip(partial(self._read_head, pk), "task", task=pk)
                if current:
                    yield current

    def _read_head(self, pk: str) -> CurrentHead | None:
        return self.log.read_head(keys.task_key(pk))

    def _items(self, current: CurrentHead) -> Iterator[Item]:
        """The items of a task, the head last."""
        pk = keys.task(current.head.key)
        items = [*self.source.query_range(pk, "!", keys.NEWEST)]
        return iter(sorted(items, key=lambda item: item["sk"]["S"] == keys.HEAD))

    def _given_up(self, item: Item, current: CurrentHead) -> Item | None:
        """The item of a cursor that had something to deliver, as given up; None for any other item."""
        if keys.cursor_config(item["sk"]["S"]) is None:
            return None
        cursor = read_or_skip(partial(record_of, Cursor, item), "webhook", task=current.head.key.task)
        is_done = current.head.is_terminal and cursor and cursor.position >= current.last
        if cursor is None or cursor.state is not CursorState.ACTIVE or is_done:
            return None
        after = replace(cursor, state=CursorState.EXHAUSTED, due_at=self.clock.now(), lease_until=0)
        attributes = cursor_item(keys.shard(current.head.key), after)
        return make_item(item["pk"]["S"], item["sk"]["S"], current.head.expires, attributes)


def check_copy(client: DynamoDBClient, name: str, table: str) -> None:
    """Raises NoCopy unless DynamoDB has restored the table ``name`` from the stack's table ``table``, and has ended."""
    try:
        description = client.describe_table(TableName=name)["Table"]
    except client.exceptions.ResourceNotFoundException:
        raise NoCopy(f"there is no table {name}") from None
    summary = description.get("RestoreSummary", {})
    source = summary.get("SourceTableArn", "")
    own = f"{description['TableArn'].rpartition('/')[0]}/{table}"
    if name == table:
        raise NoCopy(f"{name} is the stack's own table")
    if not source:
        raise NoCopy(f"DynamoDB did not restore {name} from a backup of {table}")
    if source != own:
        raise NoCopy(f"{name} is a copy of {source.removeprefix(own.rpartition('/')[0] + '/')}, and not of {table}")
    if summary.get("RestoreInProgress") or description["TableStatus"] != "ACTIVE":
        raise NoCopy(f"DynamoDB is still restoring {name}: `aws dynamodb wait table-exists --table-name {name}`")


def copy_missing(items: Iterable[Item], target: Table) -> int:
    """Writes each item that the table does not have; returns how many."""
    return sum(target.write(PutNew(item)) is None for item in items)


def _with_task(counts: RestoredCounts, current: CurrentHead, webhooks: int) -> RestoredCounts:
    return counts._replace(
        tasks=counts.tasks + 1,
        unfinished=counts.unfinished + (not current.head.is_terminal),
        webhooks=counts.webhooks + webhooks,
    )
