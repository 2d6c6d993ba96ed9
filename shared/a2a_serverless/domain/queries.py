"""Requests other than SendMessage, and their responses, independent of the protocol version.

One class for each operation of specification 3.1; ``SendRequest`` is in ``domain.model`` because the log stores parts
of it. History lengths are normalized: None means all, 0 means none, in every version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from a2a_serverless.domain.model import JsonObject, Message, PushRequest, SendRequest, Task, TaskState

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.push import PushConfig

PAGE_SIZE: Final = 50
MAX_PAGE_SIZE: Final = 100


@dataclass(frozen=True, slots=True)
class GetTask:
    """GetTask (3.1.3)."""

    task_id: str
    history_length: int | None = None


@dataclass(frozen=True, slots=True)
class ListTasks:
    """ListTasks (3.1.4). ``since`` (ms) leaves out tasks with an older status; ``page_size`` is 1 to 100."""

    context_id: str | None = None
    state: TaskState | None = None
    page_size: int = PAGE_SIZE
    page_token: str | None = None
    history_length: int | None = None
    since: int | None = None
    include_artifacts: bool = False


@dataclass(frozen=True, slots=True)
class CancelTask:
    """CancelTask (3.1.5)."""

    task_id: str
    metadata: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class SubscribeToTask:
    """SubscribeToTask (3.1.6)."""

    task_id: str


@dataclass(frozen=True, slots=True)
class CreatePush:
    """CreateTaskPushNotificationConfig (3.1.7)."""

    task_id: str
    push: PushRequest


@dataclass(frozen=True, slots=True)
class GetPush:
    """GetTaskPushNotificationConfig (3.1.8). ``config_id`` None means the first one (0.3 only)."""

    task_id: str
    config_id: str | None


@dataclass(frozen=True, slots=True)
class ListPushes:
    """ListTaskPushNotificationConfigs (3.1.9). ``page_size`` None means all."""

    task_id: str
    page_size: int | None = None
    page_token: str | None = None


@dataclass(frozen=True, slots=True)
class DeletePush:
    """DeleteTaskPushNotificationConfig (3.1.10)."""

    task_id: str
    config_id: str


@dataclass(frozen=True, slots=True)
class GetCard:
    """GetExtendedAgentCard (3.1.11)."""


Request: TypeAlias = (
    SendRequest
    | GetTask
    | ListTasks
    | CancelTask
    | SubscribeToTask
    | CreatePush
    | GetPush
    | ListPushes
    | DeletePush
    | GetCard
)


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of ListTasks. ``artifacts``: whether the client wants them; ``next_page_token`` is "" on the last page."""

    tasks: tuple[Task, ...]
    page_size: int
    total_size: int
    next_page_token: str = ""
    artifacts: bool = False


@dataclass(frozen=True, slots=True)
class TaskPush:
    """A webhook and its task's id."""

    task_id: str
    config: PushConfig


@dataclass(frozen=True, slots=True)
class PushPage:
    """A page of the webhooks of a task."""

    pushes: tuple[TaskPush, ...]
    next_page_token: str = ""


Answer: TypeAlias = "Task | Message | TaskPage | TaskPush | PushPage | JsonObject | None"


@dataclass(frozen=True, slots=True)
class Update:
    """An event of a remote agent's task, from a stream or a notification. Its ``n`` is 0: A2A has no event numbers."""

    task_id: str
    context_id: str
    event: Event


def limit_task(task: Task, history_length: int | None, *, artifacts: bool = True) -> Task:
    """The task with at most the ``history_length`` latest messages (3.2.4), and without artifacts if so requested."""
    history = task.history
    if history_length is not None and len(history) > history_length:
        history = history[len(history) - history_length :]
    return replace(task, history=history, artifacts=task.artifacts if artifacts else ())
