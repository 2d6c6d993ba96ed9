"""Which tests run a line of the library, and how long each takes: measured once, under coverage."""

from __future__ import annotations

import json
import time
from collections import Counter
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Final
from warnings import catch_warnings

from coverage import Coverage, CoverageData
from coverage.exceptions import CoverageWarning

from tests.mutants.areas import path_of
from tests.mutants.processes import Outcome, all_done, start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pytest

    from tests.mutants.mutations import Mutant

# A mutant is let to tests of so many seconds of CPU.
ENOUGH_S: Final = 40.0


class RelevantTests:
    """The tests by which lines of ``sources`` they run, kept in ``folder``."""

    def __init__(self, folder: Path, sources: Sequence[Path]) -> None:
        self._sources = [str(path) for path in sources]
        self._coverage = folder / "coverage"
        self._seconds = folder / "seconds.json"

    def measure(self, items: Sequence[pytest.Item], run: Callable[[pytest.Item, pytest.Item | None], bool]) -> None:
        """Runs every test once that was not measured yet, in two processes. ``run`` says whether the test passed."""
        seconds = self._all_seconds() if self._seconds.exists() else {}
        new = [item for item in items if item.nodeid not in seconds]
        if not new:
            return
        parts = [_by_files(new, one) for one in range(2)]
        for number, part in enumerate(parts):
            start(lambda number=number, part=part: self._measure_part(number, part, run), silent=False)  # type: ignore[misc]
        for _, outcome in all_done():
            assert outcome is Outcome.DONE, "the tests could not be measured"
        together = CoverageData(str(self._coverage))
        together.read()
        for number in range(len(parts)):
            seconds.update(json.loads(self._part(number).read_text()))
            part_data = CoverageData(f"{self._coverage}.{number}")
            part_data.read()
            together.update(part_data)
        together.write()
        self._seconds.write_text(json.dumps(seconds))

    def of(self, mutant: Mutant) -> dict[str, float]:
        """The tests that run the changed lines, with their seconds, and not more than enough.

        The fastest first; the second case of a test function counts twice its seconds, the third three times.
        """
        seconds, by_line = self._all_seconds(), self._by_line(mutant.module)
        names = {name for line in mutant.lines for name in by_line.get(line, ())}
        passed = {name: took for name in names if (took := seconds.get(name)) is not None}
        found, left = {}, ENOUGH_S
        cases, turns = Counter[str](), dict[str, float]()
        for name in sorted(passed, key=lambda name: (passed[name], name)):
            cases[name.partition("[")[0]] += 1
            turns[name] = passed[name] * cases[name.partition("[")[0]]
        for name in sorted(turns, key=turns.__getitem__):
            left -= passed[name]
            if left > 0:
                found[name] = passed[name]
        return found

    def _all_seconds(self) -> dict[str, float | None]:
        """The seconds of CPU of each test, None if it did not pass."""
        found: dict[str, float | None] = json.loads(self._seconds.read_text())
        return found

    @cache  # noqa: B019
    def _by_line(self, module: str) -> dict[int, list[str]]:
        data = CoverageData(str(self._coverage))
        data.read()
        return data.contexts_by_lineno(str(path_of(module)))

    def _measure_part(
        self, number: int, items: Sequence[pytest.Item], run: Callable[[pytest.Item, pytest.Item | None], bool]
    ) -> None:
        measured = Coverage(
            data_file=self._coverage,
            data_suffix=str(number),
            include=self._sources,
            config_file=False,
            messages=False,
        )
        measured.start()
        seconds = {}
        for item, following in zip_longest(items, items[1:]):
            measured.switch_context(item.nodeid)
            began = time.process_time()
            passed = run(item, following)
            seconds[item.nodeid] = time.process_time() - began if passed else None
        measured.stop()
        with catch_warnings(action="ignore", category=CoverageWarning):  # that nothing was run
            measured.save()
        self._part(number).write_text(json.dumps(seconds))

    def _part(self, number: int) -> Path:
        return self._seconds.with_suffix(f".{number}.json")


def _by_files(items: Sequence[pytest.Item], part: int) -> list[pytest.Item]:
    """Every second file with its tests."""
    numbers = {path: number for number, path in enumerate(dict.fromkeys(item.path for item in items))}
    return [item for item in items if numbers[item.path] % 2 == part]
