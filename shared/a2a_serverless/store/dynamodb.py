"""The table in DynamoDB.

A call is retried after throttling and after a conflict with another transaction: neither tells the state of the item.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from botocore.exceptions import ClientError

from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.store.items import Item, WriteConflict, is_live
from a2a_serverless.store.table import Check, Count, Delete, Put, PutNew, Update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from a2a_serverless.store.table import Action

T = TypeVar("T")
Request: TypeAlias = "tuple[str, dict[str, Any]]"

TRIES: Final = 12
PAGE: Final = 1000
FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0
FAILED: Final = "ConditionalCheckFailed"
# The request itself is invalid, for example by an item that is too large: a retry would fail too.
INVALID: Final = frozenset({"ValidationException", "ValidationError"})
PASSING: Final = frozenset(
    {
        "InternalServerError",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)


class RetryPolicy(NamedTuple):
    """How calls are retried: ``chance`` returns numbers in [0, 1), ``sleep`` waits that many seconds."""

    sleep: Callable[[float], None]
    chance: Callable[[], float]
    tries: int = TRIES

    def call(self, call: Callable[[], T]) -> T:
        """Returns the result of ``call``; retries with waits that double, and raises Overloaded after ``tries``."""
        pause = FIRST_PAUSE_S
        tries = self.tries
        while True:
            try:
                return call()
            except ClientError as error:
                tries -= 1
                if not _codes(error) & PASSING:
                    raise
                if tries == 0:
                    raise Overloaded from error
            self.sleep(pause * self.chance())
            pause = min(2 * pause, LONGEST_PAUSE_S)


class DynamoTable:
    """``store.table.Table`` in DynamoDB. ``now`` is the clock (ms)."""

    def __init__(self, client: DynamoDBClient, name: str, now: Callable[[], int], retry: RetryPolicy) -> None:
        self._client = client
        self._name = name
        self.now = now
        self._retry_policy = retry

    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        key = {"pk": {"S": pk}, "sk": {"S": sk}}
        read = partial(self._client.get_item, TableName=self._name, Key=key, ConsistentRead=consistent)
        answer = self._retry_policy.call(read)
        item: Item | None = answer.get("Item")
        return item if is_live(item, self.now()) else None

    def has_any(self, pk: str, *sks: str) -> bool:
        words = {"ProjectionExpression": "expires", "TableName": self._name}
        gets = [{"Get": {"Key": {"pk": {"S": pk}, "sk": {"S": sk}}, **words}} for sk in sks]
        read = partial(self._client.transact_get_items, TransactItems=gets)  # type: ignore[arg-type]
        answer = self._retry_policy.call(read)
        return any(is_live(found.get("Item"), self.now()) for found in answer["Responses"])

    def query_range(
        self, pk: str, first: str, last: str, *, limit: int = 0, newest_first: bool = False
    ) -> Iterator[Item]:
        query = _query("pk = :pk AND sk BETWEEN :first AND :last", pk=pk, first=first, last=last)
        return self._live_items(query | {"ConsistentRead": True, "ScanIndexForward": not newest_first}, limit)

    def query_prefix(self, pk: str, prefix: str, *only: str) -> Iterator[Item]:
        names = {f"#{name}": name for name in only}
        part = {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names} if names else {}
        query = _query("pk = :pk AND begins_with(sk, :prefix)", pk=pk, prefix=prefix)
        return self._live_items(query | {"ConsistentRead": True} | part)

    def query_due(self, shard: str, until: str, limit: int = 0, since: str = "0") -> Iterator[Item]:
        condition = "due_shard = :shard AND due_at BETWEEN :since AND :until"
        query = _query(condition, shard=shard, since=since, until=until)
        return self._live_items(query | {"IndexName": "due", "Limit": PAGE}, limit)

    def query_newest(self, index: str, partition: tuple[str, str], first: str, last: str, limit: int) -> list[Item]:
        name, value = partition
        query = _query(f"{name} = :partition AND st BETWEEN :first AND :last", partition=value, first=first, last=last)
        return list(self._live_items(query | {"IndexName": index, "ScanIndexForward": False}, limit))

    def list_keys(self, pk: str, prefix: str = "") -> Iterator[Item]:
        beginning = {"prefix": prefix} if prefix else {}
        query = _query("pk = :pk" + (" AND begins_with(sk, :prefix)" if beginning else ""), pk=pk, **beginning)
        return self._items(query | {"ProjectionExpression": "pk, sk", "ConsistentRead": True})

    def query_index(self, index: str, partition: tuple[str, str], after: str | None, limit: int) -> list[Item]:
        name, value = partition
        later = {"after": after} if after else {}
        query = _query(f"{name} = :partition" + (" AND st > :after" if later else ""), partition=value, **later)
        return list(islice(self._items(query | {"IndexName": index}, limit), limit))

    def scan(self, sk: str = "") -> Iterator[Item]:
        only = {"FilterExpression": "sk = :sk", "ExpressionAttributeValues": {":sk": {"S": sk}}} if sk else {}
        rows = self._pages(self._client.scan, only)
        return (item for item in rows if is_live(item, self.now()))

    def erase(self, places: Iterable[Item]) -> int:
        count = 0
        for place in places:
            key = {"pk": place["pk"], "sk": place["sk"]}
            self._retry_policy.call(partial(self._client.delete_item, TableName=self._name, Key=key))
            count += 1
        return count

    def write(self, *actions: Action) -> WriteConflict | None:
        requests = [_request(action, self.now() // 1000) for action in actions]
        return self._retry_policy.call(partial(self._write, requests))

    def _write(self, requests: Sequence[Request]) -> WriteConflict | None:
        client = self._client
        calls: dict[str, Callable[..., object]] = {
            "Put": client.put_item,
            "Update": client.update_item,
            "Delete": client.delete_item,
        }
        named_requests = [(kind, {"TableName": self._name, **parameters}) for kind, parameters in requests]
        try:
            if len(requests) == 1:
                kind, parameters = named_requests[0]
                calls[kind](**parameters)
            else:
                client.transact_write_items(TransactItems=[{kind: words} for kind, words in named_requests])  # type: ignore[misc]
        except ClientError as error:
            if refusal := _refusal(error, len(requests)):
                return refusal
            if _codes(error) & INVALID:
                raise ValueError("the table cannot store this") from error
            raise
        return None

    def _live_items(self, query: dict[str, Any], limit: int = 0) -> Iterator[Item]:
        """The items that have not expired, at most ``limit``; 0 is all."""
        live = (item for item in self._items(query, limit) if is_live(item, self.now()))
        return islice(live, limit or None)

    def _items(self, query: dict[str, Any], page: int = 0) -> Iterator[Item]:
        """All items; reads ``page`` of them at a time, or as many as the query says."""
        return self._pages(self._client.query, query | ({"Limit": page} if page else {}))

    def _pages(self, read: Callable[..., Any], parameters: dict[str, Any]) -> Iterator[Item]:
        parameters = {"TableName": self._name, **parameters}
        while True:
            answer = self._retry_policy.call(partial(read, **parameters))
            yield from answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _query(condition: str, **texts: str) -> dict[str, Any]:
    """A query by a condition on the keys, with the texts for its placeholders."""
    values = {f":{name}": {"S": text} for name, text in texts.items()}
    return {"KeyConditionExpression": condition, "ExpressionAttributeValues": values}


_RETURN_OLD: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


class _Words:
    """The placeholders of a request's expressions, needed because many attribute names are reserved words."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: Item = {}

    def name(self, attribute: str) -> str:
        self._names[f"#{attribute}"] = attribute
        return f"#{attribute}"

    def value(self, value: Mapping[str, Any]) -> str:
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def conditions(self, expected: Mapping[str, Any]) -> list[str]:
        return [
            f"attribute_not_exists({self.name(name)})" if value is None else f"{self.name(name)} = {self.value(value)}"
            for name, value in expected.items()
        ]

    def change(self, before: Item, after: Item) -> str:
        """The expression of an update; empty if nothing changes."""
        changes = {name: value for name, value in after.items() if before.get(name) != value}
        settings = [f"{self.name(name)} = {self.value(value)}" for name, value in changes.items()]
        removals = [self.name(name) for name in before if name not in after]
        clauses = [("SET", settings), ("REMOVE", removals)]
        return " ".join(f"{verb} {', '.join(terms)}" for verb, terms in clauses if terms)

    def request(self, where: Item, **expressions: str) -> dict[str, Any]:
        """The parameters of a request for an item, with all placeholders so far."""
        return {
            "Key": {"pk": where["pk"], "sk": where["sk"]},
            **expressions,
            "ExpressionAttributeNames": self._names,
            "ExpressionAttributeValues": self._values,
        }


