"""The errors in the logs of a stack's functions, counted by their cause.

A line is our own (``adapters/logs.py``), or Lambda's: of an invocation that ended without an answer, or of an exception
at a function's start. The emulator writes that exception to its own log only.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EMULATOR: Final = "emulator"
FILTER: Final = (
    'level in ["WARNING", "WARN", "ERROR", "CRITICAL", "FATAL"]'
    ' or (type in ["platform.initReport", "platform.report"] and record.status != "success")'
)
"""The condition of CloudWatch Logs Insights for lines that may be errors."""
_LEVELS: Final = ("WARNING", "WARN", "ERROR", "CRITICAL", "FATAL")
_CODE: Final = re.compile(r".*?(?:/var/task/|/code/)")  # where a function's zip is, in Lambda and in the emulator
_NOT_STARTED: Final = re.compile(r"([\d-]{10} [\d:]{8}) ERROR \[lambda\] .+? for \S*?(\w+)Function\S*: (.+)")


class FunctionError(NamedTuple):
    """An error of a function: how often it happened, and the last time (UTC) with its task, if it had any.

    ``text`` is the message of the log line, ``error`` the classes of the exception and its causes, ``place`` where the
    code raised it, ``step`` the step that it comes from.
    """

    function: str
    occurrences: int
    last: str
    text: str
    error: str
    place: str
    agent: str
    task: str
    step: str = ""


def count_errors(lines: Iterable[tuple[str, str]], since: str = "") -> list[FunctionError]:
    """The errors after ``since`` in these lines, each with the name of its function; the most frequent first.

    Times are in the form of RFC 3339, in UTC, without fractions of seconds.
    """
    by_cause: dict[tuple[str, ...], FunctionError] = {}
    for one in _errors(lines):
        if one.last < since:
            continue
        cause = (one.function, one.text, one.error, one.place, one.agent, one.step)
        before = by_cause.get(cause)
        latest = one if before is None or one.last > before.last else before
        by_cause[cause] = latest._replace(occurrences=1 + (before.occurrences if before else 0))
    return sorted(by_cause.values(), key=lambda one: -one.occurrences)


def _errors(lines: Iterable[tuple[str, str]]) -> Iterator[FunctionError]:
    for function, line in lines:
        if function == EMULATOR:
            if match := _NOT_STARTED.match(line):
                at = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").astimezone(UTC)
                yield FunctionError(match[2].lower(), 1, f"{at:%Y-%m-%dT%H:%M:%S}", match[3], "", "", "", "")
            continue
        try:
            entry = json.loads(line[max(line.find("{"), 0) :])
        except (ValueError, RecursionError):  # what an agent has printed may be nested
            continue
        if isinstance(entry, dict) and (error := _error_of(function, entry)):
            yield error


def _error_of(function: str, entry: dict[str, Any]) -> FunctionError | None:
    def said(*names: str) -> str:
        return next((str(entry[name]) for name in names if entry.get(name)), "")

    record = entry.get("record")
    if isinstance(record, dict):
        status = str(record.get("status", "success"))
        if status == "success":
            return None
        text = f"Lambda ended it: {status}" if entry.get("type") == "platform.report" else f"it did not start: {status}"
        return FunctionError(function, 1, said("time")[:19], text, str(record.get("errorType", "")), "", "", "")
    if entry.get("level") not in _LEVELS:
        return None
    text, error = said("message", "errorMessage"), said("error", "errorType", "reason", "remedy")
    at, ids = said("timestamp")[:19], (said("agent"), said("task"), said("step"))
    return FunctionError(function, 1, at, text, error, place_of(entry), *ids)


def place_of(entry: dict[str, Any]) -> str:
    """Where the error of a log line was raised, without the folder of the function's code; empty if it is not known."""
    places = entry.get("raised_at")
    return _CODE.sub("", str(places[-1])) if isinstance(places, list) and places else ""
