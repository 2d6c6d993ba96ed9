"""How much an owner may ask for, and what of it is left: arithmetic over a small record that instances share.

Sends are drawn from a token bucket a few at a time, so that most of them cost no call. ``made`` counts what was drawn
since the owner's unfinished tasks were last counted: together they bound how many there can be now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

MINUTE_MS: Final = 60_000
CHUNKS: Final = 60
MAX_SENDS_TAKEN: Final = 10
COUNT_AGAIN_MS: Final = 5_000
_MILLI: Final = 1000


@dataclass(frozen=True, slots=True)
class Quota:
    """What each owner may ask for. Zero is no limit.

    ``requests`` is per second and instance, for all operations, ten seconds of them at once at most; ``sends`` is per
    minute, for messages, wherever they come in; ``tasks`` may be unfinished, and ``streams`` open, at a time;
    ``uploads`` is bytes per day (UTC), counted when an upload is asked for.
    ``streams_in_all`` streams may be open at a time in the whole deployment, whosever they are.
    """

    requests: int = 0
    sends: int = 0
    tasks: int = 0
    streams: int = 0
    uploads: int = 0
    streams_in_all: int = 0


@dataclass(frozen=True, slots=True)
class SendBucket:
    """What is left to an owner: ``level`` thousandths of a send as of ``at`` (ms); ``made``: see above."""

    level: int
    at: int
    made: int = 0


@dataclass(frozen=True, slots=True)
class UnfinishedTasks:
    """An owner's unfinished tasks as of ``at`` (ms). With ``more`` there are others, which were not noted."""

    at: int
    tasks: frozenset[str]
    more: bool = False


@dataclass(frozen=True, slots=True)
class RequestBucket:
    """Requests that are left to an owner at one instance, in thousandths, as of ``at`` (ms)."""

    level: int
    at: int


def new_bucket(quota: Quota, now: int) -> SendBucket:
    """The share of an owner of whom nothing is known. It has made anything: its tasks are counted first."""
    return SendBucket(quota.sends * _MILLI, now, made=quota.tasks)


def refill(share: SendBucket, quota: Quota, now: int) -> SendBucket:
    """The share as of ``now``."""
    gained = max(0, now - share.at) * quota.sends * _MILLI // MINUTE_MS
    return replace(share, level=min(share.level + gained, quota.sends * _MILLI), at=max(now, share.at))


def take_sends(share: SendBucket, quota: Quota) -> tuple[SendBucket, int]:
    """The share after some sends are drawn from it, and how many: 0 when there are none, or no task may be added."""
    wanted = max(1, min(MAX_SENDS_TAKEN, quota.sends // CHUNKS)) if quota.sends else MAX_SENDS_TAKEN
    here = share.level // _MILLI if quota.sends else wanted
    room = quota.tasks - share.made if quota.tasks else wanted
    count = max(0, min(wanted, here, room))
    level = share.level - count * _MILLI if quota.sends else share.level
    return replace(share, level=level, made=share.made + count), count


def seconds_until_send(share: SendBucket, quota: Quota) -> int:
    """Seconds until there is a send again; 0 when there is one, and tasks are what there are too many of."""
    missing = _MILLI - share.level
    return -(-missing * MINUTE_MS // (quota.sends * _MILLI * _MILLI)) if quota.sends and missing > 0 else 0


def take_request(bucket: RequestBucket | None, rate: int, now: int) -> RequestBucket | None:
    """The bucket after one request; None when it is empty. ``rate`` is per second."""
    most = rate * 10 * _MILLI
    level = most if bucket is None else min(most, bucket.level + max(0, now - bucket.at) * rate)
    return RequestBucket(level - _MILLI, now) if level >= _MILLI else None
