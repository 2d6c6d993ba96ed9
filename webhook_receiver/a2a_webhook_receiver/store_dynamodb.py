"""Expectations and replay memory in one DynamoDB table, shared by all instances of a deployed receiver.

String keys ``pk`` and ``sk``, time to live on ``expires`` (seconds). Every decision is a conditional write. After a
crash between two writes, a repeated attempt is handled as if it were the first; no notification is lost. Clients choose
the names of their configurations, so a key holds the hash of that name.

=================== ======================== ==========================================
pk                  sk                       holds
=================== ======================== ==========================================
``JTI#<jti>``       ``JTI``                  the content that came with the token
``TASK#<task>``     ``NOTE#<config>#<id>``   a notification; ``claim`` until it is settled
``TASK#<task>``     ``LAST#<config>``        the last event number
``TASK#<task>``     ``EXPECT#<id>``          an expectation that names the task
``TOKEN#<digest>``  ``EXPECT#<id>``          an expectation that names the token
``OPEN``            ``<expires>#<id>``       shows that there is any expectation
=================== ======================== ==========================================
"""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from a2a_webhook_receiver.errors import Replayed, StillWorking
from a2a_webhook_receiver.expectations import Expectation, digest
from a2a_webhook_receiver.replay import CLAIM, REMEMBER, Admitted, Duplicate, Sighting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, TransactWriteItemTypeDef

    Item = Mapping[str, AttributeValueTypeDef]

_FREE = "attribute_not_exists(pk) OR (attribute_exists(claim) AND claim <= :now)"
_TEXTS = ("task_id", "token_digest", "authorization_digest", "agent_url")


