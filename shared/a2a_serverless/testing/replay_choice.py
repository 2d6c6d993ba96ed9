"""Whether harnesses replay: their option, else the mark of the running test, else yes."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

MARKED: Final[ContextVar[bool]] = ContextVar("replay", default=True)
"""What the mark of the running test says."""


def is_replaying(option: bool | None) -> bool:  # noqa: FBT001 - the harness's option
    """Whether a harness with this option replays."""
    return MARKED.get() if option is None else option
