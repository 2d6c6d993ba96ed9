"""Webhooks of agents elsewhere: one that was accepted may never come, until the first one of its origin has come."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.protocol.v1 import TaskState
from tests.echo import agent_of
from tests.engine.mirrored import URL, RemoteAgent, status, world_of
from tests.engine.mirrored import said as message
from tests.world import HOUR_MS, MINUTE_MS, World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Task


async def _call(task: TaskContext) -> None:
    await task.call("it", "far", task.text())


class Caller:
    """The world of a mirror, or of an agent that calls, before a remote agent that takes webhooks."""

    def __init__(self, kind: str, remote: RemoteAgent) -> None:
        self.remote, self.agent = remote, "far" if kind == "mirror" else "caller"
        self.world = world_of(remote, silence_s=100_000) if kind == "mirror" else World([agent_of(_call, "caller")])
        remote.now = lambda: self.world.now
        if kind == "call":
            remote_agents = A2ARemoteAgents({}, {"far": URL}, transport=remote.transport)
            registry = replace(self.world.registry, remote_agents=remote_agents)
            self.world.engine = replace(self.world.engine, registry=registry)

    def begins(self) -> Task:
        return self.world.send("count", agent=self.agent, push=False)

    def state(self, task: Task) -> TaskState:
        return self.world.get(task.id, self.agent).status.state

    def looks(self, ms: int) -> int:
        """How many looks come in so many ms."""
        before = self.remote.asked.count("GetTask")
        self.world.wait(ms)
        return self.remote.asked.count("GetTask") - before

    def delivers(self, number: int) -> None:
        """The remote agent delivers the webhook of its task of this number, from 0."""
        hook = self.remote.sent[number]["configuration"]["taskPushNotificationConfig"]
        theirs = [*self.remote.tasks.values()][number]
        self.remote.go_on(theirs)
        update = {"taskId": theirs.id, "contextId": theirs.context, "status": theirs.state}
        body = json.dumps({"statusUpdate": update}).encode()
        outcome = self.world.called_back(hook["url"], {"X-A2A-Notification-Token": hook["token"]}, body)
        assert outcome.status == 200


both = pytest.mark.parametrize("kind", ["call", "mirror"])


def lasting(hours: float) -> RemoteAgent:
    script = (status("working"), status("completed", message("Done")))
    return RemoteAgent(script=script, streaming=False, push=True, event_ms=int(hours * HOUR_MS / 2))


@both
def test_an_end_whose_webhook_never_comes_is_seen_within_a_minute(kind: str) -> None:
    caller = Caller(kind, lasting(2))
    task = caller.begins()
    first, second = caller.looks(10 * MINUTE_MS), caller.looks(HOUR_MS)
    assert 10 <= first <= 20, "pauses of 2 s to 60 s"
    assert 50 <= second <= 61, "pauses of a minute"
    caller.world.wait(51 * MINUTE_MS)
    assert caller.state(task) is TaskState.COMPLETED


@both
def test_an_agent_whose_first_webhook_has_come_is_not_looked_at_in_between(kind: str) -> None:
    caller = Caller(kind, lasting(0.5))
    first = caller.begins()
    caller.world.wait(30 * MINUTE_MS)
    caller.delivers(0)
    caller.world.wait(MINUTE_MS)
    assert caller.state(first) is TaskState.COMPLETED
    second = caller.begins()
    assert caller.looks(29 * MINUTE_MS) <= 2
    caller.world.wait(MINUTE_MS)
    caller.delivers(1)
    caller.world.wait(MINUTE_MS)
    assert caller.state(second) is TaskState.COMPLETED


@both
def test_a_webhook_with_a_wrong_token_is_not_the_first(kind: str) -> None:
    caller = Caller(kind, lasting(2))
    caller.begins()
    caller.world.wait(MINUTE_MS)
    hook = caller.remote.sent[0]["configuration"]["taskPushNotificationConfig"]
    assert caller.world.called_back(hook["url"], {"X-A2A-Notification-Token": "guess"}, b"{}").status == 404
    assert caller.looks(10 * MINUTE_MS) > 5