class DynamoStore:
    """``Expectations`` and ``ReplayStore`` in one table."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def add(self, expectation: Expectation) -> None:
        keys = _expectation_keys(expectation)
        keys.append(_open_key(expectation))
        self._client.transact_write_items(TransactItems=[self._put(key, expectation) for key in keys])

    def find(self, task_id: str, token_digest: str | None, now: int) -> tuple[Expectation, ...]:
        partitions = [f"TASK#{task_id}"] + ([f"TOKEN#{token_digest}"] if token_digest is not None else [])
        items = [item for partition in partitions for item in self._query(partition, "EXPECT#")]
        expectations = {item["id"]["S"]: _expectation(item) for item in items}
        return tuple(expectation for expectation in expectations.values() if expectation.expires > now)

    def bind(self, expectation: Expectation, task_id: str) -> bool:
        if expectation.task_id is not None:
            return expectation.task_id == task_id
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(f"TOKEN#{expectation.token_digest}", f"EXPECT#{expectation.id}"),
                UpdateExpression="SET task_id = :task",
                ConditionExpression="attribute_exists(pk) AND (attribute_not_exists(task_id) OR task_id = :task)",
                ExpressionAttributeValues={":task": {"S": task_id}},
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            return False
        # Only for the error code of a later wrong token for this task, and for the list. The item above decides.
        bound = _expectation_item(expectation.bound_to(task_id))
        for key in ((f"TASK#{task_id}", f"EXPECT#{expectation.id}"), _open_key(expectation)):
            self._client.put_item(TableName=self._table, Item=_key(*key) | bound)
        return True

    def any_open(self, now: int) -> bool:
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND sk > :now",
            ExpressionAttributeValues={":pk": {"S": "OPEN"}, ":now": {"S": f"{now:015d}$"}},
            Limit=1,
            ConsistentRead=True,
        )
        return bool(answer["Items"])

    def list_open(self, now: int, limit: int) -> tuple[Expectation, ...]:
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND sk > :now",
            ExpressionAttributeValues={":pk": {"S": "OPEN"}, ":now": {"S": f"{now:015d}$"}},
            ScanIndexForward=False,
            Limit=limit,
        )
        return tuple(map(_expectation, answer["Items"]))

    def admit(self, sighting: Sighting, now: int) -> Admitted | Duplicate:
        self._check_jti(sighting)
        record = self._claim(sighting, now)
        if record is not None and "claim" not in record:
            return Duplicate()
        if record is not None:
            raise StillWorking("an earlier attempt is being worked on", (int(record["claim"]["N"]) - now) // 1000 + 1)
        return Admitted(late=not self._advance(sighting, now), claim=now + CLAIM)

    def settle(self, sighting: Sighting, admitted: Admitted) -> None:
        self._end_claim(sighting, admitted, "REMOVE claim")

    def release(self, sighting: Sighting, admitted: Admitted) -> None:
        self._end_claim(sighting, admitted, "SET claim = :never")

    def _check_jti(self, sighting: Sighting) -> None:
        item: Item = {"seen": {"S": sighting.fingerprint}, "expires": _seconds(sighting.jti_expires)}
        try:
            self._client.put_item(
                TableName=self._table,
                Item={**_key(f"JTI#{sighting.jti}", "JTI"), **item},
                ConditionExpression="attribute_not_exists(pk) OR seen = :seen",
                ExpressionAttributeValues={":seen": {"S": sighting.fingerprint}},
            )
        except self._client.exceptions.ConditionalCheckFailedException as error:
            raise Replayed("the token was used before with other content") from error

    def _claim(self, sighting: Sighting, now: int) -> "Item | None":
        """None when the notification is claimed now, otherwise its item with the earlier or settled claim."""
        try:
            self._client.put_item(
                TableName=self._table,
                Item=_note_key(sighting) | {"claim": {"N": str(now + CLAIM)}, "expires": _seconds(now + REMEMBER)},
                ConditionExpression=_FREE,
                ExpressionAttributeValues={":now": {"N": str(now)}},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except self._client.exceptions.ConditionalCheckFailedException as error:
            return _old_item(error)
        return None

    def _advance(self, sighting: Sighting, now: int) -> bool:
        """Stores the event number; False if a later event of its configuration came before."""
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(f"TASK#{sighting.task_id}", f"LAST#{digest(sighting.config_id)}"),
                UpdateExpression="SET n = :n, expires = :expires",
                ConditionExpression="attribute_not_exists(n) OR n <= :n",
                ExpressionAttributeValues={
                    ":n": {"N": str(sighting.event_number)},
                    ":expires": _seconds(now + REMEMBER),
                },
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def _end_claim(self, sighting: Sighting, admitted: Admitted, expression: str) -> None:
        never: Item = {":never": {"N": "0"}} if ":never" in expression else {}
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_note_key(sighting),
                UpdateExpression=expression,
                ConditionExpression="claim = :claim",
                ExpressionAttributeValues={":claim": {"N": str(admitted.claim)}} | dict(never),
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            return  # our claim expired and another attempt took over, which decides

    def _put(self, key: tuple[str, str], expectation: Expectation) -> "TransactWriteItemTypeDef":
        return {"Put": {"TableName": self._table, "Item": _key(*key) | _expectation_item(expectation)}}

    def _query(self, partition: str, prefix: str) -> "list[Item]":
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
            ExpressionAttributeValues={":pk": {"S": partition}, ":prefix": {"S": prefix}},
            ConsistentRead=True,
        )
        return [item for page in pages for item in page["Items"]]


def _old_item(error: ClientError) -> "Item":
    """The existing item that made a conditional write fail; botocore has no type for it."""
    return error.response["Item"]  # type: ignore[typeddict-item,no-any-return]


def _key(pk: str, sk: str) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def _note_key(sighting: Sighting) -> "dict[str, AttributeValueTypeDef]":
    return _key(f"TASK#{sighting.task_id}", f"NOTE#{digest(sighting.config_id)}#{sighting.notification_id}")


def _seconds(milliseconds: int) -> "AttributeValueTypeDef":
    return {"N": str(milliseconds // 1000 + 1)}


def _expectation_keys(expectation: Expectation) -> list[tuple[str, str]]:
    values = {"TASK": expectation.task_id, "TOKEN": expectation.token_digest}
    return [(f"{kind}#{value}", f"EXPECT#{expectation.id}") for kind, value in values.items() if value is not None]


def _open_key(expectation: Expectation) -> tuple[str, str]:
    return ("OPEN", f"{expectation.expires:015d}#{expectation.id}")


def _expectation_item(expectation: Expectation) -> "dict[str, AttributeValueTypeDef]":
    texts = {name: getattr(expectation, name) for name in _TEXTS}
    item: dict[str, AttributeValueTypeDef] = {name: {"S": text} for name, text in texts.items() if text is not None}
    return item | {
        "id": {"S": expectation.id},
        "until": {"N": str(expectation.expires)},
        "expires": _seconds(expectation.expires),
    }


def _expectation(item: "Item") -> Expectation:
    texts = {name: item[name]["S"] for name in _TEXTS if name in item}
    return Expectation(id=item["id"]["S"], expires=int(item["until"]["N"]), **texts)
