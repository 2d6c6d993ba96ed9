"""Loads the agents of a deployment from the manifest that the build writes into the functions' zips.

The manifest describes each agent by its import path: ``package.module:attribute``, an ``Agent`` or a tuple of them. An
agent's module is imported only when its work begins, in the function that runs it; other functions never import it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from a2a_serverless.domain.access import READ
from a2a_serverless.domain.agent import Agent, AgentExtension, Skill
from a2a_serverless.domain.budgets import Budget
from a2a_serverless.domain.remotes import remote_of
from a2a_serverless.domain.schedules import Schedule

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from a2a_serverless.domain.agent import Answer
    from a2a_serverless.domain.task_context import TaskContext

MANIFEST: Final = "agents.json"
# Root paths that are not agents, and the last word of scopes.
RESERVED: Final = frozenset({"-", "agents", "legacy", "callbacks", "events", ".well-known", READ})


LOOP_BOUND: Final = (asyncio.Lock, asyncio.Event, asyncio.Condition, asyncio.Semaphore, asyncio.Barrier, asyncio.Queue)


class AgentImportError(ValueError):
    """An import path does not refer to an agent. The text says why."""


class NotBuilt(ValueError):
    """The function was not built by ``a2a-serverless build``. The text says so."""


class ImportedWork(NamedTuple):
    """An agent's function, imported when it is first called."""

    path: str
    agent_id: str

    async def __call__(self, task: TaskContext) -> Answer:
        """Imports and runs the agent's function."""
        return await self.__wrapped__(task)

    @property
    def __wrapped__(self) -> Callable[[TaskContext], Awaitable[Answer]]:
        """The agent's function, imported for this call."""
        return next(agent for agent in import_agents(self.path) if agent.id == self.agent_id).work


def import_agents(path: str) -> tuple[Agent, ...]:
    """Imports the agents at an import path. Raises ``AgentImportError``, or any error of the import itself."""
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise AgentImportError(f"{path!r} is not an import path such as package.module:attribute")
    target = getattr(import_module(module), attribute, None)
    agents = tuple(target) if isinstance(target, list | tuple) else (target,)
    if target is None:
        raise AgentImportError(f"{path} is not an agent: {module} has no {attribute}")
    if not agents or not all(isinstance(agent, Agent) for agent in agents):
        kind = f"{type(target).__module__}.{type(target).__name__}"
        raise AgentImportError(
            f"{path} is not an agent but a {kind}: list what `agent` makes of it (docs/bring-your-agent.md)"
        )
    return agents


def load_agents(manifest: Path) -> tuple[Agent, ...]:
    """The agents in the manifest, in its order. Raises NotBuilt."""
    try:
        descriptions = json.loads(manifest.read_bytes())["agents"]
    except FileNotFoundError:
        raise NotBuilt(f"{manifest.name} is missing: build with `a2a-serverless build`") from None
    return tuple(_agent(path, description) for path, ones in descriptions.items() for description in ones)


def read_code(manifest: Path) -> str:
    """The digest of the agents' code in a manifest; "" if it has none."""
    return str(json.loads(manifest.read_bytes())["code"])


def write_manifest(manifest: Path, agents: Mapping[str, Any], code: str = "") -> None:
    """Writes the descriptions of agents by import path, in their order. ``code`` is the digest of their code."""
    manifest.write_text(json.dumps({"code": code, "agents": agents}, ensure_ascii=False))


def describe(path: str) -> list[dict[str, Any]]:
    """The manifest entries of the agents at an import path: their fields without ``work``.

    Raises ``AgentImportError`` as ``import_agents``, and if a module of their package has a lock of asyncio.
    """
    agents = import_agents(path)
    check_locks(path)
    return [_description(agent) for agent in agents]


def check_locks(path: str) -> None:
    """Checks the imported modules of the package in which an import path is.

    Raises AgentImportError for an object that the event loop of the first task keeps: all later tasks would fail.
    """
    package = path.partition(":")[0].partition(".")[0]
    for name, module in [*sys.modules.items()]:
        if name == package or name.startswith(f"{package}."):
            _check_module(name, vars(module))


def _check_module(module: str, members: Mapping[str, object]) -> None:
    for name, member in members.items():
        if isinstance(member, LOOP_BOUND):
            raise AgentImportError(
                f"{module}.{name} is a {type(member).__name__} of asyncio, which only one event loop can use, and each"
                " run of a task has a loop of its own: make it in the agent's function"
            )


def by_id(agents: tuple[Agent, ...]) -> MappingProxyType[str, Agent]:
    """The agents by the path segment of their base URL.

    Raises ValueError when two have the same id, when an id is reserved, and when a required list of a card would be
    empty (specification 5.7).
    """
    agents_by_id = {agent.id: agent for agent in agents}
    if len(agents_by_id) != len(agents):
        twice = sorted({agent.id for agent in agents if sum(other.id == agent.id for other in agents) > 1})
        raise ValueError(f"two agents have the same id: {', '.join(twice)}")
    if taken := RESERVED & agents_by_id.keys():
        raise ValueError(f"an agent cannot be called {', '.join(sorted(taken))}")
    for agent in agents:
        if not (
            agent.skills and agent.input_modes and agent.output_modes and all(skill.tags for skill in agent.skills)
        ):
            raise ValueError(f"the card of {agent.id} needs a skill with a tag, and media types in and out")
    return MappingProxyType(agents_by_id)


def _description(agent: Agent) -> dict[str, Any]:
    description = asdict(replace(agent, work=_no_work))
    del description["work"]
    return description


async def _no_work(task: TaskContext) -> None:
    """Replaces an agent's ``work`` in its description."""


def _agent(path: str, description: Mapping[str, Any]) -> Agent:
    parts = {
        "work": ImportedWork(path, description["id"]),
        "skills": tuple(Skill(**_with_tuples(skill)) for skill in description["skills"]),
        "extended_skills": tuple(Skill(**_with_tuples(skill)) for skill in description["extended_skills"]),
        "extensions": tuple(AgentExtension(**extension) for extension in description["extensions"]),
        "budget": Budget(**description["budget"]),
        "schedules": tuple(Schedule(**schedule) for schedule in description["schedules"]),
        "remote": remote_of(description["remote"]),
    }
    return Agent(**_with_tuples(description) | parts)


def _with_tuples(description: Mapping[str, Any]) -> dict[str, Any]:
    """The description with tuples instead of lists, as the dataclasses need."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in description.items()}
