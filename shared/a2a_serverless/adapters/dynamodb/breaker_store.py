"""Open circuit breakers, one item for each host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.adapters.dynamodb import items, keys
from a2a_serverless.domain.circuit_breaker import FORGET_MS, OpenBreaker

if TYPE_CHECKING:
    from a2a_serverless.adapters.dynamodb.table import Table


class DynamoBreakerStore:
    """``ports.BreakerStore``."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get_open_breaker(self, host: str) -> OpenBreaker | None:
        item = self._table.get(keys.host(host), keys.TRIP)
        return items.record_of(OpenBreaker, item) if item else None

    def store_open_breaker(self, host: str, open_breaker: OpenBreaker) -> None:
        expires = (open_breaker.until + FORGET_MS) // 1000
        self._table.write(
            self._table.put(items.make_item(keys.host(host), keys.TRIP, expires, items.record_item(open_breaker)))
        )
