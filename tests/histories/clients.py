"""Clients as seeded programs: they send, repeat, cancel, answer, subscribe, get, list and register, all at once.

They work over a ``Transport``, in this process or over HTTP, and record what they see. A client whose answer is lost
mostly sends the same message again, as the protocol advises.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from a2a_serverless.client import ClientRequest, ClientResponse, Unreachable
from a2a_serverless.client.client import read_events
from tests.histories.history import Lost, Operation, Recorder, Refused, item_of, view_of
from tests.histories.specification import NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from random import Random

    from a2a_serverless.client import Transport as SendsRequests

CONFIGS: Final = ("a", "b")
RETRIED: Final = 0.7
PLAY: Final = "play"
PLAYED: Final = 0.3
"""The message that makes the agent play a random program, and how often a client sends one."""
ANY: Final = -1  # chunks
LARGEST: Final = 16 * 1024 * 1024
UNKNOWN: Final = frozenset({-32603, -32000, -31429})


class Transport(Protocol):
    """A2A 1.0 over JSON-RPC. Raises Refused, and Lost when it is unknown whether the operation took effect."""

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a method."""

    def stream(self, method: str, params: Mapping[str, Any], after: int | None) -> Iterator[tuple[int, Any]]:
        """The items of a stream, each with the number of its event."""
        ...


