"""The HTTP+JSON binding (specification 11): routes, parameters, media types and error bodies.

::

    found = rest.match(verb, path)                                # Match; raises MethodNotFound or VerbNotAllowed
    rest.check_content_type(headers.get("content-type"))          # before the body is read
    params = rest.params(found, query, body, limits)              # one object from path, query and body
    codec = codecs.codec("rest", found.route.version)             # then as over JSON-RPC
    status, body = rest.failure(error, found.route.version)

Paths are those below the agent's base URL, as they stand in the request line (percent-encoded). A path without ``/v1``
is 1.0, and may begin with a tenant; what the path says goes before what the body or the query says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from a2a_serverless.domain.errors import ContentTypeNotSupported, FieldViolation, InvalidParams, MethodNotFound
from a2a_serverless.protocol import errors, sse
from a2a_serverless.protocol.errors import VerbNotAllowed
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.strict_json import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.push import WireVersion

A2A_JSON: Final = "application/a2a+json"
JSON: Final = "application/json"

# No tenant may be called like the first word of a path.
RESERVED: Final = frozenset({"v1", "tasks", "message:send", "message:stream", "extendedAgentCard", ".well-known"})


@dataclass(frozen=True, slots=True)
class Route:
    """One verb and path. The names in braces are the names of the request's fields."""

    verb: str
    template: str
    operation: Operation
    version: WireVersion


@dataclass(frozen=True, slots=True)
class Match:
    """A route and what its path says, decoded."""

    route: Route
    fields: dict[str, str]


_CONFIGS: Final = "/tasks/{taskId}/pushNotificationConfigs"
_OLD_CONFIGS: Final = "/v1/tasks/{id}/pushNotificationConfigs"

_V1: Final = (
    Route("POST", "/message:send", Operation.SEND, "1.0"),
    Route("POST", "/message:stream", Operation.STREAM, "1.0"),
    Route("POST", "/tasks/{id}:cancel", Operation.CANCEL, "1.0"),
    # The specification says POST, its proto says GET: both.
    Route("POST", "/tasks/{id}:subscribe", Operation.SUBSCRIBE, "1.0"),
    Route("GET", "/tasks/{id}:subscribe", Operation.SUBSCRIBE, "1.0"),
    Route("GET", "/tasks/{id}", Operation.GET, "1.0"),
    Route("GET", "/tasks", Operation.LIST, "1.0"),
    Route("POST", _CONFIGS, Operation.PUSH_CREATE, "1.0"),
    Route("GET", _CONFIGS, Operation.PUSH_LIST, "1.0"),
    Route("GET", _CONFIGS + "/{id}", Operation.PUSH_GET, "1.0"),
    Route("DELETE", _CONFIGS + "/{id}", Operation.PUSH_DELETE, "1.0"),
    Route("GET", "/extendedAgentCard", Operation.CARD, "1.0"),
)
_V0_3: Final = (
    Route("POST", "/v1/message:send", Operation.SEND, "0.3"),
    Route("POST", "/v1/message:stream", Operation.STREAM, "0.3"),
    Route("POST", "/v1/tasks/{id}:cancel", Operation.CANCEL, "0.3"),
    Route("POST", "/v1/tasks/{id}:subscribe", Operation.SUBSCRIBE, "0.3"),
    Route("GET", "/v1/tasks/{id}:subscribe", Operation.SUBSCRIBE, "0.3"),
    Route("GET", "/v1/tasks/{id}", Operation.GET, "0.3"),
    Route("POST", "/v1" + _CONFIGS, Operation.PUSH_CREATE, "0.3"),
    Route("GET", _OLD_CONFIGS, Operation.PUSH_LIST, "0.3"),
    Route("GET", _OLD_CONFIGS + "/{pushNotificationConfigId}", Operation.PUSH_GET, "0.3"),
    Route("DELETE", _OLD_CONFIGS + "/{pushNotificationConfigId}", Operation.PUSH_DELETE, "0.3"),
    Route("GET", "/v1/card", Operation.CARD, "0.3"),
)

