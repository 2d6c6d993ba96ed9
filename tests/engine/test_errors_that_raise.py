"""Errors of agents that cannot be shown end their task like all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from a2a_serverless.domain.agent_errors import AgentCallFailed, TaskRejected
from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.protocol.v1 import TaskState
from tests.engine.test_run import last_word, world_with_task

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext


def _refuse(*_: object) -> NoReturn:
    raise RuntimeError("not even this")


class Unprintable(Exception):
    """Neither text nor arguments nor response can be had."""

    __str__ = __repr__ = _refuse
    args = response = property(_refuse)


class UnequalArguments(Exception):
    """Its arguments cannot be compared."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.detail = _Incomparable()


class _Incomparable:
    __eq__ = __hash__ = _refuse


class Rejected(TaskRejected):
    """A rejection with a content, whose text cannot be had."""

    __str__ = __repr__ = _refuse


class Refused(InvalidParams):
    """A protocol error whose text cannot be had."""

    __str__ = __repr__ = _refuse


class Unreached(AgentCallFailed):
    """An error of a call whose text cannot be had."""

    __str__ = __repr__ = _refuse


FAILED = "The agent stopped with an error (reference "
ERRORS = {
    "unprintable": (Unprintable("x"), TaskState.FAILED, FAILED),
    "incomparable": (UnequalArguments("x"), TaskState.FAILED, FAILED),
    "a rejection": (Rejected("No."), TaskState.REJECTED, "No."),
    "a protocol error": (Refused(), TaskState.FAILED, FAILED),
    "a call": (Unreached("Away."), TaskState.FAILED, "Away."),
}


@pytest.mark.parametrize("in_step", [False, True])
@pytest.mark.parametrize(("error", "state", "text"), ERRORS.values(), ids=ERRORS)
def test_an_error_that_raises_when_it_is_looked_at_ends_the_task_like_any_other(
    error: Exception, state: TaskState, text: str, *, in_step: bool
) -> None:
    async def fail() -> NoReturn:
        raise error

    async def work(task: TaskContext) -> None:
        await (task.step("fail", fail) if in_step else fail())

    world, key = world_with_task(work)
    assert world.run(key) is RunOutcome.ENDED
    task = world.get(key.task)
    assert task.status.state is state
    assert last_word(task).startswith(text)
