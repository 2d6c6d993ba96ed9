"""What a suspended task waits for, and the text in which its head has its waits."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain.record_names import OVER, SEPARATOR, act_of, call_of

if TYPE_CHECKING:
    from collections.abc import Sequence

WAITS: Final = 20
NAME: Final = 100


class WaitKind(StrEnum):
    """The kind of a wait."""

    QUESTION = "question"
    SLEEP = "sleep"
    TIMEOUT = "timeout"
    REMINDER = "reminder"
    EVENT = "event"
    CALL = "call"
    BUDGET = "budget"
    PAUSE = "pause"
    RETRY = "retry"


SHOWN_WHEN_OVER: Final = frozenset(WaitKind) - {WaitKind.CALL, WaitKind.TIMEOUT, WaitKind.REMINDER}
"""The kinds whose waits have a record once they are over. A call has records of its own; time limits and reminders are
parts of other waits."""


REPEATED: Final = frozenset({WaitKind.BUDGET, WaitKind.PAUSE})
"""The kinds of which a task may come to several waits of one name."""


class OpenWait(NamedTuple):
    """A wait (``kind`` is a ``WaitKind``) that has been open since ``since`` (ms), until ``until`` (ms) at the latest.

    ``until`` is None if the wait has no end of its own. ``name`` is the author's, within its scopes; that of a
    question, of its time limit and of its reminder is the id of the question's message. That of a step's retry has a
    slash and the number of the next try behind it. It has 100 characters at most.
    """

    kind: str
    name: str
    since: int
    until: int | None = None


class OpenWaits(NamedTuple):
    """The first open waits, and how many ``more`` there are."""

    waits: tuple[OpenWait, ...] = ()
    more: int = 0


def over_name(kind: str, name: str, since: int) -> str:
    """The name of the record of the times of a wait that is over, and was open since ``since`` (ms)."""
    return f"{OVER}{kind}/{name}/{since}" if kind in REPEATED else f"{OVER}{kind}/{name}"


def wait_of(record: str) -> tuple[str, str]:
    """The kind and the name of the wait to which a record of this ``over_name`` belongs."""
    kind, _, name = record.removeprefix(OVER).partition("/")
    return kind, name.rpartition("/")[0] if kind in REPEATED else name


def shown_name(path: str) -> str:
    """The name by which people know the wait of this path."""
    scopes, separator, last = path.rpartition(SEPARATOR)
    call = call_of(path)
    name = call.path if call else f"{scopes}{separator}{act_of(last)[1]}"
    return name[:NAME].encode(errors="replace").decode()


def dump_waits(waits: Sequence[OpenWait]) -> str:
    """The text in which a head has the first ``WAITS`` of these, and the number of the others."""
    return json.dumps([max(0, len(waits) - WAITS), *waits[:WAITS]], ensure_ascii=False, separators=(",", ":"))


def load_waits(text: str) -> OpenWaits:
    """The waits in a text of ``dump_waits``, or in ""."""
    more, *waits = json.loads(text or "[0]")
    return OpenWaits(tuple(OpenWait(*wait) for wait in waits), more)
