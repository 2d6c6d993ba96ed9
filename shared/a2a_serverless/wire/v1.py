"""A2A 1.0 (specification v1.0.1) to and from the version-free model, the same for JSON-RPC and REST.

For a server::

    request = v1.parse(Operation.SEND, params, limits)      # any of the eleven operations -> domain.queries.Request
    tenant = v1.tenant(params, limits)                      # the ``tenant`` that every request may carry
    result = v1.answer(Operation.SEND, answer)              # domain.queries.Answer -> the JSON of ``result``
    item = v1.stream_item(thing, task_id, context_id)       # Task, Message or Event -> StreamResponse

For a client: ``print_send``, ``parse_task`` and ``parse_stream_item`` (also for the result of SendMessage and the body
of a webhook), which raise InvalidAgentResponse.

Output is exact: camelCase, enum names, no member that is empty or unset but those that the schema requires. A webhook
is printed without ``token`` and ``credentials``: the schema has no place to say "it is set", so its ``authentication``
names the scheme, and who wants to know more reads the deliveries of the task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from a2a_serverless.domain.events import Event
from a2a_serverless.domain.model import Json, JsonObject, Message, Part, PartKind, PushRequest, Role, SendRequest, Task
from a2a_serverless.domain.model import TaskState as S
from a2a_serverless.domain.queries import (
    MAX_PAGE_SIZE,
    PAGE_SIZE,
    Answer,
    CancelTask,
    CreatePush,
    DeletePush,
    GetCard,
    GetPush,
    GetTask,
    ListPushes,
    ListTasks,
    PushPage,
    Request,
    SubscribeToTask,
    TaskPage,
    TaskPush,
    Update,
)
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.strict_json import given
from a2a_serverless.wire.fields import Fields, read, read_peer
from a2a_serverless.wire.objects import NOTHING_SAID, Dialect, Printers, printed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

StreamItem: TypeAlias = Task | Message | Event

# In the order of the proto, which numbers them from 1; 0 is "unspecified", which nobody may send.
STATES: Final = {
    S.SUBMITTED: "TASK_STATE_SUBMITTED",
    S.WORKING: "TASK_STATE_WORKING",
    S.COMPLETED: "TASK_STATE_COMPLETED",
    S.FAILED: "TASK_STATE_FAILED",
    S.CANCELED: "TASK_STATE_CANCELED",
    S.INPUT_REQUIRED: "TASK_STATE_INPUT_REQUIRED",
    S.REJECTED: "TASK_STATE_REJECTED",
    S.AUTH_REQUIRED: "TASK_STATE_AUTH_REQUIRED",
}
ROLES: Final = {Role.USER: "ROLE_USER", Role.AGENT: "ROLE_AGENT"}
_STATES_IN: Final = {name: state for state, name in STATES.items()} | dict(enumerate(STATES, 1))
_ROLES_IN: Final = {name: role for role, name in ROLES.items()} | dict(enumerate(ROLES, 1))
_KINDS: Final[tuple[PartKind, ...]] = ("text", "raw", "url", "data")


def read_part(fields: Fields) -> Part:
    """A Part (4.1.6). What it is tells the member that is there: ``"text": ""`` and ``"data": null`` are legal."""
    kinds = [kind for kind in _KINDS if fields.value(kind) is not None]
    if not kinds and fields.has("data"):
        kinds = ["data"]
    if len(kinds) != 1:
        fields.wrong("", "must have exactly one of " + ", ".join(_KINDS))
        return Part("text", "")
    return Part(
        kind=kinds[0],
        value=_content(fields, kinds[0]),
        media_type=fields.text("mediaType", fields.limits.ident) or None,
        filename=fields.text("filename", fields.limits.name) or None,
        metadata=fields.metadata(),
    )


def _content(fields: Fields, kind: PartKind) -> Json:
    if kind == "data":
        return fields.value("data")
    if kind == "raw":
        return fields.base64("raw")
    return fields.text(kind, fields.limits.url if kind == "url" else None)


def print_part(part: Part) -> JsonObject:
    """A Part (4.1.6)."""
    content: JsonObject = {part.kind: part.value}
    return content | given({"mediaType": part.media_type, "filename": part.filename, "metadata": part.metadata})


DIALECT: Final = Dialect(STATES, ROLES, _STATES_IN, _ROLES_IN, read_part, print_part)


# --- requests in -----------------------------------------------------------------------------------------------------


def parse(operation: Operation, params: Json, limits: Limits = LIMITS) -> Request:
    """The request. Raises InvalidParams with all violations."""
    return read(params, limits, REQUESTS[operation])


def tenant(params: Json, limits: Limits = LIMITS) -> str | None:
    """The tenant that the request names."""
    return read(params, limits, lambda fields: fields.ident("tenant"))


def _send(fields: Fields) -> SendRequest:
    message = fields.need(fields.child("message"), "message")
    sent = DIALECT.message(message) if message else NOTHING_SAID
    metadata = fields.metadata()
    configuration = fields.child("configuration")
    if configuration is None:
        return SendRequest(sent, metadata=metadata)
    push = configuration.child("taskPushNotificationConfig")
    return SendRequest(
        message=sent,
        return_immediately=configuration.flag("returnImmediately") or False,
        history_length=configuration.whole("historyLength"),
        accepted_output_modes=configuration.strings("acceptedOutputModes"),
        push=_push(push) if push else None,
        metadata=metadata,
    )


def _get(fields: Fields) -> GetTask:
    return GetTask(fields.need_ident("id"), fields.whole("historyLength"))


def _list(fields: Fields) -> ListTasks:
    page_size = fields.whole("pageSize", 1, MAX_PAGE_SIZE)
    return ListTasks(
        context_id=fields.ident("contextId"),
        state=None if _is_unset(fields.value("status")) else fields.choice("status", _STATES_IN),
        page_size=PAGE_SIZE if page_size is None else page_size,
        page_token=fields.text("pageToken", fields.limits.name) or None,
        history_length=fields.whole("historyLength"),
        since=fields.moment("statusTimestampAfter") or None,  # the epoch is the default that ProtoJSON may print
        include_artifacts=fields.flag("includeArtifacts") or False,
    )


def _is_unset(state: Json) -> bool:
    """Whether this is the default of the proto's enum, which clients print that print every member."""
    return state == "TASK_STATE_UNSPECIFIED" or (state == 0 and not isinstance(state, bool))


