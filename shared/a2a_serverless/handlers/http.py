"""The HTTP edge without a web framework: bytes in, bytes out, for every binding.

FastAPI, Mangum and the streaming runtime are shells around ``Edge.answer``; a JSON-RPC call on Lambda goes straight
there. Nothing below this module knows a header, a status or a version.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from a2a_serverless.domain.errors import A2AError, ContentTypeNotSupported, MethodNotFound
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.handlers.gate import Unauthenticated
from a2a_serverless.handlers.operate import Done, Envelope, Operator, noted
from a2a_serverless.services.callbacks import take_news
from a2a_serverless.services.publish import AGENTS, JWKS, card_name
from a2a_serverless.wire import jsonrpc, rest
from a2a_serverless.wire.card import unchanged
from a2a_serverless.wire.codecs import codec
from a2a_serverless.wire.document import dumps, loads
from a2a_serverless.wire.limits import LIMITS, Limits

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import Principal
    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.handlers.gate import Gate
    from a2a_serverless.ports import Publications
    from a2a_serverless.services.tasks import Desk
    from a2a_serverless.wire.codecs import Binding

JSON: Final = "application/json"
CARD_PATHS: Final = frozenset({".well-known/agent-card.json", ".well-known/agent.json"})
JWKS_PATH: Final = ".well-known/jwks.json"
CALLBACKS: Final = "callbacks"
CALLBACK_PARTS: Final = 4
TOKEN_HEADER: Final = "x-a2a-notification-token"  # noqa: S105 - a name, not a token
CARD_MAX_AGE_S: Final = 300
STREAM_MS: Final = 840_000
MARGIN_MS: Final = 3_000
BUFFERED_MS: Final = 29_000  # what API Gateway waits for an answer that is not streamed


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. ``path`` as in the request line, without the query; header names in lower case.

    ``time_left_ms``: how long the platform will wait for the answer; None is "for as long as it takes".
    """

    verb: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    time_left_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer: ``body`` is all of it, unless there is a ``stream`` of bytes to be sent as they come."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None


def encoded(path: str) -> str:
    """A decoded path as it could have stood in the request line."""
    return quote(path, safe="/:@!$&'()*+,;=")


