"""Calls and capacity units of a DynamoDB client, as the database reports them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

CALLS: Final = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "GetItem", "Query")
READS: Final = frozenset({"GetItem", "Query"})


@dataclass
class Meter:
    """Calls and capacity units since the last reset; ``read`` is the part of the units that reads cost."""

    calls: list[str] = field(default_factory=list)
    units: float = 0.0
    read: float = 0.0

    def ask(self, params: dict[str, Any], model: Any, **_: object) -> dict[str, Any]:
        self.calls.append(model.name)
        return {**params, "ReturnConsumedCapacity": "TOTAL"}

    def count(self, parsed: dict[str, Any], model: Any, **_: object) -> None:
        used = parsed["ConsumedCapacity"]  # of a transaction: for each table
        units = sum(table["CapacityUnits"] for table in (used if isinstance(used, list) else [used]))
        self.units += units
        self.read += units if model.name in READS else 0

    @property
    def writes(self) -> int:
        return len([call for call in self.calls if call not in READS])

    def reset(self) -> None:
        self.calls.clear()
        self.units = self.read = 0.0


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
