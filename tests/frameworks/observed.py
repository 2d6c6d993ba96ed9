"""What clients and tracers get of a task."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.testing import CLIENT
from tests.engine.test_spans import TRACE, KeptSpans
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless import Agent
    from a2a_serverless.testing import AgentTestHarness


class Chunk(NamedTuple):
    """A chunk of an artifact. ``content`` is a text, a data value or base64."""

    content: Any
    append: bool
    last: bool


def chunks_of(harness: AgentTestHarness, task_id: str, name: str = "answer") -> list[Chunk]:
    """The chunks of an artifact, as streams and webhooks get them."""
    log = harness.table.read_log(CLIENT.key(task_id))
    assert log
    events = [event for event in log[1] if isinstance(event, ArtifactEvent) and event.artifact.name == name]
    return [Chunk(part.value, event.append, event.last_chunk) for event in events for part in event.artifact.parts]


def names_of_spans(agent: Agent) -> list[str]:
    """The names of the steps' spans of a task of this agent, in the order in which they end."""
    world, tracer = World([agent]), KeptSpans()
    world.trace = TRACE
    world.engine = replace(world.engine, tracer=tracer)
    world.send("go", push=False, agent=agent.id)
    world.settle()
    return [span.name for span in tracer.spans if span.name.startswith(("step ", "execute_tool "))]
