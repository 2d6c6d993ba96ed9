"""Retries of failed tasks: a new task that takes over what its predecessor came to. A worker copies that.

The failed task stays as it is. The new one has its message, its context and its agent, and webhooks of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import FieldViolation, InvalidParams, TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.model import digest
from a2a_serverless.domain.task_copies import ended_paths, endings_of
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task, TaskState
from a2a_serverless.services import tasks
from a2a_serverless.services.operation_runner import check_send
from a2a_serverless.services.task_changes import read_existing_head

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.model import JsonObject, TaskKey
    from a2a_serverless.protocol.additions import RetryRequest
    from a2a_serverless.services.tasks import RequestContext, TaskService
    from a2a_serverless.store.task_log import TaskLog

METADATA_KEY: Final = "a2a-serverless/retry"
"""The member of a task's metadata that names the task that it repeats, and the step."""
STEPS: Final = 1000
NAMED: Final = 20


def retry_task(
    service: TaskService, context: RequestContext, agent: Agent, task_id: str, request: RetryRequest
) -> Task:
    """Starts a task that repeats a failed one, and returns it. A repeated request returns the task of the first one.

    Raises TaskNotFound; UnsupportedOperation for a task that has not failed; InvalidParams for a step that it has not.
    """
    key = context.key(task_id)
    head = read_existing_head(service.log, key, agent.id).head
    if head.state is not TaskState.FAILED:
        raise UnsupportedOperation(f"Only a failed task can be retried: this one is {head.state.value}.")
    step = request.from_step or ""
    if step:
        _check_step(service.log, key, step)
    first = _first_request(service.log, key)
    repeated: JsonObject = {"taskId": task_id, **({"fromStep": step} if step else {})}
    send = SendMessageRequest(
        message=first.message.model_copy(update={"task_id": None}),
        configuration=SendMessageConfiguration(
            accepted_output_modes=first.accepted_output_modes,
            task_push_notification_config=request.task_push_notification_config,
        ),
        metadata={**(first.metadata or {}), METADATA_KEY: repeated},
    )
    check_send(service, context.principal, agent, send)
    retry = tasks.Retry(request.request_id, digest([task_id, request]), task_id, step, head.origin or task_id)
    context = context._replace(extensions=first.extensions)
    begun = tasks.start_task(service, context, send, head.context_id, retry)
    tasks.enqueue_task(service, begun.head)
    return begun.task or tasks.get(service, context, begun.head.key.task)


def _first_request(log: TaskLog, key: TaskKey) -> Incoming:
    first = next(iter(log.read(key, 0, 1)), None)
    if not isinstance(first, StatusEvent) or first.incoming is None:
        raise TaskNotFound  # it is being erased
    return first.incoming


def _check_step(log: TaskLog, key: TaskKey, step: str) -> None:
    """Raises InvalidParams, with the names of the steps that there are, unless the step or call has ended."""
    if not step.startswith("@") and any(log.read_step(key, name) for name in endings_of(step)):
        return
    steps = ended_paths(time.name for time in log.list_step_times(key, STEPS))
    names = ", ".join(map(repr, steps[:NAMED])) + (f" and {len(steps) - NAMED} more" if len(steps) > NAMED else "")
    why = f"is no step of the task that has ended. There are: {names}" if steps else "is no step: none has ended"
    raise InvalidParams(violations=(FieldViolation("fromStep", why),))
