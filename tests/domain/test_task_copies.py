"""What a retry copies, for each kind of record that the engine stores. The kinds are read from ``record_names``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from a2a_serverless.domain import record_names as names
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.step_results import MOMENT_BITS, StepResult
from a2a_serverless.domain.task_copies import endings_of, select_acts
from a2a_serverless.protocol.v1 import TaskState

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

STEP: Final = ""
KINDS: Final = {
    STEP,
    *(value for name, value in vars(names).items() if name.isupper() and str(value).startswith("@")),
}
CUT: Final = 100
"""When the step ``pay`` failed: its moment, and its time in ms."""


class Case(NamedTuple):
    """Records about the path ``x``, the names of those that are copied if they are older than the failed step.

    ``at_end`` are copied also if no other step began after them. ``counts`` if the path is of an ended step or call.
    """

    records: dict[str, Json]
    older: tuple[str, ...] = ()
    at_end: tuple[str, ...] | None = None
    counts: bool = False


ERROR: Final[Json] = ["builtins", "ValueError", [], None, 0, 0]
LIMIT: Final[dict[str, Json]] = {f"{names.TIMER}timeout:x": 50, names.wait_name("timeout:x"): None}
CALL: Final = names.call_name("x")
CASES: Final[dict[str, list[Case]]] = {
    STEP: [Case({"x": 1}, ("x",), counts=True)],
    names.RAISED: [
        Case({names.raised_name("x", 1): ERROR}, (names.raised_name("x", 1),), (), counts=True),
        Case({names.raised_name("x", 1): ["builtins", "ValueError", [], None, 5, 1]}, counts=True),  # a try to come
    ],
    names.FAILED: [Case({f"{names.FAILED}x": names.raised_name("x", 1)}, counts=True)],
    names.RAW: [Case({f"{names.RAW}x": [1, "digest", "reason"]}, (f"{names.RAW}x",))],
    names.UNFINISHED: [Case({names.unfinished_name("x", 1): None})],
    names.OUTSIDE: [Case({f"{names.OUTSIDE}1": None})],
    names.USAGE: [Case({f"{names.USAGE}x": None}, (f"{names.USAGE}x",))],
    names.SPENT: [Case({f"{names.SPENT}x": None})],
    names.WAIT: [
        Case({names.wait_name("x"): None}, (names.wait_name("x"),)),
        Case(LIMIT, (*LIMIT,), ()),
    ],
    names.TIMER: [
        Case({f"{names.TIMER}x": 40}, (f"{names.TIMER}x",)),
        Case({f"{names.TIMER}x": CUT + 1}),  # it is not over
    ],
    names.OVER: [Case({f"{names.OVER}sleep/x": None})],
    names.NOW: [Case({f"{names.NOW}x": 40}, (f"{names.NOW}x",))],
    names.VALUE: [Case({f"{names.VALUE}x": [1, None]}, (f"{names.VALUE}x",))],
    names.LEFT: [Case({f"{names.LEFT}x": {}}, (f"{names.LEFT}x",))],
    names.EVENT: [
        Case({f"{names.EVENT}x": "url", f"{names.GOT}x": {"at": 40}}, (f"{names.EVENT}x", f"{names.GOT}x")),
        Case({f"{names.EVENT}x": "url"}),
    ],
    names.GOT: [Case({f"{names.EVENT}x": "url", f"{names.GOT}x": {"at": CUT + 1}})],
    names.SIGNED: [Case({f"{names.SIGNED}x": "sealed"})],
    names.CALL: [
        Case({CALL.opened: {}, CALL.sent: {}, CALL.done: {}}, (CALL.opened, CALL.done), counts=True),
        Case({CALL.opened: {}, CALL.told: {}, CALL.failed: {}}, (CALL.opened, CALL.failed), (), counts=True),
        Case({CALL.opened: {}, CALL.canceled: None, CALL.done: {}}, counts=True),
        Case({CALL.opened: {}, CALL.answer(1): {}, CALL.answer_id(1): ""}),
    ],
    names.CARD: [
        Case({f"{names.CARD}x": {"name": "card"}}, (f"{names.CARD}x",)),
        Case({f"{names.CARD}x": "an error"}, (f"{names.CARD}x",), ()),
    ],
    names.TAGS: [
        Case({names.TAGS: []}, (names.TAGS,)),
        Case({names.TAGS: "an error"}, (names.TAGS,), ()),
    ],
}
EACH: Final = [
    pytest.param(case, id=f"{kind or 'step'}-{at}") for kind in sorted(CASES) for at, case in enumerate(CASES[kind])
]


def test_each_kind_of_record_has_its_cases() -> None:
    assert CASES.keys() == KINDS
    for kind, cases in CASES.items():
        assert all(any(name.startswith(kind or "x") for name in case.records) for case in cases)


def copied(case: Case, at: int, *later: int, start: str = "") -> set[str]:
    """The names of the copied records of a case stored ``at``; steps begin ``later``. The step ``pay`` fails."""
    own: dict[str, Json] = {names.raised_name("pay", 1): ERROR, f"{names.FAILED}pay": names.raised_name("pay", 1)}
    results = _stored(own, at - 1, CUT) | _stored(case.records, at - 1, at)
    for began_at in later:
        results |= _stored({f"step {began_at}": 1}, began_at, began_at)
    if start.startswith("x > "):
        results |= _stored({start: 1}, at + 1, at + 5)
    acts = select_acts([StatusEvent(1, 0, "by", TaskState.SUBMITTED)], results, start)
    return {str(name) for name, *_ in acts if name in case.records}


def _stored(records: dict[str, Json], began_at: int, ended_at: int) -> dict[str, StepResult]:
    """Records that were stored one after the other, after the first event."""
    return {
        name: StepResult("", value, began_at=began_at, ended_at=ended_at, moment=(1 << MOMENT_BITS) + ended_at + number)
        for number, (name, value) in enumerate(records.items())
    }


@pytest.mark.parametrize("case", EACH)
def test_records_older_than_the_failed_step_are_copied_by_their_kind(case: Case) -> None:
    assert copied(case, 50, 60) == {*case.older}


@pytest.mark.parametrize("case", EACH)
def test_a_retry_repeats_records_that_may_have_ended_the_task(case: Case) -> None:
    assert copied(case, 50) == {*(case.older if case.at_end is None else case.at_end)}


@pytest.mark.parametrize("case", EACH)
def test_a_retry_repeats_acts_that_began_after_the_failed_step(case: Case) -> None:
    is_by_time = any(name.startswith((names.EVENT, names.GOT)) for name in case.records)
    assert copied(case, CUT + 50) == ({*case.older} if is_by_time else set())


@pytest.mark.parametrize("case", EACH)
def test_a_retry_from_a_named_step_repeats_the_acts_within_it(case: Case) -> None:
    """The records are those of a step, or of another act, in the scope ``x``, which the caller has named."""
    within = {_in_scope(name): value for name, value in case.records.items()}
    by_task = {name for name in within if name.startswith((names.OUTSIDE, names.TAGS))}
    inside = Case({**within, "x": 1})
    assert copied(inside, 50, 60, start="x") <= by_task


@pytest.mark.parametrize("case", [*CASES[STEP], *CASES[names.RAISED], *CASES[names.RAW], *CASES[names.CALL]])
def test_the_named_step_or_call_is_done_again(case: Case) -> None:
    assert copied(Case({**case.records, f"{names.FAILED}x": None}), 50, 60, start="x") == set()


@pytest.mark.parametrize("case", [*CASES[STEP], *CASES[names.RAISED], *CASES[names.RAW]])
def test_a_step_around_the_named_one_is_done_again(case: Case) -> None:
    assert copied(case, 50, 60, start="x > y") == set()


def _in_scope(name: str) -> str:
    """The name of the same record of ``x > x`` in place of ``x``."""
    if name.startswith(names.CALL):
        return name.replace(CALL.opened, names.call_name("x > x").opened)
    if name.startswith((names.OUTSIDE, names.TAGS)):
        return name
    own = "timeout:x" if "timeout:" in name else "x"
    return name.replace(own, f"x > {own}", 1)


@pytest.mark.parametrize("case", EACH)
def test_the_steps_from_which_a_retry_may_go_on_are_those_that_have_ended(case: Case) -> None:
    assert any(name in case.records for name in endings_of("x")) == case.counts


def test_a_record_has_no_name_of_two_kinds() -> None:
    kinds: Any = sorted(KINDS - {STEP})
    assert not [(one, other) for one in kinds for other in kinds if one != other and one.startswith(other)]
