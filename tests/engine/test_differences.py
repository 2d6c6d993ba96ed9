"""A run that comes to an act otherwise than an earlier run says which act it is; a retry goes on there."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Step, TaskContext, TaskState, TypeCodec
from a2a_serverless.domain.agent_errors import DIFFERENCES
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.testing import Reply

DIGEST = "[0-9a-f]{8}"


class Worker:
    """Does things with a number."""

    def __init__(self) -> None:
        self.number, self.done = 1, list[str]()

    async def do(self, what: str) -> str:
        self.done.append(what)
        return what

    async def step(self, task: TaskContext) -> None:
        await task.step("pay", self.do, f"pay {self.number}")

    async def step_in_a_scope(self, task: TaskContext) -> None:
        with task.scope("bill"):
            await self.step(task)

    async def call(self, task: TaskContext) -> None:
        await task.call("pay", "bank", f"pay {self.number}")

    async def callback(self, task: TaskContext) -> None:
        await task.callback("paid", signed_with="github:bank" if self.number == 2 else None)

    async def codec(self, task: TaskContext) -> None:
        kind: Any = int if self.number == 2 else str
        await task.step(Step("pay", codec=TypeCodec(kind)), self.do, "pay")


async def bank(task: TaskContext) -> str:
    return task.text()


def play(worker: Worker, act: str) -> tuple[AgentTestHarness, Reply]:
    """A task whose second run comes to the act with something else."""

    async def work(task: TaskContext) -> str:
        await task.step("before", worker.do, "before")
        await getattr(worker, act)(task)
        await task.step("after", worker.do, "after")
        await task.ask("Go on?")
        return "done"

    harness = AgentTestHarness(agent_of(work, "work"), agent_of(bank, "bank"))
    harness.engine = replace(harness.engine, metrics=harness.metrics)
    first = harness.send("go")
    assert first.state == TaskState.INPUT_REQUIRED, first
    worker.number = 2
    return harness, harness.send("yes", task_id=first.task.id)


TEXTS = {
    "step": (
        "The step 'pay' was stored with other arguments. Stored: arguments with the digest {digest}, at {time}; this"
        " run: arguments with the digest {digest}."
    ),
    "step_in_a_scope": (
        "The step 'bill > pay' was stored with other arguments. Stored: arguments with the digest {digest}, at {time};"
        " this run: arguments with the digest {digest}."
    ),
    "call": (
        "The call 'pay' was made to another agent, or with other content. Stored: the agent 'bank', content with the"
        " digest {digest}; this run: the agent 'bank', content with the digest {digest}."
    ),
    "callback": "The callback 'paid' was made with another signed_with. Stored: none; this run: github:bank.",
    "codec": (
        "The codec of the step 'pay' cannot read its stored result: int (int_parsing). Stored: a text; this run: the"
        " codec TypeCodec."
    ),
}


@pytest.mark.parametrize("act", TEXTS)
def test_a_run_that_differs_says_which_act_what_was_stored_and_what_came(act: str) -> None:
    harness, reply = play(Worker(), act)
    assert reply.state == TaskState.FAILED
    text = re.escape(TEXTS[act]).replace(r"\{digest\}", DIGEST).replace(r"\{time\}", r"[0-9T:+-]{25}")
    assert re.fullmatch(f"{text} {re.escape(DIFFERENCES)}", reply.said), reply.said
    assert "pay 1" not in reply.said
    task = reply.task.id
    assert [what for name, what in harness.metrics.counted if name == "RunsDiffer"] == [
        {"kind": "conflict", "task": task}
    ]


def test_the_log_names_the_act_that_differs(caplog: pytest.LogCaptureFixture) -> None:
    _, reply = play(Worker(), "step")
    (line,) = [one.__dict__ for one in caplog.records if one.message == "a run differs from an earlier run"]
    assert (line["levelno"], line["task"], line["act"]) == (logging.WARNING, reply.task.id, "pay")
    assert line["stored"].startswith("arguments with the digest")
    assert line["new"].startswith("arguments with the digest")


@pytest.mark.parametrize("act", ["step", "step_in_a_scope", "call"])
def test_a_retry_goes_on_at_the_act_that_differs(act: str) -> None:
    worker = Worker()
    harness, failed = play(worker, act)
    worker.done = []
    again = harness.retry(failed.task.id)
    assert again.state == TaskState.INPUT_REQUIRED, again
    assert harness.send("yes", task_id=again.task.id).said == "done"
    assert worker.done == (["after"] if act == "call" else ["pay 2", "after"])


def test_a_step_that_is_used_twice_is_no_difference() -> None:
    async def work(task: TaskContext) -> None:
        for _ in range(2):
            await task.step("pay", bank_of_nothing)

    async def bank_of_nothing() -> None:
        pass

    harness = AgentTestHarness(agent_of(work))
    harness.engine = replace(harness.engine, metrics=harness.metrics)
    assert harness.send("go").state == TaskState.FAILED
    assert "RunsDiffer" not in {name for name, _ in harness.metrics.counted}


# ---- Acts to which a run does not come


def test_a_task_that_ends_without_a_stored_act_completes_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()

    async def work(task: TaskContext) -> str:
        if worker.number == 1:
            await task.step("pay", worker.do, "pay")
            await task.store.put("paid", 1)
        await task.ask("Go on?")
        return "done"

    harness = AgentTestHarness(agent_of(work), replay=False)  # the harness itself refuses a missed act
    harness.engine = replace(harness.engine, metrics=harness.metrics)
    first = harness.send("go")
    worker.number = 2
    assert harness.send("yes", task_id=first.task.id).said == "done"
    task = first.task.id
    assert [what for name, what in harness.metrics.counted if name == "RunsDiffer"] == [
        {"kind": "missed", "task": task}
    ]
    (line,) = [one.__dict__ for one in caplog.records if one.message == "a run differs from an earlier run"]
    assert (line["act"], line["stored"]) == ("pay", "2 acts")


def test_acts_in_a_step_that_has_ended_are_not_missed(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()

    async def outer(task: TaskContext) -> str:
        return str(await task.step("inner", worker.do, "inner"))

    async def work(task: TaskContext) -> str:
        await task.step("outer", lambda: outer(task))
        await task.call("pay", "bank", "pay")
        await task.ask("Go on?")
        return "done"

    harness = AgentTestHarness(agent_of(work, "work"), agent_of(bank, "bank"))
    first = harness.send("go")
    assert harness.send("yes", task_id=first.task.id).said == "done"
    assert [one for one in caplog.records if one.message == "a run differs from an earlier run"] == []
