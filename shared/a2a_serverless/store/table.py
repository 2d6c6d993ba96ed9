"""The table under the stores: reads of one partition or of an index, and conditional writes of all actions or none.

A condition that does not hold is a return value, not an exception. An expired item counts as absent everywhere, because
DynamoDB deletes it only days later. DynamoDB's table (``store.dynamodb``) and the in-memory table (``testing.memory``)
implement ``Table``; the contract tests run against both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from a2a_serverless.store.items import Item, WriteConflict


class Put(NamedTuple):
    """Writes the item, and replaces an existing item."""

    item: Item


class PutNew(NamedTuple):
    """Writes the item if there is no item, or if the attribute ``unlike`` of the existing item has another value."""

    item: Item
    unlike: str | None = None


class Update(NamedTuple):
    """Writes the differences between ``before`` and ``after``, if the item exists and matches ``expected``.

    None in ``expected`` means that the attribute must be absent. Unchanged attributes are not written, so an index that
    holds only those costs nothing.
    """

    where: Item
    before: Item
    after: Item
    expected: Mapping[str, Any]


class Count(NamedTuple):
    """Adds ``by`` to a number (0 if absent) if the result is at most ``limit``; the item expires at ``expires`` (s).

    ``by`` must be at most ``limit``.
    """

    where: Item
    attribute: str
    limit: int
    expires: int
    by: int = 1


class Check(NamedTuple):
    """Writes nothing, and fails the others unless the item exists and matches ``expected``. Never the only action."""

    where: Item
    expected: Mapping[str, Any]


class Delete(NamedTuple):
    """Deletes the item, if it matches ``expected`` or does not exist."""

    where: Item
    expected: Mapping[str, Any]


Action: TypeAlias = Put | PutNew | Update | Count | Check | Delete


class Table(Protocol):
    """One table: items of at most 400 KB by partition and sort key, with three indexes that lag behind it.

    Every call raises Overloaded when the table cannot answer now; a write may have taken effect then, and may be
    retried. Other errors (no permission, no such table) are those of the implementation.
    """

    def now(self) -> int:
        """The time (ms) that decides which items have expired."""

    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        """One item, or None. Without ``consistent`` it costs half and may miss the last second's writes."""

    def has_any(self, pk: str, *sks: str) -> bool:
        """Whether an item exists under any of these sort keys, at most 100, at one moment."""
        ...

    def query_range(
        self, pk: str, first: str, last: str, *, limit: int = 0, newest_first: bool = False
    ) -> Iterator[Item]:
        """The items of a partition from one sort key to another, both included; each page is strongly consistent.

        At most ``limit`` items; 0 is all. A transaction may be seen by halves.
        """
        ...

    def query_prefix(self, pk: str, prefix: str, *only: str) -> Iterator[Item]:
        """The items of a partition whose sort key begins with ``prefix``; each page is strongly consistent.

        With ``only``, at least these attributes of them (``expires`` among them, or expired items are there, too).
        """
        ...

    def query_due(self, shard: str, until: str, limit: int = 0, since: str = "0") -> Iterator[Item]:
        """The first entries of the due index between two times, oldest first. At most ``limit`` entries; 0 is all."""
        ...

    def query_newest(self, index: str, partition: tuple[str, str], first: str, last: str, limit: int) -> list[Item]:
        """At most ``limit`` entries of a list index, newest first, with ``st`` from ``first`` to ``last`` (included).

        ``partition`` is that of the index: attribute and value.
        """
        ...

    def query_index(self, index: str, partition: tuple[str, str], after: str | None, limit: int) -> list[Item]:
        """At most ``limit`` entries of a list index after position ``after``, expired ones too."""
        ...

    def list_keys(self, pk: str, prefix: str = "") -> Iterable[Item]:
        """The keys of all items of a partition whose sort key begins with ``prefix``, expired ones too."""
        ...

    def scan(self, sk: str = "") -> Iterator[Item]:
        """All items of the table in no order, eventually consistent; with ``sk`` those with this sort key.

        It reads the whole table.
        """
        ...

    def erase(self, places: Iterable[Item]) -> int:
        """Deletes items by their keys, without conditions; returns how many keys there were."""
        ...

    def write(self, *actions: Action) -> WriteConflict | None:
        """Does all actions (at most 100, each about another item) or none.

        Returns None on success, a WriteConflict when a condition did not hold. Raises ValueError for an item that the
        table cannot hold. After a lost answer the write is sent again, so a conflict may be with its own first try.
        """
        ...


class TableStore:
    """A store in one table."""

    def __init__(self, table: Table) -> None:
        self._table = table
