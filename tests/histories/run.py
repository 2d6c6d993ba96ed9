"""Records histories of a deployment under faults and checks them: ``make prove KIND=histories TARGET=dynamodb``.

Each seed is a history of its own. In the simulation a seed gives the same history again; over dynoxide, which
needs ``make dynoxide``, threads race. With ``--bugs`` every injected bug has to be found; shown is by how many seeds.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from tests.histories.bugs import BUGS, inject
from tests.histories.check import check
from tests.histories.deployment import RacingDeployment, record_history
from tests.histories.dynamodb import DynamoStores, dynoxide_client
from tests.histories.history import texts_of
from tests.histories.simulated import SimulatedHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.histories.check import Violation
    from tests.histories.history import History

MOST_SEEDS = 200


def play(
    seed: int, bug: str = "", *, clients: int = 4, actions: int = 10, table: Any = None, is_torn: bool = False
) -> tuple[History, list[Violation]]:
    """The history of a seed, and what is wrong with it: in the simulation, or of threads that race for a table."""
    random = Random(seed)  # noqa: S311 - a seed, not a secret
    wrap = inject(bug, random) if bug else lambda port, _: port
    deployment: Any = RacingDeployment(random, table, wrap) if table else SimulatedHistory(seed, wrap, is_torn=is_torn)
    try:
        history = record_history(deployment, random, clients, actions)
    finally:
        getattr(deployment.table, "drop", lambda: None)()
    return history, check(history)


def seeds_until_found(bug: str, seeds: Iterable[int], **options: Any) -> tuple[int, list[Violation]]:
    """How many seeds it took to find an injected bug by the promise that it breaks, and what was found.

    0 if it was not, or if something was raised: a port with the bug raises nothing.
    """
    for count, seed in enumerate(seeds, 1):
        found = play(seed, bug, **options)[1]
        if any(one.promise == "errors" for one in found):
            return 0, found
        if broken := [one for one in found if one.promise == BUGS[bug].promise]:
            return count, broken
    return 0, []


def check_seeds(seeds: Iterable[int], **options: Any) -> int:
    """Plays histories and shows them; returns how many were wrong."""
    wrong = operations = events = posts = unknown = 0
    began = time.monotonic()
    for seed in seeds:
        history, violations = play(seed, **options)
        operations += len(history.operations)
        unknown += sum(one.completed is None for one in history.operations)
        events += sum(map(len, history.logs.values()))
        posts += len(history.posts)
        if violations:
            wrong += 1
            print(f"seed {seed}:", *violations, *(texts_of(history) if wrong == 1 else ()), sep="\n  ")  # noqa: T201
    text = f"{operations} operations ({unknown} with an unknown outcome), {events} events, {posts} notifications"
    print(f"{text}; {wrong} histories are wrong; {time.monotonic() - began:.0f} s")  # noqa: T201
    return wrong


def check_bugs(first: int, **options: Any) -> int:
    """Looks for every injected bug; returns how many were not found."""
    missed = 0
    for bug in BUGS:
        count, found = seeds_until_found(bug, range(first, first + MOST_SEEDS), **options)
        missed += not count
        text = f"{count} seeds: {found[0].promise}: {found[0].text[:100]}" if count else "NOT FOUND"
        print(f"{bug:24} {text}")  # noqa: T201
    return missed


def main() -> None:
    logging.disable(logging.CRITICAL)  # the library's own words on each fault
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--target", choices=["simulation", "dynamodb"], default="simulation")
    parser.add_argument("--bugs", action="store_true")
    parser.add_argument("--torn", action="store_true", help="queries of the simulation see halves of transactions")
    wanted = parser.parse_args()
    with ExitStack() as stack:
        is_table = wanted.target == "dynamodb"
        table = partial(DynamoStores, stack.enter_context(dynoxide_client())) if is_table else None
        look: Callable[..., int] = check_bugs if wanted.bugs else check_seeds
        asked = wanted.first if wanted.bugs else range(wanted.first, wanted.first + wanted.seeds)
        wrong = look(asked, table=table, is_torn=wanted.torn)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
