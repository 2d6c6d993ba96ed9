from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.store.dynamodb import LONGEST_PAUSE_S, TRIES, DynamoTable, RetryPolicy
from a2a_serverless.store.items import WriteConflict
from a2a_serverless.store.table import Put, PutNew, Update
from tests.adapters.clouds import error

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = 1_790_000_000_000
ITEM = {"pk": {"S": "p"}, "sk": {"S": "s"}, "v": {"N": "1"}}
EXPIRED = {**ITEM, "expires": {"N": str(NOW // 1000)}}
OTHER = {**ITEM, "sk": {"S": "t"}}


class Scripted:
    """A client whose calls give one answer after another; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**parameters: Any) -> Any:
            self.calls.append((name, parameters))
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def _table(client: Any, pauses: list[float] | None = None) -> DynamoTable:
    waited: list[float] = [] if pauses is None else pauses
    return DynamoTable(client, "table", lambda: NOW, RetryPolicy(waited.append, lambda: 1.0))


def _canceled(*codes: str, **item: Any) -> ClientError:
    return error("TransactionCanceledException", CancellationReasons=[{"Code": code, **item} for code in codes])


@pytest.mark.parametrize(
    "passing",
    [
        error("ProvisionedThroughputExceededException"),
        error("ThrottlingException"),
        error("RequestLimitExceeded"),
        error("InternalServerError"),
        error("TransactionConflictException"),
        error("TransactionInProgressException"),
        _canceled("None", "TransactionConflict"),
        _canceled("ThrottlingError", "None"),
        _canceled("ProvisionedThroughputExceeded"),
    ],
    ids=str,
)
def test_the_table_retries_a_write_after_errors_that_do_not_concern_the_item(passing: ClientError) -> None:
    client = Scripted(passing, passing, {})
    table = _table(client)
    assert table.write(PutNew(ITEM)) is None
    assert [name for name, _ in client.calls] == ["put_item"] * 3
    assert client.calls[0] == client.calls[2]


def test_waits_double_up_to_a_bound_and_then_the_caller_is_told() -> None:
    pauses: list[float] = []
    client = Scripted(*[error("ThrottlingException")] * TRIES)
    with pytest.raises(Overloaded) as told:
        _table(client, pauses).get("p", "s")
    assert isinstance(told.value.__cause__, ClientError)
    assert (len(client.calls), len(pauses)) == (TRIES, TRIES - 1)
    assert pauses == sorted(pauses)
    assert pauses[1] == 2 * pauses[0]
    assert pauses[-1] == LONGEST_PAUSE_S


def test_waits_are_scattered_by_chance() -> None:
    pauses: list[float] = []
    client = Scripted(error("ThrottlingException"), {})
    DynamoTable(client, "table", lambda: NOW, RetryPolicy(pauses.append, lambda: 0.25)).get("p", "s")  # type: ignore[arg-type]
    assert pauses == [0.25 * 0.02]


@pytest.mark.parametrize(
    ("final", "raised"),
    [
        (error("AccessDeniedException"), ClientError),
        (error("ValidationException"), ValueError),
        (_canceled("ValidationError"), ValueError),
        (_canceled("None", "ValidationError"), ValueError),
    ],
    ids=str,
)
def test_any_other_error_goes_through_at_once_and_a_wrong_request_is_a_wrong_value(
    final: ClientError, raised: type[Exception]
) -> None:
    client = Scripted(final)
    table = _table(client)
    with pytest.raises(raised):
        table.write(Put(ITEM))
    assert len(client.calls) == 1


def test_a_single_write_that_is_refused_gives_what_it_found() -> None:
    table = _table(Scripted(error("ConditionalCheckFailedException", Item=OTHER)))
    assert table.write(PutNew(ITEM)) == WriteConflict((OTHER,))


def test_a_refused_transaction_gives_what_each_action_found() -> None:
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": OTHER}]
    table = _table(Scripted(error("TransactionCanceledException", CancellationReasons=reasons)))
    assert table.write(PutNew(ITEM), PutNew(OTHER)) == WriteConflict((None, OTHER))


def test_a_refusal_without_reasons_for_each_action_found_nothing() -> None:
    table = _table(Scripted(_canceled("ConditionalCheckFailed", Item=OTHER)))
    assert table.write(PutNew(ITEM), PutNew(OTHER)) == WriteConflict((None, None))


def test_a_transaction_that_is_refused_and_in_conflict_is_refused() -> None:
    table = _table(Scripted(_canceled("TransactionConflict", "ConditionalCheckFailed")))
    assert table.write(PutNew(ITEM), PutNew(OTHER)) == WriteConflict((None, None))


def test_several_actions_are_one_transaction_on_the_table() -> None:
    client = Scripted({})
    table = _table(client)
    table.write(Put(ITEM), PutNew(OTHER))
    ((name, parameters),) = client.calls
    assert name == "transact_write_items"
    assert [action["Put"]["TableName"] for action in parameters["TransactItems"]] == ["table", "table"]


def test_an_update_writes_only_what_changes() -> None:
    client = Scripted({})
    table = _table(client)
    before = {"same": {"N": "1"}, "new": {"N": "1"}, "gone": {"S": "x"}}
    table.write(Update(ITEM, before, {"same": {"N": "1"}, "new": {"N": "2"}}, {"held": {"N": "7"}, "absent": None}))
    ((name, parameters),) = client.calls
    assert name == "update_item"
    assert parameters["UpdateExpression"] == "SET #new = :2 REMOVE #gone"
    assert parameters["ConditionExpression"] == "#held = :0 AND attribute_not_exists(#absent) AND #expires > :1"
    assert parameters["ExpressionAttributeValues"] == {
        ":0": {"N": "7"},
        ":1": {"N": str(NOW // 1000)},
        ":2": {"N": "2"},
    }


def test_a_read_follows_the_pages_to_the_end() -> None:
    client = Scripted({"Items": [ITEM], "LastEvaluatedKey": {"pk": {"S": "p"}}}, {"Items": [OTHER]})
    assert list(_table(client).query_prefix("p", "")) == [ITEM, OTHER]
    assert client.calls[1][1]["ExclusiveStartKey"] == {"pk": {"S": "p"}}


def test_a_read_with_a_limit_asks_for_no_page_more_than_it_needs() -> None:
    client = Scripted({"Items": [ITEM, OTHER], "LastEvaluatedKey": {"pk": {"S": "p"}}})
    assert list(_table(client).query_range("p", "a", "z", limit=2)) == [ITEM, OTHER]


def test_a_read_with_a_limit_goes_on_when_a_page_held_expired_items() -> None:
    client = Scripted({"Items": [EXPIRED], "LastEvaluatedKey": {"pk": {"S": "p"}}}, {"Items": [OTHER]})
    assert list(_table(client).query_range("p", "a", "z", limit=1)) == [OTHER]


def test_an_expired_item_is_not_there() -> None:
    assert _table(Scripted({"Item": EXPIRED})).get("p", "s") is None
    assert _table(Scripted({"Item": ITEM})).get("p", "s") == ITEM
    assert _table(Scripted({})).get("p", "s") is None


def test_reads_of_a_partition_are_strongly_consistent() -> None:
    client = Scripted({}, {"Items": []}, {"Items": []})
    table = _table(client)
    table.get("p", "s")
    list(table.query_range("p", "a", "b"))
    list(table.query_prefix("p", "a"))
    assert [parameters["ConsistentRead"] for _, parameters in client.calls] == [True, True, True]
