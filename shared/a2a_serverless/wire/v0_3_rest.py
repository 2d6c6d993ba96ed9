"""A2A 0.3.0 over HTTP+JSON: what differs from its JSON-RPC form, which is nearly every spelling.

The prose of 0.3 calls the two "structurally equivalent"; what its SDKs speak is ProtoJSON of its gRPC definition, so
that is what we print. On input either form will do, in camelCase or snake_case. The functions have the names that
``v1`` gives them; ``params`` is the body with what the path and the query say (``rest.params``).

ProtoJSON does not print ``false``, so that a configuration without ``blocking`` is how SDKs say "do not block".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

from a2a_serverless.domain.model import Json, JsonObject, Message, Part, Task
from a2a_serverless.domain.queries import Answer, CreatePush, PushPage, Request, TaskPush
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.strict_json import given
from a2a_serverless.wire import v0_3, v1
from a2a_serverless.wire.fields import Fields, read, snake
from a2a_serverless.wire.objects import Dialect, Printers, printed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_OPAQUE: Final = frozenset({"metadata", "data"})


def read_part(fields: Fields) -> Part:
    """A Part: ``{"data": {"data": {...}}}`` is how the proto nests it; all else is as in JSON-RPC."""
    data = fields.value("data")
    inner = data.get("data") if isinstance(data, dict) and not fields.has("kind") else None
    if isinstance(inner, dict):
        return v0_3.data_part(inner, fields.metadata())
    return v0_3.read_part(fields)


def print_part(part: Part) -> JsonObject:
    """A Part of the proto: the member's name is the kind. Without metadata, which 0.3.0's proto has no place for.

    Readers that are made of the proto, such as the official Java client, refuse an answer over a member unknown to it.
    """
    if part.kind == "text":
        return {"text": part.value}
    if part.kind == "data":
        return {"data": {"data": v0_3.data_of(part)["data"]}}
    content = {"fileWithBytes" if part.kind == "raw" else "fileWithUri": part.value}
    return {"file": given(content | {"mimeType": part.media_type, "name": part.filename})}


DIALECT: Final = Dialect(
    states=v0_3.PROTO_STATES,
    roles=v1.ROLES,
    states_in=v0_3.STATES_IN,
    roles_in=v0_3.ROLES_IN,
    read_part=read_part,
    print_part=print_part,
    contents=("content", "parts"),
    references=False,
)


def parse(operation: Operation, params: Json, limits: Limits = LIMITS) -> Request:
    """The request. Raises InvalidParams with all violations, or MethodNotFound for ListTasks: 0.3 has none."""
    if operation not in _REQUESTS:
        return v0_3.parse(operation, params, limits)
    return read(params, limits, _REQUESTS[operation])


def _create_push(fields: Fields) -> CreatePush:
    """The proto's request with ``config`` in it, or only what it calls the body, or the configuration itself."""
    outer = fields.child("config") or fields
    inner = outer.child("pushNotificationConfig") or outer
    return CreatePush(fields.need_ident("taskId"), v0_3.read_push(inner, fields.ident("configId")))


_REQUESTS: Final[Mapping[Operation, Callable[[Fields], Request]]] = {
    Operation.SEND: partial(v0_3.read_send, DIALECT, blocking=False),
    Operation.STREAM: partial(v0_3.read_send, DIALECT, blocking=False),
    Operation.PUSH_CREATE: _create_push,
}


def answer(operation: Operation, result: Answer) -> Json:
    """The body of the response (``{}`` where this gives None)."""
    if operation is Operation.SEND:
        return {"task" if isinstance(result, Task) else "message": printed(result, _PRINTERS)}
    return printed(result, _PRINTERS)


def stream_item(item: v0_3.StreamItem, task_id: str, context_id: str) -> JsonObject:
    """A StreamResponse of the proto."""
    if isinstance(item, Task):
        return {"task": DIALECT.print_task(item)}
    if isinstance(item, Message):
        return {"message": DIALECT.print_message(item)}
    update = v0_3.print_update(DIALECT, item, task_id, context_id)
    return {"artifactUpdate" if "artifact" in update else "statusUpdate": update}


def print_push(push: TaskPush) -> JsonObject:
    """A TaskPushNotificationConfig of the proto, without its secrets. Its name is its path, and as encoded."""
    task_id, config_id = (quote(one, safe=":@!$&'()*+,;=") for one in (push.task_id, push.config.config_id))
    name = f"tasks/{task_id}/pushNotificationConfigs/{config_id}"
    return {"name": name, "pushNotificationConfig": v0_3.print_config(push.config)}


def _print_pushes(page: PushPage) -> JsonObject:
    return {"configs": [print_push(one) for one in page.pushes]}


_PRINTERS: Final[Printers] = (
    (Task, DIALECT.print_task),
    (Message, DIALECT.print_message),
    (TaskPush, print_push),
    (PushPage, _print_pushes),
)


class ProtoNames:
    """``codecs.Codec`` that prints tasks and messages in the proto's snake_case, as the 0.3 conformance kit has it."""

    parse = staticmethod(parse)

    def answer(self, operation: Operation, result: Answer) -> Json:
        """The body of the response."""
        printed = answer(operation, result)
        return with_proto_names(printed) if isinstance(result, (Task, Message)) else printed

    def stream_item(self, item: v0_3.StreamItem, task_id: str, context_id: str) -> JsonObject:
        """A StreamResponse of the proto."""
        return cast("JsonObject", with_proto_names(stream_item(item, task_id, context_id)))


def with_proto_names(printed: Json) -> Json:
    """The same in the proto's snake_case; data and metadata stay as they are."""
    if isinstance(printed, list):
        return [with_proto_names(one) for one in printed]
    if isinstance(printed, dict):
        return {snake(k): v if k in _OPAQUE else with_proto_names(v) for k, v in printed.items()}
    return printed
