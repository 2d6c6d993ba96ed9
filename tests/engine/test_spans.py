"""The spans of one run and of its webhook, as a tracer that keeps them gets them. Over the edge: tests/handlers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from a2a_serverless import Step
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.trace import new_trace
from a2a_serverless.engine.framework_task import framework_task
from a2a_serverless.ports.tracing import Tracer
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig
from a2a_serverless.services import webhooks
from tests.echo import Writer, agent_of
from tests.engine.test_calls import SlowLoop
from tests.world import HOOK, ME, Siblings, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.spans import TraceSpan
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Message, Task

TRACE = new_trace("a request")


class KeptSpans(Tracer):
    """A tracer that keeps its spans."""

    is_on: ClassVar[bool] = True

    def __init__(self) -> None:
        self.spans: list[TraceSpan] = []

    def record(self, span: TraceSpan) -> None:
        self.spans.append(span)

    def named(self, name: str) -> list[TraceSpan]:
        return [span for span in self.spans if span.name == name]


async def work(task: Any) -> None:
    """Two models in a step, each after two seconds; then one during a second's work outside of steps, and one apart."""

    async def think() -> None:
        for model in ("first", "second"):
            await asyncio.sleep(2)
            await task.record_usage(model, input_tokens=1)

    await task.step("think", think)
    with framework_task(task).at_work():
        await asyncio.sleep(1)
        with framework_task(task).at_work():
            await task.record_usage("third", input_tokens=1)
    await asyncio.sleep(1)
    await task.record_usage("fourth", input_tokens=1)


def traced(trace: str) -> tuple[World, TaskKey, KeptSpans]:
    """A world whose task has this trace and is run to its end."""
    world, tracer = World([agent_of(work)], policy=EgressPolicy(trusted_domains=("example.com",))), KeptSpans()
    key = ME.key(world.send("hello", push=False).id)
    webhooks.add(world.service.webhooks(), key, "echo", TaskPushNotificationConfig(url=HOOK, id="hook"), "1.0")
    head = world.table.read_head(key).head
    assert world.table.update_head(head, head._replace(trace=trace, rev=head.rev + 1))
    world.engine = replace(world.engine, tracer=tracer, metrics=world.metrics)
    world.post = replace(world.post, tracer=tracer)
    world.settle()
    return world, key, tracer


async def does_everything(task: TaskContext) -> None:
    """A step with a model call and a tool in it, one that fails, a question, and two calls of which one is refused."""

    async def plan() -> None:
        await asyncio.sleep(1)
        await task.record_usage("nova", input_tokens=1)
        await task.step(Step("look up", tool="search"), asyncio.sleep, 2)

    async def broken() -> None:
        raise LookupError

    await task.step("plan", plan)
    with suppress(LookupError):
        await task.step("broken", broken)
    answer = await task.ask("Which?")
    await task.call("write", "echo", answer.text())
    with suppress(AgentCallFailed):
        await task.call("refused", "refuser", "hello")


class OneRefuses(Siblings):
    """The agents of the world, of which one takes no message."""

    def send(
        self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig
    ) -> Task | Message:
        if agent == "refuser":
            raise AgentCallFailed("It refuses.")
        return super().send(caller, agent, message, callback)


def test_a_task_and_its_acts_make_a_tree_of_spans_with_their_times() -> None:
    world = World([agent_of(does_everything, "parent"), Writer(seconds=60).agent, agent_of(work, "refuser")])
    tracer, world.trace = KeptSpans(), TRACE
    registry = replace(world.registry, remote_agents=OneRefuses(world))
    world.engine = replace(world.engine, tracer=tracer, registry=registry)
    task, began = world.send("hello", agent="parent", push=False), world.now
    world.wait(60_000)
    world.send("red", agent="parent", push=False, task_id=task.id)
    world.settle()
    names = {span.trace: span.name for span in tracer.spans}
    assert TRACE not in names
    seen = [
        (span.name, names.get(span.parent, span.parent and "request"), span.error, *map(seconds_since(began), times))
        for span in tracer.spans
        if span.attributes["a2a.task.id"] == task.id
        for times in [(span.began_at, span.ended_at)]
    ]
    assert sorted(seen, key=lambda one: one[3:]) == [
        ("chat nova", "step plan", "", 0, 1),
        ("step plan", "invoke_agent parent", "", 0, 3),
        ("invoke_agent parent", "request", "", 0, 3),
        ("execute_tool search", "step plan", "", 1, 3),
        ("step broken", "invoke_agent parent", "LookupError", 3, 3),
        ("wait question", "request", "", 3, 60),
        ("invoke_agent parent", "request", "", 60, 60),
        ("invoke_agent echo", "invoke_agent parent", "", 60, 240),
        ("invoke_agent refuser", "invoke_agent parent", "AgentCallFailed", 240, 240),
        ("invoke_agent parent", "request", "", 240, 240),
    ]


def seconds_since(began: int) -> Callable[[int], int]:
    return lambda at: round((at - began) / 1000)


def test_each_span_has_an_id_of_its_own_in_the_trace_of_the_task() -> None:
    _, _, tracer = traced(TRACE)
    ids = [span.trace for span in tracer.spans]
    assert {one[:36] for one in ids} == {TRACE[:36]}
    assert len(set(ids)) == len(ids) >= 7
    (step,) = tracer.named("step think")
    assert [span.parent for name in ("first", "second") for span in tracer.named(f"chat {name}")] == [step.trace] * 2


def test_a_model_call_begins_with_its_step_or_with_the_call_or_the_work_before_it() -> None:
    _, _, tracer = traced(TRACE)
    (step,) = tracer.named("step think")
    took = {}
    for name in ("first", "second", "third", "fourth"):
        (span,) = tracer.named(f"chat {name}")
        took[name] = tuple(round((at - step.began_at) / 1000) for at in (span.began_at, span.ended_at))
    assert took == {"first": (0, 2), "second": (2, 4), "third": (4, 5), "fourth": (6, 6)}, "in seconds"


@pytest.mark.parametrize("trace", [TRACE, ""])
def test_each_post_has_a_span_if_its_task_has_a_trace(trace: str) -> None:
    world, key, tracer = traced(trace)
    attempts = world.table.list_attempts(key)
    posts = tracer.named("POST webhook")
    assert len(attempts) > 1
    assert [(span.parent, span.began_at) for span in posts] == [(trace, one.at) for one in attempts if trace]
    assert all(span.attributes["http.request.resend_count"] == 0 for span in posts), "each was accepted at once"


def test_a_model_call_beside_a_call_of_an_agent_began_in_the_run() -> None:
    async def beside(task: TaskContext) -> None:
        async def think() -> None:
            await asyncio.sleep(1)
            await task.record_usage("beside", input_tokens=1)

        await asyncio.gather(task.call("write", "echo", "hello"), think())

    world, tracer = World([agent_of(beside, "parent"), Writer(seconds=1).agent]), KeptSpans()
    world.loop, world.trace = SlowLoop, TRACE
    world.engine = replace(world.engine, tracer=tracer)
    world.send("hello", agent="parent", push=False)
    began = world.now
    world.settle()
    (span,) = tracer.named("chat beside")
    assert began <= span.began_at <= span.ended_at


def test_the_time_of_a_step_is_measured_from_its_beginning() -> None:
    world, _, _ = traced("")
    assert [round(ms / 1000) for name, ms, _ in world.metrics.measured if name == "StepTime"] == [4]
