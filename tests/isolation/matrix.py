"""Everything that a request can name, named by a stranger: what is somebody else's, and what never existed.

Each request is made twice, in two deployments that are alike to the last id, once with the one and once with the other.
What comes back must be the same to the byte, after the same calls to the store, and nothing of its owner's may change.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.model import Principal
from a2a_serverless.http.api import OidcOrApiKey
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.v1 import (
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    TaskPushNotificationConfig,
)
from a2a_serverless.services.listing import list_tasks
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.tasks import send
from a2a_serverless.testing.memory import MemoryCallbackVerifier, MemorySealer, MemoryStores
from tests.echo import agent_of
from tests.edge import Edge, HttpResponse
from tests.handlers.requests import BINDINGS, DELIVERIES, RETRY, TIMELINE, Make, Names
from tests.world import HOOK, ME, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.task_context import TaskContext

STRANGERS: Final = {
    "another owner of the tenant": Principal(ME.tenant, "eve"),
    "another tenant": Principal("elsewhere", ME.owner),
}
SECRET: Final = "the owner's own words"
READS: Final = {
    "read_head",
    "read_log",
    "read_task",
    "read_part",
    "read_task_at",
    "read",
    "find_idempotency",
    "read_steps",
    "list_page",
    "get_config",
    "list_configs",
    "get_cursor",
    "list_cursors",
    "list_attempts",
    "find_callback",
}
FIRST_ID: Final = 1000
NEVER: Final = "00000000-0000-4000-8000-00000000dead"
KINDS: Final = ("task", "context", "config", "page token", "message id", "reference", "artifact", "tenant")


async def look_around(task: TaskContext) -> None:
    """An agent that tells all that it can see of other tasks."""
    seen = [*await task.get_referenced_tasks(), *await task.get_previous_tasks()]
    texts = [str(part.value) for one in seen for artifact in one.artifacts for part in artifact.parts]
    await task.emit("document.md", f"{task.text()}; {len(seen)} others: {texts}", last=True)


class Watched:
    """A table that remembers which of its methods were called."""

    def __init__(self, table: MemoryStores) -> None:
        self._table = table
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._table, name)
        if not callable(found):
            return found

        def called(*arguments: Any, **named: Any) -> Any:
            self.calls.append(name)
            return found(*arguments, **named)

        return called


class As(OidcOrApiKey):
    """Everybody is one caller; who may act in which tenant is decided as in earnest."""

    def __init__(self, principal: Principal) -> None:
        super().__init__(lambda _: None)
        object.__setattr__(self, "who", principal)

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        del headers
        principal: Principal = self.who  # type: ignore[attr-defined]
        return Caller(principal)


class Scene:
    """A deployment with tasks of an owner's and of each stranger's, all ended; ``used`` once it has been written to."""

    used = False

    def __init__(self) -> None:
        self.world = World([agent_of(look_around)], table=lambda now: Watched(MemoryStores(now)))
        self.theirs = self._sent(ME, "message-1", "context-1", SECRET)
        self._sent(ME, "message-2", "context-1", SECRET)
        self.own = {name: self._sent(principal, "own", None, "mine") for name, principal in STRANGERS.items()}
        self.world.settle()
        listed = list_tasks(self.world.service.lister(), ME, "echo", ListTasksRequest(page_size=1))
        self.page = listed.next_page_token

    def _sent(self, principal: Principal, message_id: str, context_id: str | None, text: str) -> str:
        message = Message(message_id=message_id, role=Role.USER, parts=(Part(text=text),), context_id=context_id)
        push = TaskPushNotificationConfig(url=HOOK, id="hook", token=SECRET) if message_id == "message-1" else None
        task = send(
            self.world.service,
            RequestContext(principal, "echo", "1.0"),
            SendMessageRequest(
                message=message,
                configuration=SendMessageConfiguration(return_immediately=True, task_push_notification_config=push),
            ),
        )
        return task.id  # type: ignore[union-attr]

    def of_the_owner(self) -> object:
        """All that the owner has, as the store has it."""
        table = self.world.table
        keys = [ME.key(entry.task) for entry in table.list_page(ME, None, None, 0, 100)[0]]
        return [
            (
                table.read_log(key),
                table.list_configs(key),
                table.list_cursors(key),
                table.list_attempts(key),
                table.read_steps(key),
            )
            for key in keys
        ]


@dataclass(frozen=True)
class Seen:
    """What a stranger sees of one request, and what it cost."""

    status: int
    headers: Mapping[str, str]
    body: str
    calls: tuple[str, ...]
    later: str = ""


@dataclass(frozen=True)
class Pair:
    """The same request with a name of somebody else's, and with one that never was."""

    foreign: Seen
    never: Seen


def _callback(names: Names) -> HttpRequest:
    token = {"x-a2a-notification-token": "guessed"}
    return HttpRequest("POST", f"/callbacks/{names.task}", token, body=b"{}")


ROUTES: Final[dict[tuple[str, str], Make]] = {
    **{(binding, str(operation)): make for binding, made in BINDINGS.items() for operation, make in made.items()},
    ("ours", "GET /{agent}/tasks/{id}/deliveries"): DELIVERIES,
    ("ours", "GET /{agent}/tasks/{id}/timeline"): TIMELINE,
    ("ours", "POST /{agent}/tasks/{id}/retry"): RETRY,
    ("ours", "POST /callbacks/{callback}"): _callback,
    ("ours", "POST /events/{event}"): lambda names: HttpRequest("POST", f"/events/{names.task}", body=b"{}"),
}


