"""The forms in which peers write: the versions and bindings of A2A, and an agent that answers as a test says."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from a2a_serverless.client import Client, ClientResponse
from tests.client.deployment import answering

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.client import ClientRequest
    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.remotes import Binding
    from a2a_serverless.protocol.versions import ProtocolVersion

URL: Final = "https://far.example.com/agent"
STREAM: Final = {"content-type": "text/event-stream"}
JSON: Final = {"content-type": "application/json"}
_NAMES: Final = {
    **dict.fromkeys(("SendMessage", "message/send", "message:send"), "send"),
    **dict.fromkeys(("SendStreamingMessage", "message/stream", "message:stream"), "stream"),
    **dict.fromkeys(("GetTask", "tasks/get"), "get"),
    **dict.fromkeys(("CancelTask", "tasks/cancel"), "cancel"),
    **dict.fromkeys(("SubscribeToTask", "tasks/resubscribe"), "subscribe"),
}


class Refusal(NamedTuple):
    """An error of the protocol, or another body with an HTTP status."""

    code: int = 0
    status: int = 200
    body: bytes = b""


class Request(NamedTuple):
    """What a client asks for: an operation, its message, and the task that it names outside of a message."""

    operation: str
    message: dict[str, Any] | None
    task_id: str


class Form(NamedTuple):
    """A version and a binding, and how a peer writes in them. ``task_id`` is the id of its task."""

    version: ProtocolVersion
    binding: Binding
    task_id: str = "t"

    @property
    def name(self) -> str:
        """The form's name, as of a test."""
        return f"{self.version} {self.binding}"

    @property
    def _is_old(self) -> bool:
        return self.version == "0.3"

    def envelope(self, result: Json) -> Json:
        return {"jsonrpc": "2.0", "id": 1, "result": result} if self.binding == "JSONRPC" else result

    def state(self, name: str) -> str:
        if self._is_old and self.binding == "JSONRPC":
            return name
        return f"TASK_STATE_{name.upper().replace('-', '_')}"

    def kind(self, name: str) -> dict[str, Any]:
        return {"kind": name} if self._is_old and self.binding == "JSONRPC" else {}

    def task(self, state: str = "completed", **members: Any) -> dict[str, Any]:
        status = {"state": self.state(state), **members.pop("status", {})}
        return {**self.kind("task"), "id": self.task_id, "contextId": "c", "status": status, **members}

    def text(self, text: str) -> dict[str, Any]:
        return {**self.kind("text"), "text": text}

    def artifact(self, name: str, *parts: Any) -> dict[str, Any]:
        return {"artifactId": name, "parts": [self.text(part) if isinstance(part, str) else part for part in parts]}

    def message(self, text: str, **members: Any) -> dict[str, Any]:
        role = "agent" if self.kind("message") else "ROLE_AGENT"
        return {**self.kind("message"), "role": role, "parts": [self.text(text)], **members}

    def asks(self, text: str, message_id: str = "", timestamp: str = "", **members: Any) -> dict[str, Any]:
        """A task with a question."""
        message = self.message(text, **({"messageId": message_id} if message_id else {}))
        status = {"message": message, **({"timestamp": timestamp} if timestamp else {})}
        return self.task("input-required", status=status, **members)

    def file(self, raw: str) -> dict[str, Any]:
        if not self._is_old:
            return {"raw": raw, "mediaType": "image/png"}
        name = "bytes" if self.binding == "JSONRPC" else "fileWithBytes"
        return {**self.kind("file"), "file": {name: raw, "mimeType": "image/png"}}

    def item(self, name: str, content: dict[str, Any]) -> dict[str, Any]:
        """An item of a stream, or the answer to a send."""
        return content if self._is_old and self.binding == "JSONRPC" else {name: content}

    def card(self, url: str = URL, **capabilities: bool) -> dict[str, Any]:
        """The card of an agent at ``url``."""
        version = {"1.0": "1.0", "0.3": "0.3.0"}[self.version]
        interface = {"url": url, "protocolBinding": self.binding, "protocolVersion": version}
        skill = {"id": "s", "name": "S", "description": "d", "tags": ["t"]}
        return {"name": "Far", "supportedInterfaces": [interface], "capabilities": capabilities, "skills": [skill]}

    def read(self, url: str, body: bytes | None) -> Request:
        """What a client asks for."""
        content = json.loads(body or b"{}")
        if self.binding == "JSONRPC":
            params = content["params"]
            return Request(_NAMES[content["method"]], params.get("message"), params.get("id", ""))
        last = urlsplit(url).path.rpartition("/")[2]
        task_id, _, verb = last.partition(":")
        operation = _NAMES.get(last) or (verb if verb in {"cancel", "subscribe"} else "get")
        return Request(operation, content.get("message"), task_id)

    def response(self, answer: Any) -> ClientResponse:
        """The response with an answer: a result, a list of items, a Refusal, or a response as it is."""
        if isinstance(answer, ClientResponse):
            return answer
        if isinstance(answer, Refusal):
            return self._refusal(answer)
        if isinstance(answer, list):
            lines = (b"data: %b\n\n" % json.dumps(self.envelope(item)).encode() for item in answer)
            return ClientResponse(200, STREAM, BytesIO(b"".join(lines)))
        return ClientResponse(200, JSON, BytesIO(json.dumps(self.envelope(answer)).encode()))

    def _refusal(self, refusal: Refusal) -> ClientResponse:
        if not refusal.code:
            return ClientResponse(refusal.status, {"content-type": "text/html"}, BytesIO(refusal.body))
        error = {"code": refusal.code, "message": "No"}
        body = {"jsonrpc": "2.0", "id": 1, "error": error} if self.binding == "JSONRPC" else error
        status = 200 if self.binding == "JSONRPC" else 400
        return ClientResponse(status, JSON, BytesIO(json.dumps(body).encode()))

    def client(self, *answers: Any, headers: dict[str, str] | None = None) -> Client:
        bodies = [body if isinstance(body, bytes) else json.dumps(self.envelope(body)).encode() for body in answers]
        transport, _ = answering(*((200, headers or {"content-type": "application/json"}, body) for body in bodies))
        return Client(URL, transport, version=self.version, binding=self.binding)

    def stream(self, *items: Json, **headers: str) -> Client:
        lines = (b"data: %b\n\n" % json.dumps(self.envelope(item)).encode() for item in items)
        return self.client(b"".join(lines), headers=headers or STREAM)


FORMS: Final = [Form(version, binding) for version in ("1.0", "0.3") for binding in ("JSONRPC", "HTTP+JSON")]


@dataclass
class SloppyAgent:
    """An agent that answers each operation as the test says: with the results of calls, the last again and again.

    A list is a stream of items. ``asked`` are the operations, ``sent`` the messages.
    """

    form: Form
    answers: dict[str, list[Any]]
    streaming: bool = False
    push: bool = False
    asked: list[str] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)

    def card(self) -> dict[str, Any]:
        """Its card."""
        return self.form.card(streaming=self.streaming, pushNotifications=self.push)

    @contextmanager
    def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
        """The client's transport to it."""
        if urlsplit(call.url).path.endswith("agent-card.json"):
            yield ClientResponse(200, JSON, BytesIO(json.dumps(self.card()).encode()))
            return
        operation, message, _ = self.form.read(call.url, call.body)
        self.asked.append(operation)
        self.headers.append(call.headers)
        if message:
            self.sent.append(message)
        answer = next_of(self.answers[operation])
        yield self.form.response(answer() if callable(answer) else answer)


def next_of(answers: list[Any]) -> Any:
    """The next answer; the last again and again."""
    return answers.pop(0) if len(answers) > 1 else answers[0]
