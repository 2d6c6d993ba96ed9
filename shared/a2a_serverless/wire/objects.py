"""Messages, tasks, artifacts and their updates, which every version has, in the dialect of each.

The versions agree on what a task is and differ in how they spell it: names of states and roles, the shape of a part,
whether an object says its ``kind``. A dialect is that difference; the structure is written once, here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import Artifact, Json, JsonObject, Message, Part, Role, Task, TaskState, TaskStatus
from a2a_serverless.domain.queries import Answer, Update
from a2a_serverless.protocol import timestamps
from a2a_serverless.protocol.strict_json import given

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2a_serverless.domain.events import Event
    from a2a_serverless.wire.fields import Fields

Printers: TypeAlias = "Sequence[tuple[type, Callable[..., Json]]]"

NOTHING_SAID: Final = Message("", Role.USER, ())


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one version and binding spells the objects.

    ``states`` and ``roles`` are the names that are printed; ``states_in`` and ``roles_in`` all that are understood.
    ``kinds``: objects carry ``kind``. ``contents``: what a message calls its parts; the first is what we call them.
    ``references``: a message can name the tasks that it refers to.
    """

    states: Mapping[TaskState, str]
    roles: Mapping[Role, str]
    states_in: Mapping[Any, TaskState]
    roles_in: Mapping[Any, Role]
    read_part: Callable[[Fields], Part]
    print_part: Callable[[Part], JsonObject]
    kinds: bool = False
    contents: tuple[str, ...] = ("parts",)
    references: bool = True

    def message(self, fields: Fields) -> Message:
        """A Message (4.1.4)."""
        role = fields.need(fields.choice("role", self.roles_in), "role")
        return Message(
            message_id=fields.need_ident("messageId"),
            role=role or Role.USER,
            parts=self.parts(fields, next(filter(fields.has, self.contents), self.contents[0])),
            context_id=fields.ident("contextId"),
            task_id=fields.ident("taskId"),
            metadata=fields.metadata(),
            extensions=fields.strings("extensions"),
            reference_task_ids=fields.strings("referenceTaskIds"),
        )

    def parts(self, fields: Fields, name: str = "parts") -> tuple[Part, ...]:
        """The parts of a message or an artifact: at least one (5.7)."""
        found = fields.children(name, fields.limits.parts)
        if fields.value(name) in (None, []):
            fields.wrong(name, "must hold at least one part")
        return tuple([self.read_part(one) for one in found])

    def task(self, fields: Fields) -> Task:
        """A Task (4.1.1) from a peer. Its events are not numbered for us: ``n`` is 0."""
        return Task(
            task_id=fields.need_ident("id"),
            context_id=fields.ident("contextId") or "",
            status=self.status(fields),
            n=0,
            artifacts=tuple([self.artifact(one) for one in fields.children("artifacts", fields.limits.items)]),
            history=tuple([self.message(one) for one in fields.children("history", fields.limits.items)]),
            metadata=fields.metadata(),
        )

    def status(self, fields: Fields) -> TaskStatus:
        """The ``status`` of a task or an update; without a timestamp, its time is 0."""
        inner = fields.need(fields.child("status"), "status")
        if inner is None:
            return TaskStatus(TaskState.WORKING, 0)
        state = inner.need(inner.choice("state", self.states_in), "state")
        said = inner.child("message")
        return TaskStatus(
            state or TaskState.WORKING, inner.moment("timestamp") or 0, self.message(said) if said else None
        )

    def artifact(self, fields: Fields) -> Artifact:
        """An Artifact (4.1.7)."""
        return Artifact(
            artifact_id=fields.need_ident("artifactId"),
            parts=self.parts(fields),
            name=fields.text("name", fields.limits.name) or None,
            description=fields.text("description") or None,
            metadata=fields.metadata(),
            extensions=fields.strings("extensions"),
        )

    def status_update(self, fields: Fields) -> Update:
        """A TaskStatusUpdateEvent (4.2.1)."""
        now = self.status(fields)
        return _update(fields, StatusEvent(0, now.timestamp, "", now.state, now.message))

    def artifact_update(self, fields: Fields) -> Update:
        """A TaskArtifactUpdateEvent (4.2.2)."""
        inner = fields.need(fields.child("artifact"), "artifact")
        chunk = self.artifact(inner) if inner else Artifact("", ())
        append, last = fields.flag("append") or False, fields.flag("lastChunk") or False
        return _update(fields, ArtifactEvent(0, 0, "", chunk, append, last))

    def print_task(self, task: Task) -> JsonObject:
        """A Task (4.1.1)."""
        return given(
            {
                "kind": "task" if self.kinds else None,
                "id": task.task_id,
                "contextId": task.context_id,
                "status": self.print_status(task.status),
                "artifacts": [self.print_artifact(one) for one in task.artifacts] or None,
                "history": [self.print_message(one) for one in task.history] or None,
                "metadata": task.metadata,
            }
        )

    def print_status(self, status: TaskStatus) -> JsonObject:
        """A TaskStatus (4.1.2), always with its time: ListTasks sorts by it."""
        printed: JsonObject = {"state": self.states[status.state], "timestamp": timestamps.to_text(status.timestamp)}
        if status.message:
            printed["message"] = self.print_message(status.message)
        return printed

    def print_message(self, message: Message) -> JsonObject:
        """A Message (4.1.4)."""
        return given(
            {
                "kind": "message" if self.kinds else None,
                "messageId": message.message_id,
                "role": self.roles[message.role],
                self.contents[0]: [self.print_part(one) for one in message.parts],
                "contextId": message.context_id,
                "taskId": message.task_id,
                "metadata": message.metadata,
                "extensions": [*message.extensions] or None,
                "referenceTaskIds": ([*message.reference_task_ids] or None) if self.references else None,
            }
        )

    def print_artifact(self, artifact: Artifact) -> JsonObject:
        """An Artifact (4.1.7)."""
        return given(
            {
                "artifactId": artifact.artifact_id,
                "parts": [self.print_part(one) for one in artifact.parts],
                "name": artifact.name,
                "description": artifact.description,
                "metadata": artifact.metadata,
                "extensions": [*artifact.extensions] or None,
            }
        )

    def print_update(self, event: Event, task_id: str, context_id: str) -> JsonObject:
        """A TaskStatusUpdateEvent (4.2.1) or a TaskArtifactUpdateEvent (4.2.2)."""
        of: JsonObject = {"taskId": task_id, "contextId": context_id}
        if isinstance(event, StatusEvent):
            now = TaskStatus(event.state, event.at, event.message)
            return self._kind("status-update") | of | {"status": self.print_status(now)}
        how = given({"append": event.append or None, "lastChunk": event.last_chunk or None})
        return self._kind("artifact-update") | of | {"artifact": self.print_artifact(event.artifact)} | how

    def _kind(self, kind: str) -> JsonObject:
        return {"kind": kind} if self.kinds else {}


def printed(result: Answer, printers: Printers) -> Json:
    """The answer by the printer of its class; what has none (a card, nothing) is JSON already."""
    for kind, printer in printers:
        if isinstance(result, kind):
            return printer(result)
    return cast("JsonObject | None", result)


def _update(fields: Fields, event: Event) -> Update:
    return Update(fields.need_ident("taskId"), fields.need_ident("contextId"), event)