def names_of(kind: str, stranger: str, scene: Scene, *, never: bool) -> Names:
    """A request's names, one of which is somebody else's or never was."""
    own = Names(task=scene.own[stranger], config="own", message="fresh", page=None)
    other = "elsewhere" if STRANGERS[stranger].tenant == ME.tenant else ME.tenant
    named: dict[str, Callable[[], Names]] = {
        "task": lambda: replace(own, task=NEVER if never else scene.theirs, config="hook"),
        "context": lambda: replace(own, task=None, context="context-0" if never else "context-1"),
        "config": lambda: replace(own, config="nope" if never else "hook"),
        "page token": lambda: replace(own, page=_no_token(scene) if never else scene.page),
        "message id": lambda: replace(own, task=None, message="message-0" if never else "message-1"),
        "reference": lambda: replace(own, task=None, referenced=NEVER if never else scene.theirs),
        "artifact": lambda: replace(own, task=None, artifact=NEVER if never else scene.theirs),
        "tenant": lambda: replace(own, task=scene.theirs, tenant="nowhere" if never else other),
    }
    return named[kind]()


def _no_token(scene: Scene) -> str:
    return MemorySealer().seal(json.dumps(["x", 1]), "for nobody")[: len(scene.page)]


_scenes: Final[list[Scene]] = []


def fresh_scene() -> Scene:
    """A scene that nothing has been written to since it was made."""
    if not _scenes or _scenes[-1].used:
        _scenes[:] = [Scene()]
    return _scenes[-1]


@cache
def tried(route: tuple[str, str], kind: str, stranger: str) -> Pair | None:
    """What a stranger gets; None when the request cannot name such a thing."""
    make, scene = ROUTES[route], fresh_scene()
    foreign, never = (names_of(kind, stranger, scene, never=never) for never in (False, True))
    if _as_given(make, foreign) == _as_given(make, never):
        return None
    return Pair(_seen(make, kind, stranger, never=False), _seen(make, kind, stranger, never=True))


def _as_given(make: Make, names: Names) -> HttpRequest | None:
    request = make(names)
    return None if "None" in request.path else request


def _seen(make: Make, kind: str, stranger: str, *, never: bool) -> Seen:
    scene = fresh_scene()
    world, principal = scene.world, STRANGERS[stranger]
    before, names = scene.of_the_owner(), names_of(kind, stranger, scene, never=never)
    edge = Edge(world.service, world.engine.agents, As(principal), MemoryCallbackVerifier(), 60)
    world.table.calls.clear()
    world.ids.last = FIRST_ID
    answer = edge.answer(make(names))
    body = asyncio.run(_first(answer)).decode()
    calls = tuple(world.table.calls)
    scene.used = not READS.issuperset(calls)
    later = _later(scene, principal) if scene.used else ""
    assert scene.of_the_owner() == before, "something of the owner's has changed"
    other = names_of(kind, stranger, scene, never=not never)
    for field in fields(Names):
        if (name := getattr(names, field.name)) != getattr(other, field.name):
            body = body.replace(f'"{name}"', '"<name>"').replace(f'/{name}"', '/<name>"')
            later = later.replace(repr(name), "<name>")
    return Seen(answer.status, answer.headers, body, calls, later)


def _later(scene: Scene, principal: Principal) -> str:
    """What became of the stranger's tasks, once all has been done that there was to do."""
    world = scene.world
    world.settle()
    keys = [principal.key(entry.task) for entry in world.table.list_page(principal, None, None, 0, 100)[0]]
    return repr([world.table.read_log(key) for key in keys])


async def _first(answer: HttpResponse) -> bytes:
    """The body, or the first frame of a stream."""
    if answer.stream is None:
        return answer.body
    frame = await anext(answer.stream)
    await answer.stream.aclose()
    return frame


# ---- The table


def outcome(seen: Seen) -> str:
    """An answer in two or three words; of a refusal also how often the store was asked."""
    body: Any = json.loads(seen.body.partition("data: ")[2] or seen.body or "{}")
    error = body.get("error")
    if error is None:
        result = body.get("result", body)
        return "an empty page" if isinstance(result, dict) and result.get("tasks") == [] else "served as if new"
    details = body.get("details") or error.get("data") or error.get("details")
    reason: str = details[0]["reason"]
    return f"{reason.lower().replace('_', ' ')}, {len(seen.calls)} call" + "s" * (len(seen.calls) != 1)


def cell(route: tuple[str, str], kind: str) -> str:
    """What strangers get; both the same, or the table would have to say who gets what."""
    pairs = [tried(route, kind, stranger) for stranger in STRANGERS]
    words = {outcome(pair.foreign) for pair in pairs if pair}
    return " / ".join(sorted(words)) or "·"


def table() -> str:
    """The matrix for people to read."""
    lines = [f"| binding | request | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 2) + "|"]
    for binding, request in ROUTES:
        cells = [cell((binding, request), kind) for kind in KINDS]
        lines.append(f"| {binding} | {request} | {' | '.join(cells)} |")
    return "\n".join(lines)
