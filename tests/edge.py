"""The ASGI application for tests: it checks every answer against the schema of its binding and version.

``tests/test_rules.py`` checks that no test makes the application itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlencode

from a2a_serverless.http.api import Api
from a2a_serverless.http.app import CARD, DOCUMENTS, OLD_CARD, make_asgi_app
from a2a_serverless.http.lambda_proxy import Exchange
from a2a_serverless.http.messages import TIME_LEFT, HttpRequest, read_request
from a2a_serverless.http.routes import LEGACY_ROUTES, ROUTES, TENANT_ROUTES
from a2a_serverless.protocol.jsonrpc import METHODS
from a2a_serverless.protocol.operations import Operation
from tests.protocol.schema import (
    assert_card,
    assert_error,
    assert_older,
    assert_v0_3,
    assert_v0_3_rest,
    assert_v1,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

Assert = Callable[[str, object], None]
CALLBACKS: Final = ("callbacks", "events")
CARDS: Final = (CARD, OLD_CARD)
LEGACY: Final = "legacy"


class Frames(Protocol):
    """A streamed body."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def __anext__(self) -> bytes: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True)
class HttpResponse:
    """An answer. ``body`` is the whole body, unless there is a ``stream``, whose bytes are sent as they come."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Frames | None = None


@dataclass(frozen=True)
class Edge(Api):
    """The dependencies of the application, and the application itself, which checks its answers."""

    @cached_property
    def app(self) -> ASGIApp:
        return Checked(make_asgi_app(self), tuple(self.agents))

    def answer(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request, as it would come over HTTP."""
        exchange = Exchange(self.app, scope_of(request), request.body)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in exchange.headers}
        headers.pop("content-length", None)  # the servers', not ours
        if exchange.streams:
            return HttpResponse(exchange.status, b"", headers, exchange)
        return HttpResponse(exchange.status, exchange.read(), headers)


def scope_of(request: HttpRequest) -> Scope:
    """The ASGI scope of a request."""
    return {
        "type": "http",
        "http_version": "1.1",
        "method": request.verb,
        "path": unquote(request.path),
        "raw_path": request.path.encode("utf-8", "surrogatepass"),
        "root_path": "",
        "scheme": "https",
        "query_string": urlencode(request.query, errors="surrogatepass").encode(),
        "headers": [
            (name.encode("utf-8", "surrogatepass"), value.encode("utf-8", "surrogatepass"))
            for name, value in request.headers.items()
        ],
        TIME_LEFT: request.time_left_ms,
    }


class Checked:
    """An application whose answers are checked. What is wrong is raised when the answer is complete or closed."""

    def __init__(self, app: ASGIApp, agents: tuple[str, ...]) -> None:
        self._app, self._agents = app, agents

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given, faults = bytearray(), list[Exception]()
        answer = Answer(lambda: form_of(read_request(scope, bytes(given)), self._agents))

        async def recorded() -> Message:
            message = await receive()
            given.extend(message.get("body", b""))
            return message

        async def checked(message: Message) -> None:
            try:
                answer.take(message)
            except Exception as fault:  # noqa: BLE001 - whatever an assertion raises
                faults.append(fault)
            await send(message)

        try:
            await self._app(scope, recorded, checked)
        finally:
            if faults:
                raise faults[0]


@dataclass
class Answer:
    """The messages of an answer as they come, checked against the form as soon as it is known."""

    form: Callable[[], Form]
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    last: int = 0

    def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
        elif self.headers.get("content-type") == "text/event-stream":
            form = self.form()
            assert form.item or form.ids is not None, "this answer is no stream"
            if message.get("body"):
                self.last = check_frame(form, message["body"], self.last)
        else:
            self.body += message.get("body", b"")
            if not message.get("more_body"):
                if self.headers.get("content-type", "").startswith("text/html"):
                    assert self.headers["content-security-policy"].startswith("default-src 'none'; "), "any script runs"
                conforming(self.form(), HttpResponse(self.status, self.body, self.headers))


