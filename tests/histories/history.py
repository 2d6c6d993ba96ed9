"""A history: what clients, streams and webhooks saw of a deployment, in real-time order, and the logs that it left.

``Recorder.tick`` gives the order: an operation that completed before another was invoked has the smaller number. An
operation without a ``completed`` has an unknown outcome: it may have taken effect, or may still do so.
"""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from a2a_serverless.domain.events import ArtifactEvent, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from a2a_serverless.protocol.v1 import Part

CLIENT = "ROLE_USER"


@dataclass(frozen=True, slots=True)
class TaskView:
    """What a client sees of a task. ``history`` has ids of the client's messages and texts of the agent's."""

    state: str
    said: str = ""
    history: tuple[str, ...] = ()
    artifacts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event of a log. A chunk has no ``state``. ``message`` is the id of the client's message that it holds."""

    n: int
    state: str = ""
    said: str = ""
    message: str = ""
    artifact: str = ""
    text: str = ""
    append: bool = False

    @property
    def shown(self) -> LogEvent:
        """The event as streams and webhooks show it: without the client's message."""
        return replace(self, message="")


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a stream or the content of a notification, seen ``at``: a task, or the event ``n``."""

    at: int
    n: int
    content: TaskView | LogEvent


@dataclass(slots=True)
class Operation:
    """What a client asked for, and what it was answered.

    ``webhook`` is (id, URL). ``refused`` is the JSON-RPC code of a refusal. ``after`` is the number that a stream
    resumed after. ``tasks`` and ``webhooks`` are what a list held. ``chunks`` is how many chunks a new task makes.
    """

    kind: str
    invoked: int
    task: str = ""
    message: str = ""
    webhook: tuple[str, str] = ("", "")
    after: int | None = None
    chunks: int = 0
    completed: int | None = None
    refused: int = 0
    view: TaskView | None = None
    tasks: Mapping[str, TaskView] | None = None
    webhooks: Mapping[str, str] | None = None
    items: list[Item] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Post:
    """A notification that arrived at a webhook's URL; its answer ``left`` later. ``accepted`` is whether it was 2xx."""

    task: str
    config: str
    url: str
    notification: str
    item: Item
    left: int
    accepted: bool


@dataclass
class History:
    """``logs`` are the logs at the end, by task id. ``settled`` is whether at the end nothing was left to do.

    ``errors`` are those of the deployment's processes for which there was no fault.
    """

    operations: list[Operation] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    logs: dict[str, list[LogEvent]] = field(default_factory=dict)
    settled: bool = True
    errors: list[str] = field(default_factory=list)


class Refused(Exception):
    """The deployment refused an operation; ``code`` is that of JSON-RPC."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Lost(Exception):
    """No answer came: whether the operation took effect is unknown."""


class Recorder:
    """Records a history, from many threads. The default order is the machine's monotonic clock (ns)."""

    def __init__(self, tick: Callable[[], int] = time.monotonic_ns) -> None:
        self.history = History()
        self._tick, self._lock, self._last = tick, Lock(), 0

    def tick(self) -> int:
        """The next number of the real-time order."""
        with self._lock:
            self._last = max(self._last + 1, self._tick())
            return self._last

    def record(self, kind: str, call: Callable[[Operation], None], **request: Any) -> Operation:
        """Makes a call, which puts its answer into the operation; raises nothing that the call raises for a client."""
        operation = Operation(kind, self.tick(), **request)
        self.history.operations.append(operation)
        try:
            call(operation)
        except Lost:
            return operation
        except Refused as refused:
            operation.refused = refused.code
        operation.completed = self.tick()
        return operation

    def received(self, at: int, url: str, headers: Mapping[str, str], body: bytes, *, accepted: bool) -> None:
        """Records a notification that is answered now; ``at`` is the tick at which it arrived."""
        claims = claims_of(headers)
        item = item_of(at, int(claims["eventNumber"]), json.loads(body))
        ids = (claims["taskId"], claims["configId"], url, claims["notificationId"])
        post = Post(*ids, item, self.tick(), accepted)
        self.history.posts.append(post)


def claims_of(headers: Mapping[str, str]) -> dict[str, Any]:
    """The claims of a notification's token, unverified. In the tests' deployments the token is the claims."""
    named = {name.lower(): value for name, value in headers.items()}
    token = named.get("x-a2a-notification-jwt") or named["authorization"].removeprefix("Bearer ")
    if not token.startswith("{"):
        middle = token.split(".")[1]
        token = base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)).decode()
    claims: dict[str, Any] = json.loads(token)
    return claims


def view_of(task: Mapping[str, Any]) -> TaskView:
    """A task of 1.0, as JSON."""
    artifacts = ((one["artifactId"], _text(one)) for one in task.get("artifacts", ()))
    status = task["status"]
    history = tuple(one["messageId"] if one["role"] == CLIENT else _text(one) for one in task.get("history", ()))
    return TaskView(_state(status["state"]), _text(status.get("message", {})), history, tuple(artifacts))


def item_of(at: int, n: int, content: Mapping[str, Any]) -> Item:
    """A ``StreamResponse`` of 1.0, as JSON, with the number of its event."""
    if "task" in content:
        return Item(at, n, view_of(content["task"]))
    if "statusUpdate" in content:
        status = content["statusUpdate"]["status"]
        return Item(at, n, LogEvent(n, _state(status["state"]), _text(status.get("message", {}))))
    update = content["artifactUpdate"]
    artifact = update["artifact"]
    chunk = LogEvent(n, artifact=artifact["artifactId"], text=_text(artifact), append=bool(update.get("append", False)))
    return Item(at, n, chunk)


def log_of(events: Iterable[Event]) -> list[LogEvent]:
    """The events of a stored log."""
    return list(map(_logged, events))


def _logged(event: Event) -> LogEvent:
    if isinstance(event, ArtifactEvent):
        text = _joined(event.artifact.parts)
        return LogEvent(event.n, artifact=event.artifact.artifact_id, text=text, append=event.append)
    message = event.incoming.message.message_id if event.incoming else ""
    return LogEvent(event.n, _state(event.state), _joined(event.message.parts) if event.message else "", message)


def _joined(parts: Iterable[Part]) -> str:
    return "".join(part.readable or "" for part in parts)


def texts_of(history: History) -> Iterator[str]:
    """The history, a line for each operation, notification and event, to be read by people."""
    rows = [(one.invoked, f"{one.kind} {_shown(one)}") for one in history.operations]
    rows += [(post.item.at, f"POST {post}") for post in history.posts]
    yield from (f"{at:6} {text}" for at, text in sorted(rows))
    for task, log in history.logs.items():
        yield f"log of {task}"
        yield from (f"       {event}" for event in log)


def _shown(operation: Operation) -> str:
    names = (name for name in Operation.__dataclass_fields__ if name not in {"kind", "invoked"})
    return " ".join(f"{name}={value!r}" for name in names if (value := getattr(operation, name)) not in EMPTY)


EMPTY: tuple[object, ...] = (None, "", 0, ("", ""), [])


def _text(content: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in content.get("parts", ()))


def _state(name: str) -> str:
    return name.removeprefix("TASK_STATE_").lower().replace("-", "_")
