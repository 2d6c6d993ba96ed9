"""Plays simulations: ``make prove KIND=simulation``. Prints the seeds that break a promise."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console

from tests.removed_guards import REMOVED_GUARDS, RemovedGuard
from tests.simulation.promises import Breach, broken
from tests.simulation.scenarios import Play

if TYPE_CHECKING:
    from collections.abc import Iterable


def play(seed: int, *scenarios: str, trace: bool = False) -> list[Breach]:
    """Plays one seed, with its own scenarios or with these; returns the promises that it broke."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    one = Play(seed, console.print if trace else None, scenarios or None)
    if trace:
        console.print(f"{seed}: {', '.join(one.names)}; {one.simulation.faults.weather}")
    try:
        one.run()
    except Exception as error:  # noqa: BLE001 - no client may get that
        return [Breach("client", repr(error))]
    return broken(one)


def find(removed: RemovedGuard, seeds: Iterable[int]) -> tuple[int, list[Breach]]:
    """Plays seeds without a guard until its promise is broken; returns how many it took, and what showed it.

    0 if none of them did.
    """
    with removed():
        for count, seed in enumerate(seeds, 1):
            found = play(seed, *removed.scenarios)
            if any(one.promise == removed.promise for one in found):
                return count, found
    return 0, []


def _find_bugs(console: Console, names: list[str], seeds: int) -> int:
    """Prints for each removed guard how many seeds it took to notice; returns how many were not noticed."""
    missed = 0
    for name in names:
        began = time.process_time()
        needed, how = find(REMOVED_GUARDS[name], range(1, seeds + 1))
        missed += not needed
        said = f"{needed:5} seeds" if needed else f"not in {seeds} seeds"
        console.print(f"{name:22} {said} {time.process_time() - began:6.1f} s CPU  {'; '.join(map(str, how[:2]))}")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--bugs", nargs="*", help="remove each guard, or these, and look for the seed that notices")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seed", type=int, help="play one seed and print what happens")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    console = Console(highlight=False, soft_wrap=True, markup=False)
    seeds = [given.seed] if given.seed is not None else range(given.first, given.first + given.seeds)
    if given.bugs is not None:
        return 1 if _find_bugs(console, given.bugs or [*REMOVED_GUARDS], given.seeds) else 0
    began, failed = time.process_time(), 0
    for seed in seeds:
        found = play(seed, trace=given.seed is not None)
        failed += bool(found)
        for text in found:
            console.print(f"seed {seed}: {text}")
    console.print(f"{len(seeds)} seeds, {failed} broke a promise, {time.process_time() - began:.1f} s CPU")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
