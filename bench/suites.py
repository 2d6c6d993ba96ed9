"""How long the tests take, by the clock (N26): as the logs of the last `make test` and of the last `.ci/run` here say.

The suites take as long as all the benchmarks, so this script runs none. `.ci/run` sets up from a fresh clone and runs
unit tests and integration tests beside each other; `make test` is measured alone. Opted out of replays are the tests
that turn those of their harness off.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from measuring import ROOT, Goal, Report, goal, main, unmeasured

if TYPE_CHECKING:
    from pathlib import Path


class Log(NamedTuple):
    """The log of a command, what its last line says of its seconds, and how many minutes it may take."""

    path: Path
    seconds: str
    minutes: float
    command: str


LOGS: Final = {
    "make test": Log(ROOT / ".a2a/test.log", r" in (\d+)\.\d+s \(", 5.5, "make test | tee .a2a/test.log"),
    ".ci/run": Log(ROOT / ".a2a/ci.log", r"^All checks in (\d+) seconds\.$", 15, ".ci/run"),
}
OPTED_OUT: Final = re.compile(r"mark\.replay\(False\)|replay=False")


def measure(_rounds: int) -> Report:
    """Reads the logs."""
    out = sum(len(OPTED_OUT.findall(path.read_text())) for path in (ROOT / "tests").rglob("test_*.py"))
    goals = [_goal(name, log) for name, log in LOGS.items()]
    return Report(
        "The tests", __doc__ or "", [], [*goals, goal("N26", "places that opt out of replays", "<=", 20, [out])]
    )


def _goal(name: str, log: Log) -> Goal:
    said = re.findall(log.seconds, log.path.read_text(), re.MULTILINE) if log.path.exists() else []
    if not said:
        return unmeasured("N26", f"{name}, minutes", "<=", log.minutes, log.command)
    return goal("N26", f"{name}, minutes", "<=", log.minutes, [int(said[-1]) / 60])


if __name__ == "__main__":
    main(measure, rounds=1)
