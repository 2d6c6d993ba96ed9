"""The stores that the contract is checked against, and what a test gets to hold of one."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from boto3.session import Session
from botocore.exceptions import ClientError

from a2a_serverless.store.api_keys import ApiKeyStore
from a2a_serverless.store.dynamodb import DynamoTable, RetryPolicy
from a2a_serverless.store.payloads import PayloadStore
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.store.stores import (
    BreakerStore,
    OwnerStore,
    PauseStore,
    Publications,
    TaskIndex,
)
from a2a_serverless.store.task_log import TaskLog
from a2a_serverless.store.value_store import ValueStore
from a2a_serverless.testing.memory import MemoryBlobStore, MemoryTable
from a2a_serverless_tools.local.state import ITEMS, State, StateStores
from a2a_serverless_tools.operators.erasure_store import ErasureStore
from tests.contract.schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from a2a_serverless.store.table import Table

NOW = 1_790_000_000_000
LIMIT = 2_000


class Now:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.ms = NOW

    def __call__(self) -> int:
        return self.ms


@dataclass(frozen=True)
class Store:
    """One empty store: its ports, the clock that they share, and the place of what is too big for them."""

    log: TaskLog
    index: TaskIndex
    push: PushStore
    hosts: BreakerStore
    pauses: PauseStore
    publications: Publications
    now: Now
    blobs: MemoryBlobStore
    api_keys: ApiKeyStore
    owners: OwnerStore
    erasure_store: ErasureStore
    values: ValueStore
    left: Callable[[], int]
    table: Table


def memory() -> Store:
    """A store in a dictionary."""
    now = Now()
    items = MemoryTable(now)
    return _store(items, now, MemoryBlobStore(), LIMIT, lambda: sum(map(len, items.partitions.values())))


def in_file(state: State) -> Store:
    """A store whose items and blobs are in a state."""
    now = Now()
    stores = StateStores(state, now, lambda: None)
    return _store(stores.items, now, stores.blobs, LIMIT, lambda: len(state.read(ITEMS)))


@contextmanager
def client_at(endpoint: str | None) -> Iterator[DynamoDBClient]:
    """A DynamoDB client with made-up credentials; without an endpoint it needs moto around it."""
    with closing(Session("test", "test", region_name="us-east-1").client("dynamodb", endpoint_url=endpoint)) as client:
        yield client


class OneAtATime:
    """A client whose calls do not overlap: moto copies its tables while others write to them."""

    def __init__(self, client: DynamoDBClient) -> None:
        self._client = client
        self._lock = Lock()

    def __getattr__(self, name: str) -> Callable[..., object]:
        call = getattr(self._client, name)

        def locked(**parameters: object) -> object:
            with self._lock:
                return self._make(name, lambda: call(**parameters))

        return locked

    def _make(self, name: str, call: Callable[[], object]) -> object:
        del name
        return call()


class EverythingTwice(OneAtATime):
    """The answer to every call is lost once, after it took effect, and the same request is sent again."""

    def _make(self, name: str, call: Callable[[], object]) -> object:
        if not name.endswith("_table"):
            with suppress(ClientError):
                call()
        return call()


@contextmanager
def dynamo(client: DynamoDBClient, name: str, sleep: Callable[[float], None], limit: int = LIMIT) -> Iterator[Store]:
    """A store on a new table, which is deleted afterwards. Bodies over ``limit`` bytes become blobs."""
    client.create_table(TableName=name, **table_schema())
    try:
        yield store_on(client, name, sleep, limit=limit)
    finally:
        client.delete_table(TableName=name)


def store_on(
    client: DynamoDBClient,
    name: str,
    sleep: Callable[[float], None],
    blobs: MemoryBlobStore | None = None,
    limit: int = LIMIT,
) -> Store:
    """A store on a table that exists."""
    now, blobs = Now(), blobs or MemoryBlobStore()
    table = DynamoTable(client, name, now, RetryPolicy(sleep, lambda: 0.5))

    def left() -> int:
        return client.scan(TableName=name, Select="COUNT", ConsistentRead=True)["Count"]

    return _store(table, now, blobs, limit, left)


def _store(table: Table, now: Now, blobs: MemoryBlobStore, limit: int, left: Callable[[], int]) -> Store:
    payloads = PayloadStore(blobs, limit)
    return Store(
        log=TaskLog(table, payloads),
        index=TaskIndex(table),
        push=PushStore(table),
        hosts=BreakerStore(table),
        pauses=PauseStore(table),
        publications=Publications(table),
        now=now,
        blobs=blobs,
        api_keys=ApiKeyStore(table),
        owners=OwnerStore(table),
        erasure_store=ErasureStore(table),
        values=ValueStore(table, payloads),
        left=left,
        table=table,
    )
