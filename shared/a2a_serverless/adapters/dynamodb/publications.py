"""Public documents: the key set, the cards, the base URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.adapters.dynamodb import items, keys, log_format

if TYPE_CHECKING:
    from a2a_serverless.adapters.dynamodb.table import Table
    from a2a_serverless.domain.model import Json


class DynamoPublications:
    """``ports.Publications``. Public documents never expire."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def publish(self, name: str, document: Json) -> None:
        body = {"body": {"S": log_format.dump_document(document)}}
        self._table.write(self._table.put(items.make_item(keys.PUBLIC, keys.document(name), None, body)))

    def get_document(self, name: str) -> Json:
        item = self._table.get(keys.PUBLIC, keys.document(name))
        return log_format.load_document(items.readable(item)["body"]["S"]) if item else None
