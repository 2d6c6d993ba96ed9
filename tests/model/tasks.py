"""What the models share: one task, and how its log is read and judged."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from a2a_serverless.domain import decisions
from a2a_serverless.domain.decisions import TaskLifetime
from a2a_serverless.domain.events import ArtifactEvent, Event, Incoming, StatusEvent
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.new_task import NewTask
from a2a_serverless.domain.states import CHUNKS, NEXT, TERMINAL
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Role
from a2a_serverless.store import items, keys
from a2a_serverless.store.stored_forms import load_event
from tests.model.ports import require

if TYPE_CHECKING:
    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.push_configs import PushConfig
    from tests.model.explorer import World
    from tests.model.ports import Ports

START = 1_790_000_000_000
ME = Principal("tenant", "me")
KEY = ME.key("task")
AGENT = "agent"
LIFE = TaskLifetime(max_life_ms=7 * 86_400_000, retention_ms=30 * 86_400_000)


def message(name: str, **fields: str) -> Message:
    """A client's message with that id."""
    return Message(message_id=name, role=Role.USER, parts=(Part(text="hello"),), **fields)


def chunk(text: str) -> Artifact:
    """A piece of the task's one artifact."""
    return Artifact(artifact_id="a", parts=(Part(text=text),))


def create(ports: Ports, *pushes: tuple[PushConfig, Cursor]) -> None:
    """Creates the task."""
    incoming, by = Incoming(message("first")), ports.ids.new()
    now = ports.clock.now()
    head, event = decisions.submit(KEY, AGENT, "context", incoming, now=now, by=by, life=LIFE, push=bool(pushes))
    ports.log.create(NewTask(head, event, None, pushes))


def start(ports: Ports) -> None:
    """Starts the task's first run."""
    snapshot = ports.log.read_head(KEY)
    assert snapshot
    ports.log.append(decisions.start_run(snapshot, now=ports.clock.now(), by=ports.ids.new()))


@lru_cache(maxsize=100_000)
def _event(text: str, n: int, by: str) -> Event:
    return load_event(text, n, by)


def read(world: World, task: str = KEY.task) -> tuple[Head | None, list[Event]]:
    """The head and the events that are stored, whatever they are."""
    rows = world.items.partitions.get(keys.task(ME.key(task)), {})
    events = [
        _event(item["body"]["S"], keys.event_number(sk), item["by"]["S"])
        for sk, item in sorted(rows.items())
        if sk.startswith(keys.EVENTS) and sk != keys.HEAD
    ]
    return items.head_of(rows[keys.HEAD]) if keys.HEAD in rows else None, events


def check_log(world: World) -> None:
    """The log has no gap, no event twice, none that may not follow the one before; the head is that of its end."""
    head, events = read(world)
    assert head
    require([event.n for event in events] == [*range(1, len(events) + 1)], "the log has a gap")
    writers = [event.append_id for event in events]
    require(len({*writers}) == len(writers), "an append is in the log twice")
    require({*world.notes.get("accepted", ())} <= {*writers}, "an append that was accepted is not in the log")
    _check_states(events)
    fences = [event.fence for event in events if event.fence]
    require(fences == sorted(fences), "a run wrote after a later run had begun")
    emitted = [event.emits for event in events if isinstance(event, ArtifactEvent)]
    require(len({*emitted}) == len(emitted), "a chunk is in the log twice")
    last = [event for event in events if isinstance(event, StatusEvent)][-1]
    require((head.n, head.state) == (last.n, last.state), "the head is not that of the last status event")


def _check_states(events: list[Event]) -> None:
    state = None
    for event in events:
        if isinstance(event, ArtifactEvent):
            require(state in CHUNKS, f"a chunk in state {state}")
        else:
            require(event.state in NEXT[state], f"{event.state} follows {state}")
            state = event.state


def ended(world: World) -> bool:
    """Whether the task has ended."""
    head, _ = read(world)
    return head is not None and head.state in TERMINAL