def _request(action: Action, now_s: int) -> Request:
    """The kind and the parameters of an action in DynamoDB's form, without the table's name."""
    words = _Words()
    match action:
        case Put(item):
            return "Put", {"Item": item}
        case PutNew():
            return "Put", _put_new(action, now_s)
        case Update(where, before, after, expected):
            expires = words.name("expires")
            condition = " AND ".join([*words.conditions(expected), f"{expires} > {words.value({'N': str(now_s)})}"])
            change = words.change(before, after) or f"SET {expires} = {expires}"
            parameters = words.request(where, UpdateExpression=change, ConditionExpression=condition)
            return "Update", parameters | _RETURN_OLD
        case Count():
            return "Update", _count(action)
        case Check(where, expected):
            condition = " AND ".join(words.conditions(expected))
            return "ConditionCheck", words.request(where, ConditionExpression=condition)
        case Delete(where, expected):
            condition = f"attribute_not_exists(pk) OR ({' AND '.join(words.conditions(expected))})"
            return "Delete", words.request(where, ConditionExpression=condition)


def _put_new(action: PutNew, now_s: int) -> dict[str, Any]:
    values, condition = {":0": {"N": str(now_s)}}, "attribute_not_exists(pk) OR expires <= :0"
    if action.unlike:
        values[":1"] = action.item[action.unlike]
        condition += f" OR {action.unlike} <> :1"
    words = {"ConditionExpression": condition, "ExpressionAttributeValues": values}
    return {"Item": action.item, **words, **_RETURN_OLD}


