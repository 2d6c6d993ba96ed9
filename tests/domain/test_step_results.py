"""Which stored results count, when a run has lost its task and a write of it comes late."""

from __future__ import annotations

import pytest

from a2a_serverless.domain.step_results import StepResult, late_names


def stored(fence: int, moment: int, seen: int = 0) -> StepResult:
    return StepResult("", None, moment=moment, fence=fence, seen=seen)


READ = {"a": stored(1, 1), "b": stored(1, 2), "c": stored(2, 3, seen=2)}
LATE = {"a": stored(1, 1), "b": stored(1, 2), "c": stored(2, 9, seen=1)}
NOBODY_YET = {"a": stored(1, 1), "b": stored(1, 2)}
THIRD = {"a": stored(1, 5), "b": stored(2, 7, seen=4), "c": stored(3, 8, seen=7)}
OLD = {"a": stored(0, 1), "b": stored(0, 5), "c": stored(2, 3, seen=2)}
OUTSIDE = {"a": stored(1, 1), "event": stored(0, 0), "c": stored(2, 2, seen=1)}


@pytest.mark.parametrize(
    ("results", "late"),
    [(READ, []), (LATE, ["b"]), (NOBODY_YET, []), (THIRD, ["a"]), (OLD, []), (OUTSIDE, [])],
    ids=["read", "late", "nobody has stored since", "late for the second of three runs", "older releases", "outside"],
)
def test_a_result_is_late_if_a_later_run_has_stored_something_without_having_read_it(
    results: dict[str, StepResult], late: list[str]
) -> None:
    assert late_names(results) == late
