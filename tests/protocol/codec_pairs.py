"""Today's codec and the one that is to take its place, each as functions from JSON to JSON that can be compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.dynamodb import log_format, stored_events
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.events import ArtifactEvent, Event, StatusEvent
from a2a_serverless.domain.model import Message, SendRequest, Task
from a2a_serverless.domain.queries import (
    CreatePush,
    GetPush,
    ListPushes,
    ListTasks,
    PushPage,
    TaskPage,
    TaskPush,
    Update,
)
from a2a_serverless.protocol import codecs as new_codecs
from a2a_serverless.protocol import v0_3 as new_v0_3
from a2a_serverless.protocol import v1 as new_v1
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.strict_json import dumps
from a2a_serverless.protocol.validation import read_peer
from a2a_serverless.wire import codecs as old_codecs
from a2a_serverless.wire import v0_3 as old_v0_3
from a2a_serverless.wire import v1 as old_v1

if TYPE_CHECKING:
    from a2a_serverless.domain.push import PushConfig
    from a2a_serverless.protocol.operations import Operation

Json = Any
FORMS: Final = (("jsonrpc", "1.0"), ("jsonrpc", "0.3"), ("rest", "0.3"), ("legacy", "0.3"))
AT: Final = 1_790_000_000_000


@dataclass(frozen=True)
class Refused:
    """A refusal: which error, and which fields were wrong in which way."""

    error: str
    violations: tuple[tuple[str, str], ...]
    text: str


def old_request(binding: Any, version: Any, operation: Operation, params: Json) -> Json:
    """What today's codec makes of a request, as 1.0's JSON, or its refusal."""
    try:
        request = old_codecs.codec(binding, version, AT).parse(operation, params)
        tenant = old_v1.tenant(params) if version == "1.0" else None
    except A2AError as error:
        return _refused(error)
    return _without_nones(_old_json(request) | {"tenant": tenant})


def new_request(binding: Any, version: Any, operation: Operation, params: Json) -> Json:
    """The same of the new codec."""
    try:
        request = new_codecs.codec(binding, version, AT).read(operation, params)
    except A2AError as error:
        return _refused(error)
    return _new_json(request)


def old_answer(binding: Any, version: Any, operation: Operation, answer: Any) -> bytes:
    """The result that today's codec prints."""
    return dumps(old_codecs.codec(binding, version, AT).answer(operation, answer))


def new_answer(binding: Any, version: Any, operation: Operation, answer: Any) -> bytes:
    """The same of the new codec, from the same objects."""
    return new_codecs.codec(binding, version, AT).answer(operation, converted(answer))


def old_item(binding: Any, version: Any, item: Any) -> bytes:
    """The item of a stream that today's codec prints."""
    return dumps(old_codecs.codec(binding, version, AT).stream_item(item, "t", "c"))


def new_item(binding: Any, version: Any, item: Any) -> bytes:
    """The same of the new codec."""
    return new_codecs.codec(binding, version, AT).stream_item(converted(item))


def converted(value: Any) -> Any:  # noqa: PLR0911 - a case for each class
    """Today's object as the new one, by what is stored of it today."""
    match value:
        case Task():
            return stored_events.load_snapshot(log_format.dump_snapshot(value))
        case Message():
            return converted_event(StatusEvent(1, 0, "", _WORKING, value)).message
        case StatusEvent():
            now = converted_event(value)
            status = new_v1.TaskStatus(state=now.state, timestamp=now.at, message=now.message)
            return new_v1.TaskStatusUpdateEvent(task_id="t", context_id="c", status=status)
        case ArtifactEvent():
            chunk = converted_event(value)
            how = {"append": chunk.append, "last_chunk": chunk.last_chunk}
            return new_v1.TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=chunk.artifact, **how)
        case TaskPage():
            return _page(value)
        case TaskPush():
            return _push(value.task_id, value.config)
        case PushPage():
            configs = tuple(_push(one.task_id, one.config) for one in value.pushes)
            return new_v1.ListTaskPushNotificationConfigsResponse(
                configs=configs, next_page_token=value.next_page_token
            )
    return value


def _page(page: TaskPage) -> new_v1.ListTasksResponse:
    tasks = tuple(converted(task) for task in page.tasks)
    if page.artifacts:
        tasks = tuple(new_v1.ListedTask(**dict(task)) for task in tasks)
    return new_v1.ListTasksResponse(
        tasks=tasks, next_page_token=page.next_page_token, page_size=page.page_size, total_size=page.total_size
    )