class HttpTransport:
    """An agent at a URL. ``transport`` sends the requests: ``tests.observed`` checks the answers."""

    def __init__(self, url: str, headers: Mapping[str, str], transport: SendsRequests) -> None:
        fixed = {"Content-Type": "application/json", "Accept": "*/*", "A2A-Version": "1.0"}
        self._url, self._headers, self._transport = url, {**fixed, **headers}, transport

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        with self._ask(method, params, {}) as answer:
            return _result(answer.body.read(LARGEST))

    def stream(self, method: str, params: Mapping[str, Any], after: int | None) -> Iterator[tuple[int, Any]]:
        number = 0
        with self._ask(method, params, {} if after is None else {"Last-Event-ID": str(after)}) as answer:
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                _result(answer.body.read(LARGEST))
            for event in read_events(answer.body, LARGEST):
                number = event.number or number
                yield number, _result(event.data)

    @contextmanager
    def _ask(self, method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[ClientResponse]:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        try:
            with self._transport(ClientRequest(self._url, {**self._headers, **headers}, body, waits=True)) as answer:
                yield answer
        except (Unreachable, ValueError):
            raise Lost from None


def _result(body: bytes) -> Any:
    answer = json.loads(body)
    if "error" not in answer:
        return answer["result"]
    if answer["error"]["code"] in UNKNOWN:
        raise Lost
    raise Refused(answer["error"]["code"])


@dataclass
class Client:
    """Makes operations and records them."""

    transport: Transport
    recorder: Recorder

    def send(self, params: Mapping[str, Any], *, chunks: int = 0, stream: bool = False) -> Operation:
        """Sends a message; with ``stream`` reads the answer's stream to its end."""
        message, said = params["message"], params["configuration"].get("taskPushNotificationConfig", {})
        asked = {
            "task": message.get("taskId", ""),
            "message": message["messageId"],
            "webhook": (said.get("id", ""), said.get("url", "")),
            "chunks": chunks,
        }
        if stream:
            call = lambda operation: self._follow(operation, "SendStreamingMessage", params)  # noqa: E731
            return self.recorder.record("stream", call, **asked)

        def made(operation: Operation) -> None:
            task = self.transport.call("SendMessage", params)["task"]
            operation.task, operation.view = task["id"], view_of(task)

        return self.recorder.record("send", made, **asked)

    def subscribe(self, task: str, after: int | None = None) -> Operation:
        return self.recorder.record(
            "subscribe", lambda made: self._follow(made, "SubscribeToTask", {"id": task}), task=task, after=after
        )

    def _follow(self, operation: Operation, method: str, params: Mapping[str, Any]) -> None:
        for n, content in self.transport.stream(method, params, operation.after):
            operation.items.append(item_of(self.recorder.tick(), n, content))
            operation.task = operation.task or content.get("task", {}).get("id", "")

    def get(self, task: str) -> Operation:
        return self.recorder.record("get", lambda made: self._viewed(made, "GetTask"), task=task)

    def cancel(self, task: str) -> Operation:
        return self.recorder.record("cancel", lambda made: self._viewed(made, "CancelTask"), task=task)

    def _viewed(self, operation: Operation, method: str) -> None:
        operation.view = view_of(self.transport.call(method, {"id": operation.task}))

    def list_tasks(self) -> Operation:
        def listed(operation: Operation) -> None:
            operation.tasks, token = {}, ""
            while token or not operation.tasks:
                params = {"pageSize": 100, "includeArtifacts": True} | ({"pageToken": token} if token else {})
                page = self.transport.call("ListTasks", params)
                operation.tasks |= {task["id"]: view_of(task) for task in page["tasks"]}
                token = page["nextPageToken"]
                if not token:
                    return

        return self.recorder.record("list", listed)

    def register(self, task: str, config: str, url: str) -> Operation:
        params = {"taskId": task, "id": config, "url": url}
        call = lambda _: self.transport.call("CreateTaskPushNotificationConfig", params)  # noqa: E731
        return self.recorder.record("register", call, task=task, webhook=(config, url))

    def delete(self, task: str, config: str) -> Operation:
        params = {"taskId": task, "id": config}
        call = lambda _: self.transport.call("DeleteTaskPushNotificationConfig", params)  # noqa: E731
        return self.recorder.record("delete", call, task=task, webhook=(config, ""))

    def webhook(self, task: str, config: str) -> Operation:
        def got(operation: Operation) -> None:
            try:
                found = self.transport.call("GetTaskPushNotificationConfig", {"taskId": task, "id": config})
                operation.webhooks = {config: found["url"]}
            except Refused as refused:
                operation.webhooks = {} if refused.code == NOT_FOUND else None
                raise

        return self.recorder.record("webhook", got, task=task, webhook=(config, ""))

    def webhooks(self, task: str) -> Operation:
        def listed(operation: Operation) -> None:
            found = self.transport.call("ListTaskPushNotificationConfigs", {"taskId": task})
            operation.webhooks = {one["id"]: one["url"] for one in found.get("configs", ())}

        return self.recorder.record("webhooks", listed, task=task)


@dataclass
class Board:
    """What the clients of one history know together: the tasks, and the messages that were sent."""

    tasks: list[str] = field(default_factory=list)
    sent: list[tuple[Mapping[str, Any], int]] = field(default_factory=list)


@dataclass
class Program:
    """One client's program. ``hook`` makes a URL of a name; ``sleep`` waits for seconds; ``most`` bounds the tasks.

    ``start`` runs something at the same time; without it the client does one thing after the other. ``played`` is the
    share of its tasks that play a random program: 0 for an agent that can only count.
    """

    name: str
    client: Client
    board: Board
    random: Random
    sleep: Callable[[float], None]
    hook: Callable[[str], str]
    start: Callable[[Callable[[], object]], object] | None = None
    actions: int = 10
    most: int = 3
    played: float = PLAYED
    count: int = 0

    def run(self) -> None:
        for _ in range(self.actions):
            self.sleep(self.random.randrange(12) / 10)
            if not self.board.tasks:
                self._start()
            else:
                chosen = self.random.choices(*zip(*self._choices(), strict=True))[0]
                chosen(self.random.choice(self.board.tasks))

    def _choices(self) -> Iterator[tuple[Callable[[str], object], int]]:
        yield lambda _: self._start(), 3 if len(self.board.tasks) < self.most else 0
        yield self._answer, 4
        yield lambda _: self._repeat(), 2
        yield self.client.cancel, 1
        yield self._rush, 1 if self.start else 0
        yield self.client.get, 5
        yield lambda _: self.client.list_tasks(), 2
        yield self._subscribe, 2
        yield self._register, 3
        yield lambda task: self.client.delete(task, self._config()), 2
        yield lambda task: self.client.webhook(task, self._config()), 1
        yield self.client.webhooks, 1

    def _start(self) -> None:
        if self.random.random() < self.played:
            self._send(self._params(f"{PLAY} {self.random.randrange(1 << 30)}"), ANY)
            return
        chunks = self.random.randrange(6)
        ask = self.random.choice(["", " ask"])
        self._send(self._params(f"{chunks}{ask}"), chunks)

    def _answer(self, task: str) -> None:
        self._send(self._params("more", taskId=task), 0)

    def _rush(self, task: str) -> None:
        """Sends a message twice and cancels its task, at the same time."""
        if self.start:
            params = self._params("more", taskId=task)
            for work in (
                partial(self.client.send, params),
                partial(self._send, params, 0),
                partial(self.client.cancel, task),
            ):
                self.start(work)

    def _repeat(self) -> None:
        if self.board.sent:
            self._send(*self.random.choice(self.board.sent))

    def _send(self, params: Mapping[str, Any], chunks: int) -> None:
        self.board.sent.append((params, chunks))
        while True:
            operation = self.client.send(params, chunks=chunks, stream=self.random.random() < 1 / 4)
            if operation.task and operation.task not in self.board.tasks:
                self.board.tasks.append(operation.task)
            if operation.completed is not None or self.random.random() > RETRIED:
                return

    def _subscribe(self, task: str) -> None:
        """Follows a task, and goes on after the last number when the line has broken."""
        operation = self.client.subscribe(task, self.random.choice([None, None, 0, 1]))
        if operation.completed is None and operation.items:
            self.client.subscribe(task, operation.items[-1].n)

    def _register(self, task: str) -> None:
        self.client.register(task, self._config(), self._url())

    def _params(self, text: str, **placed: str) -> dict[str, Any]:
        self.count += 1
        configuration: dict[str, Any] = {"returnImmediately": self.random.random() < 3 / 4}
        if self.random.random() < 1 / 2:
            configuration["taskPushNotificationConfig"] = {"id": self._config(), "url": self._url()}
        message = {"messageId": f"{self.name}-{self.count}", "role": "ROLE_USER", "parts": [{"text": text}], **placed}
        return {"message": message, "configuration": configuration}

    def _config(self) -> str:
        return self.random.choice(CONFIGS)

    def _url(self) -> str:
        self.count += 1
        return self.hook(f"{self.name}-{self.count}")


def look_at_the_end(client: Client) -> None:
    """Lists all tasks and their webhooks: the checker compares that with what should be there."""
    for task in client.list_tasks().tasks or ():
        client.webhooks(task)
