"""The OpenAPI document: every route of HTTP+JSON with the models of its version, and our additions to the protocol.

FastAPI makes the document of the paths. The models are added here, because the codecs read the bodies: a model that a
route of FastAPI's names is made with the route, at the first request, and this document is seldom asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from a2a_serverless.http.messages import A2A_JSON, JSON
from a2a_serverless.http.routes import ROUTES
from a2a_serverless.protocol import v0_3_card, v0_3_rest, v1, v1_card
from a2a_serverless.protocol.error_bodies import ErrorResponse, OldErrorResponse
from a2a_serverless.protocol.old_codecs import RestCodec
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.sse import CONTENT_TYPE
from a2a_serverless.protocol.versions import VERSION_HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.routing import BaseRoute

    from a2a_serverless.http.routes import AddedRoute, OperationRoute
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.protocol.versions import ProtocolVersion

Model = type[Any]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Description:
    """The models of an operation's answer and request, for OpenAPI. Without a version it is an addition of ours."""

    answer: type[ProtoModel] | None = None
    body: type[ProtoModel] | None = None
    query: type[ProtoModel] | None = None
    version: ProtocolVersion | None = None
    streams: bool = False


_OLD_ANSWERS: Final[Mapping[Operation, Model]] = {
    Operation.SEND: v0_3_rest.SendMessageResponse,
    Operation.GET: v0_3_rest.Task,
    Operation.CANCEL: v0_3_rest.Task,
    Operation.PUSH_CREATE: v0_3_rest.TaskPushNotificationConfig,
    Operation.PUSH_GET: v0_3_rest.TaskPushNotificationConfig,
    Operation.PUSH_LIST: v0_3_rest.ListTaskPushNotificationConfigResponse,
    Operation.CARD: v0_3_card.AgentCard,
}
_WITH_QUERY: Final = frozenset({Operation.GET, Operation.LIST})
_WEBHOOK_EXAMPLE: Final = {"url": "https://hooks.example.com/a2a", "token": "a-secret-of-yours"}
_SEND_EXAMPLE: Final = {
    "message": {"messageId": "b9a0b0c4", "role": "ROLE_USER", "parts": [{"text": "Write about tides."}]}
}
_OLD_SEND_EXAMPLE: Final = {
    "message": {**_SEND_EXAMPLE["message"], "role": "user", "parts": [{"kind": "text", "text": "Write."}]}
}
# The requests that are a body, each with an example.
_BODIES: Final[Mapping[Model, object]] = {
    v1.SendMessageRequest: _SEND_EXAMPLE,
    v1.CreateTaskPushNotificationConfigRequest: _WEBHOOK_EXAMPLE,
    v0_3_rest.SendMessageRequest: _OLD_SEND_EXAMPLE,
    v0_3_rest.CreatePushNotificationConfigRequest: {"pushNotificationConfig": _WEBHOOK_EXAMPLE},
}


def describe(
    routes: Sequence[BaseRoute], additions: Sequence[AddedRoute], agents: Sequence[str], base_url: str
) -> Schema:
    """The document of the operations of A2A and of those in ``additions``; ``base_url`` may be unknown ("")."""
    descriptions = {route.name: Description(route.answer, route.body) for route in additions}
    descriptions |= {route.name: _description(route) for route in ROUTES}
    public_routes = [route for route in routes if isinstance(route, APIRoute) and route.operation_id in descriptions]
    servers = [{"url": base_url}] if base_url else None
    document = get_openapi(title="A2A Serverless", version="1.0", routes=public_routes, servers=servers)
    requests = {
        (model, "validation")
        for description in descriptions.values()
        for model in (description.body, description.query)
        if model
    }
    answers = {(description.answer, "serialization") for description in descriptions.values() if description.answer}
    errors = {(ErrorResponse, "serialization"), (OldErrorResponse, "serialization")}
    every: Any = sorted(requests | answers | errors, key=str)
    schemas, definitions = models_json_schema(every, ref_template="#/components/schemas/{model}")
    for path, verbs in document["paths"].items():
        for spec in verbs.values():
            about = descriptions[spec["operationId"]]
            spec.update(_operation(path, about, schemas, definitions["$defs"], agents))
    document["components"] = {"schemas": definitions["$defs"]}
    return document


def _description(route: OperationRoute) -> Description:
    operation, old = route.operation, route.version == "0.3"
    reads: Model = RestCodec.requests[operation] if old else operation.request
    answer: Model | None = _OLD_ANSWERS.get(operation) if old else operation.answer
    if operation is Operation.CARD and not old:
        answer = v1_card.AgentCard
    return Description(
        body=reads if reads in _BODIES else None,
        query=reads if operation in _WITH_QUERY and not old else None,
        answer=None if operation.streams else answer,
        version=route.version,
        streams=operation.streams,
    )


def _operation(path: str, description: Description, schemas: Any, definitions: Schema, agents: Sequence[str]) -> Schema:  # noqa: ANN401
    """The OpenAPI operation object, without its name."""
    name_schema: Schema = {"type": "string", "minLength": 1}
    in_path = {name: {"enum": [*agents]} if name == "agent" else name_schema for name in re.findall(r"\{(\w+)\}", path)}
    parameters = [_parameter("path", name, schema, required=True) for name, schema in in_path.items()]
    if description.query:
        about = definitions[schemas[description.query, "validation"]["$ref"].rpartition("/")[2]]
        in_query = {name: schema for name, schema in about["properties"].items() if name not in {*in_path, "tenant"}}
        parameters += [_parameter("query", name, schema) for name, schema in in_query.items()]
    if description.version:
        version = {"enum": [description.version]}
        parameters.append(_parameter("header", VERSION_HEADER, version, required=description.version == "1.0"))
    error_content = _content(
        schemas[OldErrorResponse if description.version == "0.3" else ErrorResponse, "serialization"]
    )
    answers = {"200": _answer(description, schemas), "default": {"description": "An error", **error_content}}
    spec: Schema = {"parameters": parameters, "responses": answers}
    if description.body:
        content = _content(schemas[description.body, "validation"], _BODIES.get(description.body))
        spec["requestBody"] = {"required": True, **content}
    return spec


def _answer(description: Description, schemas: Any) -> Schema:  # noqa: ANN401 - as pydantic returns it
    if description.streams:
        return {
            "description": "Events, one stream item each",
            "content": {CONTENT_TYPE: {"schema": {"type": "string"}}},
        }
    empty = {"type": "object", "maxProperties": 0}
    return {
        "description": "The result",
        **_content(schemas[description.answer, "serialization"] if description.answer else empty),
    }


def _parameter(where: str, name: str, schema: Schema, *, required: bool = False) -> Schema:
    return {"in": where, "name": name, "schema": schema, "required": required}


def _content(schema: Schema, example: object = None) -> Schema:
    content = {"schema": schema} if example is None else {"schema": schema, "example": example}
    return {"content": dict.fromkeys((JSON, A2A_JSON), content)}
