"""What durability means, to look at: ``make prove KIND=durability SEEDS=n``.

An hour's work and the platform's 15 minutes: each invocation, what it was billed, and that a wait was billed nothing.
Then the chain of agents, killed: at every call of a port (a process dies before or after it), and ``n`` times at three
calls at once among doubled, lost and late messages; each time all that it makes is compared with the undisturbed run's.
"""

from __future__ import annotations

import argparse
import sys
from random import Random
from typing import TYPE_CHECKING

from tests.faults.plans import Count, UnreliableQueue, kill_at
from tests.faults.test_chain import calls, told, undisturbed, what_is_wrong
from tests.faults.test_time_limits import CHAPTERS, Novelist, publishing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.world import World


def invocations() -> Iterator[str]:
    """The invocations of a novel of 55 minutes that another agent has commissioned."""
    novelist = Novelist()
    world, reply = publishing(novelist)
    first = world.runs[0][1]
    yield "agent       from      to        billed"
    for task, began, ended in world.runs:
        name = "publisher" if task == reply.task.id else "novelist"
        yield f"{name:10}  {_clock(began - first)}  {_clock(ended - first)}  {(ended - began) / 1000:6.0f} s"
    billed = sum(ended - began for task, began, ended in world.runs if task == reply.task.id)
    waited = world.runs[-1][2] - first - billed
    yield f"The publisher waited {_clock(waited)} for the novel, and was billed {billed / 1000:.0f} s around that."
    again = novelist.begun.total() - CHAPTERS
    yield f"{len(novelist.done)} steps, each done {max(novelist.done.values())} time; {again} were begun anew."
    yield f"{reply.text('book.md').count('Chapter')} of {CHAPTERS} chunks, none twice."


def deaths(seeds: int) -> Iterator[tuple[str, str]]:
    """Each way to die, and what was wrong then: nothing, in the end."""
    for number in range(1, calls() + 1):
        for late in (False, True):
            yield f"call {number}, {'after' if late else 'before'}", what_is_wrong(*told(kill_at(number, late=late)))
    for seed in range(seeds):
        yield f"seed {seed}", what_is_wrong(*astray(seed))


def astray(seed: int) -> tuple[World, str]:
    """The chain with three deaths, among messages that are doubled, lost and late."""
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    numbers = [chance.randint(1, calls()) for _ in range(3)]
    return told(kill_at(*numbers, late=chance.random() < 0.5), lambda queue: UnreliableQueue(queue, seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    wanted = parser.parse_args()
    say = sys.stdout.write
    say("\n".join(invocations()) + "\n\n")
    count = Count()
    told(count)
    say(f"The chain makes {', '.join(map(str, undisturbed()))} in {len(count.calls)} calls of ports.\n")
    tried = list(deaths(wanted.seeds))
    wrong = [f"{how}: {what}" for how, what in tried if what]
    say(f"Killed in {len(tried)} ways; in {len(tried) - len(wrong)} the artifacts are the same, byte for byte.\n")
    say("".join(f"  {line}\n" for line in wrong))
    sys.exit(1 if wrong else 0)


def _clock(ms: int) -> str:
    minutes, seconds = divmod(ms // 1000, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


if __name__ == "__main__":
    main()
