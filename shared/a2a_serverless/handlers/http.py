"""The HTTP edge without a web framework: bytes in, bytes out, for every binding.

FastAPI, Mangum and the streaming runtime call ``Edge.answer``; a JSON-RPC call on Lambda goes there directly. The
services get operations decoded, without headers and status codes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import trace
from a2a_serverless.domain.contents import UPLOADS
from a2a_serverless.domain.errors import (
    A2AError,
    ContentTypeNotSupported,
    MethodNotFound,
    Overloaded,
    TooManyRequests,
    Unauthenticated,
)
from a2a_serverless.handlers.callback import CALLBACKS, answer_callback
from a2a_serverless.handlers.deliveries import serve_deliveries, task_of
from a2a_serverless.handlers.documents import catalogue, serve_document
from a2a_serverless.handlers.http_types import JSON, HttpRequest, HttpResponse
from a2a_serverless.handlers.operations import Envelope, OperationHandler, error_response, log_error
from a2a_serverless.handlers.uploads import serve_upload
from a2a_serverless.protocol import versions
from a2a_serverless.protocol.codecs import NOTHING, codec
from a2a_serverless.protocol.errors import VerbNotAllowed
from a2a_serverless.protocol.jsonrpc import success as rpc_success
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.wire import jsonrpc, rest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.handlers.authentication import Authenticator
    from a2a_serverless.ports.agents import CallbackVerifier
    from a2a_serverless.ports.keys import Publications
    from a2a_serverless.ports.system import Ids
    from a2a_serverless.protocol.codecs import Binding
    from a2a_serverless.services.rate_limiter import RateLimiter
    from a2a_serverless.services.tasks import TaskService

STREAM_MS: Final = 180_000  # API Gateway does not report a client that has disconnected: its stream runs until then
MARGIN_MS: Final = 7_000  # to notice that the time is over, to stop an agent, and to send the answer
LEGACY: Final = "legacy"
OPERATOR: Final = "operator"
APART: Final = frozenset({OPERATOR, CALLBACKS})  # paths without CORS


@dataclass(frozen=True, slots=True)
class Edge:
    """Answers all HTTP requests. Receivers may cache the key set for ``jwks_max_age_s``; a stream lasts ``stream_ms``.

    ``eraser`` returns the answer of the eraser function, and raises TimeoutError if that still runs.
    """

    service: TaskService
    public: Publications
    agents: Mapping[str, Agent]
    authenticator: Authenticator
    verifier: CallbackVerifier
    jwks_max_age_s: int
    stream_ms: int = STREAM_MS
    limits: Limits = LIMITS
    rest_binding: Binding = "rest"
    limiter: RateLimiter | None = None
    eraser: Callable[[JsonObject], JsonObject] | None = None
    origins: tuple[str, ...] = ()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Returns the answer to a request. Never raises: a server error is logged and answered as such."""
        if not self.origins or request.path.strip("/").partition("/")[0] in APART:
            return self._answer(request)
        from a2a_serverless.handlers import cors

        answer = cors.preflight(request, self.origins) or self._answer(request)
        return cors.add_cors_headers(answer, request, self.origins)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            return self._route(request)
        except (Unauthenticated, TooManyRequests) as error:
            return error_response(error, _form(request), _answer_type(request))
        except Overloaded as error:  # the caller cannot be authenticated now: 503 in every binding
            return replace(error_response(error, _form(request), _answer_type(request)), status=503)
        except Exception as error:  # noqa: BLE001 - nothing but an answer may leave the edge
            version = _written_in(request.path.strip("/").split("/"))
            return _refused(log_error(error, self.service), version, _answer_type(request))

    def _route(self, request: HttpRequest) -> HttpResponse:
        path = request.path.strip("/")
        name = catalogue(tuple(self.agents)).get(path)
        if name:
            return serve_document(self.public, request, name, self.jwks_max_age_s)
        first, _, below = path.partition("/")
        if first == CALLBACKS:
            return answer_callback(self.service, self.verifier, request, below, self.limits)
        if first == OPERATOR:
            from a2a_serverless.handlers.operator_api import serve_operator

            return serve_operator(self.service, self.authenticator, request, below, self.limits, self.eraser)
        binding = self.rest_binding
        if first == LEGACY:
            first, _, below = below.partition("/")
            binding = LEGACY
        agent = self.agents.get(first)
        if agent is None or (binding == LEGACY and not below):
            raise MethodNotFound("There is no such path.")
        if not below and request.verb != "POST":
            raise VerbNotAllowed(("POST",))
        caller = self.authenticator.authenticate(request.headers)
        if self.limiter:
            self.limiter.admit_request(caller.principal)
        if below == UPLOADS:
            return serve_upload(self.service, self.authenticator, self.limiter, caller, agent, request)
        if task := task_of(below):
            return serve_deliveries(self.service, self.authenticator, caller, agent, request, task)
        return self._rest(agent, caller, request, "/" + below, binding) if below else self._rpc(agent, caller, request)

    def _rpc(self, agent: Agent, caller: Caller, request: HttpRequest) -> HttpResponse:
        call = _refused_type(request) or jsonrpc.parse(request.body, self.limits)
        if isinstance(call, jsonrpc.RpcRefusal):
            return _failed(200, jsonrpc.failure(call.id, log_error(call.error, self.service), "1.0"))
        try:
            operation, version = jsonrpc.method(call.method)
        except MethodNotFound as error:
            return _failed(200, jsonrpc.failure(call.id, error, "1.0"))
        call_id = call.id
        envelope = Envelope(
            content_type=JSON,
            success=lambda result: rpc_success(call_id, result),
            failure=lambda error: (200, jsonrpc.failure(call_id, error, version)),
            streams_errors=version == "0.3" or rest.only_streams(request.headers.get("accept")),
        )
        return self._operator(agent, caller, "jsonrpc", version, request).handle(
            caller, request, operation, call.params, envelope
        )

    def _rest(self, agent: Agent, caller: Caller, request: HttpRequest, path: str, binding: Binding) -> HttpResponse:
        old = binding == LEGACY or path.startswith("/v1/")
        version: WireVersion = "0.3" if old else "1.0"
        content_type = _answer_type(request)
        try:
            found = rest.match(request.verb, path, _routes(binding))
            if request.body:
                rest.check_content_type(request.headers.get("content-type"))
            params = rest.params(found, request.query, request.body, self.limits)
        except A2AError as error:
            return _refused(error, version, content_type)
        envelope = Envelope(
            content_type=content_type,
            success=lambda result: b"{}" if result == NOTHING else result,
            failure=lambda error: rest.failure(error, version),
            resumes=binding != LEGACY,
        )
        operator = self._operator(agent, caller, binding, version, request)
        return operator.handle(caller, request, found.route.operation, params, envelope)

    def _operator(
        self, agent: Agent, caller: Caller, binding: Binding, version: WireVersion, request: HttpRequest
    ) -> OperationHandler:
        left = self.stream_ms if request.time_left_ms is None else max(0, request.time_left_ms - MARGIN_MS)
        blocking_ms, begun = min(self.service.blocking_ms, left), _trace(request, self.service.ids)
        service = replace(self.service, blocking_ms=blocking_ms, trace=begun, caller=caller)
        used = codec(binding, version, service.clock.now())
        stream_ms = min(self.stream_ms, left)
        return OperationHandler(
            service, self.authenticator, agent, used, version, stream_ms, self.limits, self.public, self.limiter
        )


