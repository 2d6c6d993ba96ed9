"""The use cases and the engine of one agent over a given store, in this process and in real time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from a2a_serverless import Agent, Skill
from a2a_serverless.adapters.clock import SystemClock, UuidIds
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.domain.decisions import TaskLifetime
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.engine.calls import AgentRegistry
from a2a_serverless.engine.engine import Engine
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.engine.run import run
from a2a_serverless.protocol.v1 import Message, Part, Role, SendMessageConfiguration, SendMessageRequest, Task
from a2a_serverless.services.listing import TaskLister
from a2a_serverless.services.requests import RequestContext, TaskService
from a2a_serverless.services.tasks import get, send
from a2a_serverless.services.webhooks import Webhooks
from a2a_serverless.testing.memory import MemoryQueues, MemoryResolver, MemorySealer

DAY_MS: Final = 86_400_000
RUN_MS: Final = 900_000
WHO: Final = Principal("tenant", "client")
SKILL: Final = Skill("bench", "Bench", "Is measured", ("bench",))


@dataclass(frozen=True)
class Deployment:
    """The use cases and the engine of one agent."""

    agent: Agent
    service: TaskService
    engine: Engine

    def send(self, text: str, *, wait: bool = False) -> Task:
        """Sends a new message and returns its task. Fails when the agent answers with a message."""
        message = Message(message_id=self.service.ids.new(), role=Role.USER, parts=(Part(text=text),))
        answer = send(
            self.service,
            RequestContext(WHO, self.agent.id, "1.0"),
            SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=not wait)),
        )
        if not isinstance(answer, Task):
            raise SystemExit("there is no task")
        return answer

    def get(self, task: Task) -> Task:
        """Returns the task as it is now."""
        return get(self.service, RequestContext(WHO, self.agent.id, "1.0"), task.id)

    async def run(self, task: Task) -> None:
        """Runs the task as a worker does for its queue message."""
        await run(self.engine, WHO.key(task.id), lambda: RUN_MS)


def deployed(agent: Agent, log: Any, index: Any, store: Any) -> Deployment:  # noqa: ANN401 - any store's ports
    """Makes a deployment of an agent over a store. Nothing reads its queues, and it can call no other agents."""
    clock, ids, sealer = SystemClock(), UuidIds(), MemorySealer()
    queues: Any = MemoryQueues(clock.now)
    registry = AgentRegistry(A2ARemoteAgents({}, {}), ids, "https://agents.example.com")
    engine = Engine(
        log=log,
        index=index,
        queues=queues,
        ids=ids,
        now=clock.now,
        agents={agent.id: agent},
        registry=registry,
        values=store,
        callback_sealer=sealer,
    )
    webhooks = Webhooks(log, store, queues, sealer, clock, ids, EgressPolicy(), MemoryResolver().check)
    lister, life = TaskLister(log, index, sealer), TaskLifetime(7 * DAY_MS, 30 * DAY_MS)
    service = TaskService(
        log,
        store,
        queues,
        clock,
        ids,
        lambda: webhooks,
        lambda: lister,
        lambda: sealer,
        life,
        20_000,
        inline_runner=EngineInlineRunner(engine).for_agent,
    )
    return Deployment(agent, service, engine)
