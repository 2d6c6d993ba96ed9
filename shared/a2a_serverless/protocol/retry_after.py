"""Reads ``Retry-After`` (RFC 9110, 10.2.3): seconds, or a date."""

from __future__ import annotations


def seconds_to_wait(text: str | None, now: str | int) -> int | None:
    """The seconds that a ``Retry-After`` of this text asks for, from ``now`` on; None if it cannot be read.

    ``now`` is the time in ms, or the ``Date`` of the answer, by the clock of the server that named the date.
    """
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return int(text[:9])
    try:
        begin_s = _seconds_of(now) if isinstance(now, str) else now // 1000
        return max(0, _seconds_of(text) - begin_s)
    except (OverflowError, TypeError, ValueError):
        return None


def _seconds_of(date: str) -> int:
    """A date (RFC 9110, 5.6.7) in seconds since the epoch. Raises TypeError, ValueError or OverflowError."""
    from email.utils import mktime_tz, parsedate_tz  # few answers name a date

    return int(mktime_tz(parsedate_tz(date)))  # type: ignore[arg-type] # None is no date, and a TypeError
