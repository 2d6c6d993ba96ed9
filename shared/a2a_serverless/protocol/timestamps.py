"""Moments: whole milliseconds since the epoch inside, ISO 8601 in UTC on the wire (specification 5.6.1)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - printing appends the Z itself
_HTTP_DATE: Final = "%a, %d %b %Y %H:%M:%S GMT"
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)


def to_text(at: int) -> str:
    """``2026-05-28T09:30:00.000Z``."""
    return (_EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds") + "Z"


def from_text(text: str) -> int:
    """Milliseconds, cut off below; without a zone it is UTC (0.3 examples lack it). Raises ValueError."""
    found = _MOMENT.fullmatch(text)
    if not found:
        raise ValueError("not a timestamp")
    date, clock, fraction, zone = found.groups()
    moment = datetime.fromisoformat(f"{date}T{clock}{'+00:00' if zone in {None, 'Z', 'z'} else zone}")
    try:
        whole = (moment.astimezone(UTC).replace(tzinfo=None) - _EPOCH) // timedelta(seconds=1)
    except OverflowError:
        raise ValueError("not a timestamp") from None
    return whole * 1000 + int((fraction or "").ljust(3, "0")[:3])


def from_http_date(text: str) -> int:
    """Milliseconds of a date as HTTP headers have it (RFC 9110, 5.6.7), in its preferred form. Raises ValueError."""
    return (datetime.strptime(text, _HTTP_DATE) - _EPOCH) // timedelta(milliseconds=1)  # noqa: DTZ007 - as _EPOCH
