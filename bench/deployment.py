"""The use cases and the engine of one agent over a given store, in this process, with the machine's own clock."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from a2a_serverless.adapters.builtin.picture import BuiltinPicture
from a2a_serverless.adapters.builtin.text import BuiltinText
from a2a_serverless.adapters.memory import MemoryBells, MemoryNames, MemorySealer
from a2a_serverless.adapters.system import SystemClock, UuidIds
from a2a_serverless.domain.agent import Agent, Skill
from a2a_serverless.domain.head import Life
from a2a_serverless.domain.model import Message, Part, Principal, Role, SendRequest, Task
from a2a_serverless.domain.url_policy import EgressPolicy
from a2a_serverless.engine.calls import Directory
from a2a_serverless.engine.inline import Inline
from a2a_serverless.engine.run import Engine, run
from a2a_serverless.engine.work import Models
from a2a_serverless.services.listing import Shelf
from a2a_serverless.services.push import Webhooks
from a2a_serverless.services.tasks import Desk, send

DAY_MS: Final = 86_400_000
RUN_MS: Final = 900_000
WHO: Final = Principal("tenant", "client")
SKILL: Final = Skill("bench", "Bench", "Is measured", ())


@dataclass(frozen=True)
class Deployment:
    """What asks and what runs, of one agent."""

    agent: Agent
    desk: Desk
    engine: Engine

    def send(self, text: str, *, wait: bool = False) -> Task:
        """The task of a new message; fails when the agent answers with a message."""
        message = Message(self.desk.ids.new(), Role.USER, (Part("text", text),))
        answer = send(self.desk, WHO, self.agent.id, SendRequest(message, return_immediately=not wait), "1.0")
        if not isinstance(answer, Task):
            raise SystemExit("there is no task")
        return answer

    async def run(self, task: Task) -> None:
        """What a worker does when the task's bell rings."""
        await run(self.engine, WHO.key(task.task_id), lambda: RUN_MS)


def deployed(agent: Agent, log: Any, index: Any, store: Any) -> Deployment:  # noqa: ANN401 - any store's ports
    """A deployment of an agent over a store. Nobody hears its bells, and it can call nobody."""
    clock, ids, sealer = SystemClock(), UuidIds(), MemorySealer()
    bells: Any = MemoryBells(clock.now)
    nobody: Any = SimpleNamespace(traced=lambda _: None)
    directory = Directory(nobody, ids, "https://agents.example.com")
    models = Models(BuiltinText(), BuiltinPicture())
    engine = Engine(log, index, bells, ids, clock.now, {agent.id: agent}, models, directory)
    webhooks = Webhooks(log, store, bells, sealer, clock, ids, EgressPolicy(), MemoryNames())
    shelf, life = Shelf(log, index, sealer), Life(7 * DAY_MS, 30 * DAY_MS)
    desk = Desk(log, bells, clock, ids, webhooks, shelf, life, 20_000, here=Inline(engine))
    return Deployment(agent, desk, engine)
