"""The agents of a deployment, by their import paths: ``package.module:attribute``, an ``Agent`` or a tuple of them.

A build writes what each agent's card says into a manifest. With it an agent's module is imported when a message for the
agent is worked on, by the function that does the work; the other functions never import it. Without a manifest, or for
a path that it does not have, the agents are imported at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.access import READ
from a2a_serverless.domain.agent import Agent, AgentSkill
from a2a_serverless.domain.card import AgentExtension

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_serverless.domain.agent import AgentTask, Answer

MANIFEST: Final = "agents.json"
VERSION: Final = 1
# Paths at the root that are not an agent's, and the word that scopes end with.
RESERVED: Final = frozenset({"agents", "legacy", "callbacks", "operator", ".well-known", READ})


class AgentImportError(ValueError):
    """An import path does not lead to an agent. The text says why."""


@dataclass(frozen=True, slots=True)
class ImportedWork:
    """The function of an agent, which is imported when it is first called."""

    path: str
    agent_id: str

    async def __call__(self, task: AgentTask) -> Answer:
        """Does the agent's work."""
        return await next(agent for agent in import_agents(self.path) if agent.id == self.agent_id).work(task)


def import_agents(path: str) -> tuple[Agent, ...]:
    """The agents at an import path. Raises ``AgentImportError``, or whatever importing the module raises."""
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise AgentImportError(f"{path!r} is not an import path such as package.module:attribute")
    found = getattr(import_module(module), attribute, None)
    agents = tuple(found) if isinstance(found, list | tuple) else (found,)
    if not agents or not all(isinstance(agent, Agent) for agent in agents):
        raise AgentImportError(f"{path} is not an agent: {module} has to have an Agent that is called {attribute}")
    return agents


def load_agents(paths: Iterable[str], manifest: Path) -> tuple[Agent, ...]:
    """The agents at the import paths, in this order: as the manifest describes them, imported where it does not."""
    known = _read(manifest)
    return tuple(agent for path in paths for agent in (known.get(path) or import_agents(path)))


def describe(path: str) -> list[dict[str, Any]]:
    """What the agents at an import path are, without their work, as it stands in a manifest."""
    return [_description(agent) for agent in import_agents(path)]


def by_id(agents: tuple[Agent, ...]) -> MappingProxyType[str, Agent]:
    """The agents by the path segment of their base URL.

    Raises ValueError when two share one, when one is reserved, and when a card would have an empty list where it must
    have none (specification 5.7).
    """
    found = {agent.id: agent for agent in agents}
    if len(found) != len(agents):
        raise ValueError("two agents have the same id")
    if taken := RESERVED & found.keys():
        raise ValueError(f"an agent cannot be called {', '.join(sorted(taken))}")
    for agent in agents:
        if not (agent.skills and agent.input_modes and agent.output_modes and all(one.tags for one in agent.skills)):
            raise ValueError(f"the card of {agent.id} needs a skill with a tag, and media types in and out")
    return MappingProxyType(found)


def _read(manifest: Path) -> Mapping[str, Sequence[Agent]]:
    """The described agents by import path; none without a manifest of this version."""
    try:
        document = json.loads(manifest.read_bytes())
    except FileNotFoundError:
        return {}
    described = document["agents"] if document.get("version") == VERSION else {}
    return {path: [_agent(path, one) for one in ones] for path, ones in described.items()}


def _description(agent: Agent) -> dict[str, Any]:
    described = asdict(replace(agent, work=_no_work))
    del described["work"]
    return described


async def _no_work(task: AgentTask) -> None:
    """Stands where an agent's work is left out."""


def _agent(path: str, described: Mapping[str, Any]) -> Agent:
    parts = {
        "work": ImportedWork(path, described["id"]),
        "skills": tuple(AgentSkill(**_with_tuples(one)) for one in described["skills"]),
        "extended_skills": tuple(AgentSkill(**_with_tuples(one)) for one in described["extended_skills"]),
        "extensions": tuple(AgentExtension(**one) for one in described["extensions"]),
    }
    return Agent(**_with_tuples(described) | parts)


def _with_tuples(described: Mapping[str, Any]) -> dict[str, Any]:
    """The same with tuples for lists, as they are in the dataclasses."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in described.items()}
