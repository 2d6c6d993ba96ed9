"""The HTTP shapes from before 0.3 (``/tasks/send``), served under ``/legacy/{agent}`` to those who still speak them.

They know tasks only, six states, parts that name their ``type``. A state that they lack becomes the nearest one, a
direct message becomes a task that has completed with it, and artifacts come whole in a task (``index`` counts them).
A stream tells the whole task after each change of its status, so that its codec has to remember the task.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import MethodNotFound
from a2a_serverless.domain.events import ArtifactEvent, Event, TaskReplay
from a2a_serverless.domain.model import Artifact, Message, Part, Task, TaskState, TaskStatus
from a2a_serverless.domain.queries import GetTask
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.wire import v0_3
from a2a_serverless.wire.fields import read
from a2a_serverless.wire.objects import Dialect
from a2a_serverless.wire.rest import Route

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject, SendRequest
    from a2a_serverless.domain.queries import Answer, Request

ROUTES: Final = (
    Route("POST", "/tasks/send", Operation.SEND, "0.3"),
    Route("POST", "/tasks/sendSubscribe", Operation.STREAM, "0.3"),
    Route("GET", "/tasks/{id}", Operation.GET, "0.3"),
)
STATES: Final = v0_3.STATES | {TaskState.REJECTED: "failed", TaskState.AUTH_REQUIRED: "input-required"}


def print_part(part: Part) -> JsonObject:
    """A part with ``type`` for ``kind``."""
    printed = v0_3.print_part(part)
    return {"type": printed.pop("kind")} | printed


DIALECT: Final = Dialect(STATES, v0_3.ROLES, v0_3.STATES_IN, v0_3.ROLES_IN, v0_3.read_part, print_part)


class LegacyCodec:
    """``codecs.Codec`` for one request that came in at ``at`` (ms)."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._task: TaskReplay | None = None

    def parse(self, operation: Operation, params: Json, limits: Limits = LIMITS) -> Request:
        """The request. Raises InvalidParams with all violations."""
        if operation is Operation.GET:
            return read(params, limits, lambda fields: GetTask(fields.need_ident("id")))
        if operation in {Operation.SEND, Operation.STREAM}:
            return parse_send(params, limits)
        raise MethodNotFound

    def answer(self, operation: Operation, result: Answer) -> Json:
        """The task, or the message as a task."""
        del operation
        if not isinstance(result, (Task, Message)):
            raise TypeError("only tasks and messages are answered in the older shapes")
        return answer(result, self._at)

    def stream_item(self, item: Task | Message | Event, task_id: str, context_id: str) -> JsonObject:
        """One ``data`` line. The first item of a stream is a task or a message."""
        if isinstance(item, Task):
            self._task = TaskReplay.from_task(item)
        elif not isinstance(item, Message):
            item = self._told(item)
        return stream_item(item, task_id, context_id, self._at)

    def _told(self, event: Event) -> Task | ArtifactEvent:
        if self._task is None:
            raise TypeError("a stream begins with the task")
        self._task.apply(event)
        return event if isinstance(event, ArtifactEvent) else self._task.task()


def parse_send(body: Json, limits: Limits = LIMITS) -> SendRequest:
    """The body of ``/tasks/send`` and ``/tasks/sendSubscribe``. Raises InvalidParams with all violations."""
    return read(body, limits, partial(v0_3.read_send, DIALECT))


def answer(result: Task | Message, at: int) -> JsonObject:
    """The answer of ``/tasks/send`` and ``/tasks/{id}``; ``at`` (ms) is the time of a task made of a message."""
    task = result if isinstance(result, Task) else _around(result, at)
    artifacts: list[Json] = [_whole(one, index) for index, one in enumerate(task.artifacts)]
    printed = DIALECT.print_task(replace(task, artifacts=()))
    return printed | {"artifacts": artifacts, "history": printed.get("history", [])}


def stream_item(item: Task | Message | ArtifactEvent, task_id: str, context_id: str, at: int) -> JsonObject:
    """One ``data`` line: the whole task after each change of its status, or a chunk of an artifact."""
    if not isinstance(item, ArtifactEvent):
        return {"task": answer(item, at)}
    chunk = _print_artifact(item.artifact, 0, append=item.append, last=item.last_chunk)
    return {"taskId": task_id, "contextId": context_id, "artifact": chunk}


def _around(message: Message, at: int) -> Task:
    status = TaskStatus(TaskState.COMPLETED, at, message)
    return Task(message.message_id, message.context_id or "", status, 0)


def _whole(artifact: Artifact, index: int) -> JsonObject:
    return _print_artifact(artifact, index, append=False, last=True)


def _print_artifact(artifact: Artifact, index: int, *, append: bool, last: bool) -> JsonObject:
    return DIALECT.print_artifact(artifact) | {"index": index, "append": append, "lastChunk": last}
