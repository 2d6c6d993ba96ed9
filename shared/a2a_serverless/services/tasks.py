"""SendMessage, GetTask and CancelTask (specification 3.1.1, 3.1.3, 3.1.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain import decisions
from a2a_serverless.domain.budgets import METADATA_KEY, read_budget
from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.errors import FieldViolation, InvalidParams, TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.events import Incoming
from a2a_serverless.domain.model import OWN_NAMES
from a2a_serverless.domain.new_task import IdempotencyRecord, NewTask
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.replay import TaskReplay
from a2a_serverless.domain.states import INTERRUPTED, RUNNABLE
from a2a_serverless.protocol.v1 import Message, SendMessageRequest, Task, TaskPushNotificationConfig
from a2a_serverless.services.content_links import store_contents
from a2a_serverless.services.task_changes import (
    Conflict,
    change_task,
    read_existing_head,
    retry_on_conflict,
    try_change,
)

if TYPE_CHECKING:
    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.decisions import Change
    from a2a_serverless.domain.head import CurrentHead, Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.push_configs import PushConfig
    from a2a_serverless.services.requests import RequestContext, TaskService
    from a2a_serverless.store.task_log import TaskLog

_RESERVED: Final = f"is a name of this deployment: only {METADATA_KEY} in a message's metadata is a client's"
POLL_FIRST_S: Final = 0.05
POLL_LAST_S: Final = 0.5


class QuestionClosed(Exception):
    """The task does not wait for its client any more."""


class StartedTask(NamedTuple):
    """The result of storing a message: the task's head, and the task itself if it is new."""

    head: Head
    task: Task | None


def send(service: TaskService, context: RequestContext, request: SendMessageRequest) -> Task | Message:
    """Starts or continues a task and returns it, or returns the message with which an inline agent answers directly.

    Waits until the task ends or needs its client, unless the request says ``return_immediately``. After ``blocking_ms``
    it returns the task as it is (``blocking`` in docs/deviations.md). That time begins with the request and includes
    the work of an inline agent before it asks for a task. A repeated message id returns the task of the first send.
    """
    time_ms = service.blocking_ms if context.time_left_ms is None else min(service.blocking_ms, context.time_left_ms)
    until = service.clock.now() + time_ms
    beginning = accept_message(service, context, request)
    if isinstance(beginning, Message):
        return beginning
    head = beginning.head
    if request.configuration.return_immediately or not _run_inline(service, context.agent, head, until):
        enqueue_task(service, head)
    if request.configuration.return_immediately:
        return beginning.task or _read(service.log, head.key)[1]
    return _wait(service, head, until)


def accept_message(service: TaskService, context: RequestContext, request: SendMessageRequest) -> StartedTask | Message:
    """Stores a message as the first event of a new task or the next event of an existing one.

    The caller of this function has to run or enqueue the task.
    """
    message = request.message
    _check_budget(message)
    if not context.retry:
        _check_names(request)
    if message.task_id is not None:
        return StartedTask(_continue(service, context, message.task_id, request), None)
    if message.context_id is not None and context.answers_by_context:
        head = _answer_by_context(service, context, message.context_id, request)
        if head is not None:
            return StartedTask(head, None)
    context_id = message.context_id or service.ids.new()
    if (runner := service.inline_runner(context.agent)) and not context.retry:
        incoming = _incoming(context, request, None, context_id)
        if reply := runner.answer_directly(context.agent, context.principal, incoming):
            return reply
    return _start(service, context, request, context_id)


def enqueue_task(service: TaskService, head: Head) -> None:
    """Enqueues a work message if the task can be run."""
    if head.state in RUNNABLE:
        service.queues.enqueue(WorkMessage(head.key))


def _run_inline(service: TaskService, agent: str, head: Head, until: int) -> bool:
    runner = service.inline_runner(agent) if head.state in RUNNABLE else None
    if runner:
        runner.run(head.key, max(0, until - service.clock.now()))
    return runner is not None


def get(service: TaskService, context: RequestContext, task_id: str) -> Task:
    """Returns the current task, from one consistent query. Raises TaskNotFound."""
    head, task = _read(service.log, context.key(task_id))
    if head.agent != context.agent:
        raise TaskNotFound
    return task