@dataclass(frozen=True, slots=True)
class Edge:
    """Everything that answers HTTP. ``jwks_max_age_s`` is what receivers may cache."""

    desk: Desk
    public: Publications
    agents: Mapping[str, Agent]
    gate: Gate
    jwks_max_age_s: int
    stream_ms: int = STREAM_MS
    limits: Limits = LIMITS

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """The answer to a request. Never raises: what is our fault is logged and answered as such."""
        try:
            return self._route(request)
        except Unauthenticated:
            return _unauthenticated()
        except Exception as error:  # noqa: BLE001 - nothing but an answer may leave the edge
            return _failed(*rest.failure(noted(error), "1.0"))

    def _route(self, request: HttpRequest) -> HttpAnswer:
        first, _, below = request.path.strip("/").partition("/")
        if request.path.strip("/") == JWKS_PATH:
            return self._document(request, JWKS, self.jwks_max_age_s)
        if first == "agents" and not below:
            return self._document(request, AGENTS, CARD_MAX_AGE_S)
        if first == CALLBACKS:
            return self._called_back(request, below)
        agent = self.agents.get(first)
        if agent is None:
            raise MethodNotFound("There is no such path.")
        if below in CARD_PATHS:
            return self._document(request, card_name(agent.id), CARD_MAX_AGE_S)
        if not below and request.verb != "POST":
            return HttpAnswer(405, headers={"allow": "POST"})
        who = self.gate.admit(request.headers)
        return self._rest(agent, who, request, "/" + below) if below else self._rpc(agent, who, request)

    def _called_back(self, request: HttpRequest, below: str) -> HttpAnswer:
        """News from an agent that a task of ours has called; also its question whether the URL is ours."""
        names = [unquote(name) for name in below.split("/")]
        if request.verb != "POST" or len(names) != CALLBACK_PARTS:
            raise MethodNotFound("There is no such path.")
        tenant, owner, task, call = names
        token = request.headers.get(TOKEN_HEADER, "")
        document = loads(request.body, self.limits)
        take_news(self.desk, TaskKey(tenant, owner, task), call, token)
        challenge = document.get("challenge") if isinstance(document, dict) else None
        return HttpAnswer(200, dumps({"challenge": challenge} if challenge else {}), {"content-type": JSON})

    def _rpc(self, agent: Agent, who: Principal, request: HttpRequest) -> HttpAnswer:
        call = _refused_type(request) or jsonrpc.parse(request.body, self.limits)
        if isinstance(call, jsonrpc.Refusal):
            return _failed(200, jsonrpc.failure(call.id, noted(call.error), "1.0"))
        try:
            operation, version = jsonrpc.method(call.method)
        except MethodNotFound as error:
            return _failed(200, jsonrpc.failure(call.id, error, "1.0"))
        call_id = call.id
        envelope = Envelope(
            content_type=JSON,
            success=lambda result: jsonrpc.success(call_id, result),
            failure=lambda error: (200, jsonrpc.failure(call_id, error, version)),
            streams_errors=version == "0.3",
        )
        operator = Operator(
            self.desk, self.gate, agent, codec("jsonrpc", version), version, self.stream_ms, self.limits
        )
        return _answered(operator.operate(who, request.headers, request.query, operation, call.params, envelope))

    def _rest(self, agent: Agent, who: Principal, request: HttpRequest, path: str) -> HttpAnswer:
        version: WireVersion = "0.3" if path.startswith("/v1/") else "1.0"
        try:
            found = rest.match(request.verb, path)
            if request.body:
                rest.check_content_type(request.headers.get("content-type"))
            params = rest.params(found, request.query, request.body, self.limits)
        except A2AError as error:
            return _failed(*rest.failure(error, version))
        envelope = Envelope(
            content_type=rest.answer_type(request.headers.get("accept"), request.headers.get("content-type")),
            success=lambda result: dumps({} if result is None else result),
            failure=lambda error: rest.failure(error, version),
        )
        operator = self._operator(agent, "rest", version, request)
        return _answered(operator.operate(who, request.headers, request.query, found.route.operation, params, envelope))

    def _operator(self, agent: Agent, binding: Binding, version: WireVersion, request: HttpRequest) -> Operator:
        left = self.stream_ms if request.time_left_ms is None else max(0, request.time_left_ms - MARGIN_MS)
        desk = replace(self.desk, blocking_ms=min(self.desk.blocking_ms, left))
        used = codec(binding, version)
        return Operator(desk, self.gate, agent, used, version, min(self.stream_ms, left), self.limits)

    def _document(self, request: HttpRequest, name: str, max_age_s: int) -> HttpAnswer:
        """A document that the rotator has published, with the headers that let it be cached (specification 8.6)."""
        if request.verb not in {"GET", "HEAD"}:
            return HttpAnswer(405, headers={"allow": "GET, HEAD"})
        document = self.public.published(name)
        if not isinstance(document, dict):
            raise MethodNotFound("This document has not been published yet. The rotator function does it.")
        headers = {"cache-control": f"public, max-age={max_age_s}", "etag": str(document["etag"])}
        headers |= {"last-modified": str(document["modified"]), "content-type": JSON}
        if unchanged(request.headers.get("if-none-match"), str(document["etag"])):
            return HttpAnswer(304, headers=headers)
        return HttpAnswer(200, str(document["body"]).encode(), headers)


def _refused_type(request: HttpRequest) -> jsonrpc.Refusal | None:
    """What is refused before the body is looked at."""
    try:
        rest.check_content_type(request.headers.get("content-type"))
    except ContentTypeNotSupported as error:
        return jsonrpc.Refusal(None, error)
    return None


def _answered(done: Done) -> HttpAnswer:
    return HttpAnswer(done.status, done.body, {"cache-control": "no-store", **done.headers}, done.stream)


def _failed(status: int, body: bytes) -> HttpAnswer:
    return HttpAnswer(status, body, {"content-type": JSON, "cache-control": "no-store"})


def _unauthenticated() -> HttpAnswer:
    body = dumps({"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "Sign in to call this agent."}})
    return HttpAnswer(401, body, {"content-type": JSON, "www-authenticate": "Bearer"})
