"""Makes the runner of inline agents on first use, so that cold starts for other agents are not slower."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from a2a_serverless.domain.agent import inline_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.ports.agents import InlineRunner
    from a2a_serverless.protocol.v1 import Message


class LazyInlineRunner:
    """Implements ``ports.InlineRunner``. ``make`` returns the real one and is called once."""

    def __init__(self, agents: Mapping[str, Agent], make: Callable[[], InlineRunner]) -> None:
        self.agents = inline_agents(agents)
        self._make = make

    def answer_directly(self, agent_id: str, principal: Principal, request: Incoming) -> Message | None:
        return self._real.answer_directly(agent_id, principal, request) if agent_id in self.agents else None

    def run(self, agent_id: str, key: TaskKey, time_ms: int) -> bool:
        return agent_id in self.agents and self._real.run(agent_id, key, time_ms)

    def start(self, agent_id: str, key: TaskKey, time_ms: int) -> bool:
        return agent_id in self.agents and self._real.start(agent_id, key, time_ms)

    @cached_property
    def _real(self) -> InlineRunner:
        return self._make()
