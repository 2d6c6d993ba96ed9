"""The OpenAPI document: every HTTP+JSON route with the models of its version, and what we add to the protocol."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from a2a_serverless.http.messages import A2A_JSON, JSON
from a2a_serverless.http.routes import ROUTES, Description
from a2a_serverless.protocol import v0_3_card, v0_3_rest, v1, v1_card
from a2a_serverless.protocol.codecs import REQUESTS, VERSION_HEADER
from a2a_serverless.protocol.error_bodies import ErrorResponse, OldErrorResponse
from a2a_serverless.protocol.old_codecs import RestCodec
from a2a_serverless.protocol.operations import STREAMING, Operation
from a2a_serverless.protocol.sse import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI

    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.http.api import Api
    from a2a_serverless.http.routes import OperationRoute

Model = type[Any]
Schema = dict[str, Any]

_ANSWERS: Final[Mapping[Operation, Model]] = {
    Operation.SEND: v1.SendMessageResponse,
    Operation.GET: v1.Task,
    Operation.CANCEL: v1.Task,
    Operation.LIST: v1.ListTasksResponse,
    Operation.PUSH_CREATE: v1.TaskPushNotificationConfig,
    Operation.PUSH_GET: v1.TaskPushNotificationConfig,
    Operation.PUSH_LIST: v1.ListTaskPushNotificationConfigsResponse,
    Operation.CARD: v1_card.AgentCard,
}
_OLD_ANSWERS: Final[Mapping[Operation, Model]] = {
    Operation.SEND: v0_3_rest.SendMessageResponse,
    Operation.GET: v0_3_rest.Task,
    Operation.CANCEL: v0_3_rest.Task,
    Operation.PUSH_CREATE: v0_3_rest.TaskPushNotificationConfig,
    Operation.PUSH_GET: v0_3_rest.TaskPushNotificationConfig,
    Operation.PUSH_LIST: v0_3_rest.ListTaskPushNotificationConfigResponse,
    Operation.CARD: v0_3_card.AgentCard,
}
_WITH_BODY: Final = frozenset({Operation.SEND, Operation.STREAM, Operation.PUSH_CREATE})
_WITH_QUERY: Final = frozenset({Operation.GET, Operation.LIST})
_HOOK: Final = {"url": "https://hooks.example.com/a2a", "token": "a-secret-of-yours"}
_SENT: Final = {"message": {"messageId": "b9a0b0c4", "role": "ROLE_USER", "parts": [{"text": "Write about tides."}]}}
_OLD_SENT: Final = {"message": {**_SENT["message"], "role": "user", "parts": [{"kind": "text", "text": "Write."}]}}
_EXAMPLES: Final[Mapping[tuple[Operation, WireVersion], object]] = {
    (Operation.SEND, "1.0"): _SENT,
    (Operation.STREAM, "1.0"): _SENT,
    (Operation.PUSH_CREATE, "1.0"): _HOOK,
    (Operation.SEND, "0.3"): _OLD_SENT,
    (Operation.STREAM, "0.3"): _OLD_SENT,
    (Operation.PUSH_CREATE, "0.3"): {"pushNotificationConfig": _HOOK},
}


def describe(app: FastAPI, api: Api, added: Mapping[str, Description]) -> Schema:
    """The document, as FastAPI serves it."""
    servers = [{"url": api.base_url}] if api.base_url else None
    document = get_openapi(title=app.title, version=app.version, routes=app.routes, servers=servers)
    described = {**added, **{route.name: _description(route) for route in ROUTES}}
    read = {(one, "validation") for told in described.values() for one in (told.body, told.query) if one}
    answered = {(told.answer, "serialization") for told in described.values() if told.answer}
    errors = {(ErrorResponse, "serialization"), (OldErrorResponse, "serialization")}
    every: Any = sorted(read | answered | errors, key=str)
    schemas, definitions = models_json_schema(every, ref_template="#/components/schemas/{model}")
    for path, verbs in document["paths"].items():
        for said in verbs.values():
            found = described[said["operationId"]]
            said.update(_operation(path, found, schemas, definitions["$defs"], sorted(api.agents)))
    document["components"] = {"schemas": definitions["$defs"]}
    return document


def _description(route: OperationRoute) -> Description:
    old = route.version == "0.3"
    reads = (RestCodec.requests if old else REQUESTS)[route.operation]
    return Description(
        body=reads if route.operation in _WITH_BODY else None,
        query=reads if route.operation in _WITH_QUERY and not old else None,
        answer=(_OLD_ANSWERS if old else _ANSWERS).get(route.operation),
        version=route.version,
        streams=route.operation in STREAMING,
        example=_EXAMPLES.get((route.operation, route.version)),
    )


def _operation(path: str, told: Description, schemas: Any, definitions: Schema, agents: list[str]) -> Schema:  # noqa: ANN401
    """The OpenAPI operation object, without its name."""
    named: Schema = {"type": "string", "minLength": 1}
    in_path = {name: {"enum": agents} if name == "agent" else named for name in re.findall(r"\{(\w+)\}", path)}
    parameters = [_parameter("path", name, schema, required=True) for name, schema in in_path.items()]
    if told.query:
        about = definitions[schemas[told.query, "validation"]["$ref"].rpartition("/")[2]]
        asked = {name: schema for name, schema in about["properties"].items() if name not in {*in_path, "tenant"}}
        parameters += [_parameter("query", name, schema) for name, schema in asked.items()]
    if told.version:
        version = {"enum": [told.version]}
        parameters.append(_parameter("header", VERSION_HEADER, version, required=told.version == "1.0"))
    failed = _content(schemas[OldErrorResponse if told.version == "0.3" else ErrorResponse, "serialization"])
    answers = {"200": _answer(told, schemas), "default": {"description": "An error", **failed}}
    said: Schema = {"parameters": parameters, "responses": answers}
    if told.body:
        said["requestBody"] = {"required": True, **_content(schemas[told.body, "validation"], told.example)}
    return said


def _answer(told: Description, schemas: Any) -> Schema:  # noqa: ANN401 - as pydantic returns it
    if told.streams:
        return {
            "description": "Events, one stream item each",
            "content": {CONTENT_TYPE: {"schema": {"type": "string"}}},
        }
    empty = {"type": "object", "maxProperties": 0}
    return {"description": "The result", **_content(schemas[told.answer, "serialization"] if told.answer else empty)}


def _parameter(where: str, name: str, schema: Schema, *, required: bool = False) -> Schema:
    return {"in": where, "name": name, "schema": schema, "required": required}


def _content(schema: Schema, example: object = None) -> Schema:
    held = {"schema": schema} if example is None else {"schema": schema, "example": example}
    return {"content": dict.fromkeys((JSON, A2A_JSON), held)}
