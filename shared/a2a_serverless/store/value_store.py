"""The values that agents keep: in the partition of their task, or of their owner for a conversation.

A write is one transaction: the item, on condition that the task's head has the fence of the writing run. A deletion
writes an expired item, so that writers need no right to delete; the table removes the item. An item names the version
that it replaced. So a writer whose answer was lost recognises its write even after the next write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.values import StoredText, encode_key
from a2a_serverless.store import items, keys
from a2a_serverless.store.fence import Fence
from a2a_serverless.store.table import Put, PutNew, Update

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.values import ValueScope
    from a2a_serverless.store.items import Item
    from a2a_serverless.store.payloads import PayloadStore
    from a2a_serverless.store.table import Action, Table

MINUTE_S: Final = 60  # more than the difference of two clocks
_OPTIONAL: Final[Item] = {"body": None, "blob": None, "size": None, "replaced": None}  # optional attributes


class ValueStore:
    """Values of tasks and conversations. All reads are strongly consistent; expired values do not exist.

    ``head`` is the head of the writing run. A write takes effect only while that run has the task, and expires with it.
    Its agent is stored with the value.
    Large values are stored as blobs, like the texts of the log.
    """

    def __init__(self, table: Table, payloads: PayloadStore) -> None:
        self._table = table
        self._payloads = payloads

    def get_value(self, scope: ValueScope, key: str) -> StoredText | None:
        """The value, or None."""
        item = self._table.get(*_place(scope, encode_key(key)))
        return self._text_of(item) if item else None

    def list_values(self, scope: ValueScope, prefix: str, after: str, limit: int) -> list[StoredText]:
        """At most ``limit`` values whose keys begin with ``prefix``, in a fixed order, after the key ``after``."""
        pk, first = _place(scope, encode_key(prefix) if prefix else "")
        later = f"{_place(scope, encode_key(after))[1]}!" if after else first  # "!" sorts before any character
        rows = self._table.query_range(pk, max(first, later), f"{first}\x7f", limit=limit)
        return [self._text_of(item) for item in rows]

    def put_value(self, head: Head, scope: ValueScope, value: StoredText, expected: str | None) -> str | None:
        """Stores a value and returns its version; ``expected`` is the version that it replaces, "" for no value.

        With None it replaces any version. If the expected version is not stored, this writes nothing and returns the
        stored version ("" for no value). Returns None when the run does not have the task any more. Idempotent by the
        version: a repeated write succeeds if its version is stored, or was replaced by one other write since.
        """
        if Fence(self._table, head).is_lost():
            return None
        body = self._payloads.store(scope.blobs, value.text)
        return self._write(head, _item(head, scope, value.key, value.version) | body, expected)

    def delete_value(self, head: Head, scope: ValueScope, key: str, version: str, expected: str | None) -> str | None:
        """Deletes a value, as ``put_value`` stores it; returns the ``version`` of the deletion."""
        gone = _item(head._replace(expires=head.created_at // 1000 - MINUTE_S), scope, key, version)
        stored = self._write(head, gone, expected)
        return version if stored == "" else stored

    def _write(self, head: Head, item: Item, expected: str | None) -> str | None:
        version = str(item["version"]["S"])
        item |= {"replaced": {"S": expected}} if expected else {}
        refusal = self._table.write(self._replacing(item, expected), Fence(self._table, head).check)
        if refusal is None:
            return version
        current = refusal.items[0] or self._table.get(item["pk"]["S"], item["sk"]["S"]) or {}
        if {"S": version} in (current.get("version"), current.get("replaced")):
            return version  # an earlier try, whose answer was lost; another write may have replaced it since
        stored = current["version"]["S"] if current and items.is_live(current, self._table.now()) else ""
        return str(stored) if expected is not None and stored != expected else None

    def _replacing(self, item: Item, expected: str | None) -> Action:
        if expected is None:
            return Put(item)
        if expected == "":
            return PutNew(item)
        return Update(item, _OPTIONAL, _attributes(item), {"version": {"S": expected}})

    def _text_of(self, item: Item) -> StoredText:
        attributes = items.readable(item)
        return StoredText(
            attributes["key"]["S"],
            self._payloads.fetch(attributes),
            attributes["version"]["S"],
            attributes.get("agent", {}).get("S", ""),
        )


def _place(scope: ValueScope, name: str) -> tuple[str, str]:
    if scope.context_id is None:
        return keys.task(scope.key), f"{keys.VALUES}{name}"
    return keys.owner(scope.key), f"{keys.context(scope.context_id)}{name}"


def _item(head: Head, scope: ValueScope, key: str, version: str) -> Item:
    place, texts = _place(scope, encode_key(key)), {"key": key, "version": version, "agent": head.agent}
    return items.make_item(*place, head.expires, {name: {"S": text} for name, text in texts.items()})


def _attributes(item: Item) -> Item:
    return {name: value for name, value in item.items() if name not in {"pk", "sk"}}
