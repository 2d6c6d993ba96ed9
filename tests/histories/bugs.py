"""Injected bugs: deployments that break one promise. The checker has to find each of them, by that promise.

Each is a port that sometimes does not do what it says, so the code that is tested stays as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from a2a_serverless.domain.cursors import CursorState
from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import Artifact, Part, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

Bug: TypeAlias = "Callable[[Any, Random], Mapping[str, Callable[..., Any]]]"


class BuggyPort:
    """A port some of whose calls are replaced."""

    def __init__(self, port: Any, calls: Mapping[str, Callable[..., Any]]) -> None:
        self._port, self._calls = port, calls

    def __getattr__(self, name: str) -> Any:
        return self._calls.get(name) or getattr(self._port, name)


def lost_answers(table: Any, random: Random) -> Mapping[str, Any]:
    """A follow-up counts as written, and is not."""

    def append(change: Any, *more: Any) -> bool:
        is_lost = change.event.incoming is not None and random.random() < 1 / 2
        return is_lost or table.append(change, *more)

    return {"append": append}


def lost_cancels(table: Any, random: Random) -> Mapping[str, Any]:
    def append(change: Any, *more: Any) -> bool:
        is_lost = change.event.state is TaskState.CANCELED and random.random() < 1 / 2
        return is_lost or table.append(change, *more)

    return {"append": append}


def stale_gets(table: Any, random: Random) -> Mapping[str, Any]:
    """A task is read as it was a read before."""
    read: dict[Any, Any] = {}

    def read_task(key: Any) -> Any:
        before, read[key] = read.get(key), table.read_task(key)
        return before if before and random.random() < 1 / 4 else read[key]

    return {"read_task": read_task}


def doubled_chunks(table: Any, random: Random) -> Mapping[str, Any]:
    def append_chunk(head: Any, event: Any) -> bool:
        written = table.append_chunk(head, event)
        if random.random() < 1 / 4:
            table.append_chunk(head, event._replace(n=event.n + 1, append_id=f"{event.append_id}-2"))
        return bool(written)

    return {"append_chunk": append_chunk}


def late_chunks(table: Any, random: Random) -> Mapping[str, Any]:
    """A chunk is written behind the terminal event."""

    def append(change: Any, *more: Any) -> bool:
        written, event = table.append(change, *more), change.event
        if written and event.state in TERMINAL and random.random() < 1 / 2:
            artifact = Artifact(artifact_id="late", parts=(Part(text="1 "),))
            late = ArtifactEvent(event.n + 1, event.at, f"{event.append_id}-2", artifact)
            table.append_chunk(change.before, late)
        return bool(written)

    return {"append": append}


def second_tasks(table: Any, random: Random) -> Mapping[str, Any]:
    """A message that is sent again makes a second task."""
    del random
    return {"create": lambda opening: table.create(opening._replace(idempotency=None))}


def second_answers(table: Any, random: Random) -> Mapping[str, Any]:
    """A follow-up that is sent again is stored again."""
    del random
    return {
        "append": lambda change, _=None, *steps: table.append(change, None, *steps),
        "find_idempotency": lambda *_: None,
    }


def missing_tasks(table: Any, random: Random) -> Mapping[str, Any]:
    """A list misses a task."""
    del random

    def list_page(*query: Any) -> Any:
        entries, after = table.list_page(*query)
        return [entry for entry in entries if not entry.task.endswith(("2", "4", "6"))], after

    return {"list_page": list_page}


def missing_events(table: Any, random: Random) -> Mapping[str, Any]:
    """A reader of the log does not get its next event."""

    def read(*query: Any) -> Any:
        events = table.read(*query)
        return events[1:] if random.random() < 1 / 8 else events

    return {"read": read}


def lost_registrations(table: Any, random: Random) -> Mapping[str, Any]:
    return {"add_config": lambda *said: random.random() < 1 / 2 or table.add_config(*said)}


def stolen_cursors(table: Any, random: Random) -> Mapping[str, Any]:
    """A cursor moves although it has changed, so two notifiers hold it at a time."""
    del random
    return {"move_cursor": lambda *said: table.move_cursor(*said) or True}


def hasty_deletions(table: Any, random: Random) -> Mapping[str, Any]:
    """A deletion does not wait for the notification that is under way."""
    del random

    def get_cursor(*said: Any) -> Any:
        cursor = table.get_cursor(*said)
        is_closed = cursor is not None and cursor.state is CursorState.CLOSED
        return replace(cursor, lease_until=0) if is_closed else cursor

    return {"get_cursor": get_cursor}


def swapped_notifications(receiver: Any, random: Random) -> Mapping[str, Any]:
    """A notification overtakes the one before it."""
    held: dict[str, Any] = {}

    def post(url: str, *said: Any) -> Any:
        if url not in held and random.random() < 1 / 4:
            held[url] = said
            return Outcome(status=200, connected=True, request_sent=True)
        outcome = receiver.post(url, *said)
        if url in held:
            receiver.post(url, *held.pop(url))
        return outcome

    return {"post": post}


class InjectedBug(NamedTuple):
    """A ``bug`` of a ``port`` and the ``promise`` that it breaks."""

    port: str
    bug: Bug
    promise: str


BUGS: Final[Mapping[str, InjectedBug]] = {
    one.bug.__name__: one
    for one in (
        InjectedBug("table", lost_answers, "operations"),
        InjectedBug("table", lost_cancels, "operations"),
        InjectedBug("table", stale_gets, "operations"),
        InjectedBug("table", doubled_chunks, "chunks"),
        InjectedBug("table", late_chunks, "log"),
        InjectedBug("table", second_tasks, "messages"),
        InjectedBug("table", second_answers, "messages"),
        InjectedBug("table", missing_tasks, "end"),
        InjectedBug("table", missing_events, "streams"),
        InjectedBug("table", lost_registrations, "registry"),
        InjectedBug("table", stolen_cursors, "webhooks"),
        InjectedBug("table", hasty_deletions, "deletion"),
        InjectedBug("receiver", swapped_notifications, "webhooks"),
    )
}


def inject(name: str, random: Random) -> Callable[[Any, str], Any]:
    """What wraps the ports of a deployment with the bug ``name``."""
    injected = BUGS[name]
    return lambda port, called: BuggyPort(port, injected.bug(port, random)) if called == injected.port else port
