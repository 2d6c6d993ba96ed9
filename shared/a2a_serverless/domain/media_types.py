"""Matching of media types (RFC 9110, 8.3.1) in cards and messages."""

from __future__ import annotations

from collections.abc import Iterable


def fits(mode: str, media_type: str) -> bool:
    """Whether the two match; each may be a range such as ``text/*``, and parameters are ignored.

    Old cards use ``text`` for ``text/*``.
    """
    kind, _, form = _essence(mode).partition("/")
    other_kind, _, other_form = _essence(media_type).partition("/")
    return _alike(kind, other_kind) and _alike(form or "*", other_form or "*")


def fits_any(modes: Iterable[str], media_type: str) -> bool:
    """Whether one of the modes matches ``media_type``."""
    return any(fits(mode, media_type) for mode in modes)


def _alike(first: str, second: str) -> bool:
    return first == second or "*" in {first, second}


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()
