"""A2A 0.3.0 over JSON-RPC to and from the version-free model. The functions have the names that ``v1`` gives them.

Lenient in, because 0.3 was written down three times (types, proto, prose) and clients follow any of them: parts with
or without ``kind``, ``bytes`` or ``fileWithBytes``, ``uri`` or ``url``, ``mimeType`` or ``mediaType``, ``parts`` or
``content``, ``user`` or ``ROLE_USER``, data that is a list. Exact out: the published JSON schema.

What 0.3 cannot say: media type and filename of text and data parts, data that is not an object (wrapped in ``value``
and marked), more than one authentication scheme of a webhook. ``historyLength: 0`` means "all" here. ``final`` is true
where 0.3 clients expect the stream to end: at the end of the task and when it waits for input. A stream closes there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from a2a_serverless.domain.errors import MethodNotFound
from a2a_serverless.domain.events import Event, StatusEvent
from a2a_serverless.domain.model import Json, JsonObject, Message, Part, PushRequest, Role, SendRequest, Task, TaskState
from a2a_serverless.domain.queries import (
    Answer,
    CancelTask,
    CreatePush,
    DeletePush,
    GetCard,
    GetPush,
    GetTask,
    ListPushes,
    PushPage,
    Request,
    SubscribeToTask,
    TaskPush,
    Update,
)
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.strict_json import given
from a2a_serverless.wire import v1
from a2a_serverless.wire.fields import Fields, read, read_peer
from a2a_serverless.wire.objects import NOTHING_SAID, Dialect, Printers, printed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.push import PushConfig

StreamItem: TypeAlias = Task | Message | Event

DEFAULT_CONFIG: Final = "default"
WRAPPED: Final = "data_part_compat"
FINAL: Final = TERMINAL | {TaskState.INPUT_REQUIRED}
STATES: Final = {state: state.value for state in TaskState}
ROLES: Final = {role: role.value for role in Role}
PROTO_STATES: Final = v1.STATES | {TaskState.CANCELED: "TASK_STATE_CANCELLED"}
STATES_IN: Final = {name: state for table in (STATES, v1.STATES, PROTO_STATES) for state, name in table.items()}
ROLES_IN: Final = {name: role for table in (ROLES, v1.ROLES) for role, name in table.items()}


def read_part(fields: Fields) -> Part:
    """A Part (0.3: 6.5). Without ``kind``, what it is tells the member that is there."""
    kind = fields.value("kind") or fields.value("type") or next(filter(fields.has, _PARTS), None)
    if not isinstance(kind, str) or kind not in _PARTS:
        fields.wrong("kind", "must be one of " + ", ".join(_PARTS))
        return Part("text", "")
    return _PARTS[kind](fields)


def _text(fields: Fields) -> Part:
    if fields.value("text") is None:
        fields.wrong("text", "is required")
    return Part("text", fields.text("text") or "", metadata=fields.metadata())


def _data(fields: Fields) -> Part:
    data = fields.value("data")
    if isinstance(data, list):
        return Part("data", data, metadata=fields.metadata())
    return data_part(fields.need(fields.struct("data"), "data") or {}, fields.metadata())


def data_part(data: JsonObject, metadata: JsonObject | None) -> Part:
    """A data part, unwrapped if it was marked as wrapped."""
    if metadata and metadata.get(WRAPPED) is True and "value" in data:
        rest = {name: value for name, value in metadata.items() if name != WRAPPED}
        return Part("data", data["value"], metadata=rest or None)
    return Part("data", data, metadata=metadata)


_BYTES: Final = ("bytes", "fileWithBytes")
_LINKS: Final = ("uri", "fileWithUri", "url")


def _file(fields: Fields) -> Part:
    file = fields.need(fields.child("file"), "file")
    if file is None:
        return Part("text", "")
    source = _first(file, *_BYTES, *_LINKS)
    inline = source in _BYTES
    if not source or (inline and any(map(file.value, _LINKS))):
        file.wrong("", "must have exactly one of bytes, uri")
    return Part(
        kind="raw" if inline else "url",
        value=file.base64(source) if inline else file.text(source, file.limits.url) or "",
        media_type=file.text(_first(file, "mimeType", "mediaType"), file.limits.ident) or None,
        filename=file.text("name", file.limits.name) or None,
        metadata=fields.metadata(),
    )


def _first(fields: Fields, *names: str) -> str:
    """The first of the names whose field is there, best not empty (unset is empty in the proto); "" without any."""
    there = [name for name in names if fields.value(name) is not None]
    return next((name for name in there if fields.value(name)), next(iter(there), ""))


_PARTS: Final[Mapping[str, Callable[[Fields], Part]]] = {"text": _text, "file": _file, "data": _data}


def print_part(part: Part) -> JsonObject:
    """A Part (0.3: 6.5)."""
    if part.kind == "text":
        return given({"kind": "text", "text": part.value, "metadata": part.metadata})
    if part.kind == "data":
        return given({"kind": "data", **data_of(part)})
    about = {"name": part.filename, "mimeType": part.media_type}
    file = given({"bytes" if part.kind == "raw" else "uri": part.value, **about})
    return given({"kind": "file", "file": file, "metadata": part.metadata})


def data_of(part: Part) -> JsonObject:
    """``data`` and ``metadata`` of a data part. 0.3 knows objects only, so that anything else is wrapped and marked."""
    if isinstance(part.value, dict):
        return {"data": part.value, "metadata": part.metadata}
    return {"data": {"value": part.value}, "metadata": (part.metadata or {}) | {WRAPPED: True}}


DIALECT: Final = Dialect(
    STATES, ROLES, STATES_IN, ROLES_IN, read_part, print_part, kinds=True, contents=("parts", "content")
)


# --- requests in -----------------------------------------------------------------------------------------------------


def parse(operation: Operation, params: Json, limits: Limits = LIMITS) -> Request:
    """The request. Raises InvalidParams with all violations, or MethodNotFound for ListTasks: 0.3 has none."""
    if operation not in REQUESTS:
        raise MethodNotFound
    return read(params, limits, REQUESTS[operation])


def read_send(dialect: Dialect, fields: Fields, *, blocking: bool = True) -> SendRequest:
    """What message/send and message/stream ask. ``blocking`` is what a configuration means that does not say it.

    The proto calls the message ``request``, and some SDKs print it so.
    """
    message = fields.child("request") or fields.need(fields.child("message"), "message")
    sent = dialect.message(message) if message else NOTHING_SAID
    metadata = fields.metadata()
    configuration = fields.child("configuration")
    if configuration is None:
        return SendRequest(sent, metadata=metadata)
    push = configuration.child("pushNotificationConfig") or configuration.child("pushNotification")
    return SendRequest(
        message=sent,
        return_immediately=not (blocking if (said := configuration.flag("blocking")) is None else said),
        history_length=configuration.whole("historyLength") or None,
        accepted_output_modes=configuration.strings("acceptedOutputModes"),
        push=read_push(push) if push else None,
        metadata=metadata,
    )


def _get(fields: Fields) -> GetTask:
    return GetTask(fields.need_ident("id"), fields.whole("historyLength") or None)


def _cancel(fields: Fields) -> CancelTask:
    return CancelTask(fields.need_ident("id"), fields.metadata())


def _subscribe(fields: Fields) -> SubscribeToTask:
    return SubscribeToTask(fields.need_ident("id"))


def _create_push(fields: Fields) -> CreatePush:
    inner = fields.need(fields.child("pushNotificationConfig"), "pushNotificationConfig")
    return CreatePush(fields.need_ident("taskId"), read_push(inner) if inner else PushRequest(""))


def _get_push(fields: Fields) -> GetPush:
    return GetPush(fields.need_ident("id"), fields.ident("pushNotificationConfigId"))


def _list_pushes(fields: Fields) -> ListPushes:
    return ListPushes(fields.need_ident("id"))


def _delete_push(fields: Fields) -> DeletePush:
    return DeletePush(fields.need_ident("id"), fields.need_ident("pushNotificationConfigId"))


def _card(_: Fields) -> GetCard:
    return GetCard()


REQUESTS: Final[Mapping[Operation, Callable[[Fields], Request]]] = {
    Operation.SEND: partial(read_send, DIALECT),
    Operation.STREAM: partial(read_send, DIALECT),
    Operation.GET: _get,
    Operation.CANCEL: _cancel,
    Operation.SUBSCRIBE: _subscribe,
    Operation.PUSH_CREATE: _create_push,
    Operation.PUSH_GET: _get_push,
    Operation.PUSH_LIST: _list_pushes,
    Operation.PUSH_DELETE: _delete_push,
    Operation.CARD: _card,
}


def read_push(fields: Fields, named: str | None = None) -> PushRequest:
    """A PushNotificationConfig (0.3: 6.8). Who names none has one, which the next ``set`` replaces."""
    inner = fields.child("authentication")
    credentials = (inner.text("credentials", fields.limits.secret) if inner else None) or None
    return PushRequest(
        url=fields.need_text("url", fields.limits.url),
        config_id=fields.ident("id") or named or DEFAULT_CONFIG,
        token=fields.text("token", fields.limits.secret) or None,
        scheme=_scheme(inner.strings("schemes"), credentials) if inner else None,
        credentials=credentials,
        at=fields.at,
    )


def _scheme(offered: tuple[str, ...], credentials: str | None) -> str | None:
    """One of the schemes: the first that goes with what the client gave. Without credentials that is Bearer."""
    bearer = [scheme for scheme in offered if scheme.lower() == "bearer" and credentials is None]
    return next(iter(bearer or offered), None)


# --- answers out -----------------------------------------------------------------------------------------------------


def answer(operation: Operation, result: Answer) -> Json:
    """The ``result`` of a JSON-RPC response: bare objects, ``kind`` tells which."""
    del operation
    return printed(result, _PRINTERS)


def stream_item(item: StreamItem, task_id: str, context_id: str) -> JsonObject:
    """One ``result`` of a stream: a bare Task, Message, status-update or artifact-update."""
    if isinstance(item, Task):
        return DIALECT.print_task(item)
    if isinstance(item, Message):
        return DIALECT.print_message(item)
    return print_update(DIALECT, item, task_id, context_id)


def print_update(dialect: Dialect, event: Event, task_id: str, context_id: str) -> JsonObject:
    """The update with its ``final``, which 0.3 requires on a status."""
    update = dialect.print_update(event, task_id, context_id)
    return update | {"final": event.state in FINAL} if isinstance(event, StatusEvent) else update


def print_push(push: TaskPush) -> JsonObject:
    """A TaskPushNotificationConfig (0.3: 6.10) without its secrets."""
    return {"taskId": push.task_id, "pushNotificationConfig": print_config(push.config)}


def print_config(config: PushConfig) -> JsonObject:
    """A PushNotificationConfig (0.3: 6.8) without its secrets."""
    authentication: JsonObject | None = {"schemes": [config.scheme]} if config.scheme else None
    return given({"id": config.config_id, "url": config.url, "authentication": authentication})


def _print_pushes(page: PushPage) -> Json:
    return [print_push(one) for one in page.pushes]


_PRINTERS: Final[Printers] = (
    (Task, DIALECT.print_task),
    (Message, DIALECT.print_message),
    (TaskPush, print_push),
    (PushPage, _print_pushes),
)


# --- the client's side -----------------------------------------------------------------------------------------------


def print_send(request: SendRequest) -> JsonObject:
    """The params of message/send (0.3: 7.1), secrets in clear: they are the client's own."""
    configuration: JsonObject = {"blocking": not request.return_immediately}
    configuration |= given(
        {
            "acceptedOutputModes": [*request.accepted_output_modes] or None,
            "historyLength": request.history_length,
            "pushNotificationConfig": _print_push_request(request.push) if request.push else None,
        }
    )
    message = DIALECT.print_message(request.message)
    return given({"message": message, "configuration": configuration, "metadata": request.metadata})


def _print_push_request(push: PushRequest) -> JsonObject:
    authentication = given({"schemes": [push.scheme] if push.scheme else None, "credentials": push.credentials})
    return given({"id": push.config_id, "url": push.url, "token": push.token, "authentication": authentication or None})


def parse_task(value: Json, limits: Limits = LIMITS) -> Task:
    """A peer's Task. Raises InvalidAgentResponse."""
    return read_peer(value, limits, DIALECT.task)


def parse_stream_item(value: Json, limits: Limits = LIMITS) -> Task | Message | Update:
    """A peer's Task, Message or update. Raises InvalidAgentResponse."""
    return read_peer(value, limits, _stream_item)


def _stream_item(fields: Fields) -> Task | Message | Update:
    kind = fields.value("kind")
    if not isinstance(kind, str) or kind not in _ITEMS:
        fields.wrong("kind", "must be one of " + ", ".join(_ITEMS))
        return NOTHING_SAID
    return _ITEMS[kind](fields)


_ITEMS: Final[Mapping[str, Callable[[Fields], Task | Message | Update]]] = {
    "task": DIALECT.task,
    "message": DIALECT.message,
    "status-update": DIALECT.status_update,
    "artifact-update": DIALECT.artifact_update,
}
