"""Quotas per owner, and what is left of them: arithmetic over a small record that instances share.

An instance takes several sends at once from the token bucket, so that most sends need no store call. ``made`` is the
last count of the owner's unfinished tasks, plus the sends that were taken since then: it limits those tasks.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from a2a_serverless.domain.times import MINUTE_MS

CHUNKS: Final = 60
MAX_SENDS_TAKEN: Final = 10
COUNT_AGAIN_MS: Final = 5_000
_MILLI: Final = 1000


class Quota(NamedTuple):
    """The limits for each owner. Zero means no limit.

    ``sends`` is messages per minute in the whole deployment; ``tasks`` is unfinished tasks and ``streams`` open streams
    at a time; ``uploads`` is bytes per day (UTC), counted when an upload is requested. ``streams_in_all`` is the number
    of open streams of all owners together.
    """

    sends: int = 0
    tasks: int = 0
    streams: int = 0
    uploads: int = 0
    streams_in_all: int = 0


class SendBucket(NamedTuple):
    """The sends that an owner has left: ``level`` thousandths as of ``at`` (ms). ``made``: see above."""

    level: int
    at: int
    made: int = 0


class UnfinishedTasks(NamedTuple):
    """The ids of an owner's unfinished tasks as of ``at`` (ms). ``more``: there are others that are not included."""

    at: int
    tasks: frozenset[str]
    more: bool = False


def new_bucket(quota: Quota, now: int) -> SendBucket:
    """The bucket of a new owner. ``made`` is at its limit, so that the owner's tasks are counted before a send."""
    return SendBucket(quota.sends * _MILLI, now, made=quota.tasks)


def refill(share: SendBucket, quota: Quota, now: int) -> SendBucket:
    """The bucket as of ``now`` (ms)."""
    gained = max(0, now - share.at) * quota.sends * _MILLI // MINUTE_MS
    return share._replace(level=min(share.level + gained, quota.sends * _MILLI), at=max(now, share.at))


def take_sends(share: SendBucket, quota: Quota) -> tuple[SendBucket, int]:
    """Takes some sends: the bucket after that, and their number. 0 if no send is left or no task may be added."""
    wanted = max(1, min(MAX_SENDS_TAKEN, quota.sends // CHUNKS)) if quota.sends else MAX_SENDS_TAKEN
    here = share.level // _MILLI if quota.sends else wanted
    room = quota.tasks - share.made if quota.tasks else wanted
    count = max(0, min(wanted, here, room))
    level = share.level - count * _MILLI if quota.sends else share.level
    return share._replace(level=level, made=share.made + count), count


def seconds_until_send(share: SendBucket, quota: Quota) -> int:
    """Seconds until a send is available; 0 if one is, so that unfinished tasks are the limit."""
    missing = _MILLI - share.level
    return -(-missing * MINUTE_MS // (quota.sends * _MILLI * _MILLI)) if quota.sends and missing > 0 else 0
