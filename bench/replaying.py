"""How much longer tests take with harnesses that replay (N31): those of the engine and the samples, and of frameworks.

The same tests run with replays and without them, but where a test asks for replays; their processor time is compared.
The suites of frameworks need the environments of `make frameworks` and take long, so `python bench/replaying.py
--frameworks` measures them apart; `.a2a/replaying.json` keeps their ratios for the other runs in this checkout.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Final

from measuring import ROOT, Goal, Report, cpu_ms, figure, goal, main, unmeasured

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FRAMEWORKS: Final = "--frameworks"
COMMAND: Final = f"python bench/replaying.py {FRAMEWORKS}"
RECORD: Final = ROOT / ".a2a/replaying.json"
PLUGIN: Final = ("-p", "unreplayed")  # of bench/candidates
LIMIT: Final = 1.25
FRAMEWORKS_LIMIT: Final = 2.2


def measure(_rounds: int) -> Report:
    """Runs the tests once with replays and once without."""
    ours = seconds(sys.executable, "-n2", "-m", "not integration", "tests/engine", "tests/sample_agents")
    frameworks: dict[str, list[float]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return Report(
        "Tests with replays",
        __doc__ or "",
        [
            figure(f"{name}, {kind} replays", "CPU s", [used], ours=kind == "with")
            for name, both in {"engine and samples": ours, **frameworks}.items()
            for kind, used in zip(("with", "without"), both, strict=True)
        ],
        [goal("N31", "engine and samples, by the time without", "<=", LIMIT, [ours[0] / ours[1]]), _goal(frameworks)],
    )


def _goal(frameworks: dict[str, list[float]]) -> Goal:
    what = "suites of frameworks, by the time without, at most"
    if not frameworks:
        return unmeasured("N31", what, "<=", FRAMEWORKS_LIMIT, COMMAND)
    return goal("N31", what, "<=", FRAMEWORKS_LIMIT, [max(used / without for used, without in frameworks.values())])


def seconds(python: Path | str, *arguments: str) -> Sequence[float]:
    """Returns the CPU seconds of tests, with and without replays. Raises SystemExit if one fails."""
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "bench/candidates")}
    return [cpu_ms([*pytest, *plugin, *arguments], environment) / 1000 for plugin in ((), PLUGIN)]


def record() -> None:
    """Measures the suites of the frameworks whose environments are there, with few random agents."""
    os.environ["SEEDS"] = "2"
    used = {}
    for folder in sorted((ROOT / ".a2a/venvs").glob("framework-*")):
        name = folder.name.removeprefix("framework-")
        suites = sorted((ROOT / "tests/frameworks").glob(f"test_{name.removesuffix('-0.3').replace('-', '_')}*.py"))
        used[name] = seconds(folder / "bin/python", "--confcutdir=tests/frameworks", *map(str, suites))
        print(name, *used[name], flush=True)
    RECORD.write_text(json.dumps(used))


if __name__ == "__main__":
    if FRAMEWORKS in sys.argv:
        record()
    else:
        main(measure, rounds=1)
