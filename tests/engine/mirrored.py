"""A remote agent for mirrors, in this process: it plays a script, and streams, or is looked at, or calls back.

Its tasks go on by the test's clock, and whenever somebody reads their stream.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless import mirror
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.http_client.transport import ClientResponse, Unreachable
from tests.faults.plans import NoFaults
from tests.world import Mortal, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from a2a_serverless import Agent
    from a2a_serverless.http_client.transport import ClientRequest
    from tests.faults.plans import Faults

URL: Final = "https://far.example.com/agent"


def said(text: str, message_id: str = "", **fields: Any) -> dict[str, Any]:
    """A message of the remote agent."""
    return {"messageId": message_id or f"m-{text}", "role": "ROLE_AGENT", "parts": [{"text": text}], **fields}


def status(state: str, message: dict[str, Any] | None = None, at: int = 0) -> dict[str, Any]:
    """An event of a script: a status, whose timestamp is ``at`` (ms), if that is given."""
    name = f"TASK_STATE_{state.upper().replace('-', '_')}"
    timestamp = {"timestamp": datetime.fromtimestamp(at / 1000, UTC).isoformat()} if at else {}
    return {"status": {"state": name, **({"message": message} if message else {}), **timestamp}}


def chunk(name: str, *parts: Any, append: bool = True, last: bool = False, **fields: Any) -> dict[str, Any]:
    """An event of a script: a chunk of an artifact. A text is a part, too."""
    made = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {
        "artifact": {"artifactId": name, "name": name, "parts": made, **fields},
        "append": append,
        "lastChunk": last,
    }


LINES: Final = (
    status("working"),
    status("working", said("Counting")),
    *(chunk("lines", f"{number}\n", append=number > 0, last=number == 4) for number in range(5)),
    status("completed", said("Counted")),
)


@dataclass
class RemoteTask:
    """A task of the remote agent, which has come to ``position`` in its script. It waits there for a message."""

    id: str
    context: str
    script: list[dict[str, Any]]
    began_at: int
    position: int = 0
    state: dict[str, Any] = field(default_factory=lambda: status("submitted")["status"])
    artifacts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether it goes on only after a message, or not at all."""
        return self.state["state"] not in {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}

    def step(self) -> dict[str, Any] | None:
        """Plays the next event; returns it as an item of a stream, None if there is none now."""
        if self.waits or self.position >= len(self.script):
            return None
        event, ids = self.script[self.position], {"taskId": self.id, "contextId": self.context}
        self.position += 1
        if "status" in event:
            timestamp = f"2026-01-01T00:{self.position // 60:02}:{self.position % 60:02}Z"
            self.state = {"timestamp": timestamp, **event["status"]}
            return {"statusUpdate": {**ids, "status": self.state}}
        artifact = event["artifact"]
        known = self.artifacts.get(artifact["artifactId"])
        parts = [*known["parts"], *artifact["parts"]] if known and event["append"] else artifact["parts"]
        self.artifacts[artifact["artifactId"]] = {**(known or artifact), "parts": parts}
        return {"artifactUpdate": {**ids, **event}}

    def shown(self) -> dict[str, Any]:
        """The task as GetTask shows it."""
        artifacts = [{**artifact, "parts": [*artifact["parts"]]} for artifact in self.artifacts.values()]
        return {"id": self.id, "contextId": self.context, "status": self.state, "artifacts": artifacts}


