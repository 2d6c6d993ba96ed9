"""The limits of a deployment at rates of tasks, one table (docs/scale.md): what each rate needs, and what it costs.

    .venv/bin/python bench/limits.py
    .venv/bin/python bench/limits.py --agent-seconds 30 --webhooks 0

The use of a task is counted (``usage.json``; a test compares it). Tasks arrive independently of each other, so the
number of those that are there at a time is a Poisson variable. The table has the number that suffices at 999 of 1,000
moments, and for streams of writes the mean. The defaults are this project's settings and AWS's quotas.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RATES: Final = (10.0, 1_000.0, 10_000.0)
AGENT_SECONDS: Final = 10.0
OTHER_SECONDS: Final = 0.05  # that a task keeps an instance of the other functions, all together
POST_SECONDS: Final = 0.2  # of a notifier for a delivery
RELAY_SECONDS: Final = 0.01  # of a batch
BATCHES: Final = 2.5  # of the stream for a task, if tasks share none
PLACES: Final = 10.0  # of a notifier
SHARDS: Final = 4.0  # of a new table


@dataclass(frozen=True)
class Load:
    """Tasks a second, the seconds that each has its worker, and its webhooks."""

    tasks: float
    agent_seconds: float = AGENT_SECONDS
    webhooks: float = 1.0


@dataclass(frozen=True)
class Limit:
    """A limit: its default, the amount that a load needs, and what moves it. ``at_random`` amounts are of moments."""

    what: str
    default: float
    need: Callable[[Load], float]
    moved_by: str
    at_random: bool = False

    def needed(self, load: Load) -> float:
        """The amount that suffices for the load."""
        mean = self.need(load)
        return float(cost.enough(mean)) if self.at_random else mean

    def full_at(self, load: Load) -> float:
        """The tasks a second at which the default is used up, if all else is as in ``load``."""
        low, high = 0.0, 1e9
        while high - low > max(1e-6, low * 1e-4):
            middle = (low + high) / 2
            fits = self.needed(Load(middle, load.agent_seconds, load.webhooks)) <= self.default
            low, high = (middle, high) if fits else (low, middle)
        return low


def _write_units(load: Load) -> float:
    usage = cost.USAGE
    units: float = load.tasks * (usage["write_units"] + 3 * usage["posts"] * (load.webhooks - 1))
    return units


LIMITS: Final = (
    Limit(
        "workers at a time",
        50,
        lambda load: load.tasks * load.agent_seconds,
        "`WorkerConcurrency`, 1,000 at most; then [a container](container.md)",
        at_random=True,
    ),
    Limit(
        "Lambda's concurrency in the account",
        1_000,
        lambda load: load.tasks * (load.agent_seconds + OTHER_SECONDS + load.webhooks * POST_SECONDS),
        "AWS, on request; [a container](container.md) needs none for its tasks",
        at_random=True,
    ),
    Limit(
        "batches of the table's stream at a time",
        SHARDS,
        lambda load: load.tasks * BATCHES * RELAY_SECONDS,
        "`RelayConcurrency`, up to ten for each shard; a busier table has more shards",
    ),
    Limit("write units a second of a new table", 4_000, _write_units, "the table's warm throughput, or half an hour"),
    Limit("write units a second of a table", 40_000, _write_units, "AWS, on request"),
    Limit(
        "notifiers at a time, ten deliveries each",
        50,
        lambda load: load.tasks * load.webhooks * cost.USAGE["posts"] * POST_SECONDS / PLACES,
        "`NotifierConcurrency`",
        at_random=True,
    ),
    Limit("requests a second of one method", 500, lambda load: load.tasks, "`RequestsPerSecond`", at_random=True),
    Limit(
        "requests a second in the account",
        10_000,
        lambda load: load.tasks * cost.USAGE["requests"],
        "AWS, on request",
        at_random=True,
    ),
    Limit(
        "messages of one owner in a minute",
        1_200,
        lambda load: load.tasks * 60,
        "`SENDS_PER_OWNER_PER_MINUTE`, or more owners",
        at_random=True,
    ),
    Limit(
        "messages in flight in a queue",
        120_000,
        lambda load: load.tasks * load.agent_seconds,
        "another deployment",
        at_random=True,
    ),
)


def usd_an_hour(load: Load) -> float:
    """The cost of an hour at this load: all but storage and models."""
    posts = cost.USAGE["posts"] * load.webhooks
    scale = cost.Scale(round(load.tasks * 3600), posts=posts, agent_seconds=load.agent_seconds)
    return cost.total(cost.bill(scale))


def table(load: Load, rates: Iterable[float] = RATES) -> str:
    """The limits, the first at the top, as a table: bold where the default does not suffice."""
    loads = [Load(rate, load.agent_seconds, load.webhooks) for rate in rates]
    heads = " | ".join(f"needed at {one.tasks:,.0f} a second" for one in loads)
    lines = [f"| limit | default | reached at tasks a second | {heads} | how to raise it |"]
    lines.append("|---|---:|---:|" + "---:|" * len(loads) + "---|")
    for limit in sorted(LIMITS, key=lambda limit: limit.full_at(load)):
        amounts = [limit.needed(one) for one in loads]
        cells = " | ".join(f"**{amount:,.0f}**" if amount > limit.default else f"{amount:,.0f}" for amount in amounts)
        default, full = f"{limit.default:,.0f}", f"{limit.full_at(load):,.0f}"
        lines.append(f"| {limit.what} | {default} | {full} | {cells} | {limit.moved_by} |")
    costs = " | ".join(f"{usd_an_hour(one):,.2f}" for one in loads)
    return "\n".join([*lines, f"| USD an hour | | | {costs} | |"])


def main() -> None:
    """Prints the table."""
    reader = argparse.ArgumentParser(description="Which limit comes first.")
    reader.add_argument("--agent-seconds", type=float, default=AGENT_SECONDS, help="seconds that a task has its worker")
    reader.add_argument("--webhooks", type=float, default=1.0, help="webhooks of a task")
    asked = reader.parse_args()
    print(table(Load(1, asked.agent_seconds, asked.webhooks)))


if __name__ == "__main__":
    main()