def cancel(service: TaskService, context: RequestContext, task_id: str) -> Task:
    """Cancels the task; its worker stops within a second or two. Raises TaskNotCancelable if the task has ended."""
    key, by = context.key(task_id), service.ids.new()
    canceled = change_task(
        service.log,
        key,
        context.agent,
        lambda current: decisions.cancel(current, now=service.clock.now(), by=by, trace=context.trace),
    )
    service.metrics.count("TaskStates", state=canceled.after.state, task=task_id)
    if canceled.after.children:
        service.queues.enqueue(WorkMessage(key))  # a worker cancels the calls of this task
    task = _read(service.log, key)[1]
    store_contents(service.contents, context.principal, task)
    return task


def _start(service: TaskService, context: RequestContext, request: SendMessageRequest, context_id: str) -> StartedTask:
    key = context.key(service.ids.new())
    record = _idempotency_record(service, context.agent, request.message, key.task)
    if record and context.retry:
        record = record._replace(message_id=context.retry.request_id, digest=context.retry.digest, kind="retry")
    incoming = _incoming(context, request, key.task, context_id)
    pushes = _first_webhook(service, context, key, request)
    head, event = decisions.submit(
        key,
        context.agent,
        context_id,
        incoming,
        now=service.clock.now(),
        by=service.ids.new(),
        life=service.life,
        push=bool(pushes),
        trace=context.trace,
        caller=context.caller,
    )
    if retry := context.retry:
        head = head._replace(origin=retry.origin, repeats=retry.task, repeats_from=retry.step)
    earlier = service.log.create(NewTask(head, event, record, pushes))
    if earlier is not None:
        return StartedTask(_answer_repeat(service, context, record, earlier), None)
    service.metrics.count("TaskStates", state=head.state, task=key.task)
    first = TaskReplay(key.task, context_id)
    first.apply(event)
    return StartedTask(head, first.task())


def _first_webhook(
    service: TaskService, context: RequestContext, key: TaskKey, request: SendMessageRequest
) -> tuple[tuple[PushConfig, Cursor], ...]:
    push = request.configuration.task_push_notification_config
    if push is None:
        return ()
    from a2a_serverless.services.webhooks import new_config

    return (new_config(service.webhooks(), key, push, context.version, context.webhook_events),)


def _answer_by_context(
    service: TaskService, context: RequestContext, context_id: str, request: SendMessageRequest
) -> Head | None:
    """Stores the message as the answer to the one open question of the context; None if there is no open question.

    A question is answered once: if a write meets a closed question, this looks for an open question again. A repeated
    message returns its task, as always; so the message that created a task is no answer to the task's question.
    """
    from a2a_serverless.services.open_questions import find_open_question

    record = _idempotency_record(service, context.agent, request.message, "")

    def attempt() -> Head | None:
        if repeat := _find_repeat(service, context, record):
            return repeat
        task_id = find_open_question(service, context, context_id)
        if task_id is None:
            return None
        try:
            return _continue(service, context, task_id, request, only_if_asked=True)
        except (QuestionClosed, TaskNotFound):
            raise Conflict from None

    return retry_on_conflict(attempt)


def _find_repeat(service: TaskService, context: RequestContext, record: IdempotencyRecord | None) -> Head | None:
    """The head of the task that an earlier send of the message made or answered, or None."""
    if record is None:
        return None
    earlier = service.log.find_idempotency(context.key(record.task), context.agent, record.message_id, record.kind)
    return None if earlier is None else _answer_repeat(service, context, record, earlier)


def _continue(
    service: TaskService,
    context: RequestContext,
    task_id: str,
    request: SendMessageRequest,
    *,
    only_if_asked: bool = False,
) -> Head:
    """Stores the message as the next event of a task. With ``only_if_asked`` raises QuestionClosed if it asks nothing.

    A webhook that came with the message is then stored already, and stays at that task of the same owner.
    """
    key, agent, message, by = context.key(task_id), context.agent, request.message, service.ids.new()
    record = _idempotency_record(service, agent, message, key.task)

    def decide(current: CurrentHead) -> Change:
        _check_context(message, current.head)
        if only_if_asked and current.head.state not in INTERRUPTED:
            raise QuestionClosed
        incoming = _incoming(context, request, key.task, current.head.context_id)
        return decisions.follow_up(
            current, incoming, now=service.clock.now(), by=by, trace=context.trace, caller=context.caller
        )

    def store() -> Head:
        push = request.configuration.task_push_notification_config
        if push is not None:
            from a2a_serverless.services import webhooks

            if repeat := _find_repeat(service, context, record):
                return repeat
            decide(read_existing_head(service.log, key, agent))  # raises if the task cannot accept the message
            config, events = _name_webhook(push, message), context.webhook_events
            webhooks.add(service.webhooks(), key, agent, config, context.version, events)
        return retry_on_conflict(
            lambda: _find_repeat(service, context, record) or try_change(service.log, key, agent, decide, record).after
        )

    try:
        return store()
    except UnsupportedOperation:
        # Another send of this message may have been accepted meanwhile, and its task may have ended.
        if repeat := _find_repeat(service, context, record):
            return repeat
        raise