def _cancel(fields: Fields) -> CancelTask:
    return CancelTask(fields.need_ident("id"), fields.metadata())


def _subscribe(fields: Fields) -> SubscribeToTask:
    return SubscribeToTask(fields.need_ident("id"))


def _create_push(fields: Fields) -> CreatePush:
    return CreatePush(fields.need_ident("taskId"), _push(fields))


def _get_push(fields: Fields) -> GetPush:
    return GetPush(fields.need_ident("taskId"), fields.need_ident("id"))


def _list_pushes(fields: Fields) -> ListPushes:
    page_token = fields.text("pageToken", fields.limits.name) or None
    return ListPushes(fields.need_ident("taskId"), fields.whole("pageSize") or None, page_token)


def _delete_push(fields: Fields) -> DeletePush:
    return DeletePush(fields.need_ident("taskId"), fields.need_ident("id"))


def _card(_: Fields) -> GetCard:
    return GetCard()


REQUESTS: Final[Mapping[Operation, Callable[[Fields], Request]]] = {
    Operation.SEND: _send,
    Operation.STREAM: _send,
    Operation.GET: _get,
    Operation.LIST: _list,
    Operation.CANCEL: _cancel,
    Operation.SUBSCRIBE: _subscribe,
    Operation.PUSH_CREATE: _create_push,
    Operation.PUSH_GET: _get_push,
    Operation.PUSH_LIST: _list_pushes,
    Operation.PUSH_DELETE: _delete_push,
    Operation.CARD: _card,
}


def _push(fields: Fields) -> PushRequest:
    """Whether the address and the scheme will do is for the policy to say, not for the codec."""
    authentication = fields.child("authentication")
    scheme = authentication.need_text("scheme", fields.limits.name) if authentication else None
    credentials = authentication.text("credentials", fields.limits.secret) if authentication else None
    return PushRequest(
        url=fields.need_text("url", fields.limits.url),
        config_id=fields.ident("id"),
        token=fields.text("token", fields.limits.secret) or None,
        scheme=scheme,
        credentials=credentials or None,
        at=fields.at,
    )


