"""The world of an agent that calls a peer, or of a mirror before it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from a2a_serverless import mirror
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.domain.agent_errors import TaskFailed
from a2a_serverless.domain.called_task import BOUNDS
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.engine.acts import no_secret
from a2a_serverless.protocol.v1 import Message, TaskState
from tests.echo import agent_of
from tests.faults.plans import NoFaults
from tests.peers.forms import URL
from tests.world import Mortal, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.client import ClientRequest, ClientResponse, Transport
    from a2a_serverless.domain.called_task import TaskBounds
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Task
    from tests.faults.plans import Faults


async def _pass_on(task: TaskContext) -> str | None:
    answer = await task.call("it", "far", task.text())
    if isinstance(answer, Message):
        return answer.text()
    for artifact in answer.artifacts:
        await task.emit(artifact.artifact_id, artifact.text(), last=True)
    if answer.status.state is not TaskState.COMPLETED:
        raise TaskFailed(answer.status.state)
    return None


class Caller:
    """``kind`` is "call" or "mirror"; the peer is at ``url``. Requests to it are ``faults``' port ``remote``.

    ``bounds`` are those of a task of the peer, ``options`` those of the mirror.
    """

    def __init__(
        self,
        transport: Transport,
        card: dict[str, Any],
        kind: str,
        *,
        url: str = URL,
        faults: Faults | None = None,
        bounds: TaskBounds = BOUNDS,
        read_secret: Callable[[str], str] = no_secret,
        **options: Any,
    ) -> None:
        self.name = kind
        agent = mirror(url, card=card, id="mirror", **options) if kind == "mirror" else agent_of(_pass_on, "call")
        self.world = world = World([agent], faults)
        others, agents = ({}, {"mirror": agent}) if kind == "mirror" else ({"far": url}, {})

        met = Mortal(faults or NoFaults(), world.scheduler)

        @contextmanager
        def outward(request: ClientRequest) -> Iterator[ClientResponse]:
            met.before("remote", request.verb)
            with transport(request) as answer:
                met.after("remote", request.verb)
                yield answer

        remote_agents = A2ARemoteAgents({}, others, transport=outward, agents=agents, read_secret=read_secret)
        registry = replace(world.registry, remote_agents=remote_agents, bounds=bounds)
        world.engine = replace(world.engine, registry=registry)
        self.task_id = ""

    def starts(self, text: str = "hello", ms: int | None = None) -> Task:
        self.task_id = self.world.send(text, agent=self.name, push=False).id
        return self.waits(ms)

    def answers(self, text: str, ms: int | None = None) -> Task:
        task = self.task
        self.world.send(text, agent=self.name, push=False, task_id=task.id, context_id=task.context_id)
        return self.waits(ms)

    def waits(self, ms: int | None = None) -> Task:
        self.world.settle() if ms is None else self.world.wait(ms)
        return self.task

    @property
    def task(self) -> Task:
        return self.world.client(lambda: self.world.get(self.task_id, self.name))

    def progress(self) -> list[str]:
        events = [event for event in self.world.events(self.task_id) if isinstance(event, StatusEvent)]
        return [event.message.text() for event in events if event.message and event.state is TaskState.WORKING]


def texts(task: Task) -> list[str]:
    return [artifact.text() for artifact in task.artifacts]


def word(task: Task) -> str:
    return task.status.message.text() if task.status.message else ""