@dataclass(frozen=True)
class Form:
    """The form of the answer to a request: ``errors`` are the forms of an error, ``result`` checks a result.

    ``item`` checks an item of a stream. ``ids`` are the ids that a JSON-RPC answer may have; None means no JSON-RPC.
    A ``page`` is a file of the console.
    """

    errors: tuple[str, ...]
    result: Callable[[Any], None] | None = None
    item: Callable[[Any], None] | None = None
    ids: tuple[object, ...] | None = None
    page: bool = False


def form_of(request: HttpRequest, agents: tuple[str, ...]) -> Form:
    """Returns the form that the specification requires of the answer to this request."""
    path = request.path.strip("/")
    public = any(_pattern(one).fullmatch(f"/{path}") for one in DOCUMENTS)
    first, _, below = path.partition("/")
    if path.endswith(CARDS) and first != LEGACY and public:
        return Form(("REST 1.0", "REST 0.3", "JSON-RPC"), assert_card)
    if first in {"", "-"}:
        return Form(("REST 1.0", "REST 0.3"), page=below not in {"events", "log", "step", "tasks"})
    if public or first in CALLBACKS:
        return Form(("REST 1.0", "REST 0.3", "JSON-RPC"))
    if not below:
        known = request.verb == "POST" and first in agents
        return _rpc(request.body) if known else Form(("REST 1.0", "REST 0.3", "JSON-RPC"))
    old = first == LEGACY
    if old:
        _, _, below = below.partition("/")
    if below in {"", "uploads", "v1"} or re.fullmatch("tasks/[^/]+/(deliveries|timeline|retry)", below):
        return Form(("REST 1.0", "REST 0.3"))
    version = "REST 0.3" if old or below.startswith("v1/") else "REST 1.0"
    return _rest(request.verb, "/" + below, version, old=old)


def _rest(verb: str, path: str, version: str, *, old: bool) -> Form:
    routes = LEGACY_ROUTES if old else (*ROUTES, *TENANT_ROUTES)
    found = next((one for one in routes if one.verb == verb and _pattern(one.template).fullmatch(path)), None)
    if found is None:
        return Form((version,))
    names = _OLDER if old else _V1 if version == "REST 1.0" else _V0_3_REST
    check = assert_older if old else assert_v1 if version == "REST 1.0" else assert_v0_3_rest
    if found.operation is Operation.CARD and version == "REST 0.3":
        check = assert_v0_3  # the same document as in other bindings
    return Form((version,), *_results(names, check, found.operation))


def _pattern(template: str) -> re.Pattern[str]:
    """A task's id ends at a colon; the names of configurations, tenants and agents at a slash."""
    exact = re.sub(r"\{\w+:task\}", "[^/:]+", template)
    return re.compile(re.sub(r"\{[\w:]+\}", "[^/]+", exact))


def _rpc(body: bytes) -> Form:
    try:
        call = json.loads(body)
        operation, version = METHODS[call["method"]]
        ids: tuple[object, ...] = (call.get("id"), None)
    except (ValueError, KeyError, TypeError, RecursionError):
        return Form(("JSON-RPC",), ids=_ids_in(body))
    names, check = (_V1, assert_v1) if version == "1.0" else (_V0_3, assert_v0_3)
    return Form(("JSON-RPC",), *_results(names, check, operation), ids=ids)


def _ids_in(body: bytes) -> tuple[object, ...]:
    try:
        call = json.loads(body)
    except (ValueError, RecursionError):
        return (None,)
    return (call.get("id"), None) if isinstance(call, dict) else (None,)


def _results(
    names: dict[Operation, str | None], check: Assert, operation: Operation
) -> tuple[Callable[[Any], None], Callable[[Any], None] | None]:
    name = names.get(operation)

    def checked(result: Any) -> None:
        if name is None:
            assert result in (None, {}), f"{operation} answers nothing"
        elif isinstance(result, list):  # a list of 0.3 has no name
            for one in result:
                check(name, one)
        else:
            check(name, result)

    return checked, checked if operation.streams else None