def _push(task_id: str, config: PushConfig) -> new_v1.TaskPushNotificationConfig:
    authentication = new_v1.AuthenticationInfo(scheme=config.scheme) if config.scheme else None
    return new_v1.TaskPushNotificationConfig(
        id=config.config_id, task_id=task_id, url=config.url, authentication=authentication
    )


_WORKING: Final = log_format.load_event('{"k":"s","s":"working","at":0}', 1, "").state  # type: ignore[union-attr]


def converted_event(event: Event) -> Any:
    """Today's event with the new objects in it."""
    return stored_events.load_event(log_format.dump_event(event), event.n, event.append_id)


def _refused(error: A2AError) -> Refused:
    found = tuple((one.field, one.description) for one in error.violations)
    return Refused(type(error).__name__, found, str(error))


def _old_json(request: Any) -> dict[str, Json]:
    if isinstance(request, SendRequest):
        sent = json.loads(dumps(old_v1.print_send(request)))
        return {**sent, "at": request.push and request.push.at}
    if isinstance(request, CreatePush):
        config = old_v1._print_push_request(request.push)  # noqa: SLF001 - it has no name of its own
        return {**config, "taskId": request.task_id, "at": request.push.at}
    names = {"task_id": "taskId" if isinstance(request, GetPush | ListPushes) else "id"}
    if isinstance(request, GetPush) or type(request).__name__ == "DeletePush":
        names = {"task_id": "taskId", "config_id": "id"}
    values = {name: getattr(request, name) for name in request.__dataclass_fields__}
    if isinstance(request, ListTasks):
        values["state"] = request.state and old_v1.STATES[request.state]
    return {names.get(name, name): value for name, value in values.items()}


def _new_json(request: Any) -> dict[str, Json]:
    printed = {
        name: value for name, value in json.loads(request.json_bytes()).items() if value != {} or name == "metadata"
    }
    if isinstance(request, new_v1.SendMessageRequest):
        push = request.configuration and request.configuration.task_push_notification_config
        if push:
            config = printed["configuration"]["taskPushNotificationConfig"]
            _tidy(config)
            config.pop("taskId", None)
            printed["at"] = push.path
        return printed
    if isinstance(request, new_v1.TaskPushNotificationConfig):
        _tidy(printed)
        return printed | {"at": request.path}
    if isinstance(request, new_v1.ListTasksRequest):
        return _without_nones(
            {
                "tenant": request.tenant,
                "context_id": request.context_id,
                "state": request.status,
                "page_size": request.page_size,
                "page_token": request.page_token,
                "history_length": request.history_length,
                "since": request.status_timestamp_after,
                "include_artifacts": request.include_artifacts,
            }
        )
    if isinstance(request, new_v1.GetTaskPushNotificationConfigRequest) and not request.id:
        del printed["id"]
    renamed = {"historyLength": "history_length", "pageSize": "page_size", "pageToken": "page_token"}
    return {renamed.get(name, name): value for name, value in printed.items() if value is not None}


def _tidy(config: dict[str, Json]) -> None:
    """Without what is only there because 1.0 requires it: the name of no scheme."""
    authentication = config.get("authentication", {})
    if authentication.get("scheme") == "":
        del authentication["scheme"]
    if authentication == {}:
        config.pop("authentication", None)


def _without_nones(values: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in values.items() if value is not None}


__all__ = [
    "FORMS",
    "Limits",
    "Refused",
    "new_answer",
    "new_item",
    "new_peer",
    "new_request",
    "old_answer",
    "old_item",
    "old_peer",
    "old_request",
]


def old_peer(version: Any, value: Json) -> Json:
    """What today's client makes of a peer's item, as 1.0's JSON, or its refusal."""
    parse = old_v1.parse_stream_item if version == "1.0" else old_v0_3.parse_stream_item
    try:
        item = parse(value)
    except A2AError as error:
        return _refused(error)
    if isinstance(item, Update):
        return json.loads(dumps(old_v1.stream_item(item.event, item.task_id, item.context_id)))
    return json.loads(dumps(old_v1.stream_item(item, "", "")))


def new_peer(version: Any, value: Json) -> Json:
    """The same of the new models."""
    try:
        if version == "1.0":
            item = read_peer(new_v1.StreamResponse, value, LIMITS).content
        else:
            item = read_peer(new_v0_3.StreamItem, value, LIMITS).to_v1()
    except A2AError as error:
        return _refused(error)
    return json.loads(new_v1.stream_response(item).json_bytes())
