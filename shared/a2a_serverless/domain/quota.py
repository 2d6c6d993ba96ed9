"""Quotas: the most that each owner may use in a window of time, and the most open streams."""

from __future__ import annotations

from typing import NamedTuple


class Quota(NamedTuple):
    """The limits for each owner. Zero means no limit.

    ``sends`` is messages per minute, ``uploads`` bytes per day (UTC), counted when an upload is requested, ``streams``
    open streams at a time. ``streams_in_all`` is the number of open streams of all owners together.
    """

    sends: int = 0
    streams: int = 0
    uploads: int = 0
    streams_in_all: int = 0
