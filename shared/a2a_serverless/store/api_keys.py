"""API keys. A key that exists is cached for a while, so a revoked key works that much longer."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.access import ApiKey
from a2a_serverless.domain.model import Principal
from a2a_serverless.store import items
from a2a_serverless.store.table import Delete, Put, TableStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.store.items import Item

PARTITION: Final = "ACCESS"
KEPT_MS: Final = 60_000
KEPT: Final = 1000
ABSENT_MS: Final = 5_000
FRESH: Final = 20


class ApiKeyStore(TableStore):
    """The API keys of a deployment, stored by their digests."""

    def find(self, digest: str, *, fresh: bool = True) -> ApiKey | None:
        """The key; None if it is absent or revoked. Without ``fresh`` the answer may be slightly out of date."""
        item = self._table.get(PARTITION, digest, consistent=fresh)
        return _key_of(item) if item else None

    def add(self, key: ApiKey) -> None:
        """Stores a key."""
        attributes = {
            "tenant": {"S": key.principal.tenant},
            "owner": {"S": key.principal.owner},
            "note": {"S": key.note},
            "made_at": {"N": str(key.made_at)},
            "scopes": {"S": " ".join(sorted(key.scopes))},
        }
        self._table.write(Put(items.make_item(PARTITION, key.digest, None, attributes)))

    def revoke(self, digest: str) -> None:
        """Deletes a key. Nothing happens if it is absent."""
        place = items.make_place(PARTITION, digest)
        self._table.write(Delete(place, {"sk": place["sk"]}))

    def list_all(self) -> list[ApiKey]:
        """Every readable key, sorted by digest."""
        return list(items.read_each(_key_of, self._table.query_range(PARTITION, "0", "g")))  # digests are hex digits


class CachedApiKeyStore:
    """Finds keys without reading the table each time.

    A key that exists is cached for ``KEPT_MS``, and so works that much longer after it is revoked. A missing key is
    cached for ``ABSENT_MS``. An invented key costs an eventually consistent read. If that read returns nothing, the key
    may be new: a consistent read follows, at most ``FRESH`` times a second.
    """

    def __init__(self, keys: ApiKeyStore, now: Callable[[], int]) -> None:
        self._keys = keys
        self._now = now
        self._present: dict[str, tuple[int, ApiKey]] = {}
        self._absent: OrderedDict[str, int] = OrderedDict()
        self._fresh = (0, 0)

    def find(self, digest: str, *, fresh: bool = True) -> ApiKey | None:
        """The key; None if it is absent or revoked."""
        entry, now = self._present.get(digest), self._now()
        if entry and now - entry[0] < KEPT_MS:
            return entry[1]
        if now - self._absent.get(digest, -ABSENT_MS) < ABSENT_MS:
            return None
        key = self._keys.find(digest, fresh=False) or (self._reload(digest, now) if fresh else None)
        self._present.pop(digest, None)
        if key is None:
            self._miss(digest, now)
        elif len(self._present) < KEPT:
            self._present[digest] = (now, key)
        return key

    def _reload(self, digest: str, now: int) -> ApiKey | None:
        second, used = self._fresh
        used = used + 1 if second == now // 1000 else 1
        self._fresh = (now // 1000, used)
        return self._keys.find(digest) if used <= FRESH else None

    def _miss(self, digest: str, now: int) -> None:
        self._absent[digest] = now
        if len(self._absent) > KEPT:
            self._absent.popitem(last=False)


def _key_of(item: Item) -> ApiKey:
    attributes = items.readable(item)
    principal = Principal(attributes["tenant"]["S"], attributes["owner"]["S"])
    scopes = frozenset(attributes["scopes"]["S"].split())
    return ApiKey(attributes["sk"]["S"], principal, attributes["note"]["S"], int(attributes["made_at"]["N"]), scopes)
