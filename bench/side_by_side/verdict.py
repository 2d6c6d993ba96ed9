"""What is right in a play: reads effects, answers and faults, and knows no system.

Every system promises to do a step at least once. So an effect may be repeated if a fault came while it was under way,
or less than ``STORED_S`` after its answer: nobody outside knows then whether it was stored. All else is wrong.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from effects import Effect

STORED_S: Final = 3.0
# A workflow that has failed answers with this and the reason.
FAILED: Final = "failed: "


@dataclass(frozen=True)
class Fault:
    """When it began, and when it was over; a process dies within a second."""

    begin: float
    end: float

    def excuses(self, before: Effect, again: Effect) -> bool:
        """Whether an effect may have been lost, and so may happen again."""
        recent = before.answered is None or before.answered > self.begin - STORED_S
        aftermath = STORED_S if self.end > self.begin + 1 else 0.0  # what stood still catches up
        return before.asked <= self.end + aftermath and self.begin <= again.asked and recent


@dataclass(frozen=True)
class Expected:
    """The answer, the effects that must happen, and those that only the changed code has."""

    answer: str
    effects: Sequence[str]
    changed: Collection[str] = ()


@dataclass
class Verdict:
    """``result`` is ``right``, ``wrong``, ``lost`` (not ended, or failed) or ``waits`` (as the documents say)."""

    result: str
    repeated: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def judge(
    effects: Sequence[Effect], faults: Sequence[Fault], expected: Expected, answer: str | None, *, waits: bool = False
) -> Verdict:
    """Judges a play that has ended with ``answer``; ``None`` is a play that has not ended."""
    failed = answer is None or answer.startswith(FAILED)
    happened = {one.name for one in effects if one.done is not None}
    verdict = Verdict(
        "lost" if failed and (answer or not waits) else "waits" if waits else "right",
        dict(repeats(effects, faults)),
        [] if failed else sorted(set(expected.effects) - happened),
        sorted({one.name for one in effects} - {*expected.effects, *expected.changed}),
    )
    wrong_answer = not failed and answer != expected.answer
    if verdict.repeated.get("stored") or verdict.missing or verdict.unknown or wrong_answer:
        verdict.result = "wrong"
    return verdict


def repeats(effects: Sequence[Effect], faults: Sequence[Fault]) -> Counter[str]:
    """Counts effects that happened again: ``under way`` and ``recent`` ones may, ``stored`` ones must not."""
    counted: Counter[str] = Counter()
    for number, again in enumerate(effects):
        before = [one for one in effects[:number] if one.name == again.name and one.done is not None]
        if not before or again.done is None:
            continue
        if all(any(fault.excuses(one, again) for fault in faults) for one in before):
            counted["under way" if all(one.answered is None for one in before) else "recent"] += 1
        else:
            counted["stored"] += 1
    return counted


def goes_on(effects: Sequence[Effect], since: float) -> float | None:
    """Seconds until a process asks for an effect; ``None`` if none does."""
    later = [one.asked for one in effects if one.asked > since]
    return round(min(later) - since, 1) if later else None
