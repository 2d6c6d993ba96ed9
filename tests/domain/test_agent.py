"""Trying a step again: how often, how long, and what is final."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.agent import StepTimedOut, TaskFailed, TaskRejected, with_retries
from a2a_serverless.testing.harness import START, SimulatedLoop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Flaky:
    """Fails as it is told to, then works; notes when it was tried (ms)."""

    def __init__(self, *errors: Exception, takes_s: float = 0) -> None:
        self.now = START
        self.errors = list(errors)
        self.takes_s = takes_s
        self.at: list[int] = []

    async def work(self, value: str) -> str:
        self.at.append(round((self.now - START) / 1000))
        await asyncio.sleep(self.takes_s)
        if self.errors:
            raise self.errors.pop(0)
        return value

    def play(self, work: Callable[[str], Awaitable[Any]]) -> Any:
        loop = SimulatedLoop(lambda: self.now, self._wait)
        try:
            return loop.run_until_complete(_done(work("done")))
        finally:
            loop.close()

    def _wait(self, ms: int) -> None:
        self.now += ms


async def _done(work: Awaitable[Any]) -> Any:
    return await work


def test_what_fails_is_tried_again_after_a_pause_that_doubles() -> None:
    flaky = Flaky(OSError(), OSError(), OSError())
    assert flaky.play(with_retries(flaky.work, times=4, pause_s=2)) == "done"
    assert flaky.at == [0, 2, 6, 14]


def test_the_last_error_is_raised() -> None:
    flaky = Flaky(OSError("one"), OSError("two"))
    with pytest.raises(OSError, match="two"):
        flaky.play(with_retries(flaky.work, times=2))


@pytest.mark.parametrize("final", [TaskRejected("no"), TaskFailed("broken")])
def test_what_the_author_has_decided_is_not_tried_again(final: Exception) -> None:
    flaky = Flaky(final)
    with pytest.raises(type(final)):
        flaky.play(with_retries(flaky.work, times=5))
    assert len(flaky.at) == 1


def test_each_try_has_the_time_limit_and_the_last_one_says_so() -> None:
    flaky = Flaky(takes_s=60)
    with pytest.raises(StepTimedOut, match="longer than 10 s"):
        flaky.play(with_retries(flaky.work, times=2, timeout_s=10))
    assert flaky.at == [0, 11]
