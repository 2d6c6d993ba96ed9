"""The deployment of a history over a table of dynoxide, where threads race for real."""

from __future__ import annotations

import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from a2a_serverless.store.dynamodb import DynamoTable, RetryPolicy
from a2a_serverless.store.payloads import PayloadStore
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.store.stores import BreakerStore, PauseStore, Publications, TaskIndex
from a2a_serverless.store.task_log import TaskLog
from a2a_serverless.store.value_store import ValueStore
from a2a_serverless.testing.memory import MemoryBlobStore
from tests.contract.backends import client_at
from tests.contract.dynoxide import dynoxide
from tests.contract.schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from a2a_serverless.domain.decisions import Change
    from a2a_serverless.domain.events import ArtifactEvent
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.new_task import IdempotencyRecord, NewTask
    from a2a_serverless.domain.step_results import NamedResult

_names = (f"histories-{number}" for number in count())


class DynamoStores(TaskLog, TaskIndex, ValueStore, PushStore, BreakerStore, PauseStore, Publications):
    """The stores of a deployment on a new table, and a ``feed`` as its stream: a refused write is in it, too."""

    def __init__(self, client: DynamoDBClient, now: Callable[[], int]) -> None:
        name = next(_names)
        client.create_table(TableName=name, **table_schema())
        self.feed: list[tuple[TaskKey, None]] = []
        self.drop = lambda: client.delete_table(TableName=name)
        retry = RetryPolicy(time.sleep, Random().random)  # noqa: S311 - waits, no secrets
        super().__init__(DynamoTable(client, name, now, retry), PayloadStore(MemoryBlobStore()))

    def create(self, opening: NewTask) -> IdempotencyRecord | None:
        found = super().create(opening)
        if found is None:
            self.feed.append((opening.head.key, None))
        return found

    def append(self, change: Change, record: IdempotencyRecord | None = None, *steps: NamedResult) -> bool:
        return self._fed(change.before.key, super().append(change, record, *steps))

    def append_chunk(self, head: Head, event: ArtifactEvent) -> bool:
        return self._fed(head.key, super().append_chunk(head, event))

    def _fed(self, key: TaskKey, written: Any) -> bool:
        self.feed.append((key, None))
        return bool(written)


@contextmanager
def dynoxide_client() -> Iterator[DynamoDBClient]:
    """A client of a dynoxide of its own. Raises `NotInstalled`."""
    with TemporaryDirectory() as folder, dynoxide(Path(folder)) as url, client_at(url) as client:
        yield client
