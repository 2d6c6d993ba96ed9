"""An agent that looks at prices in parallel, stumbles, and buys if its client approves, in each framework.

What it pays for is in a ledger, and its process is killed.
"""

from __future__ import annotations

import asyncio
import os
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.frameworks.kills import Scenario, kill_at_random, kill_everywhere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from a2a_serverless import Agent
    from tests.frameworks.kills import Ledger, Played

SEEDS: Final = range(int(os.environ.get("SEEDS", "1")))


def step_of(what: str, suffix: str = ": model") -> str:
    """The end of the name of the step that stores a payment: "model 2", or the id of a tool call."""
    kind, _, number = what.partition(" ")
    if kind == "model":
        return suffix if number == "1" else f"{suffix}#{number}"
    return f":{what}"


class Purchase:
    """What the model of a seed says, and what its tools do."""

    def __init__(self, ledger: Ledger, seed: int) -> None:
        chance = Random(seed)  # noqa: S311 - a seed, not a secret
        self.pay = ledger.pay
        self.prices = chance.sample(range(1, 90), chance.randint(1, 3))
        self.words = [f"word{number} " for number in range(chance.randint(3, 9))]
        self.pause_s = chance.choice([0, 0.1, 0.4])

    def turns(self, turn: int) -> Iterable[Any]:
        """The pieces of text and the tool calls, as (name, id, input), of a turn from 1."""
        tried = self.pay(f"model {turn}")
        if turn == 1:
            looks = [("look", f"look-{place}", {"price": price}) for place, price in enumerate(self.prices)]
            return ["I look at the prices.", *looks, ("stumble", "stumble-1", {}), ("buy", "buy-1", {"price": 9})]
        return [f"{word}{tried} " for word in self.words]

    async def look(self, price: int) -> str:
        """Takes its time."""
        self.pay(f"look-{self.prices.index(price)}")
        await asyncio.sleep(price / 100)
        return str(price)

    def stumble(self) -> str:
        """Raises ValueError."""
        self.pay("stumble-1")
        raise ValueError("no")

    def buy(self, price: int) -> str:
        """Is called if the client approves."""
        self.pay("buy-1")
        return f"bought for {price}"


def assert_no_death_pays_twice(
    make: Callable[[Ledger, int], Agent],
    check: Callable[[Played], None],
    seed: int,
    step_of: Callable[[str], str] = step_of,
) -> None:
    """Kills the process before and after each call."""
    report = kill_everywhere(Scenario(lambda ledger: make(ledger, seed), step_of, ["yes"]), check)
    print(f"seed {seed}: {report.kills.total()} kills, {len(report.wrong)} wrong")
    assert not report.wrong


def assert_no_deaths_pay_twice(
    make: Callable[[Ledger, int], Agent],
    check: Callable[[Played], None],
    seed: int,
    step_of: Callable[[str], str] = step_of,
) -> None:
    """Kills the process at two or three calls."""
    assert not kill_at_random(Scenario(lambda ledger: make(ledger, seed), step_of, ["yes"]), check, seed).wrong
