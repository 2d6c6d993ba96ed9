"""The stores that the contract is checked against, and what a test gets to hold of one."""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, cast

from botocore.exceptions import ClientError
from botocore.session import Session

from a2a_serverless.adapters.api_keys import DynamoApiKeys, MemoryApiKeys
from a2a_serverless.adapters.bodies import Bodies
from a2a_serverless.adapters.dynamo import (
    DynamoHosts,
    DynamoPublications,
    DynamoPushStore,
    DynamoTaskIndex,
    DynamoTaskLog,
)
from a2a_serverless.adapters.memory import MemoryBlobs, MemoryTable
from a2a_serverless.adapters.owners import DynamoOwners, MemoryOwners
from a2a_serverless.adapters.remains import DynamoRemains, MemoryRemains
from a2a_serverless.adapters.table import Patience, Table
from tests.contract.schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from a2a_serverless.ports import ApiKeys, HostBoard, Owners, Publications, PushStore, Remains, TaskIndex, TaskLog

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
    hosts: HostBoard
    publications: Publications
    now: Now
    blobs: MemoryBlobs
    api_keys: ApiKeys
    owners: Owners
    remains: Remains
    left: Callable[[], int]


def memory() -> Store:
    now = Now()
    table = MemoryTable(now)
    owners = MemoryOwners(now)
    remains = MemoryRemains(table, owners)
    shelves = [shelf for shelf in vars(table).values() if hasattr(shelf, "raw")]

    def left() -> int:
        return sum(len(items) for shelf in shelves for items in shelf.raw.values())

    blobs, keys = MemoryBlobs(), MemoryApiKeys()
    return Store(table, table, table, table, table, now, blobs, keys, owners, remains, left)


@contextmanager
def client_at(endpoint: str | None) -> Iterator[DynamoDBClient]:
    """A DynamoDB client with made-up credentials; without an endpoint it needs moto around it."""
    client = Session().create_client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    with closing(client):
        yield cast("DynamoDBClient", client)


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
    blobs: MemoryBlobs | None = None,
    limit: int = LIMIT,
) -> Store:
    """A store on a table that exists."""
    now, blobs = Now(), blobs or MemoryBlobs()
    table = Table(client, name, now, Patience(sleep, lambda: 0.5))
    return Store(
        log=DynamoTaskLog(table, Bodies(blobs, limit)),
        index=DynamoTaskIndex(table),
        push=DynamoPushStore(table),
        hosts=DynamoHosts(table),
        publications=DynamoPublications(table),
        now=now,
        blobs=blobs,
        api_keys=DynamoApiKeys(table),
        owners=DynamoOwners(table, now),
        remains=DynamoRemains(table),
        left=lambda: client.scan(TableName=name, Select="COUNT", ConsistentRead=True)["Count"],
    )
