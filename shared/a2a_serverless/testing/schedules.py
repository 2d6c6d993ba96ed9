"""Evaluates the expressions of schedules for checks, tests and runs on one machine. On AWS EventBridge Scheduler does.

The syntax is what AWS documents for its six fields, and no more: what is accepted here can be deployed. So are the
hours of a clock change ("Schedule types" in Scheduler's guide): a time that does not exist is skipped, and of a time
that comes twice only the first one counts.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from heapq import merge
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from a2a_serverless.domain.queue_messages import TickMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.schedules import Schedule

MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
FIELDS: Final = ("minutes", "hours", "day of month", "month", "day of week", "year")
SATURDAY: Final = 7
MISSED_MS: Final = 60_000
LONGEST: Final = 250


class InvalidSchedule(ValueError):
    """An expression or a time zone is wrong. The text names agent, schedule and field."""


class Cron(NamedTuple):
    """An expression: its allowed values, and whether a day is allowed."""

    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    years: frozenset[int]
    is_day: Callable[[date], bool]


class Field(NamedTuple):
    """A field of an expression, with its limits and its names, of which the first stands for 1."""

    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        """A number or a name. Raises ValueError."""
        number = self.names.index(text.upper()) + 1 if text.upper() in self.names else -1
        number = int(text) if re.fullmatch("[0-9]{1,4}", text) else number
        if not self.lowest <= number <= self.highest:
            raise ValueError(f"{self.name} is from {self.lowest} to {self.highest}, not {text!r}")
        return number

    def numbers(self, text: str) -> frozenset[int]:
        """The numbers of a list of numbers, ranges and increments. Raises ValueError."""
        return frozenset(number for part in text.split(",") for number in self._range(part))

    def _range(self, part: str) -> range:
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        start = self.lowest if span == "*" else self.number(first)
        end = self.number(last) if dash else self.highest if slash or span == "*" else start
        if start > end or (slash and not re.fullmatch("0*[1-9][0-9]{0,3}", step)):
            raise ValueError(f"{self.name} has the wrong range {part!r}")
        return range(start, end + 1, int(step or 1))


_DAY: Final = Field("day of month", 1, 31)
_WEEKDAY: Final = Field("day of week", 1, 7, WEEKDAYS)


def parse_cron(text: str) -> Cron:
    """The expression of six fields. Raises ValueError, which names the wrong field."""
    fields = text.split()
    if len(fields) != len(FIELDS) or len(text) > LONGEST:
        raise ValueError(f"needs six fields ({', '.join(FIELDS)}), not {len(fields)}")
    minutes, hours, day, month, weekday, year = fields
    if (day == "?") == (weekday == "?"):
        raise ValueError("needs ? as day of month or as day of week, and not as both")
    return Cron(
        Field("minutes", 0, 59).numbers(minutes),
        Field("hours", 0, 23).numbers(hours),
        Field("month", 1, 12, MONTHS).numbers(month),
        Field("year", 1970, 2199).numbers(year),
        _weekday_rule(weekday) if day == "?" else _day_rule(day),
    )


def _day_rule(text: str) -> Callable[[date], bool]:
    if text == "L":
        return lambda day: day.day == _length(day)
    if text.endswith("W"):
        number = _DAY.number(text[:-1])
        return lambda day: number <= _length(day) and day == _nearest_weekday(day.replace(day=number))
    days = _DAY.numbers(text)
    return lambda day: day.day in days


def _weekday_rule(text: str) -> Callable[[date], bool]:
    if text != "L" and text.endswith("L"):
        last = _WEEKDAY.number(text[:-1])
        return lambda day: _weekday(day) == last and day.day + 7 > _length(day)
    if "#" in text:
        name, _, place = text.partition("#")
        weekday, nth = _WEEKDAY.number(name), Field("place after # in day of week", 1, 5).number(place)
        return lambda day: _weekday(day) == weekday and (day.day + 6) // 7 == nth
    weekdays = frozenset({SATURDAY}) if text == "L" else _WEEKDAY.numbers(text)
    return lambda day: _weekday(day) in weekdays


def _weekday(day: date) -> int:
    return day.isoweekday() % 7 + 1


def _length(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _nearest_weekday(day: date) -> date:
    """The weekday from Monday to Friday that is nearest to ``day``, in its month."""
    shift = {6: -1, 7: 1}.get(day.isoweekday(), 0)
    near = day + timedelta(days=shift)
    return near if near.month == day.month else day - timedelta(days=2 * shift)


def check_schedules(agents: Iterable[Agent]) -> None:
    """Raises InvalidSchedule for the first schedule that EventBridge Scheduler would not accept."""
    for agent in agents:
        names = [schedule.name for schedule in agent.schedules]
        for schedule in agent.schedules:
            place = f"the schedule {schedule.name!r} of the agent {agent.id!r}"
            if names.count(schedule.name) > 1:
                raise InvalidSchedule(f"{place} is there twice")
            if not re.fullmatch("[A-Za-z0-9_.-]{1,64}", f"{agent.id}.{schedule.name}"):
                raise InvalidSchedule(f"{place}: both names have at most 63 letters, digits, hyphens and _ together")
            try:
                next(tick_times(schedule, 0))
            except StopIteration:
                raise InvalidSchedule(f"{place}: {schedule.cron!r} is at no time") from None
            except ValueError as error:
                raise InvalidSchedule(f"{place}: {schedule.cron!r} {error}") from None


def tick_times(schedule: Schedule, after: int, until: int | None = None) -> Iterator[int]:
    """The times (ms) of a schedule after ``after`` up to ``until`` (ms), in order; without it, up to the year 2199.

    Raises ValueError for a wrong expression or time zone.
    """
    cron, zone = parse_cron(schedule.cron), _zone(schedule.zone)
    last = date(max(cron.years), 12, 31) if until is None else datetime.fromtimestamp(until / 1000, zone).date()
    times = _times(cron, zone, after, last)
    return times if until is None else takewhile(lambda at: at <= until, times)


def _times(cron: Cron, zone: ZoneInfo, after: int, last: date) -> Iterator[int]:
    day = datetime.fromtimestamp(after / 1000, zone).date() - timedelta(days=1)
    while day <= last:
        if day.year not in cron.years:
            day = date(day.year + 1, 1, 1)
            continue
        if day.month in cron.months and cron.is_day(day):
            moments = (datetime.combine(day, time(*at)) for at in _times_of_day(cron))
            times = (at for moment in moments if (at := _exists(moment, zone)) is not None)
            yield from (at for at in times if at > after)
        day += timedelta(days=1)


def _times_of_day(cron: Cron) -> Iterator[tuple[int, int]]:
    return ((hour, minute) for hour in sorted(cron.hours) for minute in sorted(cron.minutes))


def _exists(moment: datetime, zone: ZoneInfo) -> int | None:
    """The time (ms) of a local time, the first of two; None if the clock skips it."""
    at = moment.replace(tzinfo=zone).astimezone(UTC)
    return int(at.timestamp() * 1000) if at.astimezone(zone).replace(tzinfo=None) == moment else None


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = "" if available_timezones() else ": this machine has no time zones; install the package tzdata"
        raise ValueError(f"has the unknown time zone {name!r}{hint}") from None


def schedules_of(agents: Iterable[Agent]) -> dict[TaskKey, Schedule]:
    """The schedules of agents, by the keys of their messages."""
    return {schedule.key(agent.id): schedule for agent in agents for schedule in agent.schedules}


def ticks(schedules: Mapping[TaskKey, Schedule], after: int, until: int) -> Iterator[TickMessage]:
    """The ticks of schedules after ``after`` up to ``until`` (ms), in order."""
    each = [[TickMessage(key, at) for at in tick_times(one, after, until)] for key, one in schedules.items()]
    return merge(*each, key=lambda tick: tick.at)


class Ticker:
    """Plays EventBridge Scheduler from ``now`` (ms) on.

    Ticks more than a minute ago were missed, as by a machine that has slept.
    """

    def __init__(self, now: int) -> None:
        self._until = now

    def due(self, schedules: Mapping[TaskKey, Schedule], now: int) -> list[TickMessage]:
        """The ticks since the last call."""
        after, self._until = max(self._until, now - MISSED_MS), max(self._until, now)
        return list(ticks(schedules, after, now))
