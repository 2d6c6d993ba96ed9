"""Retries of failed tasks: a new task that takes over what its predecessor came to. A worker copies that.

The failed task stays as it is. The new one has its message, its context and its agent, and webhooks of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.errors import FieldViolation, InvalidParams, TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.task_copies import endings_of
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task, TaskState
from a2a_serverless.services.operation_runner import run_operation
from a2a_serverless.services.requests import TaskRetry
from a2a_serverless.services.task_changes import read_existing_head

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.protocol.additions import RetryRequest
    from a2a_serverless.services.requests import RequestContext, TaskService
    from a2a_serverless.store.task_log import TaskLog

METADATA_KEY: Final = "a2a-serverless/retry"
"""The member of a task's metadata that names the task that it repeats, the request, and the step."""


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
    if request.from_step:
        _check_step(service.log, key, request.from_step)
    event: Any = next(iter(service.log.read(key, 0, 1)), None)
    if event is None:
        raise TaskNotFound  # it is being erased
    first: Incoming = event.incoming
    names = {"taskId": task_id, "requestId": request.request_id, "fromStep": request.from_step}
    send = SendMessageRequest(
        message=first.message.model_copy(update={"task_id": None}),
        configuration=SendMessageConfiguration(
            accepted_output_modes=first.accepted_output_modes,
            task_push_notification_config=request.task_push_notification_config,
            return_immediately=True,
        ),
        metadata={**(first.metadata or {}), METADATA_KEY: {name: value for name, value in names.items() if value}},
    )
    request_id, step, origin = request.request_id, request.from_step or "", head.origin or task_id
    retry = TaskRetry(request_id, digest([task_id, request]), task_id, step, origin)
    context = context._replace(extensions=first.extensions, trace=head.trace, retry=retry)
    return cast("Task", run_operation(Operation.SEND, service, context, agent, send))


def _check_step(log: TaskLog, key: TaskKey, step: str) -> None:
    """Raises InvalidParams unless the step or call has ended.

    The answer does not list the steps that there are: that would read them, and a task may have any number of them.
    """
    if step.startswith("@") or not log.has_any_step(key, endings_of(step)):
        why = "is not a step that has ended in this task. The task's timeline lists its steps."
        raise InvalidParams(violations=(FieldViolation("fromStep", why),))
