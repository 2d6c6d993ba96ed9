"""Runs A2A operations on objects of 1.0. ``http/`` decodes requests and encodes answers, whatever their version.

Each operation of ``protocol/operations.py`` has a function in ``ANSWERS``, or in ``STREAMS`` if it streams. The modules
of webhooks and lists are imported by the first operation that needs them: most cold starts serve another operation.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from a2a_serverless.domain.contents import StoredFile, file_of, fits_any
from a2a_serverless.domain.errors import (
    ContentTypeNotSupported,
    ExtendedCardNotConfigured,
    FieldViolation,
    InvalidParams,
    PushNotSupported,
    UnsupportedOperation,
)
from a2a_serverless.domain.publications import extended_card_name
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.strict_json import dumps
from a2a_serverless.protocol.v1 import ListTaskPushNotificationConfigsResponse, Message
from a2a_serverless.services import tasks
from a2a_serverless.services.streams import (
    TURN_ENDS,
    StreamContext,
    StreamItem,
    StreamStart,
    follow_events,
    start_stream,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import JsonObject, Principal
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.protocol.v1 import (
        CancelTaskRequest,
        CreateTaskPushNotificationConfigRequest,
        DeleteTaskPushNotificationConfigRequest,
        GetTaskPushNotificationConfigRequest,
        GetTaskRequest,
        ListTaskPushNotificationConfigsRequest,
        ListTasksRequest,
        ListTasksResponse,
        SendMessageRequest,
        SubscribeToTaskRequest,
        Task,
        TaskPushNotificationConfig,
        TaskState,
    )
    from a2a_serverless.services.requests import RequestContext, TaskService
    from a2a_serverless.services.streams import Heartbeat

MAX_FILES: Final = 32
SHOWN: Final = 200

Answer: TypeAlias = "ProtoModel | bytes | None"
"""An answer; bytes are a published document, which is JSON already."""


def run_operation(
    operation: Operation, service: TaskService, context: RequestContext, agent: Agent, request: ProtoModel
) -> Answer:
    """Returns the answer to a request that does not stream. Raises A2AError if it is refused."""
    return ANSWERS[operation](service, context, agent, request)


def _send(service: TaskService, context: RequestContext, agent: Agent, request: SendMessageRequest) -> Task | Message:
    _check_send(service, context.principal, agent, request)
    answer = tasks.send(service, context, request)
    return answer if isinstance(answer, Message) else answer.limited(request.configuration.history_length)


def _get(service: TaskService, context: RequestContext, _: Agent, request: GetTaskRequest) -> Task:
    return tasks.get(service, context, request.id).limited(request.history_length)


def _list(service: TaskService, context: RequestContext, _: Agent, request: ListTasksRequest) -> ListTasksResponse:
    from a2a_serverless.services.listing import list_tasks

    return list_tasks(service.lister(), context.principal, context.agent, request)


def _cancel(service: TaskService, context: RequestContext, _: Agent, request: CancelTaskRequest) -> Task:
    return tasks.cancel(service, context, request.id)


def _create_webhook(
    service: TaskService, context: RequestContext, agent: Agent, request: CreateTaskPushNotificationConfigRequest
) -> TaskPushNotificationConfig:
    from a2a_serverless.services import webhooks

    _check_push(agent)
    key, events = context.key(request.task_id), context.webhook_events
    config = webhooks.add(service.webhooks(), key, agent.id, request, context.version, events)
    return webhooks.show(request.task_id, config)


def _get_webhook(
    service: TaskService, context: RequestContext, agent: Agent, request: GetTaskPushNotificationConfigRequest
) -> TaskPushNotificationConfig:
    from a2a_serverless.services import webhooks

    _check_push(agent)
    config = webhooks.get(service.webhooks(), context.key(request.task_id), agent.id, request.id)
    return webhooks.show(request.task_id, config)


def _list_webhooks(
    service: TaskService, context: RequestContext, agent: Agent, request: ListTaskPushNotificationConfigsRequest
) -> ListTaskPushNotificationConfigsResponse:
    from a2a_serverless.services import webhooks

    _check_push(agent)
    configs = webhooks.list_configs(service.webhooks(), context.key(request.task_id), agent.id)
    shown = tuple(webhooks.show(request.task_id, config) for config in configs)
    return ListTaskPushNotificationConfigsResponse(configs=shown)


def _delete_webhook(
    service: TaskService, context: RequestContext, agent: Agent, request: DeleteTaskPushNotificationConfigRequest
) -> None:
    from a2a_serverless.services import webhooks

    _check_push(agent)
    webhooks.delete(service.webhooks(), context.key(request.task_id), agent.id, request.id)


def _get_extended_card(service: TaskService, context: RequestContext, agent: Agent, _: ProtoModel) -> bytes:
    """The card for authenticated callers, as the rotator published it for the version of the request."""
    if not agent.extended_skills:
        raise UnsupportedOperation("This agent has no extended card.")
    document = service.publications.get_document(extended_card_name(agent.id))
    if not isinstance(document, dict):
        raise ExtendedCardNotConfigured
    forms: JsonObject = json.loads(str(document["body"]))
    return dumps(forms[context.version])


ANSWERS: Final[Mapping[Operation, Callable[[TaskService, RequestContext, Agent, Any], Answer]]] = {
    Operation.SEND: _send,
    Operation.GET: _get,
    Operation.LIST: _list,
    Operation.CANCEL: _cancel,
    Operation.PUSH_CREATE: _create_webhook,
    Operation.PUSH_GET: _get_webhook,
    Operation.PUSH_LIST: _list_webhooks,
    Operation.PUSH_DELETE: _delete_webhook,
    Operation.CARD: _get_extended_card,
}
"""The function of each operation that does not stream."""


class StreamLimits(NamedTuple):
    """The limits of a stream. ``after`` is the last event that the client has received; None: no event.

    ``until`` (ms) is the latest end of the stream. A subscription goes on to a state in ``ends``.
    """

    after: int | None
    until: int
    ends: frozenset[TaskState]


class OpenStream(NamedTuple):
    """A stream that has begun; ``task_id`` is "" if its only item is a message."""

    task_id: str
    context_id: str
    items: AsyncGenerator[StreamItem | Heartbeat]


def open_stream(
    operation: Operation,
    service: TaskService,
    context: RequestContext,
    agent: Agent,
    request: ProtoModel,
    limits: StreamLimits,
) -> OpenStream:
    """Opens the stream of a message or a subscription. Raises A2AError if the request is refused.

    The stream of a message ends when the client has to act; a subscription goes on (specification 3.1.2, 3.1.6, 11.7;
    see docs/deviations.md).
    """
    if not agent.streaming:
        raise UnsupportedOperation("This agent does not stream.")
    return STREAMS[operation](service, context, agent, request, limits)


def _stream_message(
    service: TaskService, context: RequestContext, agent: Agent, request: SendMessageRequest, limits: StreamLimits
) -> OpenStream:
    _check_send(service, context.principal, agent, request)
    started = tasks.accept_message(service, context, request)
    if isinstance(started, Message):
        return OpenStream("", started.context_id or "", _items(StreamItem(None, started)))
    key = started.head.key
    # In this order: if the task ran first, a quick run could end before its start is read, and the client would get the
    # result in one item, without the events on the way.
    if started.task:
        start = StreamStart(started.head, started.task, started.task.n)
    else:
        start = start_stream(service.log, key, agent.id, limits.after, ends_fine=True)
    if runner := service.inline_runner(agent.id):
        runner.start(key, limits.until - service.clock.now())
    else:
        tasks.enqueue_task(service, started.head)
    if start.task:
        start = start._replace(task=start.task.limited(request.configuration.history_length))
    is_over = start.task is not None and start.task.status.state in TURN_ENDS
    return _follow(service, start, limits._replace(until=0 if is_over else limits.until, ends=TURN_ENDS))


def _subscribe(
    service: TaskService, context: RequestContext, agent: Agent, request: SubscribeToTaskRequest, limits: StreamLimits
) -> OpenStream:
    start = start_stream(service.log, context.key(request.id), agent.id, limits.after)
    return _follow(service, start, limits)


STREAMS: Final[Mapping[Operation, Callable[[TaskService, RequestContext, Agent, Any, StreamLimits], OpenStream]]] = {
    Operation.STREAM: _stream_message,
    Operation.SUBSCRIBE: _subscribe,
}
"""The function of each operation that streams."""


def _follow(service: TaskService, start: StreamStart, limits: StreamLimits) -> OpenStream:
    """The stream from its start to its end."""
    head, task = start.head, start.task
    stream = StreamContext(service.log, service.clock, limits.until, service.off_loop)
    events = follow_events(stream, head.key, start.after, limits.ends)
    return OpenStream(head.key.task, head.context_id, _items(StreamItem(task.n, task) if task else None, events))


async def _items(
    first: StreamItem | None, rest: AsyncGenerator[StreamItem | Heartbeat] | None = None
) -> AsyncGenerator[StreamItem | Heartbeat]:
    """A stream: a message alone (specification 3.1.2), or the task and the events after it."""
    if first:
        yield first
    if rest:
        async with aclosing(rest):
            async for item in rest:
                yield item


def _check_push(agent: Agent) -> None:
    if not agent.push:
        raise PushNotSupported


def _check_send(service: TaskService, principal: Principal, agent: Agent, request: SendMessageRequest) -> None:
    """Checks a message before anything is stored; raises A2AError if the message is refused."""
    if request.configuration.task_push_notification_config is not None:
        from a2a_serverless.services import webhooks

        _check_push(agent)
        webhooks.check(service.webhooks(), request.configuration.task_push_notification_config)
    _check_content(agent, request)
    _check_files(service, principal, request)


def _check_content(agent: Agent, request: SendMessageRequest) -> None:
    """Refuses media types that the card does not offer (specification 3.3.2). Accepts a part without a media type."""
    media_types = {at: part.media_type for at, part in enumerate(request.message.parts) if part.media_type}
    modes = request.configuration.accepted_output_modes
    if not (media_types or modes):
        return
    takes = [*agent.input_modes, *(mode for skill in agent.skills for mode in skill.input_modes)]
    makes = [*agent.output_modes, *(mode for skill in agent.skills for mode in skill.output_modes)]
    wrong = [
        FieldViolation(f"message.parts[{at}].mediaType", f"must be one of {', '.join(takes)}, not {media_type[:SHOWN]}")
        for at, media_type in media_types.items()
        if not fits_any(takes, media_type)
    ]
    if modes and not any(fits_any(makes, mode) for mode in modes):
        text = f"must name one of {', '.join(makes)}, not {', '.join(modes)[:SHOWN]}"
        wrong.append(FieldViolation("configuration.acceptedOutputModes", text))
    if wrong:
        raise ContentTypeNotSupported(violations=tuple(wrong))


def _check_files(service: TaskService, principal: Principal, request: SendMessageRequest) -> None:
    """Refuses parts that name a stored file that does not exist, and more than ``MAX_FILES`` different files."""
    places: dict[StoredFile, str] = {}
    for at, part in enumerate(request.message.parts):
        if content := file_of(part):
            places.setdefault(content, f"message.parts[{at}].url")
    if service.contents is None or not places:
        return
    if len(places) > MAX_FILES:
        description = f"is one too many: a message may name {MAX_FILES} different uploads"
        raise InvalidParams(violations=(FieldViolation([*places.values()][MAX_FILES], description),))
    missing = [field for content, field in places.items() if not service.contents.exists(principal, content)]
    if missing:
        description = "names no upload of yours: PUT the content first, and name it by the address that you were given"
        raise InvalidParams(violations=tuple(FieldViolation(field, description) for field in missing))
