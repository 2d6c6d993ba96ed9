"""The periods of a task's life: queued, in a run, suspended; and the text in which its head has them.

Each period begins where the one before it ends, and the first begins with the task. So the periods account for every
millisecond, and a run never overlaps a suspension. The change of the head that begins or ends a lease writes them.

The text has a word for each period: its letter, and how long it was (ms). The last word of a task that has not ended is
a letter alone; no text means that the task is still in its first queue. A run that died has a second number: when it
wrote last. The first word may be the sums of the runs that are older than the last ``RUNS``, and of what lay before.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

RUNS: Final = 20


class RunEnd(StrEnum):
    """Why a run was over. ``REPLACED``: by newer code, or because it took its task once more."""

    ENDED = "ended"
    WAITS = "waits"
    HANDED_OVER = "handed-over"
    DIED = "died"
    REPLACED = "replaced"


QUEUED: Final = "q"
SUSPENDED: Final = "s"
RUN: Final = "r"
_ENDS: Final = {
    "e": RunEnd.ENDED,
    "w": RunEnd.WAITS,
    "h": RunEnd.HANDED_OVER,
    "d": RunEnd.DIED,
    "p": RunEnd.REPLACED,
}
_LETTERS: Final = {end: letter for letter, end in _ENDS.items()}


class Period(NamedTuple):
    """A period from ``began_at`` to ``ended_at`` (ms); None if it goes on. ``letter`` is its kind.

    A run has the number of its fence and, once it is over, its ``end``. One that died has ended between
    ``last_write_at`` and ``ended_at``, the end of its lease.
    """

    letter: str
    began_at: int
    ended_at: int | None = None
    run: int = 0
    end: RunEnd | None = None
    last_write_at: int | None = None


class EarlierRuns(NamedTuple):
    """How many runs are summed, and their sums: how long the task was queued, in these runs, and suspended (ms)."""

    runs: int
    queued_ms: int
    run_ms: int
    suspended_ms: int

    @property
    def total_ms(self) -> int:
        """How long all of that took."""
        return self.queued_ms + self.run_ms + self.suspended_ms


class Periods(NamedTuple):
    """The sums of the ``earlier`` runs, None if there are none, and the ``latest`` periods after them."""

    earlier: EarlierRuns | None
    latest: list[Period]


def end_suspension(text: str, created_at: int, at: int) -> str:
    """The task may run from ``at`` on. A run goes on."""
    letter, began_at = _open_period(text, created_at)
    return _close(text, at - began_at) + f" {QUEUED}" if letter == SUSPENDED else text


def begin_run(text: str, created_at: int, at: int) -> str:
    """A run has taken the queued task."""
    _, began_at = _open_period(text, created_at)
    return _sum_earlier(_close(text, at - began_at)) + f" {RUN}"


def end_run(text: str, created_at: int, at: int, end: RunEnd, *, last_write_at: int = 0) -> str:
    """The run is over; what follows is a suspension if it ``WAITS``, nothing if it has ``ENDED``, else the queue.

    A run that ``DIED`` ended between ``last_write_at`` and ``at``, where its lease ended.
    """
    letter, began_at = _open_period(text, created_at)
    took_ms = max(0, at - began_at)
    alive = f".{min(max(0, last_write_at - began_at), took_ms)}" if end is RunEnd.DIED else ""
    closed = f"{text[:-1]}{_LETTERS[end]}{took_ms}{alive}" if letter == RUN else _close(text, took_ms)
    if end is RunEnd.ENDED:
        return closed
    return f"{closed} {SUSPENDED if end is RunEnd.WAITS else QUEUED}"


def pause_queued(text: str, created_at: int, at: int) -> str:
    """The queued task is paused: it is suspended without a run."""
    letter, began_at = _open_period(text, created_at)
    return text if letter == SUSPENDED else _close(text, at - began_at) + f" {SUSPENDED}"


def end_task(text: str, created_at: int, at: int) -> str:
    """The task has ended outside of a run."""
    return _close(text, at - _open_period(text, created_at)[1])


def is_in_run(text: str) -> bool:
    """Whether the last period is a run that goes on."""
    return text.endswith(RUN)


def read_periods(text: str, created_at: int, fence: int) -> Periods:
    """The periods of a task. ``fence`` is that of its last run."""
    words, earlier, at = (text or QUEUED).split(), _read_sums(text), created_at
    if earlier:
        words, at = words[1:], at + earlier.total_ms
    run = fence - sum(word[0] not in {QUEUED, SUSPENDED} for word in words)
    periods = list[Period]()
    for word in words:
        letter, number = word[0], 0
        if letter not in {QUEUED, SUSPENDED}:
            run, number, letter = run + 1, run + 1, RUN
        took, _, alive = word[1:].partition(".")
        ended_at = at + int(took) if took else None
        last_write_at = at + int(alive) if alive else None
        periods.append(Period(letter, at, ended_at, number, _ENDS.get(word[0]), last_write_at))
        at = ended_at or at
    return Periods(earlier, periods)


def _open_period(text: str, created_at: int) -> tuple[str, int]:
    """The letter of the last period, and when it began; a period that is over is its own end."""
    last = read_periods(text, created_at, 0).latest[-1]
    return last.letter, last.began_at if last.ended_at is None else last.ended_at


def _close(text: str, took_ms: int) -> str:
    """The text with the end of its last period. Clocks differ: none ends before it began."""
    text = text or QUEUED
    return f"{text}{max(0, took_ms)}" if text[-1].isalpha() else text


def _read_sums(text: str) -> EarlierRuns | None:
    first = text.partition(" ")[0]
    return EarlierRuns(*map(int, first[1:].split("."))) if first.startswith("+") else None


def _sum_earlier(text: str) -> str:
    """Adds the oldest run to the sums, with what lay before it, if a new one would be more than ``RUNS``."""
    earlier, words = _read_sums(text), text.split()
    words = words[1:] if earlier else words
    at = [number for number, word in enumerate(words) if word[0] in _ENDS]
    if len(at) < RUNS:
        return text
    sums = {QUEUED: 0, SUSPENDED: 0, RUN: 0}
    for word in words[: at[0] + 1]:
        sums[word[0] if word[0] in sums else RUN] += int(word[1:].partition(".")[0])
    runs, queued_ms, run_ms, suspended_ms = earlier or (0, 0, 0, 0)
    total = (runs + 1, queued_ms + sums[QUEUED], run_ms + sums[RUN], suspended_ms + sums[SUSPENDED])
    return " ".join([f"+{'.'.join(map(str, total))}", *words[at[0] + 1 :]])
