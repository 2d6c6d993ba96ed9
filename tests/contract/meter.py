"""Calls and capacity units of a DynamoDB client, as AWS counts them.

DynamoDB Local reports single calls as AWS does, but not transactions: it adds the bytes of all items up before it
rounds, and multiplies everything by four. So items in a transaction are counted by AWS's rule (two units for each
kilobyte begun of each item), and index entries, which follow once it is done, by a quarter of what is reported.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

CALLS: Final = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "GetItem", "Query")
READS: Final = frozenset({"GetItem", "Query"})
QUADRUPLED: Final = 4
HEAD_BYTES: Final = 1024


@dataclass
class Meter:
    """Calls and capacity units since the last reset; ``read`` is the part of the units that reads cost."""

    calls: list[str] = field(default_factory=list)
    units: float = 0.0
    read: float = 0.0

    def ask(self, params: dict[str, Any], model: Any, **_: object) -> dict[str, Any]:
        self.calls.append(model.name)
        self.units += sum(2 * _kilobytes(action) for action in params.get("TransactItems", []))
        return {**params, "ReturnConsumedCapacity": "INDEXES"}

    def count(self, parsed: dict[str, Any], **_: object) -> None:
        used = parsed["ConsumedCapacity"]
        if isinstance(used, dict):
            self.units += used["CapacityUnits"]
            self.read += used["CapacityUnits"] if self.calls[-1] in READS else 0
            return
        indexes = (index for table in used for index in table.get("GlobalSecondaryIndexes", {}).values())
        self.units += sum(index["CapacityUnits"] for index in indexes) / QUADRUPLED

    @property
    def writes(self) -> int:
        return len([call for call in self.calls if call not in READS])

    def reset(self) -> None:
        self.calls.clear()
        self.units = self.read = 0.0


def _kilobytes(action: dict[str, Any]) -> int:
    """Of what is put, its size; of what is updated, the head's, which a test below keeps under one."""
    return -(-size(action["Put"]["Item"]) // HEAD_BYTES) if "Put" in action else 1


def size(item: dict[str, Any]) -> int:
    values = (text for value in item.values() for text in value.values())
    return sum(len(name) for name in item) + sum(1 if text is True else len(text.encode()) for text in values)


@contextmanager
def metering(client: DynamoDBClient) -> Iterator[Meter]:
    meter, events = Meter(), client.meta.events
    hooks: list[tuple[str, Any]] = [
        (f"{moment}.dynamodb.{call}", hook)
        for call in CALLS
        for moment, hook in (
            ("provide-client-params", meter.ask),
            ("after-call", meter.count),
        )
    ]
    for name, hook in hooks:
        events.register(name, hook)
    yield meter
    for name, hook in hooks:
        events.unregister(name, hook)
