"""Checks agents as the build does, where none is built: in tests and on one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.agent_loader import by_id, check_locks
from a2a_serverless.testing.schedules import check_schedules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.agent import Agent


def check_agents(agents: Iterable[Agent]) -> None:
    """Raises ValueError for agents that the build refuses: for ids, cards, schedules, and locks beside a function."""
    agents = tuple(agents)
    by_id(agents)
    check_schedules(agents)
    for agent in agents:
        check_locks(agent.work.__module__)