# --- answers out -----------------------------------------------------------------------------------------------------


def answer(operation: Operation, result: Answer) -> Json:
    """The ``result`` of a JSON-RPC response, or the body of a REST one (which has ``{}`` where this gives None)."""
    if operation is Operation.SEND:
        return {"task" if isinstance(result, Task) else "message": printed(result, _PRINTERS)}
    return printed(result, _PRINTERS)


def stream_item(item: StreamItem, task_id: str, context_id: str) -> JsonObject:
    """A StreamResponse (3.2.3): exactly one of task, message, statusUpdate, artifactUpdate."""
    if isinstance(item, Task):
        return {"task": DIALECT.print_task(item)}
    if isinstance(item, Message):
        return {"message": DIALECT.print_message(item)}
    update = DIALECT.print_update(item, task_id, context_id)
    return {"artifactUpdate" if "artifact" in update else "statusUpdate": update}


def print_page(page: TaskPage) -> JsonObject:
    """A ListTasksResponse (3.1.4): all four members, always; artifacts, even none, only when asked for."""
    empty: JsonObject = {"artifacts": []} if page.artifacts else {}
    return {
        "tasks": [empty | DIALECT.print_task(task) for task in page.tasks],
        "nextPageToken": page.next_page_token,
        "pageSize": page.page_size,
        "totalSize": page.total_size,
    }


def print_push(push: TaskPush) -> JsonObject:
    """A TaskPushNotificationConfig (4.3.1) without its secrets."""
    config = push.config
    authentication: JsonObject | None = {"scheme": config.scheme} if config.scheme else None
    return given({"id": config.config_id, "taskId": push.task_id, "url": config.url, "authentication": authentication})


def print_pushes(page: PushPage) -> JsonObject:
    """A ListTaskPushNotificationConfigsResponse (3.1.9)."""
    configs: list[Json] = [print_push(one) for one in page.pushes]
    return given({"configs": configs, "nextPageToken": page.next_page_token or None})


_PRINTERS: Final[Printers] = (
    (Task, DIALECT.print_task),
    (Message, DIALECT.print_message),
    (TaskPage, print_page),
    (TaskPush, print_push),
    (PushPage, print_pushes),
)


# --- the client's side -----------------------------------------------------------------------------------------------


def print_send(request: SendRequest) -> JsonObject:
    """The params of SendMessage, secrets in clear: they are the client's own."""
    push = request.push
    configuration = given(
        {
            "acceptedOutputModes": [*request.accepted_output_modes] or None,
            "returnImmediately": request.return_immediately or None,
            "historyLength": request.history_length,
            "taskPushNotificationConfig": _print_push_request(push) if push else None,
        }
    )
    message = DIALECT.print_message(request.message)
    return given({"message": message, "configuration": configuration or None, "metadata": request.metadata})


def _print_push_request(push: PushRequest) -> JsonObject:
    authentication = given({"scheme": push.scheme, "credentials": push.credentials})
    return given({"id": push.config_id, "url": push.url, "token": push.token, "authentication": authentication or None})


def parse_task(value: Json, limits: Limits = LIMITS) -> Task:
    """A peer's Task. Raises InvalidAgentResponse."""
    return read_peer(value, limits, DIALECT.task)


def parse_stream_item(value: Json, limits: Limits = LIMITS) -> Task | Message | Update:
    """A peer's StreamResponse or SendMessageResponse. Raises InvalidAgentResponse."""
    return read_peer(value, limits, _stream_item)


def _stream_item(fields: Fields) -> Task | Message | Update:
    for name, parser in _ITEMS.items():
        inner = fields.child(name)
        if inner:
            return parser(inner)
    fields.wrong("", "must have one of " + ", ".join(_ITEMS))
    return NOTHING_SAID


_ITEMS: Final[Mapping[str, Callable[[Fields], Task | Message | Update]]] = {
    "task": DIALECT.task,
    "message": DIALECT.message,
    "statusUpdate": DIALECT.status_update,
    "artifactUpdate": DIALECT.artifact_update,
}
