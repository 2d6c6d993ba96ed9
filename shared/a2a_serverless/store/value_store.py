"""The values that agents keep: in the partition of their task, or of their owner for a conversation.

A write is one transaction: the item, on condition that the task's head has the fence of the writing run. A deletion
writes an expired item, so that writers need no right to delete; the table removes the item. A write without an expected
version replaces the version that it reads. An item names the versions that it replaced. So a writer whose answer was
lost recognises its write also after other writes, and does not overwrite them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.values import StoredText, encode_key
from a2a_serverless.store import items, keys
from a2a_serverless.store.fence import Fence
from a2a_serverless.store.table import PutNew, Update

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.values import ValueScope
    from a2a_serverless.store.items import Item
    from a2a_serverless.store.payloads import PayloadStore
    from a2a_serverless.store.table import Table

MINUTE_S: Final = 60  # more than the difference of two clocks
MOST_REPLACED: Final = 8
"""The versions that an item names."""
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
        stored version ("" for no value). Returns None when the run does not have the task any more, and if a version
        was expected of none and another writer came between: then it may be tried again. Idempotent by the version: a
        repeated write succeeds, without effect, if its version is stored, or was replaced by one other write since; of
        writes without an expected version by ``MOST_REPLACED``.
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
        version, place = str(item["version"]["S"]), (item["pk"]["S"], item["sk"]["S"])
        earlier, replaced = [expected] if expected else [], expected or ""
        if expected is None and (old := self._table.get(*place)):
            earlier = _versions(old)
            if version in earlier:
                return version
            replaced = earlier[0]
        item |= {"replaced": {"S": " ".join(earlier[:MOST_REPLACED])}} if earlier else {}
        action = Update(item, _OPTIONAL, _attributes(item), {"version": {"S": replaced}}) if replaced else PutNew(item)
        refusal = self._table.write(action, Fence(self._table, head).check)
        if refusal is None:
            return version
        current = refusal.items[0] or self._table.get(*place) or {}
        if version in _versions(current):
            return version  # an earlier try, whose answer was lost; other writes may have replaced it since
        stored = current["version"]["S"] if current and items.is_live(current, self._table.now()) else ""
        return str(stored) if expected is not None and stored != expected else None

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


def _versions(item: Item) -> list[str]:
    """The version of an item, and those that it replaced, the newest first."""
    texts = [item[name]["S"] for name in ("version", "replaced") if name in item]
    return " ".join(texts).split()


def _attributes(item: Item) -> Item:
    return {name: value for name, value in item.items() if name not in {"pk", "sk"}}
