"""The same journeys and the same deaths on DynamoDB, as far as moto plays it."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, cast

import pytest
from boto3.session import Session
from moto import mock_aws

from a2a_serverless.store.dynamodb import DynamoTable, RetryPolicy
from a2a_serverless.store.keys import HEAD
from a2a_serverless.store.payloads import PayloadStore
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.store.stores import BreakerStore, PauseStore, TaskIndex
from a2a_serverless.store.task_log import TaskLog
from a2a_serverless.store.value_store import ValueStore
from a2a_serverless.testing.memory import MemoryBlobStore
from tests.contract.schema import table_schema
from tests.faults.journeys import (
    JOURNEYS,
    Journey,
    acting,
    assert_whole,
    canceled,
    handed_on,
    talkative,
    waiting,
    watched,
)
from tests.faults.plans import NoFaults, kill_at
from tests.faults.run_report import calls_of, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import TaskKey

INLINE = 2_000
EVENTS = {"create", "append", "append_chunk"}
LONG = {acting, waiting}  # hundreds of calls
_names = (f"table-{number}" for number in count())


@pytest.fixture(scope="module")
def client() -> Iterator[DynamoDBClient]:
    with mock_aws(), closing(Session("test", "test", region_name="us-east-1").client("dynamodb")) as made:
        yield made


class MotoTable:
    """The ports of the log and of the webhooks on one table, and a ``feed`` as the table's stream would give it."""

    def __init__(self, client: DynamoDBClient, now: Callable[[], int]) -> None:
        name = next(_names)
        client.create_table(TableName=name, **table_schema())
        table = DynamoTable(client, name, now, RetryPolicy(lambda _: None, lambda: 0.5))
        self.feed: list[tuple[TaskKey, Event | None]] = []
        payloads = PayloadStore(MemoryBlobStore(), INLINE)
        stores = (
            TaskLog(table, payloads),
            PushStore(table),
            BreakerStore(table),
            ValueStore(table, payloads),
            PauseStore(table),
            TaskIndex(table),
        )
        self._ports: tuple[object, ...] = stores

    def __getattr__(self, call: str) -> Callable[..., object]:
        function = next(getattr(port, call) for port in self._ports if hasattr(port, call))
        return partial(self._fed, function) if call in EVENTS else cast("Callable[..., object]", function)

    def _fed(self, function: Callable[..., object], first: Any, *rest: object) -> object:
        """Calls, and puts the task into the feed: once too often does no harm."""
        result = function(first, *rest)
        head = getattr(first, "head", None) or getattr(first, "before", None) or first
        self.feed.append((head.key, None))
        return result


class Torn:
    """A client whose queries see half a transaction: the ``times`` that follow one still find the head before it."""

    def __init__(self, client: DynamoDBClient, times: int) -> None:
        self._client = client
        self._times = times
        self._older: dict[str, tuple[Any, int]] = {}
        self.torn = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def transact_write_items(self, **parameters: Any) -> Any:
        heads = [action["Update"] for action in parameters["TransactItems"] if "Update" in action]
        before = [self._client.get_item(TableName=head["TableName"], Key=head["Key"]).get("Item") for head in heads]
        answer = self._client.transact_write_items(**parameters)
        self._older |= {item["pk"]["S"]: (item, self._times) for item in before if item and item["sk"]["S"] == HEAD}
        return answer

    def query(self, **parameters: Any) -> Any:
        answer: Any = self._client.query(**parameters)
        return {**answer, "Items": [self._seen(item) for item in answer["Items"]]}

    def _seen(self, item: Any) -> Any:
        older, times = self._older.get(item["pk"]["S"], (item, 0))
        if item["sk"]["S"] != HEAD or not times:
            return item
        self._older[item["pk"]["S"]] = older, times - 1
        self.torn += 1
        return older


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("journey", [talkative, canceled, handed_on])
def test_rule_01_queries_that_see_half_a_transaction_lose_and_double_nothing(
    client: DynamoDBClient, journey: Journey, times: int
) -> None:
    torn = Torn(client, times)
    assert_whole(told(journey, NoFaults(), table=partial(MotoTable, cast("DynamoDBClient", torn))))
    assert torn.torn > times


@pytest.mark.parametrize("journey", [watched])
def test_an_undisturbed_journey_is_whole_on_dynamodb(client: DynamoDBClient, journey: Journey) -> None:
    assert_whole(told(journey, NoFaults(), table=partial(MotoTable, client)))


@pytest.mark.parametrize(("seed", "journey"), [*enumerate(one for one in JOURNEYS if one not in LONG)][::2])
def test_a_death_at_a_call_loses_and_doubles_nothing_on_dynamodb(
    client: DynamoDBClient, journey: Journey, seed: int
) -> None:
    number = Random(seed).randint(1, len(calls_of(journey)))  # noqa: S311 - a seed, not a secret
    assert_whole(told(journey, kill_at(number, late=seed % 2 == 0), table=partial(MotoTable, client)))
