"""Tasks, events and webhooks to store."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.cursors import Cursor
from a2a_serverless.domain.decisions import (
    Change,
    TaskLifetime,
    follow_up,
    report_status,
    set_snapshot,
    start_run,
    submit,
)
from a2a_serverless.domain.events import ArtifactEvent, Incoming
from a2a_serverless.domain.model import Principal, TaskKey
from a2a_serverless.domain.new_task import IdempotencyRecord, NewTask
from a2a_serverless.domain.push_configs import Attempt, PushConfig
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Role, TaskState
from a2a_serverless.store import keys
from tests.contract.backends import NOW

if TYPE_CHECKING:
    from a2a_serverless.domain.head import CurrentHead, Head
    from a2a_serverless.store.task_log import TaskLog
    from a2a_serverless.testing.memory import MemoryStores

KEY = TaskKey("tenant", "owner", "task-1")
LIFE = TaskLifetime(max_life_ms=60_000, retention_ms=240_000)
EXPIRES = (NOW + LIFE.max_life_ms + LIFE.retention_ms) // 1000
LONG = Part(text="x" * 70_000)
_authors = (f"author-{number}" for number in count())


def by() -> str:
    """An append id that was never used before."""
    return next(_authors)


def message(*parts: Part, message_id: str = "m-1") -> Message:
    return Message(message_id=message_id, role=Role.USER, parts=parts or (Part(text="hello"),))


def opening(
    key: TaskKey = KEY, *, sent: str | None = None, push: str | None = None, parts: tuple[Part, ...] = ()
) -> NewTask:
    """A new task; ``sent`` is the message id that its receipt has, ``push`` the id of its webhook."""
    incoming = Incoming(message(*parts))
    caller = Caller(Principal(key.tenant, key.owner), frozenset({"a2a:echo", "a2a:read"}), key="d" * 64)
    head, event = submit(
        key, "echo", "context", incoming, now=NOW, by=by(), life=LIFE, push=push is not None, caller=caller
    )
    receipt = IdempotencyRecord("echo", sent, "digest", key.task) if sent else None
    pushes = ((config(push), Cursor(push, "first")),) if push else ()
    return NewTask(head, event, receipt, pushes)


def created(log: TaskLog, key: TaskKey = KEY, *, sent: str | None = None, push: str | None = None) -> CurrentHead:
    """Stores a new task and looks at it."""
    assert log.create(opening(key, sent=sent, push=push)) is None
    return seen(log, key)


def taken(log: TaskLog, key: TaskKey = KEY) -> CurrentHead:
    """A new task that a runner has taken."""
    assert log.append(start_run(created(log, key), now=NOW + 1, by=by()))
    return seen(log, key)


def seen(log: TaskLog, key: TaskKey = KEY) -> CurrentHead:
    snapshot = log.read_head(key)
    assert snapshot is not None
    return snapshot


def head_of(log: TaskLog, key: TaskKey = KEY) -> Head:
    return seen(log, key).head


def writer(key: TaskKey = KEY) -> Head:
    """The head of a run whose lease lasts."""
    return opening(key).head._replace(state=TaskState.WORKING, fence=1, lease_until=2**50)


SPOILED = ["a chunk before its time", "a newer form", "no event"]


def spoil(table: MemoryStores, key: TaskKey, how: str) -> None:
    """Makes a stored task unreadable, in one of the ways ``SPOILED``. It has one event."""
    if how == "a chunk before its time":
        assert table.append_chunk(writer(key), chunk(2))
    else:
        attribute = {"v": {"N": "99"}} if how == "a newer form" else {"body": {"S": "{}"}}
        table.items.partitions[keys.task(key)][keys.event(1)].update(attribute)


def progress(snapshot: CurrentHead, state: TaskState = TaskState.WORKING, said: str = "on it") -> Change:
    return report_status(snapshot, snapshot.head.fence, state, agent_says(said), now=NOW + 2, by=by())


def talked(log: TaskLog, *, with_snapshot: bool) -> None:
    """A task of long messages and chunks, which waits for its client; ``with_snapshot`` up to its first question."""
    metadata = {"order": 7}
    new = opening(parts=(LONG,))
    assert new.event.incoming
    event = new.event._replace(incoming=replace(new.event.incoming, metadata=metadata))
    assert log.create(new._replace(event=event)) is None
    assert log.append(start_run(seen(log), now=NOW + 1, by=by()))
    assert log.append_chunk(writer(), chunk(3, LONG))
    assert log.append(progress(seen(log), TaskState.INPUT_REQUIRED, "x" * 3_000))
    if with_snapshot:
        head = head_of(log)
        assert log.update_head(head, set_snapshot(head, 1, log.store_snapshot(KEY)))
    for n, said in (5, LONG), (6, Part(text="short")):
        answer = Incoming(message(said, message_id=f"m-{n}"))
        assert log.append(follow_up(seen(log), answer, now=NOW + n, by=by()))
    assert log.append_chunk(writer(), chunk(7, LONG, append=True))
    assert log.append(progress(seen(log), TaskState.INPUT_REQUIRED, "short"))


def agent_says(text: str) -> Message:
    return Message(message_id="a-1", role=Role.AGENT, parts=(Part(text=text),))


def chunk(n: int, *parts: Part, append: bool = False) -> ArtifactEvent:
    artifact = Artifact(artifact_id="document", parts=parts or (Part(text=f"text {n}"),), name="document.md")
    return ArtifactEvent(n, NOW + n, by(), artifact, append=append, emits=(n, n), fence=1)


def config(config_id: str = "hook", incarnation: str = "first") -> PushConfig:
    return PushConfig(
        config_id, f"https://hooks.example.com/{config_id}", "1.0", incarnation, NOW, token="sealed", scheme="Bearer"
    )


def attempt(config_id: str = "hook", n: int = 1, k: int = 1) -> Attempt:
    return Attempt(config_id, n, k, NOW + 10 * n + k, 12, status=503, address="192.0.2.1", error="status", kid="kid")


def moved(head: Head, **changes: int | None) -> Head:
    """The head as the next writer leaves it."""
    return head._replace(rev=head.rev + 1, **changes)  # type: ignore[arg-type]
