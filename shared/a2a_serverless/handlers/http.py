"""The HTTP edge without a web framework: bytes in, bytes out, for every binding.

FastAPI, Mangum and the streaming runtime are shells around ``Edge.answer``; a JSON-RPC call on Lambda goes straight
there. Nothing below this module knows a header, a status or a version.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from a2a_serverless.domain.errors import A2AError, ContentTypeNotSupported, MethodNotFound
from a2a_serverless.domain.model import Json, Principal
from a2a_serverless.services.publish import AGENTS, JWKS, card_name
from a2a_serverless.services.serve import serve
from a2a_serverless.wire import jsonrpc, rest, versions
from a2a_serverless.wire.card import unchanged
from a2a_serverless.wire.codecs import Binding, codec
from a2a_serverless.wire.document import dumps
from a2a_serverless.wire.limits import LIMITS, Limits

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.ports import Publications
    from a2a_serverless.services.tasks import Desk
    from a2a_serverless.wire.operations import Operation

logger = logging.getLogger(__name__)

JSON: Final = "application/json"
CARD_PATHS: Final = frozenset({".well-known/agent-card.json", ".well-known/agent.json"})
JWKS_PATH: Final = ".well-known/jwks.json"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. ``path`` as in the request line, without the query; header names in lower case."""

    verb: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def encoded(path: str) -> str:
    """A decoded path as it could have stood in the request line."""
    return quote(path, safe="/:@!$&'()*+,;=")


class Unauthenticated(Exception):
    """The caller is nobody that we know. The answer is 401, the same for everything that needs a caller."""


Gate = Callable[[HttpRequest], Principal]


@dataclass(frozen=True, slots=True)
class Edge:
    """Everything that answers HTTP. ``gate`` says who calls; ``jwks_max_age_s`` is what receivers may cache."""

    desk: Desk
    public: Publications
    agents: Mapping[str, Agent]
    gate: Gate
    jwks_max_age_s: int
    limits: Limits = LIMITS

    def answer(self, request: HttpRequest) -> HttpAnswer:
        """The answer to a request. Never raises: what is our fault is logged and answered as such."""
        try:
            return self._route(request)
        except Unauthenticated:
            return _unauthenticated()
        except Exception as error:  # noqa: BLE001 - nothing but an answer may leave the edge
            return _rest_failure(error, "1.0")

    def _route(self, request: HttpRequest) -> HttpAnswer:
        first, _, below = request.path.strip("/").partition("/")
        if request.path.strip("/") == JWKS_PATH:
            return self._document(request, JWKS, self.jwks_max_age_s)
        if first == "agents" and not below:
            return self._document(request, AGENTS, CARD_MAX_AGE_S)
        agent = self.agents.get(first)
        if agent is None:
            raise MethodNotFound("There is no such path.")
        if below in CARD_PATHS:
            return self._document(request, card_name(agent.id), CARD_MAX_AGE_S)
        if not below:
            return self._rpc(agent, request)
        return self._rest(agent, request, "/" + below)

    def _rpc(self, agent: Agent, request: HttpRequest) -> HttpAnswer:
        if request.verb != "POST":
            return HttpAnswer(405, headers={"allow": "POST"})
        who = self.gate(request)
        call = _refused_type(request) or jsonrpc.parse(request.body, self.limits)
        if isinstance(call, jsonrpc.Refusal):
            return _json(jsonrpc.failure(call.id, _noted(call.error), "1.0"))
        version: WireVersion = "1.0"
        try:
            operation, version = jsonrpc.method(call.method)
            result = self._operate(agent, who, request, "jsonrpc", operation, version, call.params)
        except Exception as error:  # noqa: BLE001 - the caller's id goes with it
            return _json(jsonrpc.failure(call.id, _noted(error), version))
        return _json(jsonrpc.success(call.id, result))

    def _rest(self, agent: Agent, request: HttpRequest, path: str) -> HttpAnswer:
        who = self.gate(request)
        version: WireVersion = "0.3" if path.startswith("/v1/") else "1.0"
        try:
            found = rest.match(request.verb, path)
            if request.body:
                rest.check_content_type(request.headers.get("content-type"))
            params = rest.params(found, request.query, request.body, self.limits)
            result = self._operate(agent, who, request, "rest", found.route.operation, version, params)
        except Exception as error:  # noqa: BLE001 - the caller's version goes with it
            return _rest_failure(error, version)
        kind = rest.answer_type(request.headers.get("accept"), request.headers.get("content-type"))
        return HttpAnswer(200, dumps({} if result is None else result), {"content-type": kind})

    def _operate(  # noqa: PLR0913 - what a call is made of
        self,
        agent: Agent,
        who: Principal,
        request: HttpRequest,
        binding: Binding,
        operation: Operation,
        version: WireVersion,
        params: Json,
    ) -> Json:
        asked = versions.asked(request.headers.get("a2a-version"), dict(request.query).get("A2A-Version"))
        versions.check(version, asked)
        used = codec(binding, version)
        answer = serve(self.desk, who, agent, used.parse(operation, params, self.limits), version)
        return used.answer(operation, answer)

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


CARD_MAX_AGE_S: Final = 300


def _refused_type(request: HttpRequest) -> jsonrpc.Refusal | None:
    """What is refused before the body is looked at."""
    try:
        rest.check_content_type(request.headers.get("content-type"))
    except ContentTypeNotSupported as error:
        return jsonrpc.Refusal(None, error)
    return None


def _json(body: bytes) -> HttpAnswer:
    return HttpAnswer(200, body, {"content-type": JSON, "cache-control": "no-store"})


def _rest_failure(error: Exception, version: WireVersion) -> HttpAnswer:
    status, body = rest.failure(_noted(error), version)
    return HttpAnswer(status, body, {"content-type": JSON, "cache-control": "no-store"})


def _noted(error: Exception) -> Exception:
    """The error; one that is our fault goes into the log, where alone its reason may be read."""
    if not isinstance(error, A2AError):
        logger.error("request failed", exc_info=error)
    return error


def _unauthenticated() -> HttpAnswer:
    body = dumps({"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "Sign in to call this agent."}})
    return HttpAnswer(401, body, {"content-type": JSON, "www-authenticate": "Bearer"})
