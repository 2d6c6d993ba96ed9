"""Describes the HTTP+JSON binding for the OpenAPI document: parameters, bodies and answers of each route.

The content of tasks and messages is not described here; see the A2A specification.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.protocol.operations import STREAMING, Operation
from a2a_serverless.protocol.versions import VERSION_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.wire.rest import Route

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_OBJECT: Final = {"type": "object"}
_QUERY: Final[dict[Operation, dict[str, dict[str, Any]]]] = {
    Operation.GET: {"historyLength": _COUNT},
    Operation.LIST: {
        "contextId": _TEXT,
        "status": _TEXT,
        "pageSize": {"type": "integer", "minimum": 1, "maximum": 100},
        "pageToken": _TEXT,
        "historyLength": _COUNT,
        "statusTimestampAfter": _TEXT | {"format": "date-time"},
        "includeArtifacts": {"type": "boolean"},
    },
}
_WITH_BODY: Final = frozenset({Operation.SEND, Operation.STREAM, Operation.PUSH_CREATE})


def path_of(route: Route) -> str:
    """The route's path below an agent. OpenAPI requires one parameter name at one place of all paths."""
    return "/{agent}" + route.template.replace("/tasks/{id}/", "/tasks/{taskId}/")


def operation_object(route: Route, agents: Iterable[str]) -> dict[str, Any]:
    """The OpenAPI operation object of a route, without its name."""
    names = re.findall(r"\{(\w+)\}", path_of(route))
    schemas = dict.fromkeys(names, _TEXT | {"minLength": 1}) | {"agent": {"enum": sorted(agents)}}
    parameters = [_parameter("path", name, schema, required=True) for name, schema in schemas.items()]
    if route.version == "1.0":
        parameters += [_parameter("query", name, schema) for name, schema in _QUERY.get(route.operation, {}).items()]
    version = _parameter("header", VERSION_HEADER, {"enum": [route.version]}, required=route.version == "1.0")
    said = {"parameters": [*parameters, version], "responses": _responses(route)}
    return said | ({"requestBody": _content(_OBJECT) | {"required": True}} if route.operation in _WITH_BODY else {})


def _parameter(where: str, name: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"in": where, "name": name, "schema": schema, "required": required}


def _responses(route: Route) -> dict[str, Any]:
    streams = route.operation in STREAMING
    served = {"content": {"text/event-stream": {"schema": _TEXT}}} if streams else _content(_OBJECT)
    failed = _content(_ERRORS[route.version])
    return {"200": served | {"description": "What was asked for"}, "default": failed | {"description": "A refusal"}}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {media_type: {"schema": schema} for media_type in ("application/json", "application/a2a+json")}}


def _object(**members: dict[str, Any]) -> dict[str, Any]:
    return _OBJECT | {"properties": members, "required": sorted(members), "additionalProperties": False}


_DETAIL: Final = _object(**{"@type": _TEXT}) | {"additionalProperties": True}
_DETAILS: Final = {"type": "array", "minItems": 1, "items": _DETAIL}
_STATUS: Final = {"type": "integer", "minimum": 400, "maximum": 599}
_ERRORS: Final[dict[WireVersion, dict[str, Any]]] = {
    "1.0": _object(error=_object(code=_STATUS, status=_TEXT, message=_TEXT, details=_DETAILS)),
    "0.3": _object(error=_TEXT, message=_TEXT, details=_DETAILS),
}
