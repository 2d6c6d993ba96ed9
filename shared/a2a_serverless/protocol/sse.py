"""Server-sent events (WHATWG HTML, 9.2): the frames of a stream, on both bindings and in both versions."""

from __future__ import annotations

from typing import Final

CONTENT_TYPE: Final = "text/event-stream"
BEAT: Final = b": still here\n\n"


def frame(data: bytes, n: int | None = None) -> bytes:
    """One event. ``data`` is compact JSON, without line breaks; ``n`` becomes the id that a client resumes with."""
    return (b"" if n is None else b"id: %d\n" % n) + b"data: " + data + b"\n\n"


def failure(data: bytes) -> bytes:
    """The event that ends a failed stream, with the name that the official SDK gives it."""
    return b"event: error\n" + frame(data)


def last_event_id(header: str | None) -> int | None:
    """The event number in ``Last-Event-ID``. None if it is missing, or cannot be the number of an event."""
    text = (header or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None  # noqa: PLR2004 - a log's length