_V1: Final[dict[Operation, str | None]] = {
    **{operation: operation.answer.__name__ if operation.answer else None for operation in Operation},
    Operation.CARD: "AgentCard",
}
_V0_3_REST: Final = _V1 | {Operation.PUSH_LIST: "ListTaskPushNotificationConfigResponse"}
_OLDER: Final[dict[Operation, str | None]] = {
    Operation.SEND: "Task",
    Operation.STREAM: "StreamItem",
    Operation.GET: "Task",
    Operation.CANCEL: "Task",
}
_V0_3: Final[dict[Operation, str | None]] = _V1 | {
    Operation.SEND: "SendMessageSuccessResponse/properties/result",
    Operation.STREAM: "SendStreamingMessageSuccessResponse/properties/result",
    Operation.SUBSCRIBE: "SendStreamingMessageSuccessResponse/properties/result",
    Operation.PUSH_LIST: "TaskPushNotificationConfig",
}


# ---- Answers


def conforming(form: Form, answer: HttpResponse) -> HttpResponse:
    """Asserts that the answer has the form and returns it; a stream is checked frame by frame while it is read."""
    if answer.stream is not None:
        assert answer.headers["content-type"] == "text/event-stream"
        assert form.item or form.ids is not None, "this answer is no stream"
        return replace(answer, stream=_Checked(form, answer.stream))
    if form.page and answer.status == 200:
        assert answer.headers["content-type"].startswith("text/")
        return answer
    if answer.status in {204, 303, 304}:
        assert answer.body == b""
        return answer
    assert answer.headers["content-type"].startswith(
        ("application/json", "application/a2a+json", "application/ai-catalog")
    )
    _check(form, answer.status, json.loads(answer.body))
    return answer


class _Checked:
    """A stream that checks each frame when it is read. Closing it closes the inner stream, also if nothing was read."""

    def __init__(self, form: Form, stream: Frames) -> None:
        self._form = form
        self._stream = stream
        self._last = 0

    def __aiter__(self) -> _Checked:
        return self

    async def __anext__(self) -> bytes:
        frame = await self._stream.__anext__()
        self._last = check_frame(self._form, frame, self._last)
        return frame

    async def aclose(self) -> None:
        await self._stream.aclose()


def check_frame(form: Form, frame: bytes, last: int) -> int:
    """Asserts that the frame is one event or one comment; returns its number, or ``last`` when it has none."""
    assert frame.endswith(b"\n\n")
    if frame.startswith(b":"):
        return last
    lines = dict(line.split(": ", 1) for line in frame.decode().removesuffix("\n\n").split("\n"))
    assert lines.keys() <= {"id", "data", "event"}
    number = int(lines.get("id", last))
    assert number > last or "id" not in lines, "events go forward"
    document = json.loads(lines["data"])
    if lines.get("event") == "error" or form.ids is not None:
        _check(form, None, document)
    else:
        assert form.item
        form.item(document)
    return number


def _check(form: Form, status: int | None, document: Any) -> None:
    if form.ids is not None and "jsonrpc" in document:
        _check_rpc(form, document)
    elif status is None or status >= 400:
        _check_error(form, status, document)
    elif form.result:
        form.result(document)


def _check_rpc(form: Form, document: Any) -> None:
    assert document["id"] in (form.ids or ())
    if "error" in document:
        assert_error("JSON-RPC", document)
        assert_v0_3("JSONRPCErrorResponse", document)
        return
    assert sorted(document) == ["id", "jsonrpc", "result"]
    assert form.result
    form.result(document["result"])


def _check_error(form: Form, status: int | None, document: Any) -> None:
    kind = "JSON-RPC" if "jsonrpc" in document else "REST 0.3" if "type" in document else "REST 1.0"
    assert kind in form.errors
    assert_error(kind, document)
    assert kind != "REST 1.0" or status in {None, document["error"]["code"]}
