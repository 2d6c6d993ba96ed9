"""What is kept of owners, in the table and in memory. It expires when nothing is heard of an owner for a while."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters import items, keys
from a2a_serverless.domain.share import Share, Unfinished

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.adapters.items import Item
    from a2a_serverless.adapters.table import Table
    from a2a_serverless.domain.model import Principal

DAY_S: Final = 86_400
KEPT_S: Final = 30 * DAY_S


class DynamoOwners:
    """``ports.Owners``. ``now`` is the clock (ms)."""

    def __init__(self, table: Table, now: Callable[[], int]) -> None:
        self._table = table
        self._now = now

    def share(self, who: Principal) -> Share | None:
        item = self._table.get(keys.owner(who), keys.SHARE)
        return _share_of(item) if item else None

    def keep_share(self, who: Principal, before: Share | None, after: Share) -> bool:
        item = items.placed(keys.owner(who), keys.SHARE, self._expires(), _said(after))
        if before is None:
            return self._table.write(self._table.put_new(item)) is None
        held = _said(before)
        change = {**_said(after), "expires": item["expires"]}
        return self._table.write(self._table.update(item, held, change, held)) is None

    def unfinished(self, who: Principal) -> Unfinished | None:
        item = self._table.get(keys.owner(who), keys.UNFINISHED)
        if item is None:
            return None
        known = items.readable(item)
        return Unfinished(int(known["at"]["N"]), frozenset(known["tasks"]["S"].split()), "more" in known)

    def keep_unfinished(self, who: Principal, counted: Unfinished) -> None:
        said: Item = {"at": {"N": str(counted.at)}, "tasks": {"S": " ".join(sorted(counted.tasks))}}
        if counted.more:
            said["more"] = {"BOOL": True}
        self._table.write(self._table.put(items.placed(keys.owner(who), keys.UNFINISHED, self._expires(), said)))

    def hold_stream(self, who: Principal, name: str, until: int) -> None:
        for pk in (keys.owner(who), keys.OPEN):
            self._table.write(self._table.put(items.placed(pk, keys.stream(name), -(-until // 1000), {})))

    def drop_stream(self, who: Principal, name: str) -> None:
        self._table.erase({"pk": {"S": pk}, "sk": {"S": keys.stream(name)}} for pk in (keys.owner(who), keys.OPEN))

    def streams(self, who: Principal | None, limit: int) -> int:
        found = self._table.beginning(keys.owner(who) if who else keys.OPEN, keys.STREAMS)
        return sum(1 for _, _ in zip(range(limit), found, strict=False))

    def admit_upload(self, who: Principal, day: int, size: int, limit: int) -> bool:
        if size > limit:
            return False
        place = {"pk": {"S": keys.owner(who)}, "sk": {"S": keys.uploads(day)}}
        return self._table.write(self._table.count(place, "used", limit, expires=(day + 2) * DAY_S, by=size)) is None

    def _expires(self) -> int:
        return self._now() // 1000 + KEPT_S


class MemoryOwners:
    """The twin."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._lock = RLock()
        self._shares: dict[Principal, Share] = {}
        self._unfinished: dict[Principal, Unfinished] = {}
        self._streams: dict[Principal, dict[str, int]] = {}
        self._uploads: dict[Principal, dict[int, int]] = {}

    def share(self, who: Principal) -> Share | None:
        return self._shares.get(who)

    def keep_share(self, who: Principal, before: Share | None, after: Share) -> bool:
        with self._lock:
            same = self._shares.get(who) == before
            if same:
                self._shares[who] = after
        return same

    def unfinished(self, who: Principal) -> Unfinished | None:
        return self._unfinished.get(who)

    def keep_unfinished(self, who: Principal, counted: Unfinished) -> None:
        self._unfinished[who] = counted

    def hold_stream(self, who: Principal, name: str, until: int) -> None:
        with self._lock:
            self._streams.setdefault(who, {})[name] = -(-until // 1000)

    def drop_stream(self, who: Principal, name: str) -> None:
        with self._lock:
            self._streams.get(who, {}).pop(name, None)

    def streams(self, who: Principal | None, limit: int) -> int:
        with self._lock:
            streams = [self._streams.get(who, {})] if who else self._streams.values()
            return min(limit, sum(until * 1000 > self._now() for held in streams for until in held.values()))

    def admit_upload(self, who: Principal, day: int, size: int, limit: int) -> bool:
        with self._lock:
            days = self._uploads.setdefault(who, {})
            if days.get(day, 0) + size > limit:
                return False
            days[day] = days.get(day, 0) + size
            return True

    def count_anew(self, who: Principal) -> None:
        """Forgets the owner's unfinished tasks."""
        self._unfinished.pop(who, None)

    def erase(self, who: Principal, *, really: bool = True) -> int:
        """Forgets all of an owner; returns how much that is."""
        with self._lock:
            several = len(self._streams.get(who, {})) + len(self._uploads.get(who, {}))
            count = (who in self._shares) + (who in self._unfinished) + several
            if really:
                for kept in (self._shares, self._unfinished, self._streams, self._uploads):
                    kept.pop(who, None)
        return count


def _said(share: Share) -> Item:
    return {name: {"N": str(getattr(share, name))} for name in ("level", "at", "made")}


def _share_of(item: Item) -> Share:
    known = items.readable(item)
    return Share(int(known["level"]["N"]), int(known["at"]["N"]), int(known["made"]["N"]))
