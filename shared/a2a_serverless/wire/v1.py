"""A2A 1.0 (specification v1.0.1) to and from the version-free model, the same for JSON-RPC and REST.

For a server::

    request = v1.parse(Operation.SEND, params, limits)      # any of the eleven operations -> domain.queries.Request
    params_tenant = v1.tenant(params, limits)               # the ``tenant`` that every request may carry
    result = v1.answer(Operation.SEND, answer)              # domain.queries.Answer -> the JSON of ``result``
    item = v1.stream_item(thing, task_id, context_id)       # Task, Message or Event -> StreamResponse

For a client: ``print_request`` and ``parse_answer``, ``parse_stream_item``. Webhook bodies are stream items.

Output is exact: camelCase, enum names, no member that is empty or unset but those that the schema requires. A webhook
is printed without ``token`` and ``credentials``: the schema has no place to say "it is set", so its ``authentication``
names the scheme, and who wants to know more reads the deliveries of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

from a2a_serverless.domain.events import Event, StatusEvent
from a2a_serverless.domain.model import (
    Artifact,
    Json,
    JsonObject,
    Message,
    Part,
    PartKind,
    PushRequest,
    Role,
    SendRequest,
    Task,
    TaskState,
    TaskStatus,
)
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
)
from a2a_serverless.wire import timestamps
from a2a_serverless.wire.fields import Fields, read
from a2a_serverless.wire.limits import LIMITS, Limits
from a2a_serverless.wire.operations import Operation

STATES: Final = {
    TaskState.SUBMITTED: "TASK_STATE_SUBMITTED",
    TaskState.WORKING: "TASK_STATE_WORKING",
    TaskState.COMPLETED: "TASK_STATE_COMPLETED",
    TaskState.FAILED: "TASK_STATE_FAILED",
    TaskState.CANCELED: "TASK_STATE_CANCELED",
    TaskState.INPUT_REQUIRED: "TASK_STATE_INPUT_REQUIRED",
    TaskState.REJECTED: "TASK_STATE_REJECTED",
    TaskState.AUTH_REQUIRED: "TASK_STATE_AUTH_REQUIRED",
}
ROLES: Final = {Role.USER: "ROLE_USER", Role.AGENT: "ROLE_AGENT"}

# The proto numbers its values from 1 in the order of the tables above; 0 is "unspecified", which nobody may send.
_STATES_IN: Final = {name: state for state, name in STATES.items()} | dict(enumerate(STATES, 1))
_ROLES_IN: Final = {name: role for role, name in ROLES.items()} | dict(enumerate(ROLES, 1))
_KINDS: Final[tuple[PartKind, ...]] = ("text", "raw", "url", "data")

StreamItem: TypeAlias = Task | Message | Event


# --- requests in -----------------------------------------------------------------------------------------------------


def parse(operation: Operation, params: Json, limits: Limits = LIMITS) -> Request:
    """The request. Raises InvalidParams with all violations."""
    return read(params, limits, REQUESTS[operation])


def tenant(params: Json, limits: Limits = LIMITS) -> str | None:
    """The tenant that the request names."""
    return read(params, limits, lambda fields: fields.ident("tenant"))


def _send(fields: Fields) -> SendRequest:
    inner = fields.child("message")
    if inner is None:
        fields.wrong("message", "is required")
    sent = message(inner) if inner else _NOTHING_SAID
    metadata = fields.struct("metadata")
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
        state=fields.choice("status", _STATES_IN),
        page_size=PAGE_SIZE if page_size is None else page_size,
        page_token=fields.text("pageToken", fields.limits.name) or None,
        history_length=fields.whole("historyLength"),
        since=fields.moment("statusTimestampAfter"),
        include_artifacts=fields.flag("includeArtifacts") or False,
    )


def _cancel(fields: Fields) -> CancelTask:
    return CancelTask(fields.need_ident("id"), fields.struct("metadata"))


def _subscribe(fields: Fields) -> SubscribeToTask:
    return SubscribeToTask(fields.need_ident("id"))


def _create_push(fields: Fields) -> CreatePush:
    return CreatePush(fields.need_ident("taskId"), _push(fields))


def _get_push(fields: Fields) -> GetPush:
    return GetPush(fields.need_ident("taskId"), fields.need_ident("id"))


def _list_pushes(fields: Fields) -> ListPushes:
    page_token = fields.text("pageToken", fields.limits.name) or None
    return ListPushes(fields.need_ident("taskId"), fields.whole("pageSize", 0) or None, page_token)


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
    )


# --- objects in ------------------------------------------------------------------------------------------------------


def message(fields: Fields) -> Message:
    """A Message (4.1.4)."""
    role = fields.choice("role", _ROLES_IN)
    if role is None and fields.value("role") is None:
        fields.wrong("role", "is required")
    return Message(
        message_id=fields.need_ident("messageId"),
        role=role or Role.USER,
        parts=parts(fields),
        context_id=fields.ident("contextId"),
        task_id=fields.ident("taskId"),
        metadata=fields.struct("metadata"),
        extensions=fields.strings("extensions"),
        reference_task_ids=fields.strings("referenceTaskIds"),
    )


def parts(fields: Fields) -> tuple[Part, ...]:
    """The ``parts`` of a message or an artifact: at least one (5.7)."""
    found = fields.children("parts", fields.limits.parts)
    if not found and not fields.value("parts"):
        fields.wrong("parts", "must hold at least one part")
    return tuple([part(one) for one in found])


def part(fields: Fields) -> Part:
    """A Part (4.1.6). What it is tells the member that is there: ``"text": ""`` and ``"data": null`` are legal."""
    kinds = [kind for kind in _KINDS if fields.value(kind) is not None]
    if not kinds and fields.has("data"):
        kinds = ["data"]
    if len(kinds) != 1:
        fields.wrong("", "must have exactly one of text, raw, url, data")
        return _NO_PART
    return Part(
        kind=kinds[0],
        value=_content(fields, kinds[0]),
        media_type=fields.text("mediaType", fields.limits.ident) or None,
        filename=fields.text("filename", fields.limits.name) or None,
        metadata=fields.struct("metadata"),
    )


def _content(fields: Fields, kind: PartKind) -> Json:
    if kind == "data":
        return fields.value("data")
    if kind == "raw":
        return fields.base64("raw")
    return fields.text(kind, fields.limits.url if kind == "url" else None)


_NO_PART: Final = Part("text", "")
_NOTHING_SAID: Final = Message("", Role.USER, ())


def task(fields: Fields) -> Task:
    """A Task (4.1.1) from a peer. Its events are not numbered for us: ``n`` is 0."""
    return Task(
        task_id=fields.need_ident("id"),
        context_id=fields.ident("contextId") or "",
        status=status(fields),
        n=0,
        artifacts=tuple([artifact(one) for one in fields.children("artifacts", fields.limits.items)]),
        history=tuple([message(one) for one in fields.children("history", fields.limits.items)]),
        metadata=fields.struct("metadata"),
    )


def status(fields: Fields) -> TaskStatus:
    """The ``status`` of a task or an event; without a timestamp, its time is 0."""
    inner = fields.child("status")
    state = inner.choice("state", _STATES_IN) if inner else None
    if inner is None or state is None:
        fields.wrong("status", "must have a state")
        return TaskStatus(TaskState.WORKING, 0)
    said = inner.child("message")
    return TaskStatus(state, inner.moment("timestamp") or 0, message(said) if said else None)


def artifact(fields: Fields) -> Artifact:
    """An Artifact (4.1.7)."""
    return Artifact(
        artifact_id=fields.need_ident("artifactId"),
        parts=parts(fields),
        name=fields.text("name", fields.limits.name) or None,
        description=fields.text("description") or None,
        metadata=fields.struct("metadata"),
        extensions=fields.strings("extensions"),
    )


# --- answers out -----------------------------------------------------------------------------------------------------


def answer(operation: Operation, result: Answer) -> Json:
    """The ``result`` of a JSON-RPC response, or the body of a REST one (which has ``{}`` where this gives None)."""
    if operation is Operation.SEND:
        return {"task" if isinstance(result, Task) else "message": _plain(result)}
    return _plain(result)


def _plain(result: Answer) -> Json:
    for kind, printer in _PRINTERS:
        if isinstance(result, kind):
            return printer(result)
    return cast("JsonObject | None", result)


def stream_item(item: StreamItem, task_id: str, context_id: str) -> JsonObject:
    """A StreamResponse (3.2.3): exactly one of task, message, statusUpdate, artifactUpdate."""
    if isinstance(item, Task):
        return {"task": print_task(item)}
    if isinstance(item, Message):
        return {"message": print_message(item)}
    event: JsonObject = {"taskId": task_id, "contextId": context_id}
    if isinstance(item, StatusEvent):
        return {"statusUpdate": event | {"status": print_status(TaskStatus(item.state, item.at, item.message))}}
    event["artifact"] = print_artifact(item.artifact)
    return {"artifactUpdate": event | _given({"append": item.append or None, "lastChunk": item.last_chunk or None})}


def print_task(task: Task) -> JsonObject:
    """A Task (4.1.1)."""
    return _given(
        {
            "id": task.task_id,
            "contextId": task.context_id or None,
            "status": print_status(task.status),
            "artifacts": [print_artifact(one) for one in task.artifacts] or None,
            "history": [print_message(one) for one in task.history] or None,
            "metadata": task.metadata,
        }
    )


def print_status(status: TaskStatus) -> JsonObject:
    """A TaskStatus (4.1.2), always with its time: ListTasks sorts by it."""
    printed: JsonObject = {"state": STATES[status.state], "timestamp": timestamps.to_text(status.timestamp)}
    if status.message:
        printed["message"] = print_message(status.message)
    return printed


def print_message(message: Message) -> JsonObject:
    """A Message (4.1.4)."""
    return _given(
        {
            "messageId": message.message_id,
            "role": ROLES[message.role],
            "parts": [print_part(one) for one in message.parts],
            "contextId": message.context_id,
            "taskId": message.task_id,
            "metadata": message.metadata,
            "extensions": [*message.extensions] or None,
            "referenceTaskIds": [*message.reference_task_ids] or None,
        }
    )


def print_part(part: Part) -> JsonObject:
    """A Part (4.1.6)."""
    content: JsonObject = {part.kind: part.value}
    return content | _given({"mediaType": part.media_type, "filename": part.filename, "metadata": part.metadata})


def print_artifact(artifact: Artifact) -> JsonObject:
    """An Artifact (4.1.7)."""
    return _given(
        {
            "artifactId": artifact.artifact_id,
            "parts": [print_part(one) for one in artifact.parts],
            "name": artifact.name,
            "description": artifact.description,
            "metadata": artifact.metadata,
            "extensions": [*artifact.extensions] or None,
        }
    )


def print_page(page: TaskPage) -> JsonObject:
    """A ListTasksResponse (3.1.4): all four members, always; artifacts, even none, only when asked for."""
    tasks: list[Json] = []
    for task in page.tasks:
        printed = print_task(task)
        if page.artifacts:
            printed.setdefault("artifacts", [])
        tasks.append(printed)
    return {
        "tasks": tasks,
        "nextPageToken": page.next_page_token,
        "pageSize": page.page_size,
        "totalSize": page.total_size,
    }


def print_push(push: TaskPush) -> JsonObject:
    """A TaskPushNotificationConfig (4.3.1) without its secrets."""
    config = push.config
    printed: JsonObject = {"id": config.config_id, "taskId": push.task_id, "url": config.url}
    if config.scheme:
        printed["authentication"] = {"scheme": config.scheme}
    return printed


def print_pushes(page: PushPage) -> JsonObject:
    """A ListTaskPushNotificationConfigsResponse (3.1.9)."""
    configs: list[Json] = [print_push(one) for one in page.pushes]
    return _given({"configs": configs, "nextPageToken": page.next_page_token or None})


def _given(members: JsonObject) -> JsonObject:
    return {name: value for name, value in members.items() if value is not None}


_PRINTERS: Final[tuple[tuple[type, Callable[..., JsonObject]], ...]] = (
    (Task, print_task),
    (Message, print_message),
    (TaskPage, print_page),
    (TaskPush, print_push),
    (PushPage, print_pushes),
)
