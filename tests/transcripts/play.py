"""Plays an agent of ``agents`` through a binding over the ASGI application, and writes down all that can be seen of it.

What differs from run to run (ids, times, addresses, hashes) is replaced: an id by the member in which it was first seen
and a number, if a client can see it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from a2a_serverless.client import ClientRequest
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.store import keys
from tests.client.deployment import BASE, Deployment
from tests.transcripts.agents import PLAYS, TRIES
from tests.transcripts.bindings import BINDINGS, Hook, Message
from tests.transcripts.talk import Answer
from tests.world import HOOK

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.agent import Agent
    from tests.transcripts.bindings import Binding
    from tests.transcripts.talk import Request

Json = Any
LARGEST: Final = 16 * 1024 * 1024
ID: Final = re.compile(r"\bid-\d{4,}\b|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b[0-9a-f]{16,}\b")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b0*17[89]\d{7}(?:\d{3})?\b")
OPAQUE: Final = re.compile(r"[\w+/-]{40,}=*")
HEADERS: Final = ("content-type", "a2a-version", "a2a-extensions", "location", "retry-after")
ACTS: Final = (keys.EVENTS, keys.STEPS, keys.VALUES, keys.CONTEXTS, keys.HEAD)
UNFINISHED: Final = "@running/"  # how long a try of a step took
PLACE: Final = ("pk", "sk", "expires")


@dataclass
class Names:
    """The placeholders of one conversation."""

    seen: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    is_open: bool = True

    def value(self, value: Json, role: str = "id") -> Json:
        """A JSON value with placeholders in it."""
        if isinstance(value, dict):
            return {self.text(name, "key"): self.value(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.value(one, role) for one in value]
        if isinstance(value, str):
            return self.text(value, role)
        if isinstance(value, int) and not isinstance(value, bool):
            return "<time>" if TIME.fullmatch(str(value)) else value
        return value

    def text(self, text: str, role: str) -> str:
        text = ID.sub(lambda met: self._name(met[0], role), TIME.sub("<time>", text))
        return OPAQUE.sub("<opaque>", text)

    def _name(self, found: str, role: str) -> str:
        if found not in self.seen and self.is_open:
            self.counts[role] = self.counts.get(role, 0) + 1
            self.seen[found] = f"<{role} {self.counts[role]}>"
        return self.seen.get(found, "<id>")


class Client:
    """A client of one binding that talks to the first of ``agents``. Each of its requests becomes a record."""

    def __init__(self, agents: tuple[Agent, ...], by: Binding, run_ms: int) -> None:
        self.by, self.agent, self.task = by, agents[0].id, ""
        self.records: list[Json] = []
        self.names, self._sent = Names(), 0
        self._deployment = deployment = Deployment(*agents)
        world = deployment.world
        world.run_ms = run_ms
        world.add_consumer("worker-1", WorkMessage)
        inline_runner = EngineInlineRunner(world.engine, world.play)
        deployment.edge = replace(
            deployment.edge, service=world.service._replace(inline_runner=inline_runner.for_agent)
        )

    def stream(self, text: str, *parts: Json) -> None:
        self._ask("stream", self.by.stream(self.agent, self._message(text, *parts), hook=Hook("first", HOOK)))

    def send(self, text: str, *, wait: bool = True, again: bool = False) -> None:
        """Sends a message to the task, if there is one; ``again``: the message that was sent before."""
        self._sent -= again
        task = self.task if not again or self._sent else ""
        message = replace(self._message(text), task=task or None)
        self._ask("send", self.by.send(self.agent, message, wait=wait, hook=None if task else Hook("first", HOOK)))

    def begin(self) -> None:
        """Forgets the task: what is sent next makes another one."""
        self.task = ""

    def get(self) -> None:
        self._ask("get", self.by.call(self.agent, "get", task=self.task))

    def list(self) -> None:
        if self.by.lists:
            self._ask("list", self.by.call(self.agent, "list", artifacts="true"))

    def cancel(self) -> None:
        self._ask("cancel", self.by.call(self.agent, "cancel", task=self.task))

    def subscribe(self) -> None:
        self._ask("subscribe", self.by.call(self.agent, "subscribe", task=self.task))

    def later(self, ms: int, act: Callable[[], object]) -> None:
        """Does something in ``ms`` of the deployment's time, also while the agent runs."""
        self._deployment.world.plan(ms, act)

    def settle(self) -> None:
        """Waits until nothing is left to do."""
        self._deployment.world.settle()

    def transcript(self) -> Json:
        """The records and then the webhooks' POSTs, when nothing is left to do."""
        self.settle()
        posts = self._deployment.world.receiver.posts
        return [
            *self.records,
            *({"webhook": one.headers["A2A-Version"], "body": self.names.value(one.body)} for one in posts),
        ]

    def stored(self) -> Json:
        """The acts that are stored in the end, by task or owner. What no client has seen has ids without a number."""
        self.names.is_open = False
        stored: dict[str, Json] = {}
        for pk, rows in sorted(self._deployment.world.table.items.partitions.items()):
            acts = {sk: self._act(item) for sk, item in sorted(rows.items()) if sk.startswith(ACTS)}
            events = [act for sk, act in acts.items() if sk.startswith(keys.EVENTS)]
            others = {sk: act for sk, act in acts.items() if not sk.startswith(keys.EVENTS)}
            if acts:
                stored[pk] = {"events": events} | self._named(others)
        return self._named(stored)

    def _named(self, acts: dict[str, Json]) -> dict[str, Json]:
        """The same by keys with placeholders; equal ones get a number."""
        named: dict[str, Json] = {}
        for key, act in acts.items():
            name = self.names.text(unquote(key), "key")
            named[f"{name} ({len(named)})" if name in named else name] = act
        return named

    def _act(self, item: Json) -> Json:
        act = {name: value for name, value in _plain(item).items() if name not in PLACE}
        if str(act.get("name")).startswith(UNFINISHED):
            act["body"]["v"] = "<ms>"
        return self.names.value(act)

    def _message(self, text: str, *parts: Json) -> Message:
        self._sent += 1
        return Message(f"message {self._sent}", ({"text": text}, *parts), context="context")

    def _ask(self, what: str, request: Request) -> None:
        headers = {"Content-Type": "application/json"} | request.sent_headers()
        call = ClientRequest(BASE + request.path, headers, None if request.verb == "GET" else request.content())
        with self._deployment.transport(call) as response:
            answer = Answer(response.status, dict(response.headers), response.body.read(LARGEST))
        shown = {name: value for name, value in answer.headers.items() if name.lower() in HEADERS}
        streams = "event-stream" in answer.headers.get("content-type", "")
        body = answer.items if streams else answer.json if answer.body else None
        self.task = self.task or _task_of(body)
        self.records.append({what: answer.status, "headers": shown, "body": self.names.value(body)})


