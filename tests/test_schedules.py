"""The expressions of schedules: what is accepted, and when they are due, also in the hours of a clock change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from a2a_serverless import Schedule, Skill, TaskContext, agent
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless.testing.schedules import (
    InvalidSchedule,
    Ticker,
    check_schedules,
    parse_cron,
    schedules_of,
    tick_times,
    ticks,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@agent(
    id="clerk",
    name="Clerk",
    description="Says what it was told.",
    skills=[Skill("say", "Say", "Says.", ("demo",))],
    schedules=[Schedule("morning", "0 7 * * ? *", "Good morning.", "Europe/Berlin")],
)
async def clerk(task: TaskContext) -> str:
    if task.text() == "Wait":
        await task.ask("What for?")
    return task.text()


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def times(cron: str, after: str, count: int = 3, zone: str = "UTC") -> list[str]:
    found = islice(tick_times(Schedule("x", cron, "x", zone), ms(after)), count)
    return [datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M") for at in found]


# ---- When


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("* * * * ? *", "2026-11-27 10:01, 2026-11-27 10:02, 2026-11-27 10:03"),
        ("*/25 9-10 * * ? *", "2026-11-27 10:25, 2026-11-27 10:50, 2026-11-28 09:00"),
        ("10/40 0 * * ? *", "2026-11-28 00:10, 2026-11-28 00:50, 2026-11-29 00:10"),
        ("0 9 ? * MON-FRI *", "2026-11-30 09:00, 2026-12-01 09:00, 2026-12-02 09:00"),
        ("0 9 ? * 1,sat *", "2026-11-28 09:00, 2026-11-29 09:00, 2026-12-05 09:00"),
        ("0 0 L * ? *", "2026-11-30 00:00, 2026-12-31 00:00, 2027-01-31 00:00"),
        ("0 0 15W * ? *", "2026-12-15 00:00, 2027-01-15 00:00, 2027-02-15 00:00"),
        ("0 0 1W 5,8 ? *", "2027-05-03 00:00, 2027-08-02 00:00, 2028-05-01 00:00"),
        ("0 0 31W 1-2 ? *", "2027-01-29 00:00, 2028-01-31 00:00, 2029-01-31 00:00"),
        ("0 0 ? * 6L *", "2026-11-27 00:00, 2026-12-25 00:00, 2027-01-29 00:00"),
        ("0 0 ? * L *", "2026-11-28 00:00, 2026-12-05 00:00, 2026-12-12 00:00"),
        ("0 0 ? * MON#2 *", "2026-12-14 00:00, 2027-01-11 00:00, 2027-02-08 00:00"),
        ("0 0 ? * 2#5 *", "2026-11-30 00:00, 2027-03-29 00:00, 2027-05-31 00:00"),
        ("0 0 29 FEB ? *", "2028-02-29 00:00, 2032-02-29 00:00, 2036-02-29 00:00"),
        ("0 12 1 1 ? 2027-2028", "2027-01-01 12:00, 2028-01-01 12:00"),
        ("0 12 1 1 ? 2020", ""),
        ("0 12 31 2 ? *", ""),
    ],
)
def test_an_expression_is_due_at_its_times_only(cron: str, expected: str) -> None:
    after = "2026-11-27 10:00" if cron != "0 0 ? * 6L *" else "2026-11-26 10:00"
    assert ", ".join(times(cron, after)) == expected


def test_a_time_zone_keeps_the_hour_of_its_clocks() -> None:
    found = times("0 7 * * ? *", "2026-10-24 00:00", zone="Europe/Berlin")
    assert found == ["2026-10-24 05:00", "2026-10-25 06:00", "2026-10-26 06:00"]


def test_a_time_that_the_clock_skips_is_no_tick() -> None:
    """In Berlin 2:00 is followed by 3:00 on the 29th of March: "invocation gets skipped" (AWS)."""
    assert times("30 2 * * ? *", "2026-03-28 00:00", 2, "Europe/Berlin") == ["2026-03-28 01:30", "2026-03-30 00:30"]
    assert times("0 * * * ? *", "2026-03-28 23:30", 3, "Europe/Berlin") == [
        *("2026-03-29 00:00", "2026-03-29 01:00", "2026-03-29 02:00")
    ], "1:00, 3:00, 4:00 there"


def test_a_time_that_the_clock_has_twice_is_one_tick() -> None:
    """In Berlin 3:00 is followed by 2:00 on the 25th of October: "runs only once" (AWS)."""
    assert times("30 2 * * ? *", "2026-10-24 12:00", 2, "Europe/Berlin") == ["2026-10-25 00:30", "2026-10-26 01:30"]
    assert times("0 1-3 * * ? *", "2026-10-24 12:00", 3, "Europe/Berlin") == [
        *("2026-10-24 23:00", "2026-10-25 00:00", "2026-10-25 02:00")
    ]


def test_a_day_that_a_zone_has_left_out_has_no_ticks() -> None:
    assert times("0 12 * * ? *", "2011-12-29 12:00", 2, "Pacific/Apia") == ["2011-12-29 22:00", "2011-12-30 22:00"]


def test_times_end_where_they_are_asked_to_and_the_first_one_does_not_count() -> None:
    schedule = Schedule("x", "0 * * * ? *", "x")
    noon = ms("2026-11-27 12:00")
    assert [*tick_times(schedule, noon, noon + 2 * HOUR_MS)] == [noon + HOUR_MS, noon + 2 * HOUR_MS]
    assert [*tick_times(schedule, noon, noon)] == []


# ---- What is accepted


WRONG = {
    "0 7 * * *": "needs six fields",
    "0 7 * * ? * *": "needs six fields",
    "": "needs six fields",
    "0 7 * * * *": "needs [?] as day of month or as day of week",
    "0 7 ? * ? *": "needs [?] as day of month or as day of week",
    "60 7 * * ? *": "minutes is from 0 to 59, not '60'",
    "0 24 * * ? *": "hours is from 0 to 23, not '24'",
    "0 7 0 * ? *": "day of month is from 1 to 31, not '0'",
    "0 7 32W * ? *": "day of month is from 1 to 31, not '32'",
    "0 7 L,1 * ? *": "day of month is from 1 to 31, not 'L'",
    "0 7 * MAI ? *": "month is from 1 to 12, not 'MAI'",
    "0 7 ? * 0 *": "day of week is from 1 to 7, not '0'",
    "0 7 ? * MON#6 *": "place after # in day of week is from 1 to 5",
    "0 7 ? * 2#1,3#1 *": "place after # in day of week",
    "0 7 ? * FRI-MON *": "day of week has the wrong range 'FRI-MON'",
    "0 7 * * ? 1969": "year is from 1970 to 2199",
    "*/0 7 * * ? *": "minutes has the wrong range",
    "1--2 7 * * ? *": "minutes is from 0 to 59",
    "1/2/3 7 * * ? *": "minutes has the wrong range",
    ", 7 * * ? *": "minutes is from 0 to 59, not ''",
    "\u0661 7 * * ? *": "minutes is from 0 to 59",
    f"0 7 {'1,' * 200}1 * ? *": "needs six fields",
    "0 7 31 2 ? *": "is at no time",
}


@pytest.mark.parametrize("cron", WRONG)
def test_a_wrong_expression_is_refused_by_agent_schedule_and_field(cron: str) -> None:
    wrong = replace(clerk, schedules=(Schedule("morning", cron, "x"),))
    with pytest.raises(InvalidSchedule, match=f"'morning' of the agent 'clerk'.*{WRONG[cron]}"):
        AgentTestHarness(wrong)


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../etc/passwd", "Europe"])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    wrong = replace(clerk, schedules=(Schedule("morning", "0 7 * * ? *", "x", zone),))
    with pytest.raises(InvalidSchedule, match=r"'morning' of the agent 'clerk'.*has the unknown time zone"):
        check_schedules([wrong])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "a b"}, "needs a name of 1 to 40 letters"),
        ({"name": ""}, "needs a name"),
        ({"name": "x" * 41}, "needs a name"),
        ({"overlap": "never"}, 'must be "skip" or "allow", not \'never\''),
    ],
)
def test_a_wrong_name_or_overlap_is_refused_where_the_schedule_is_made(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Schedule(**{"name": "morning", "cron": "0 7 * * ? *", "text": "x"} | fields)


def test_names_that_scheduler_does_not_take_are_refused() -> None:
    twice = replace(clerk, schedules=clerk.schedules * 2)
    with pytest.raises(InvalidSchedule, match="'morning' of the agent 'clerk' is there twice"):
        check_schedules([twice])
    with pytest.raises(InvalidSchedule, match="at most 63 letters"):
        check_schedules([replace(clerk, id="x" * 60)])
    with pytest.raises(InvalidSchedule, match="at most 63 letters"):
        check_schedules([replace(clerk, id="a~b")])


def test_a_field_is_parsed_in_linear_time() -> None:
    with pytest.raises(ValueError, match="needs six fields"):
        parse_cron("1-" * 1_000_000)


# ---- On one machine


def test_the_ticks_of_all_schedules_come_in_order() -> None:
    other = replace(clerk, id="other", schedules=(Schedule("hourly", "0 */6 * * ? *", "x"),))
    start = ms("2026-11-27 00:00")
    found = ticks(schedules_of([clerk, other]), start, start + DAY_MS)
    assert [(tick.key.task, (tick.at - start) // HOUR_MS) for tick in found] == [
        *(("clerk/morning", 6), ("other/hourly", 6), ("other/hourly", 12)),
        *(("other/hourly", 18), ("other/hourly", 24)),
    ]


def test_a_ticker_plays_each_tick_once_and_none_that_it_has_slept_through() -> None:
    schedules = schedules_of([replace(clerk, schedules=(Schedule("x", "* * * * ? *", "x"),))])
    start = ms("2026-11-27 00:00")
    ticker = Ticker(start)
    moments = [start, start + 59_000, start + 60_000, start + 61_000, start + 10 * HOUR_MS + 30_000]
    assert [[tick.at - start for tick in ticker.due(schedules, now)] for now in moments] == [
        *([], [], [60_000], [], [10 * HOUR_MS])
    ]
    assert ticker.due(schedules, start) == [], "a clock that was put back repeats nothing"


def test_the_harness_plays_the_ticks_of_the_time_that_a_test_lets_pass() -> None:
    harness = AgentTestHarness(clerk)
    for _ in range(3 * 24):
        harness.settle(HOUR_MS)
    replies = [harness.reply(entry.task) for entry in harness.tasks()]
    assert [reply.said for reply in replies] == ["Good morning."] * 3
    assert harness.send("Hello").said == "Hello"
    assert len(harness.tasks()) == 4, "a message lets no time pass"


def test_the_harness_plays_one_tick_now() -> None:
    waiting = Schedule("waiting", "0 7 * * ? *", "Wait")
    harness = AgentTestHarness(replace(clerk, schedules=(*clerk.schedules, waiting)))
    first, second = harness.tick("morning"), harness.tick("morning")
    assert first
    assert second
    assert first.said == second.said == "Good morning."
    assert first.task.id != second.task.id
    asking = harness.tick("waiting")
    assert asking
    assert (asking.said, harness.tick("waiting")) == ("What for?", None)
    assert harness.send("Nothing", task_id=asking.task.id).said == "Wait"
    assert harness.tick("waiting")
