"""The spans of a chain of agents, as a collector gets them, over the real edge and in simulated time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.collector import NO_EXPORTER, SECONDS, Collector, attributes, collecting, has_exporter

if not has_exporter():
    pytest.skip(NO_EXPORTER, allow_module_level=True)

from a2a_serverless import Step
from a2a_serverless.adapters.open_telemetry import OpenTelemetryTracer
from a2a_serverless.client import Client, text_message
from a2a_serverless.domain.trace import is_sampled
from a2a_serverless.ports.tracing import NULL_TRACER
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task, TaskState
from tests.client.deployment import BASE
from tests.echo import agent_of
from tests.handlers.test_chains import KEY, Chain, calling
from tests.world import webhook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.task_context import TaskContext

pytestmark = [pytest.mark.enable_socket]
TRACE_ID, CALLER_SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, UNSAMPLED = (f"00-{TRACE_ID}-{CALLER_SPAN}-{flags}" for flags in ("01", "00"))
SECRET = "a confidential text"


class Planner:
    """An agent that does one of everything, and says confidential things."""

    def __init__(self) -> None:
        self.agent = agent_of(self.work, "planner")

    async def work(self, task: TaskContext) -> str:
        async def model(text: str) -> str:
            await task.record_usage("nova-lite", input_tokens=12, output_tokens=3, cost_usd=0.5)
            return await task.step(Step("look up 1", tool="look_up"), tool, text)

        async def tool(text: str) -> str:
            return text

        async def broken() -> None:
            raise LookupError(SECRET)

        await task.step("plan", model, SECRET)
        with pytest.raises(LookupError):
            await task.step("broken", broken)
        answer = await task.ask(SECRET)
        called = await task.call("ask the echo", "echo", answer.text())
        assert isinstance(called, Task)
        return SECRET


async def echo(task: TaskContext) -> str:
    return task.text()


class Traced(Chain):
    """A chain that exports to a collector."""

    def __init__(self, collector: Collector, *agents: Agent, **options: Any) -> None:
        super().__init__(*agents)
        self.tracer = tracer = OpenTelemetryTracer(collector.url, "test", flush_s=SECONDS, **options)
        world, deployment = self.world, self.deployment
        world.engine = replace(world.engine, tracer=tracer)
        world.post = replace(world.post, tracer=tracer)
        deployment.edge = replace(deployment.edge, service=world.service._replace(tracer=tracer))
        self.add(KEY, *(f"a2a:{agent.id}" for agent in agents))

    def ask(self, agent: str, text: str, trace: str, task_id: str | None = None) -> str:
        """Sends a message with a trace and a webhook; everything that follows is done when this returns."""
        client = Client(f"{BASE}/{agent}", self.deployment.transport, {"X-API-Key": KEY, "traceparent": trace})
        configuration = SendMessageConfiguration(
            return_immediately=True, task_push_notification_config=None if task_id else webhook()
        )
        sent = client.send(SendMessageRequest(message=text_message(text, task_id=task_id), configuration=configuration))
        assert isinstance(sent, Task)
        self.world.settle()
        self.tracer.flush()
        return sent.id


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


def run_to_the_end(chain: Traced, trace: str) -> str:
    task_id = chain.ask("planner", SECRET, trace)
    assert chain.ask("planner", SECRET, trace, task_id) == task_id
    assert chain.said("planner") == (TaskState.COMPLETED, SECRET)
    return task_id


def test_a_chain_of_agents_is_one_tree(collector: Collector) -> None:
    chain = Traced(collector, Planner().agent, agent_of(echo))
    task_id = run_to_the_end(chain, SAMPLED)
    spans = {span.span_id: span for span in collector.spans}
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE_ID}
    assert len(spans) == len(collector.spans), "no id is used twice"
    parents = {
        (span.name, spans[span.parent_span_id].name if span.parent_span_id in spans else span.parent_span_id.hex())
        for span in spans.values()
    }
    assert parents == {
        ("SendMessage planner", CALLER_SPAN),
        ("invoke_agent planner", "SendMessage planner"),
        ("step plan", "invoke_agent planner"),
        ("chat nova-lite", "step plan"),
        ("execute_tool look_up", "step plan"),
        ("step broken", "invoke_agent planner"),
        ("wait question", "SendMessage planner"),
        ("invoke_agent echo", "invoke_agent planner"),
        ("SendMessage echo", "invoke_agent echo"),
        ("GetTask echo", "invoke_agent echo"),
        ("invoke_agent echo", "SendMessage echo"),
        ("POST webhook", "SendMessage planner"),
        ("POST webhook", "SendMessage echo"),
    }
    assert SECRET not in str(collector.spans)
    (own, *_) = [span for span in collector.spans if span.name == "invoke_agent planner"]
    assert attributes(own) == {
        "a2a.task.id": task_id,
        "a2a.context.id": chain.heads()["planner"].context_id,
        "gen_ai.conversation.id": chain.heads()["planner"].context_id,
        "gen_ai.agent.id": "planner",
        "gen_ai.agent.name": "planner",
        "gen_ai.operation.name": "invoke_agent",
        "a2a.task.state": "input-required",
        "a2a_serverless.run.fence": 1,
        "a2a_serverless.run.outcome": "waiting",
    }


def test_the_span_of_a_model_has_its_usage_and_an_error_has_its_name(collector: Collector) -> None:
    run_to_the_end(Traced(collector, Planner().agent, agent_of(echo)), SAMPLED)
    said = attributes(collector.find("chat nova-lite"))
    assert said.items() >= {
        ("gen_ai.request.model", "nova-lite"),
        ("gen_ai.usage.input_tokens", 12),
        ("gen_ai.usage.output_tokens", 3),
        ("a2a_serverless.usage.cost_usd", 0.5),
    }
    broken = next(span for span in collector.spans if span.name == "step broken")
    assert (attributes(broken)["error.type"], broken.status.code) == ("LookupError", 2)


def test_a_step_that_waits_for_its_client_or_for_an_agent_ends_without_an_error(collector: Collector) -> None:
    async def work(task: TaskContext) -> str:
        async def waiting() -> str:
            answer = await task.ask("Which?")
            await task.call("ask the echo", "echo", answer.text())
            return "done"

        return await task.step(Step("waiting", waits=True), waiting)

    chain = Traced(collector, agent_of(work, "planner"), agent_of(echo))
    task_id = chain.ask("planner", "hello", SAMPLED)
    chain.ask("planner", "this one", SAMPLED, task_id)
    assert chain.said("planner") == (TaskState.COMPLETED, "done")
    found = [span for span in collector.spans if span.name == "step waiting"]
    assert len(found) >= 2, "one for each run"
    assert {(span.status.code, attributes(span).get("error.type")) for span in found} == {(0, None)}


def test_a_trace_that_the_caller_does_not_sample_costs_nothing_and_work_goes_on(collector: Collector) -> None:
    run_to_the_end(Traced(collector, Planner().agent, agent_of(echo)), UNSAMPLED)
    assert collector.spans == []


@pytest.mark.parametrize(("share", "recorded"), [(1.0, True), (0.0, False)])
def test_without_a_trace_of_the_caller_the_share_decides(collector: Collector, share: float, *, recorded: bool) -> None:
    chain = Traced(collector, agent_of(echo), share=share)
    chain.ask("echo", "hello", "not a trace")
    assert bool(collector.spans) is recorded
    assert is_sampled(chain.heads()["echo"].trace) is recorded
    if recorded:
        assert collector.find("SendMessage echo").parent_span_id == b""


def test_a_call_that_was_stored_before_spans_were_recorded_goes_on(collector: Collector) -> None:
    async def ask(task: TaskContext) -> str:
        return (await task.ask("Which?")).text()

    chain = Traced(collector, calling("first", "asker"), agent_of(ask, "asker"))
    tracer, chain.world.engine = chain.tracer, replace(chain.world.engine, tracer=NULL_TRACER)
    task_id = chain.ask("first", "hello", SAMPLED)
    chain.world.engine = replace(chain.world.engine, tracer=tracer)
    chain.ask("first", "this one", SAMPLED, task_id)
    assert chain.said("first") == (TaskState.COMPLETED, "asker completed")
    assert "invoke_agent first" in collector.tree()
    assert 3 not in {span.kind for span in collector.spans if span.name == "invoke_agent asker"}, "no client span"
