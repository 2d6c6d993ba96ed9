"""Tasks, their logs, and the lists of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from a2a_serverless.domain.events import ArtifactEvent, Event
    from a2a_serverless.domain.head import Change, Head, HeadSnapshot
    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.domain.records import (
        Admit,
        DueItem,
        IdempotencyRecord,
        NewTask,
        StepResult,
        TaskEntry,
        TaskPart,
    )
    from a2a_serverless.domain.timeline import StepTime
    from a2a_serverless.protocol.v1 import Task


class TaskLog(Protocol):
    """The tasks and their logs. All reads are strongly consistent; expired tasks do not exist."""

    def create(self, opening: NewTask) -> IdempotencyRecord | None:
        """Returns None when all is written, also by an earlier try; else the idempotency record that exists already."""

    def find_idempotency(self, key: TaskKey, agent: str, message_id: str) -> IdempotencyRecord | None:
        """The idempotency record of an earlier send, or None. Only tenant and owner of ``key`` are used."""

    def read_head(self, key: TaskKey) -> HeadSnapshot | None:
        """The head and the last event number from one query; the head is never older than that event."""

    def read_log(self, key: TaskKey) -> tuple[Head, list[Event]] | None:
        """The head and the whole log: the events from 1 without a gap."""

    def read_task(self, key: TaskKey) -> tuple[Head, Task] | None:
        """The head and the current task, by a replay of the log; a long log is replayed from its last snapshot."""

    def read_part(self, key: TaskKey, history: int | None, *, artifacts: bool) -> TaskPart | None:
        """As ``read_task``, with at most the ``history`` latest messages (None is all), and with or without artifacts.

        Big content that is not asked for is not read.
        """

    def read_task_at(self, head: Head, n: int, admit: Admit | None = None) -> Task:
        """The task as of event ``n``, which must have been read before. ``head`` may be of any moment.

        ``admit`` must not return False here.
        """

    def store_snapshot(self, key: TaskKey) -> str:
        """Stores a snapshot of the current task, idempotently; returns the reference that belongs in ``Head.fold``."""

    def read(self, key: TaskKey, after: int, limit: int = 200, admit: Admit | None = None) -> list[Event]:
        """The events after number ``after``, without a gap, at most ``limit``, and up to what ``admit`` refuses."""

    def append(self, change: Change, record: IdempotencyRecord | None = None) -> bool:
        """Appends a status event and updates the head. False on a conflict: read the head again and decide again."""

    def append_chunk(self, head: Head, event: ArtifactEvent) -> bool:
        """Appends an artifact chunk of the run with the lease in ``head``. False as in ``append``.

        This and the next two are one conditional put while that lease lasts. After it they write only if the stored
        head has the run's fence.
        """

    def update_head(self, before: Head, after: Head) -> bool:
        """Updates the head without an event (lease, due time). False as in ``append``."""

    def read_steps(self, key: TaskKey) -> Mapping[str, StepResult]:
        """The results of all steps that have finished."""

    def list_step_times(self, key: TaskKey, limit: int) -> list[StepTime]:
        """When the task's steps ran, at most ``limit``, in no order."""
        ...

    def store_step(self, head: Head, name: str, result: StepResult, *, of_run: bool = True) -> StepResult | None:
        """Stores a step's result unless one is stored already, and returns the stored one.

        None if the run does not have the task any more or, without ``of_run``, if there is no such task.
        """

    def store_callback(self, head: Head, callback: str, call: str) -> bool:
        """Stores which call of the run's task a callback address belongs to. Idempotent. False as in ``append``."""

    def find_callback(self, callback: str) -> tuple[TaskKey, str] | None:
        """The task and the call that a callback address belongs to, or None."""

    def list_due(self, shard: int, until: int) -> Iterator[DueItem]:
        """The items due by ``until`` (ms) in one of ``SHARDS`` shards, oldest first, eventually consistent."""

    def postpone(self, due: DueItem, now: int) -> None:
        """Delays an unreadable item that is due at ``now`` (ms): by a minute, doubled each time, up to an hour."""


class TaskIndex(Protocol):
    """A caller's tasks, newest status first; tasks of the same millisecond by id, descending."""

    def list_page(
        self, principal: Principal, context_id: str | None, after: str | None, since: int, limit: int
    ) -> tuple[list[TaskEntry], str | None]:
        """At most ``limit`` entries after ``after``, with a status since ``since`` (ms), and the next position."""