def _count(action: Count) -> dict[str, Any]:
    numbers = {":by": action.by, ":limit": action.limit - action.by + 1, ":expires": action.expires}
    return {
        "Key": action.where,
        "UpdateExpression": "SET #expires = :expires ADD #number :by",
        "ConditionExpression": "attribute_not_exists(#number) OR #number < :limit",
        "ExpressionAttributeNames": {"#number": action.attribute, "#expires": "expires"},
        "ExpressionAttributeValues": {name: {"N": str(number)} for name, number in numbers.items()},
    }


def _refusal(error: ClientError, actions: int) -> WriteConflict | None:
    """The conflict that an error reports; None for any other error."""
    if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
        return WriteConflict((error.response.get("Item"),))  # type: ignore[arg-type]
    if FAILED not in _codes(error):
        return None
    stored_items = tuple(reason.get("Item") for reason in _reasons(error))
    return WriteConflict(stored_items if len(stored_items) == actions else (None,) * actions)


def _codes(error: ClientError) -> set[str]:
    """The code of an error, and those of the actions of its transaction."""
    return {error.response["Error"]["Code"], *(reason.get("Code", "") for reason in _reasons(error))}


def _reasons(error: ClientError) -> list[dict[str, Any]]:
    reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])  # type: ignore[assignment]
    return reasons
