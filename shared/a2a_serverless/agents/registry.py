"""The agents of this deployment. To deploy one of yours, put its file here and add its name to ``NAMES``."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import Final

from a2a_serverless.domain.access import READ
from a2a_serverless.domain.agent import Agent

# The modules of this folder, each with an agent of its own name in it. The first one's card stands at the root.
NAMES: Final = (
    "orchestrator",
    "outline",
    "document",
    "summary",
    "image",
    "travel",
)


def named(name: str) -> Agent:
    """The agent in the module of its name; raises ValueError when there is none."""
    found = getattr(import_module(f"{__package__}.{name}"), name, None)
    if not isinstance(found, Agent):
        raise ValueError(f"agents/{name}.py must have an agent in it that is called {name}")  # noqa: TRY004 - a wrong file
    return found


AGENTS: Final = tuple(named(name) for name in NAMES)

# Paths at the root that are not an agent's, and the word that scopes end with.
RESERVED: Final = frozenset({"agents", "legacy", "callbacks", "operator", ".well-known", READ})


def by_id(agents: tuple[Agent, ...] = AGENTS) -> MappingProxyType[str, Agent]:
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
