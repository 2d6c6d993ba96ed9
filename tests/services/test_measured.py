"""What operators see of a task's life: metrics, one trace up to the webhook, nothing of its content."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.logs import IdsOnly
from a2a_serverless.adapters.metrics import EmfMetrics
from a2a_serverless.domain.circuit_breaker import FAILURE_THRESHOLD
from a2a_serverless.domain.metrics import METRICS
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.domain.trace import parse_traceparent, trace_id
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.v1 import AuthenticationInfo, TaskPushNotificationConfig
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.services.sweep import sweep
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import agent_of
from tests.edge import Edge
from tests.world import HOOK, HOUR_MS, ME, World, configured

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SECRETS = ("the-token", "the-credentials", "hello world", "the outcome", "the question", "the answer", "the reason")


async def writes(task: TaskContext) -> None:
    await task.emit("result.md", await task.step("write", lambda: "the outcome"), last=True)


class Watched:
    """A world whose every metric is kept as the line that it is written as."""

    def __init__(self, work: Any = writes) -> None:
        self.world = World([agent_of(work)])
        self.lines: list[str] = []
        metrics = EmfMetrics("A2AServerless", "stack", self.lines.append)
        self.world.service = self.world.service._replace(metrics=metrics)
        self.world.engine = replace(self.world.engine, metrics=metrics)
        breakers = CircuitBreakers(self.world.table, metrics=metrics)
        self.world.post = replace(self.world.post, metrics=metrics, breakers=breakers)
        self.world.sweeper = replace(self.world.sweeper, metrics=metrics)

    def seen(self, name: str) -> list[dict[str, Any]]:
        """The lines of a metric, whose format lists its values."""
        return [{**line, name: line[name][0]} for line in map(json.loads, self.lines) if name in line]

    def call(self, method: str, params: dict[str, Any], **headers: str) -> dict[str, Any]:
        """What the edge answers to a JSON-RPC call."""
        edge = Edge(
            self.world.service,
            self.world.engine.agents,
            AllowAnonymous(),
            MemoryCallbackVerifier(),
            60,
        )
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        sent = {"content-type": "application/json", "a2a-version": "1.0", **headers}
        answer = edge.answer(HttpRequest("POST", "/echo", sent, body=body))
        return dict(json.loads(answer.body))

    def send(self, text: str = "hello world", **headers: str) -> dict[str, Any]:
        push = TaskPushNotificationConfig(
            url=HOOK,
            token="the-token",
            authentication=AuthenticationInfo(scheme="Basic", credentials="the-credentials"),
        )
        request = configured(self.world.request(text), task_push_notification_config=push)
        return self.call("SendMessage", as_json(request), **headers)


def test_every_change_of_state_is_counted_once_with_its_state() -> None:
    watched = Watched()
    watched.world.send()
    watched.world.settle()
    assert [line["state"] for line in watched.seen("TaskStates")] == ["submitted", "completed"]


def test_steps_queues_and_deliveries_are_measured() -> None:
    watched = Watched()
    watched.world.send()
    watched.world.settle()
    assert len(watched.seen("StepTime")) == 1
    assert [line["queue"] for line in watched.seen("QueueAge")][:1] == ["work"]
    assert {line["queue"] for line in watched.seen("QueueAge")} == {"work", "delivery"}
    assert all(0 <= line["QueueAge"] < HOUR_MS for line in watched.seen("QueueAge"))
    tried = watched.seen("DeliverySuccess")
    assert [line["DeliverySuccess"] for line in tried] == [1] * len(tried)
    assert [line["DeliveryAttempts"] for line in watched.seen("DeliveryAttempts")] == [1] * (len(tried) - 1)


def test_a_post_that_is_refused_is_no_success_and_the_attempts_of_an_event_are_counted_together() -> None:
    watched = Watched()
    watched.world.receiver.answers = lambda n: Outcome(status=200 if n else 503)
    watched.world.send()
    watched.world.settle()
    assert 0 in [line["DeliverySuccess"] for line in watched.seen("DeliverySuccess")]
    assert watched.seen("DeliveryAttempts")[0]["DeliveryAttempts"] == 2


def test_a_host_that_is_left_alone_and_comes_back_is_seen() -> None:
    watched = Watched()
    silence = Outcome(error=OutboundError.TIMEOUT)
    watched.world.receiver.answers = lambda n: silence if n < FAILURE_THRESHOLD else Outcome(status=200)
    watched.world.send()
    watched.world.settle()
    assert [line["OpenCircuits"] for line in watched.seen("OpenCircuits")] == [1, 0]


def test_a_runner_that_died_is_counted_by_the_next_one() -> None:
    watched = Watched()
    task = watched.world.send(push=False)
    snapshot = watched.world.table.read_head(ME.key(task.id))
    assert snapshot is not None
    dead = snapshot.head._replace(fence=1, lease_until=watched.world.now + 1, rev=snapshot.head.rev + 1)
    assert watched.world.table.update_head(snapshot.head, dead)
    watched.world.wait(10)
    watched.world.settle()
    assert [line["of"] for line in watched.seen("LeaseLost")] == ["worker"]


def test_a_sweep_counts_itself_as_a_metric() -> None:
    watched = Watched()
    sweep(watched.world.sweeper)
    assert len(watched.seen("Sweeps")) == 1


def test_a_failure_of_ours_is_counted_although_json_rpc_answers_with_status_200() -> None:
    watched = Watched()
    watched.world.service = watched.world.service._replace(log=None)  # type: ignore[arg-type]
    answer = watched.call("GetTask", {"id": "t"})
    assert answer["error"]["code"] == -32603
    assert len(watched.seen("ServerErrors")) == 1


def test_every_metric_has_its_own_dimension_in_the_line() -> None:
    watched = Watched()
    watched.world.send()
    watched.world.settle()
    for line in map(json.loads, watched.lines):
        (metric,) = line["_aws"]["CloudWatchMetrics"]
        (by,) = {METRICS[one["Name"]].dimension for one in metric["Metrics"]}
        assert metric["Dimensions"] == ([["service"], ["service", by]] if by else [["service"]])
        assert all(dimension in line for dimensions in metric["Dimensions"] for dimension in dimensions)


def test_the_trace_of_a_request_is_on_every_webhook_of_its_task_each_under_a_span_of_its_own() -> None:
    watched = Watched()
    watched.send(traceparent=TRACE)
    watched.world.settle()
    sent = [got.headers["traceparent"] for got in watched.world.receiver.posts]
    assert len(sent) == len(set(sent)) >= 3
    assert {trace_id(one) for one in sent} == {trace_id(TRACE)}
    assert all(parse_traceparent(one) == one for one in sent)


@pytest.mark.parametrize("header", ["", "00-nonsense", TRACE + "\r\nX-Evil: 1"])
def test_a_request_without_a_valid_trace_begins_one(header: str) -> None:
    watched = Watched()
    watched.send(traceparent=header)
    watched.world.settle()
    (found,) = {trace_id(got.headers["traceparent"]) for got in watched.world.receiver.posts}
    assert len(found) == 32
    assert found != trace_id(TRACE)


def test_the_trace_that_x_ray_began_at_the_gateway_is_taken_over() -> None:
    watched = Watched()
    watched.send(**{"x-amzn-trace-id": "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"})
    watched.world.settle()
    (found,) = {trace_id(got.headers["traceparent"]) for got in watched.world.receiver.posts}
    assert found == "5759e988bd862e3fe1be46a994272793"


def test_calls_to_other_agents_carry_the_trace_of_their_task() -> None:
    async def calls(task: TaskContext) -> None:
        await task.call("child", "child", "do it")

    world = World([agent_of(calls), agent_of(writes, "child")])
    world.trace = TRACE
    world.send(push=False)
    world.settle()
    named = {one for one in world.remote_agents.traces if one}
    assert {trace_id(one) for one in named} == {trace_id(TRACE)}


def test_a_further_message_s_trace_is_that_of_what_follows() -> None:
    async def asks(task: TaskContext) -> str:
        return (await task.ask("which?")).text()

    world = World([agent_of(asks)])
    world.trace = TRACE
    task = world.send()
    world.settle()
    world.trace = TRACE.replace("4bf9", "5bf9")
    world.send("this", task_id=task.id, push=False)
    before = len(world.receiver.posts)
    world.settle()
    assert {trace_id(got.headers["traceparent"])[:4] for got in world.receiver.posts[before:]} == {"5bf9"}


@pytest.mark.requirement(122, 123)
def test_rule_10_logs_metrics_and_errors_carry_no_text_of_clients_and_agents(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def talks(task: TaskContext) -> None:
        await task.emit("result.md", await task.step("write", lambda: "the outcome"))
        answer = await task.ask("the question")
        await task.step("fail", int, answer.text())

    caplog.set_level(logging.DEBUG)
    watched = Watched(talks)
    watched.world.receiver.answers = lambda n: Outcome(status=503 if n == 1 else 200, body=b"the reason")
    task = watched.send()["result"]["task"]["id"]
    watched.world.settle()
    answer = watched.world.request("the answer", push=False, task_id=task)
    watched.call("SendMessage", as_json(answer))
    watched.world.settle()
    refused = [
        watched.call("GetTask", {"id": "hello world"}),
        watched.call("SendMessage", {"message": {"messageId": "m", "role": "the-token", "parts": "hello world"}}),
        watched.call("hello world", {}),
    ]
    written = [IdsOnly().format(record) for record in caplog.records]
    assert any("agent failed" in line for line in written)
    for text in (*written, *watched.lines, *map(json.dumps, refused[:1])):
        assert [secret for secret in SECRETS if secret in text] == [], text


def test_a_delivery_that_nobody_makes_is_late_and_one_that_its_receiver_refuses_is_not() -> None:
    watched = Watched()
    watched.world.receiver.answers = lambda _: Outcome(status=503)
    watched.world.send()
    watched.world.wait(10_000)
    sweep(watched.world.sweeper)
    assert watched.seen("OldestDueDelivery") == []
    watched.world.now += 3_600_000
    sweep(watched.world.sweeper)
    assert watched.seen("OldestDueDelivery")[-1]["OldestDueDelivery"] > 3_000
