"""Runs an inline agent inside the request, with the same lease and steps as in the worker.

The agent is first run without a task. If it returns a text or message without having used its task, that is the
response and nothing is stored. If it uses its task, this try is dropped and a task is created.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from a2a_serverless.domain.current_task import work_on
from a2a_serverless.engine.lease import MARGIN_MS
from a2a_serverless.engine.loop import play
from a2a_serverless.engine.messages import make_message
from a2a_serverless.engine.run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.model import Json, Principal, TaskKey
    from a2a_serverless.engine.engine import Engine
    from a2a_serverless.protocol.v1 import Message

T = TypeVar("T")

TRY_S: Final = 10.0


class NeedsTask(BaseException):
    """The agent has used its task."""


class TasklessContext:
    """The task object for an agent before there is a task: it has only the request and its caller."""

    def __init__(self, caller: Principal, request: Incoming) -> None:
        self.caller = caller
        self.request = request
        self.message = request.message
        self.accepted_output_modes = request.accepted_output_modes
        self.cancellation = None
        self.was_used = False

    def text(self) -> str:
        """The text of the message."""
        return self.message.text()

    def data(self) -> Json:
        """The first data part of the message."""
        return self.message.data()

    def __getattr__(self, name: str) -> NoReturn:
        self.was_used = True
        raise NeedsTask(name)


@dataclass(frozen=True, slots=True)
class EngineInlineRunner:
    """Implements ``ports.InlineRunner``. ``play`` runs a coroutine to its end."""

    engine: Engine
    play: Callable[[Coroutine[Any, Any, T]], T] = play

    def for_agent(self, agent_id: str) -> EngineInlineRunner | None:
        """Itself for an inline agent; None for any other."""
        agent = self.engine.agents.get(agent_id)
        return self if agent and agent.runs == "inline" else None

    def answer_directly(self, agent_id: str, principal: Principal, request: Incoming) -> Message | None:
        """The agent's message; None when it needs a task, fails, is paused, or takes over ``TRY_S`` seconds."""
        if self.engine.pauses.find(agent_id, principal):
            return None
        return self.play(self._try(agent_id, principal, request))

    def run(self, key: TaskKey, time_ms: int) -> None:
        """Runs the task here for at most ``time_ms``, then hands it over."""
        until = self.engine.now() + time_ms
        self.play(run(self.engine, key, lambda: until - self.engine.now() + MARGIN_MS))

    def start(self, key: TaskKey, time_ms: int) -> None:
        """As ``run``, without waiting: a stream reports the events. Closing the stream does not stop the work."""
        threading.Thread(target=self.run, args=(key, time_ms), daemon=True).start()

    async def _try(self, agent_id: str, principal: Principal, request: Incoming) -> Message | None:
        context: Any = TasklessContext(principal, request)
        context_id = request.message.context_id
        work = asyncio.ensure_future(work_on(self.engine.agents[agent_id], context))
        await asyncio.wait({work}, timeout=TRY_S)
        if not work.done():  # ``play`` cancels it, and leaves it behind if it goes on
            return None
        try:
            answer = work.result()
            message = None if answer is None else make_message(answer, self.engine.ids.new, context_id)
        except (NeedsTask, Exception):  # noqa: BLE001 - with a task, the error becomes its status
            return None
        return None if context.was_used else message
