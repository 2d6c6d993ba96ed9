"""What every benchmark says, and how: figures with their spread, goals with what came out, as JSON or for people.

A script builds one `Report` and hands the function that makes it to `main`. It measures whatever it compares in one
run, round by round, because the machine may be busy: a ratio is taken within a round, and what is reported is the
median of the rounds with their quartiles. Processor time says more than the clock does, so that is the usual unit.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
Sense = Literal["<=", ">="]


@dataclass(frozen=True)
class Spread:
    """The middle of several values, between their quartiles."""

    median: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Figure:
    """Something that was measured. `ours` is what a plot shows in colour."""

    name: str
    unit: str
    value: Spread
    ours: bool = False


@dataclass(frozen=True)
class Goal:
    """One goal of ours (`number`, as in "N1") and what came out."""

    number: str
    what: str
    sense: Sense
    limit: float
    value: Spread
    met: bool


@dataclass(frozen=True)
class Report:
    """What a script has found. `method` says what was done, `notes` what was not; both are Markdown."""

    title: str
    method: str
    figures: Sequence[Figure]
    goals: Sequence[Goal]
    notes: Sequence[str] = ()
    machine: str = field(default_factory=lambda: machine())  # noqa: PLW0108 - it stands below


def spread(values: Sequence[float]) -> Spread:
    """The median and the quartiles of at least one value."""
    low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
    return Spread(median(values), low, high, len(values))


def figure(name: str, unit: str, values: Sequence[float], *, ours: bool = False) -> Figure:
    """A figure from the values of all rounds."""
    return Figure(name, unit, spread(values), ours)


def goal(number: str, what: str, sense: Sense, limit: float, values: Sequence[float]) -> Goal:
    """A goal, reached or not by the median of the rounds' values."""
    found = spread(values)
    return Goal(number, what, sense, limit, found, found.median <= limit if sense == "<=" else found.median >= limit)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Ours by theirs, round by round."""
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]


def side_by_side(candidates: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Every candidate's values; each round asks all of them, and the first does not count."""
    values: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds + 1):
        for name, measure in candidates.items():
            value = measure()
            if turn:
                values[name].append(value)
    return values


def cpu_ms(command: Sequence[str | Path], env: Mapping[str, str]) -> float:
    """The processor time (user and system, ms) of a fresh process and its children. Raises when it fails."""
    process = subprocess.Popen([str(word) for word in command], env=dict(env), cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"a candidate failed ({process.returncode}): {' '.join(map(str, command))}")
    return (used.ru_utime + used.ru_stime) * 1000


def machine() -> str:
    """What this ran on."""
    system = f"Python {platform.python_version()}, {platform.system()} on {platform.machine()}"
    return f"{system}, {os.cpu_count()} processors"


def main(measure: Callable[[int], Report], rounds: int) -> None:
    """The command line of a benchmark: prints what `measure` finds in so many rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=rounds, help="how often everything is measured (%(default)s)")
    given = parser.parse_args()
    found = asdict(measure(given.rounds))
    sys.stdout.write(json.dumps(found, indent=1) + "\n" if given.json else markdown(found))


def markdown(report: Mapping[str, object]) -> str:
    """A report, as `--json` prints it, for people."""
    from rendering import as_markdown

    return as_markdown(report)