@dataclass
class RemoteAgent:
    """The agent. ``script`` is what each task does; ``event_ms`` is the time that an event takes without a stream.

    ``breaks_after`` is the number of items after which each stream breaks. With ``forgets`` it knows no task that is
    asked for. ``on_item`` is called at each item of a stream. ``answer`` is the message with which it answers in place
    of a task. Requests to it are ``faults``' port ``remote``.
    """

    script: tuple[dict[str, Any], ...] = LINES
    version: str = "1.0"
    streaming: bool = True
    push: bool = False
    event_ms: int = 1_000
    breaks_after: int = 1_000
    forgets: bool = False
    answer: dict[str, Any] | None = None
    refuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    now: Callable[[], int] = lambda: 0
    on_item: Callable[[], None] = lambda: None
    faults: Any = field(default_factory=NoFaults)
    tasks: dict[str, RemoteTask] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    canceled: list[str] = field(default_factory=list)

    def card(self) -> dict[str, Any]:
        """Its card."""
        about = {"streaming": self.streaming, "pushNotifications": self.push}
        interface = {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": self.version}
        skill = {"id": "count", "name": "Count", "description": "Counts", "tags": ["numbers"]}
        return {
            "name": "Far Away",
            "description": "Counts far away",
            "version": "3",
            "capabilities": about,
            "supportedInterfaces": [interface],
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [skill],
        }

    def mirror(self, **options: Any) -> Agent:
        """The mirror before it."""
        return mirror(URL, card=self.card(), id="far", **options)

    @contextmanager
    def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
        """The client's transport to it."""
        if call.body is None:
            yield ClientResponse(200, {}, BytesIO(json.dumps(self.card()).encode()))
            return
        request = json.loads(call.body)
        self.headers.append(call.headers)
        method, params = request["method"], request["params"]
        self.faults.before("remote", method)
        self.asked.append(method)
        answer = self.refuses.get(method) or self.reply(method, params)
        self.faults.after("remote", method)
        if isinstance(answer, RemoteTask):
            yield ClientResponse(200, {"content-type": "text/event-stream"}, _Stream(self, answer, call.url))
        else:
            body = {"jsonrpc": "2.0", "id": 1, **answer}
            yield ClientResponse(200, {"content-type": "application/json"}, BytesIO(json.dumps(body).encode()))

    def reply(self, method: str, params: dict[str, Any]) -> dict[str, Any] | RemoteTask:
        """The answer to a request; for a stream its task."""
        if method in {"SendMessage", "SendStreamingMessage"}:
            self.sent.append(params)
            if self.answer:
                return {"result": {"message": self.answer}}
            begun = self._take(params["message"])
            return begun if method == "SendStreamingMessage" else {"result": {"task": begun.shown()}}
        task = None if self.forgets else self.tasks.get(params["id"])
        if task is None:
            return {"error": {"code": -32001, "message": "Task not found"}}
        self.go_on(task)
        if method == "CancelTask":
            self.canceled.append(task.id)
            if task.waits and "REQUIRED" not in task.state["state"]:
                return {"error": {"code": -32002, "message": "It has ended"}}
            task.state = status("canceled")["status"]
        if method == "SubscribeToTask":
            return task if not task.waits else {"error": {"code": -32004, "message": "It is not at work"}}
        return {"result": task.shown()}

    def _take(self, message: dict[str, Any]) -> RemoteTask:
        if task := self.tasks.get(message.get("taskId", "")):
            task.state, task.began_at = status("working")["status"], self.now() - task.position * self.event_ms
            return task
        name, context = f"their-{len(self.tasks) + 1}", message.get("contextId") or "their-context"
        self.tasks[name] = RemoteTask(name, context, [*self.script], self.now())
        return self.tasks[name]

    def go_on(self, task: RemoteTask) -> None:
        """Plays what the task has done by now without a stream."""
        due = (self.now() - task.began_at) // self.event_ms if self.event_ms else len(task.script)
        while task.position < due and task.step():
            pass


class _Stream:
    """The body of a stream: the task, then its next events. It breaks, or ends where the task waits."""

    def __init__(self, agent: RemoteAgent, task: RemoteTask, url: str) -> None:
        self._agent, self._task, self._url = agent, task, url
        self._number = 0
        self._lines: list[bytes] = []

    def read1(self, limit: int, /) -> bytes:
        assert limit > 0
        if not self._lines:
            self._lines = self._next()
        return self._lines.pop(0) if self._lines else b""

    def read(self, limit: int, /) -> bytes:
        return b"".join(iter(lambda: self.read1(limit), b""))

    def _next(self) -> list[bytes]:
        if self._number >= self._agent.breaks_after:
            raise Unreachable(self._url, "Connection reset by peer")
        item = self._task.step() if self._number else {"task": self._task.shown()}
        self._number += 1
        self._agent.on_item()
        return [b"data: %b\n" % json.dumps({"jsonrpc": "2.0", "id": 1, "result": item}).encode(), b"\n"] if item else []


def world_of(remote: RemoteAgent, faults: Faults | None = None, agent: Agent | None = None, **options: Any) -> World:
    """A deployment with the mirror of the remote agent, at whose requests faults happen, too."""
    agent = agent or remote.mirror(**options)
    world = World([agent], faults)
    remote.now = lambda: world.now
    if faults:
        remote.faults = Mortal(faults, world.scheduler)
    remote_agents = A2ARemoteAgents({}, transport=remote.transport, agents={"far": agent})
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=remote_agents))
    return world