# In an order in which a router that takes the first match is right: ``:cancel`` before ``{id}``.
ROUTES: Final = (*_V0_3, *_V1)
TENANT_ROUTES: Final = tuple(Route(one.verb, "/{tenant}" + one.template, one.operation, "1.0") for one in _V1)


LEGACY_ROUTES: Final = (
    Route("POST", "/tasks/send", Operation.SEND, "0.3"),
    Route("POST", "/tasks/sendSubscribe", Operation.STREAM, "0.3"),
    Route("GET", "/tasks/{id}", Operation.GET, "0.3"),
)


def match(verb: str, path: str, routes: Sequence[Route] = (*ROUTES, *TENANT_ROUTES)) -> Match:
    """The route of a request. Raises MethodNotFound, or VerbNotAllowed when only the verb is wrong."""
    alike = (route for route in routes if route.template.count("/") == path.count("/"))
    found = [Match(route, fields) for route in alike if (fields := _fields(route.template, path)) is not None]
    for one in found:
        if one.route.verb == verb:
            return one
    if found:
        raise VerbNotAllowed(one.route.verb for one in found)
    raise MethodNotFound("There is no such path.")


def params(found: Match, query: Iterable[tuple[str, str]], body: bytes, limits: Limits = LIMITS) -> JsonObject:
    """The request's fields as one object. Raises ParseError, InvalidRequest or InvalidParams."""
    given = _from_body(body, limits) if found.route.verb == "POST" else _from_query(query)
    return given | found.fields


def check_content_type(content_type: str | None) -> None:
    """Returns when a body of this type is read; raises ContentTypeNotSupported otherwise. None is taken for JSON."""
    if content_type is not None and _essence(content_type) not in {JSON, A2A_JSON}:
        raise ContentTypeNotSupported(f"Send {JSON} or {A2A_JSON}.")


def answer_type(accept: str | None, content_type: str | None) -> str:
    """The media type of the answer: what is accepted by name, else what was sent, else ``application/json``."""
    wanted = [one for one in map(_essence, (accept or "").split(",")) if one in {JSON, A2A_JSON}]
    sent = _essence(content_type or "")
    return wanted[0] if wanted else sent if sent == A2A_JSON else JSON


def only_streams(accept: str | None) -> bool:
    """Whether a client takes nothing but a stream of events, and would not read a refusal in JSON."""
    wanted = {_essence(one) for one in (accept or "").split(",")}
    return sse.CONTENT_TYPE in wanted and wanted.isdisjoint({JSON, A2A_JSON, "application/*", "*/*"})


def failure(error: Exception, version: WireVersion) -> tuple[int, bytes]:
    """HTTP status and body of an error: 11.6 for 1.0; 0.3 names no form, its SDKs look for ``message``."""
    code = errors.code_of(error)
    status, text, details = code.http_for(version), errors.text_of(error), errors.details(error)
    if version == "0.3":
        return status, dumps({"error": code.name, "message": text, "details": details})
    return status, dumps({"error": {"code": status, "status": code.grpc, "message": text, "details": details}})


def _fields(template: str, path: str) -> dict[str, str] | None:
    found = _pattern(template).fullmatch(path)
    if not found or found.groupdict().get("tenant") in RESERVED:
        return None
    return {name: unquote(value) for name, value in found.groupdict().items()}


def _from_query(query: Iterable[tuple[str, str]]) -> JsonObject:
    given: JsonObject = {}
    for name, value in query:
        if name in given:
            raise InvalidParams(violations=(FieldViolation(name, "must not be given twice"),))
        given[name] = value
    return given


def _from_body(body: bytes, limits: Limits) -> JsonObject:
    """The body's object. ``null`` is no body: it is what the official Go client sends where there is nothing to say."""
    given = loads(body, limits) if body.strip() else None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InvalidParams("The body must be an object.")
    return given


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """A task's id ends at a colon, because a verb may follow it; the others end at a slash.

    Compiled when the first path that may fit comes: a cold start that serves JSON-RPC needs none of them.
    """
    exact = re.sub(r"\{(tenant|pushNotificationConfigId)\}", r"(?P<\1>[^/]+)", template)
    exact = re.sub(r"(?<=pushNotificationConfigs/)\{id\}", r"(?P<id>[^/]+)", exact)
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/:]+)", exact))