def _name_webhook(push: TaskPushNotificationConfig, message: Message) -> TaskPushNotificationConfig:
    """Derives the webhook's id from the message id, unless it has one: a repeated send then registers no other webhook.

    The webhook of a message is stored before the message.
    """
    return push.model_copy(update={"id": push.id or digest([message.message_id])[:32]})


def _answer_repeat(
    service: TaskService, context: RequestContext, ours: IdempotencyRecord | None, earlier: IdempotencyRecord
) -> Head:
    """Returns the head of the task that the first send made; raises InvalidParams if the content differs."""
    if ours is None or earlier.digest != ours.digest:
        field = "requestId" if context.retry else "message.messageId"
        raise InvalidParams(violations=(FieldViolation(field, "was used before with another content; use a new one"),))
    return read_existing_head(service.log, context.key(earlier.task), context.agent).head


def _idempotency_record(service: TaskService, agent: str, message: Message, task_id: str) -> IdempotencyRecord | None:
    return IdempotencyRecord(agent, message.message_id, digest(message), task_id) if service.idempotent else None


def _incoming(context: RequestContext, request: SendMessageRequest, task_id: str | None, context_id: str) -> Incoming:
    """The request to store: its message names its task (None before the task exists) and its context."""
    message = request.message.model_copy(update={"task_id": task_id, "context_id": context_id})
    return Incoming(message, request.configuration.accepted_output_modes, request.metadata, context.extensions)


def _check_budget(message: Message) -> None:
    """Raises InvalidParams for a budget in the message's metadata that is none."""
    if message.metadata and METADATA_KEY in message.metadata:
        try:
            read_budget(message.metadata)
        except ValueError as invalid:
            field = f"message.metadata.{METADATA_KEY}"
            raise InvalidParams(violations=(FieldViolation(field, str(invalid)),)) from None


def _check_names(request: SendMessageRequest) -> None:
    """Raises InvalidParams for names in metadata that only the deployment writes, such as those of a schedule."""
    message = request.message
    all_metadata = {"metadata": request.metadata, "message.metadata": message.metadata}
    all_metadata |= {f"message.parts[{at}].metadata": part.metadata for at, part in enumerate(message.parts)}
    wrong = [
        FieldViolation(f"{field}.{name}", _RESERVED)
        for field, metadata in all_metadata.items()
        for name in metadata or {}
        if name.startswith(OWN_NAMES) and (field, name) != ("message.metadata", METADATA_KEY)
    ]
    if wrong:
        raise InvalidParams(violations=tuple(wrong))


def _check_context(message: Message, head: Head) -> None:
    if message.context_id is not None and message.context_id != head.context_id:
        raise InvalidParams(violations=(FieldViolation("message.contextId", "is not the context of the task"),))


def _read(log: TaskLog, key: TaskKey) -> tuple[Head, Task]:
    head_and_task = log.read_task(key)
    if head_and_task is None:
        raise TaskNotFound
    return head_and_task


def _wait(service: TaskService, head: Head, until: int) -> Task:
    head, task = _read(service.log, head.key)
    if _is_settled(head):
        return task
    pause = POLL_FIRST_S
    while not _is_settled(head) and (left := until - service.clock.now()) > 0:
        service.clock.sleep(min(pause, left / 1000))
        pause = min(pause * 1.5, POLL_LAST_S)
        current = service.log.read_head(head.key)
        if current is None:
            raise TaskNotFound
        head = current.head
    return _read(service.log, head.key)[1]


def _is_settled(head: Head) -> bool:
    return head.is_terminal or head.state in INTERRUPTED