def play(name: str) -> Json:
    """The transcript of a play: by binding what its client and webhook see, and what is stored by the first of them."""
    transcript: dict[str, Json] = {}
    one = PLAYS[name]
    for by in BINDINGS[:4]:
        TRIES.clear()
        client = Client(one.agents, by, one.run_ms)
        one.script(client)
        transcript[by.name] = client.transcript()
        transcript.setdefault("stored", {} if "stored" in transcript else client.stored())
    return transcript


def _task_of(body: Json) -> str:
    """The first task id in an answer; "" if there is none."""
    if isinstance(body, list):
        return next(filter(None, map(_task_of, body)), "")
    if not isinstance(body, dict):
        return ""
    if "contextId" in body and ("status" in body or "taskId" in body):
        return str(body.get("taskId") or body["id"])
    return next(filter(None, map(_task_of, body.values())), "")


def _plain(item: Json) -> Json:
    """An item of the table as JSON; a text that is JSON is read."""
    return {name: _value(value) for name, value in sorted(item.items())}


def _value(value: Json) -> Json:
    ((kind, content),) = value.items()
    if kind == "N":
        return json.loads(content)
    if kind == "M":
        return _plain(content)
    if kind == "L":
        return [_value(one) for one in content]
    if kind == "B":
        return f"{len(content)} bytes"
    return json.loads(content) if kind == "S" and content[:1] in {"{", "["} else content
