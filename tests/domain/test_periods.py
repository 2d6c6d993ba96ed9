"""The periods of a task's life, and their text in its head."""

from __future__ import annotations

import pytest

from a2a_serverless.domain.decisions import (
    RUN_LEASE_MS,
    cancel,
    fail_task,
    hand_over,
    pause,
    periods_at,
    renew_lease,
    resume_run,
    suspend,
    wake,
)
from a2a_serverless.domain.head import CurrentHead, Head
from a2a_serverless.domain.periods import RUNS, EarlierRuns, Period, RunEnd
from tests.domain.test_head import NOW, QUESTION, submitted

TEN = 10_000


def taken(head: Head, at: int) -> Head:
    return resume_run(head, now=NOW + at, by=f"run {head.fence + 1}")


def periods(head: Head, at: int) -> list[tuple[str, int, int | None, RunEnd | None]]:
    """The periods as of ``at``, with times from the task's beginning."""
    earlier, latest = periods_at(head, NOW + at)
    assert earlier is None
    ends = [None if one.ended_at is None else one.ended_at - NOW for one in latest]
    return [(one.letter, one.began_at - NOW, end, one.end) for one, end in zip(latest, ends, strict=True)]


def test_a_run_that_waits_is_followed_by_a_suspension_which_its_time_ends_and_not_the_run_that_comes_later() -> None:
    asleep = suspend(taken(submitted().head, 5), 1, 0, now=NOW + 20, wake_at=NOW + TEN)
    assert periods(asleep, 30) == [("q", 0, 5, None), ("r", 5, 20, RunEnd.WAITS), ("s", 20, None, None)]
    assert periods(taken(asleep, TEN + 7), TEN + 8)[2:] == [
        ("s", 20, TEN, None),
        ("q", TEN, TEN + 7, None),
        ("r", TEN + 7, None, None),
    ]


def test_an_event_ends_a_suspension_and_the_task_is_queued() -> None:
    waiting = suspend(taken(submitted().head, 5), 1, 0, now=NOW + 20)
    woken = wake(waiting, now=NOW + 50)
    assert periods(woken, 60)[2:] == [("s", 20, 50, None), ("q", 50, None, None)]
    assert wake(woken, now=NOW + 55).periods == woken.periods


@pytest.mark.parametrize("end", [RunEnd.HANDED_OVER, RunEnd.REPLACED])
def test_a_run_that_is_handed_over_says_why_and_the_task_is_queued(end: RunEnd) -> None:
    handed = hand_over(taken(submitted().head, 0), 1, now=NOW + 9, end=end)
    assert periods(handed, 9)[1:] == [("r", 0, 9, end), ("q", 9, None, None)]


def test_a_run_that_died_ended_between_its_last_write_and_its_lease() -> None:
    renewed = renew_lease(taken(submitted().head, 100), 1, now=NOW + 5_100)
    over = 5_100 + RUN_LEASE_MS
    died = Period("r", NOW + 100, NOW + over, 1, RunEnd.DIED, NOW + 5_100)
    assert periods_at(renewed, NOW + over - 1).latest[-1] == Period("r", NOW + 100, None, 1)
    assert periods_at(renewed, NOW + over).latest[1:] == [died, Period("q", NOW + over)]
    again = taken(renewed, over + 70)
    assert periods_at(again, NOW + over + 80).latest[1:] == [
        died,
        Period("q", NOW + over, NOW + over + 70),
        Period("r", NOW + over + 70, None, 2),
    ]
    given_up = fail_task(CurrentHead(renewed, 1), QUESTION, now=NOW + over + 9, by="worker").after
    assert periods_at(given_up, NOW + over + 9).latest[1:] == [died, Period("q", NOW + over, NOW + over + 9)]


def test_a_run_that_takes_its_task_once_more_replaces_itself() -> None:
    head = taken(submitted().head, 0)
    again = resume_run(head, now=NOW + 3, by=head.holder)
    assert periods(again, 3)[1:] == [
        ("r", 0, 3, RunEnd.REPLACED),
        ("q", 3, 3, None),
        ("r", 3, None, None),
    ]


def test_a_pause_is_a_suspension_without_a_run() -> None:
    paused = pause(submitted().head, now=NOW + 8, wake_at=NOW + 80, waits="[0]")
    assert periods(taken(paused, 90), 90) == [
        ("q", 0, 8, None),
        ("s", 8, 80, None),
        ("q", 80, 90, None),
        ("r", 90, None, None),
    ]


def test_an_end_from_outside_ends_the_run_that_is_at_work() -> None:
    ended = cancel(CurrentHead(taken(submitted().head, 2), 2), now=NOW + 6, by="client").after
    assert periods(ended, 9)[1:] == [("r", 2, 6, RunEnd.ENDED)]


def test_clocks_that_differ_shorten_a_period_to_nothing() -> None:
    behind = hand_over(taken(submitted().head, 1000), 1, now=NOW + 500)
    assert periods(behind, 500)[1:] == [("r", 1000, 1000, RunEnd.HANDED_OVER), ("q", 1000, None, None)]


def test_runs_before_the_last_twenty_are_summed_and_the_text_stays_short() -> None:
    head = submitted().head
    for number in range(RUNS + 30):
        head = taken(head, 100 * number + 10)
        head = suspend(head, head.fence, 0, now=NOW + 100 * number + 40, wake_at=NOW + 100 * number + 90)
    earlier, latest = periods_at(head, NOW + 100 * (RUNS + 30))
    assert earlier == EarlierRuns(30, 10 + 29 * 20, 30 * 30, 29 * 50)
    assert [one.run for one in latest if one.run] == [*range(31, 51)]
    assert latest[0].began_at == NOW + earlier.total_ms == NOW + 29 * 100 + 40
    assert len(head.periods) < 300