def _trace(request: HttpRequest, ids: Ids) -> str:
    """Returns the caller's trace; else the one that X-Ray began at API Gateway; else a new one."""
    theirs = trace.parse_traceparent(request.headers.get(trace.HEADER))
    seed = ids.new()
    return theirs or trace.from_xray(request.headers.get(trace.XRAY_HEADER), seed) or trace.new_trace(seed)


def _routes(binding: Binding) -> tuple[rest.Route, ...]:
    if binding != LEGACY:
        return (*rest.ROUTES, *rest.TENANT_ROUTES)
    return rest.LEGACY_ROUTES


def _refused_type(request: HttpRequest) -> jsonrpc.RpcRefusal | None:
    """Returns the refusal of a wrong content type, before the body is parsed; None if it is right."""
    try:
        rest.check_content_type(request.headers.get("content-type"))
    except ContentTypeNotSupported as error:
        return jsonrpc.RpcRefusal(None, error)
    return None


def _form(request: HttpRequest) -> Callable[[Exception], tuple[int, bytes]]:
    """Returns the encoder for errors before an operation is known, in the form of the binding that the path names."""
    words = request.path.strip("/").split("/")
    if len(words) == 1:
        asked = versions.asked(request.headers.get(versions.VERSION_HEADER.lower()))
        spoken: WireVersion = "1.0" if asked == "1.0" else "0.3"
        return lambda error: (200, jsonrpc.failure(None, error, spoken))
    return lambda error: rest.failure(error, _written_in(words))


def _written_in(words: list[str]) -> WireVersion:
    """The protocol version that the path belongs to, also if the path is not a valid one."""
    return "0.3" if words[0] == LEGACY or words[1:2] == ["v1"] else "1.0"


def _answer_type(request: HttpRequest) -> str:
    """The media type of answers below an agent's URL; JSON-RPC, at the URL itself, always uses JSON."""
    if "/" not in request.path.strip("/"):
        return JSON
    return rest.answer_type(request.headers.get("accept"), request.headers.get("content-type"))


def _refused(error: Exception, version: WireVersion, content_type: str) -> HttpResponse:
    answer = error_response(error, lambda error: rest.failure(error, version), content_type)
    if isinstance(error, VerbNotAllowed):
        return replace(answer, headers={**answer.headers, "allow": ", ".join(error.allowed)})
    return answer


def _failed(status: int, body: bytes) -> HttpResponse:
    return HttpResponse(status, body, {"content-type": JSON, "cache-control": "no-store"})
