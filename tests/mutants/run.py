"""Lets the tests loose on small wrong changes of the library or of one ``AREA``: ``make prove KIND=mutants SEED=1``.

Each mutant runs in a forked copy of this process, in which the tests of its area (``areas.py``) are collected: those
that run its lines, the fastest first, until one fails. Tests that open sockets or start other programs are left out. A
run that was interrupted goes on, and a kill is believed until the library or the test changes. What lives has to stand
in ``survivors.toml`` with its reason. ``ARGS=--control`` runs the same tests without the changes, and nothing may die.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tomllib
from collections import Counter, defaultdict
from contextlib import nullcontext
from functools import cache
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.mutants.areas import AREAS, CHECKOUT, SHARED
from tests.mutants.mutations import Mutant, choose, modules, mutants_of
from tests.mutants.processes import Outcome, allow, next_done, start
from tests.mutants.relevant import RelevantTests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FOLDER: Final = CHECKOUT / ".a2a" / "mutants"
SURVIVORS: Final = Path(__file__).with_name("survivors.toml")
ENOUGH: Final = 0.9
JOBS: Final = 2
CASES: Final = 10

Key = tuple[str, str, str]


def known_survivors() -> dict[Key, dict[str, str]]:
    """What ``survivors.toml`` says of each mutant: why it is ``equivalent``, or ``unpromised``."""
    listed = tomllib.loads(SURVIVORS.read_text()).get("mutants", [])
    return {(one["module"], one["function"], one["mutation"]): one for one in listed}


class Trial:
    """A pytest plugin: instead of running the tests it lets them loose on the mutants."""

    def __init__(
        self, mutants: Iterable[Mutant], folder: Path, sources: Sequence[Path], *, control: bool = False
    ) -> None:
        self.results: dict[Key, dict[str, Any]] = {}
        self._mutants = [*mutants]
        self._file = folder / ("control.jsonl" if control else "results.jsonl")
        self._control = control
        self._relevant = RelevantTests(folder, sources)
        self._items: dict[str, pytest.Item] = {}
        self._passed = self._failed = False
        self._state = ""

    def pytest_sessionstart(self) -> None:
        """The same examples each time. It is imported here, because pytest has to import it before."""
        try:
            from hypothesis import settings
        except ModuleNotFoundError:
            return
        settings.register_profile("mutants", database=None, derandomize=True, deadline=None)
        settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leaves out what opens sockets, and of tests with many cases all but a few."""
        cases = defaultdict(list)
        for item in items:
            if not item.get_closest_marker("enable_socket") and "hasty_client" not in item.name:
                cases[item.nodeid.partition("[")[0]].append(item)
        items[:] = [item for found in cases.values() for item in found[:: -(-len(found) // CASES)]]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed
        self._passed |= report.when == "call" and report.passed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Lets the tests loose, in as many processes as there are jobs."""
        assert not session.testsfailed, "some tests cannot be collected"
        self._items = {item.nodeid: item for item in session.items}
        self._state = state_of(*{item.path for item in session.items})
        self._relevant.measure(session.items, self._run)
        self._load()
        left = [one for one in self._mutants if one.key not in self.results]
        left.sort(key=lambda one: one.key in known_survivors())
        print(f"{len(self._items)} tests, {len(self._mutants)} mutants, {len(left)} to run")
        running: dict[int, Mutant] = {}
        while left or running:
            while left and len(running) < JOBS:
                mutant = left.pop(0)
                running[start(lambda mutant=mutant: self._try(mutant))] = mutant  # type: ignore[misc]
            process, outcome = next_done()
            mutant = running.pop(process)
            if outcome is not Outcome.DONE:
                self._keep(mutant, outcome.value)
            if len(left) % 25 == 0:
                print(f"{time.strftime('%H:%M:%S')} {len(left)} left")
        self._load()
        return True

    def _run(self, item: pytest.Item, following: pytest.Item | None) -> bool:
        self._passed = self._failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return self._passed and not self._failed

    def _try(self, mutant: Mutant) -> None:
        tests = self._relevant.of(mutant)
        names = [name for name in tests if name in self._items]
        with nullcontext() if self._control else mutant.loaded():
            for name, following in zip_longest(names, names[1:]):
                allow(10 + 10 * tests[name])
                if not self._run(self._items[name], self._items[following] if following else None):
                    self._keep(mutant, "killed", by=name, state=state_of(self._items[name].path))
                    return
        self._keep(mutant, "survived", tests=len(names), state=self._state)

    def _keep(self, mutant: Mutant, result: str, **more: Any) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps({"mutant": mutant.key, "result": result, **more}) + "\n")

    def _load(self) -> None:
        if self._file.exists():
            found = map(json.loads, self._file.read_text().splitlines())
            self.results = {tuple(one["mutant"]): one for one in found if self._is_valid(one)}

    def _is_valid(self, result: Mapping[str, Any]) -> bool:
        """A kill holds until the test changes, a survival until any test does."""
        if "state" not in result:
            return True
        if "by" in result:
            return result["by"] in self._items and result["state"] == state_of(self._items[result["by"]].path)
        return bool(result["state"] == self._state)


@cache
def state_of(*places: Path) -> str:
    """A digest of all sources in files and folders."""
    found = sha256()
    for path in sorted(path for place in places for path in (place.rglob("*.py") if place.is_dir() else [place])):
        found.update(path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def report(results: Mapping[Key, Mapping[str, Any]], chosen: Iterable[Mutant]) -> int:
    """Prints what came of the chosen mutants; returns the exit status."""
    known = known_survivors()
    counts = Counter[str]()
    unexplained = 0
    for mutant in chosen:
        result, listed = results[mutant.key]["result"], known.get(mutant.key, {})
        lives = result == "survived"
        counts["equivalent" if lives and "equivalent" in listed else result] += 1
        if lives or listed:
            reason = listed.get("equivalent") or listed.get("unpromised") or "NO REASON IS LISTED"
            print(f"\n{result}: {'.'.join(mutant.key[:2])}: {mutant.text}\n  {reason}")
            unexplained += lives != bool(listed)
    different = counts.total() - counts["equivalent"]
    share = (different - counts["survived"]) / different if different else 1.0
    print(f"\n{counts.total()} mutants: " + ", ".join(f"{number} {what}" for what, number in counts.most_common()))
    print(f"{share:.1%} of those that are not equivalent die; {ENOUGH:.0%} must. {unexplained} are listed wrongly.")
    return 0 if share >= ENOUGH and not unexplained else 1


def run_area(area: str, seed: int, count: int, match: str, *, control: bool) -> int:
    """Lets the tests of an area loose on some of its mutants; returns the exit status."""
    chosen = choose([one for module in modules(area) for one in mutants_of(module)], seed, count)
    chosen = [one for one in chosen if match in " ".join(one.key)]
    folder = FOLDER / state_of(SHARED) / area
    folder.mkdir(parents=True, exist_ok=True)
    trial = Trial(chosen, folder, AREAS[area].paths, control=control)
    options = ["-q", "-s", "-p", "no:cacheprovider"]
    if AREAS[area].framework:
        options += ["--confcutdir=tests/frameworks", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    began = time.monotonic()
    if status := pytest.main([*options, *map(str, AREAS[area].suites)], plugins=[trial]):
        return int(status)
    print(f"{(time.monotonic() - began) / 60:.0f} minutes")
    return report(trial.results, chosen)


def run_areas(areas: Sequence[str], seed: int, count: int, match: str, *, control: bool) -> int:
    """Lets the tests loose on each area, on as many of ``count`` mutants as its size says."""
    sizes = {area: sum(len(mutants_of(module)) for module in modules(area)) for area in areas}
    failed, skipped = [], []
    for area, size in sizes.items():
        if not AREAS[area].python.exists():
            skipped.append(area)
            continue
        part = max(1, round(count * size / sum(sizes.values())))
        print(f"\n{area}: {part} of {size} mutants, seed {seed}", flush=True)
        options = ["--area", area, "--seed", str(seed), "--count", str(part), "--match", match]
        options += ["--control"] if control else []
        command = [str(AREAS[area].python), "-m", "tests.mutants.run", *options]
        if subprocess.run(command, check=False).returncode:  # noqa: S603 - this program
            failed.append(area)
    for area in skipped:
        print(f"SKIPPED: {area}. Its framework is not installed: make .a2a/venvs/framework-{area}/.installed")
    print(f"Failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--area", choices=AREAS, help="one area only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--control", action="store_true", help="run the same tests without the changes")
    parser.add_argument("--match", default="", help="only chosen mutants with this text in module, function or change")
    given = parser.parse_args()
    if given.area and AREAS[given.area].python == Path(sys.executable):
        return run_area(given.area, given.seed, given.count, given.match, control=given.control)
    areas = [given.area] if given.area else [*AREAS]
    return run_areas(areas, given.seed, given.count, given.match, control=given.control)


if __name__ == "__main__":
    sys.exit(main())
