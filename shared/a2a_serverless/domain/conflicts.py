"""Optimistic concurrency: read, decide, write on condition; when the write is refused, begin again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from a2a_serverless.domain.errors import Overloaded

T = TypeVar("T")

TRIES: Final = 20


class Conflict(Exception):
    """A conditional write was refused: what was read has changed since."""


def check_written(written: bool) -> None:  # noqa: FBT001 - what every store returns
    """Raises Conflict if a conditional write was refused."""
    if not written:
        raise Conflict


def _raise_overloaded() -> NoReturn:
    raise Overloaded


def retry_on_conflict(attempt: Callable[[], T], exhausted: Callable[[], T] = _raise_overloaded) -> T:
    """Returns what ``attempt`` returns; repeats it while it raises Conflict, at once, ``TRIES`` times in all.

    Then returns what ``exhausted`` returns, which by default raises Overloaded.
    """
    for _ in range(TRIES):
        try:
            return attempt()
        except Conflict:
            continue
    return exhausted()
