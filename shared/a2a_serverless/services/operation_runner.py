"""Runs A2A operations on objects of 1.0. ``http/`` decodes requests and encodes answers, whatever their version."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain.contents import StoredFile, file_of, fits_any
from a2a_serverless.domain.errors import (
    ContentTypeNotSupported,
    FieldViolation,
    InvalidParams,
    PushNotSupported,
    UnsupportedOperation,
)
from a2a_serverless.protocol.v1 import (
    CancelTaskRequest,
    CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
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
    from collections.abc import AsyncGenerator

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import Principal
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.protocol.v1 import TaskState
    from a2a_serverless.services.requests import RequestContext, TaskService
    from a2a_serverless.services.streams import Heartbeat
    from a2a_serverless.services.tasks import StartedTask
    from a2a_serverless.services.webhooks import Webhooks

MOST_NAMED: Final = 32


def run_operation(
    service: TaskService, context: RequestContext, agent: Agent, request: ProtoModel
) -> ProtoModel | None:
    """Returns the answer to a request that does not stream. Raises A2AError if it is refused."""
    match request:
        case SendMessageRequest():
            _check_send(service, context.principal, agent, request)
            answer = tasks.send(service, context, request)
            return answer if isinstance(answer, Message) else answer.limited(request.configuration.history_length)
        case GetTaskRequest():
            return tasks.get(service, context, request.id).limited(request.history_length)
        case ListTasksRequest():
            from a2a_serverless.services.listing import list_tasks

            return list_tasks(service.lister(), context.principal, context.agent, request)
        case CancelTaskRequest():
            return tasks.cancel(service, context, request.id)
        case _:
            return _run_push_operation(service.webhooks(), context, agent, request)


def _run_push_operation(
    service: Webhooks, context: RequestContext, agent: Agent, request: ProtoModel
) -> ProtoModel | None:
    from a2a_serverless.services import webhooks

    _check_push(agent)
    match request:
        case CreateTaskPushNotificationConfigRequest(task_id=task):
            events = context.webhook_events
            config = webhooks.add(service, context.key(task), agent.id, request, context.version, events)
            return webhooks.show(task, config)
        case GetTaskPushNotificationConfigRequest(task_id=task):
            return webhooks.show(task, webhooks.get(service, context.key(task), agent.id, request.id))
        case ListTaskPushNotificationConfigsRequest(task_id=task):
            configs = webhooks.list_configs(service, context.key(task), agent.id)
            return ListTaskPushNotificationConfigsResponse(
                configs=tuple(webhooks.show(task, config) for config in configs)
            )
        case DeleteTaskPushNotificationConfigRequest(task_id=task):
            webhooks.delete(service, context.key(task), agent.id, request.id)
            return None
        case _:
            raise UnsupportedOperation


class OpenStream(NamedTuple):
    """A stream that has begun; ``task_id`` is "" if its only item is a message."""

    task_id: str
    context_id: str
    items: AsyncGenerator[StreamItem | Heartbeat]


def open_stream(  # noqa: PLR0913 - the request, its context and the stream's limits
    service: TaskService,
    context: RequestContext,
    agent: Agent,
    request: ProtoModel,
    after: int | None,
    until: int,
    ends: frozenset[TaskState],
) -> OpenStream:
    """Opens the stream of a message or a subscription. ``after`` is the last event that the client has received.

    ``until`` (ms) is the latest end of the stream. Raises A2AError if the request is refused. The stream of a message
    ends when the client has to act; a subscription goes on to a state in ``ends`` (specification 3.1.2, 3.1.6, 11.7;
    see docs/deviations.md).
    """
    if not agent.streaming:
        raise UnsupportedOperation("This agent does not stream.")
    if isinstance(request, SubscribeToTaskRequest):
        beginning = start_stream(service.log, context.key(request.id), agent.id, after)
        return _open_stream(service, context, beginning, until, ends)
    if not isinstance(request, SendMessageRequest):
        raise UnsupportedOperation
    _check_send(service, context.principal, agent, request)
    begun = tasks.accept_message(service, context, request)
    if isinstance(begun, Message):
        return OpenStream("", begun.context_id or "", _items(StreamItem(None, begun)))
    beginning = _start_from_message(service, agent, begun, after, until)
    beginning = beginning._replace(task=beginning.task.limited(request.configuration.history_length))
    is_over = beginning.sends_task and beginning.task.status.state in TURN_ENDS
    return _open_stream(service, context, beginning, 0 if is_over else until, TURN_ENDS)


def _start_from_message(
    service: TaskService, agent: Agent, begun: StartedTask, after: int | None, until: int
) -> StreamStart:
    """Determines the start of the stream of a stored message, then starts or enqueues the task, in this order."""
    if begun.task:
        beginning = StreamStart(begun.task, sends_task=True, after=begun.task.n)
    else:
        beginning = start_stream(service.log, begun.head.key, agent.id, after, ends_fine=True)
    if runner := service.inline_runner(agent.id):
        runner.start(begun.head.key, until - service.clock.now())
    else:
        tasks.enqueue_task(service, begun.head)
    return beginning


def _open_stream(
    service: TaskService, context: RequestContext, beginning: StreamStart, until: int, ends: frozenset[TaskState]
) -> OpenStream:
    task = beginning.task
    stream = StreamContext(service.log, service.clock, until, service.off_loop)
    rest = follow_events(stream, context.key(task.id), beginning.after, ends)
    first = StreamItem(task.n, task) if beginning.sends_task else None
    return OpenStream(task.id, task.context_id, _items(first, rest))


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
        FieldViolation(f"message.parts[{at}].mediaType", f"must be one of {', '.join(takes)}")
        for at, media_type in media_types.items()
        if not fits_any(takes, media_type)
    ]
    if modes and not any(fits_any(makes, mode) for mode in modes):
        wrong.append(FieldViolation("configuration.acceptedOutputModes", f"must name one of {', '.join(makes)}"))
    if wrong:
        raise ContentTypeNotSupported(violations=tuple(wrong))


def _check_files(service: TaskService, principal: Principal, request: SendMessageRequest) -> None:
    """Refuses parts that name a stored file that does not exist, and more than ``MOST_NAMED`` different files."""
    places: dict[StoredFile, str] = {}
    for at, part in enumerate(request.message.parts):
        if content := file_of(part):
            places.setdefault(content, f"message.parts[{at}].url")
    if service.contents is None or not places:
        return
    if len(places) > MOST_NAMED:
        description = f"is one too many: a message may name {MOST_NAMED} different uploads"
        raise InvalidParams(violations=(FieldViolation([*places.values()][MOST_NAMED], description),))
    missing = [field for content, field in places.items() if not service.contents.exists(principal, content)]
    if missing:
        description = "names no upload of yours: PUT the content first, and name it by the address that you were given"
        raise InvalidParams(violations=tuple(FieldViolation(field, description) for field in missing))
