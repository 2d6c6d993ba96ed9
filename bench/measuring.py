"""The reports of benchmarks: figures with their spread and goals with their results, as JSON or Markdown.

A script passes a function that makes one `Report` to `main`. It measures all candidates in one run, round by round,
because the machine may be busy: ratios are taken within a round, and the report has the median of the rounds with
quartiles. Most figures are processor time, which varies less than wall-clock time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
Sense = Literal["<=", ">="]


@dataclass(frozen=True)
class Spread:
    """The median of several values and their quartiles."""

    median: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Figure:
    """A measured figure. A plot shows `ours` in colour."""

    name: str
    unit: str
    value: Spread
    ours: bool = False


@dataclass(frozen=True)
class Goal:
    """A goal of the project (`number`, as in "N1") and its result; without one, `command` is what measures it."""

    number: str
    what: str
    sense: Sense
    limit: float
    value: Spread | None
    met: bool
    command: str = ""


@dataclass(frozen=True)
class Report:
    """The result of a script. `method` says what was measured, `notes` what was not; both are Markdown."""

    title: str
    method: str
    figures: Sequence[Figure]
    goals: Sequence[Goal]
    notes: Sequence[str] = ()
    machine: str = field(default_factory=lambda: machine())  # noqa: PLW0108 - defined below


def spread(values: Sequence[float]) -> Spread:
    """Returns the median and the quartiles of at least one value."""
    low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
    return Spread(median(values), low, high, len(values))


def figure(name: str, unit: str, values: Sequence[float], *, ours: bool = False) -> Figure:
    """Makes a figure of the values of all rounds."""
    return Figure(name, unit, spread(values), ours)


def goal(number: str, what: str, sense: Sense, limit: float, values: Sequence[float]) -> Goal:
    """Makes a goal, which the median of the rounds' values reaches or not."""
    found = spread(values)
    return Goal(number, what, sense, limit, found, found.median <= limit if sense == "<=" else found.median >= limit)


def unmeasured(number: str, what: str, sense: Sense, limit: float, command: str) -> Goal:
    """Makes a goal that this run does not measure."""
    return Goal(number, what, sense, limit, None, met=False, command=command)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Divides ours by theirs, round by round."""
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]


def side_by_side(candidates: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Measures every candidate in each round, after a first round that does not count; returns their values."""
    values: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds + 1):
        for name, measure in candidates.items():
            value = measure()
            if turn:
                values[name].append(value)
    return values


def cpu_ms(command: Sequence[str | Path], env: Mapping[str, str]) -> float:
    """Returns the processor time (user and system, ms) of a new process and its children. Raises SystemExit."""
    process = subprocess.Popen([str(word) for word in command], env=dict(env), cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"a candidate failed ({process.returncode}): {' '.join(map(str, command))}")
    return (used.ru_utime + used.ru_stime) * 1000


def machine() -> str:
    """Describes this machine."""
    system = f"Python {platform.python_version()}, {platform.system()} on {platform.machine()}"
    return f"{system}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"


def main(measure: Callable[[int], Report], rounds: int) -> None:
    """Runs a benchmark's command line: prints the report of `measure` over `rounds` rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=rounds, help="how often everything is measured (%(default)s)")
    given = parser.parse_args()
    found = asdict(measure(given.rounds))
    sys.stdout.write(json.dumps(found, indent=1) + "\n" if given.json else markdown(found))


def markdown(report: Mapping[str, object]) -> str:
    """Formats a report, as `--json` prints it, as Markdown."""
    from rendering import as_markdown

    return as_markdown(report)
