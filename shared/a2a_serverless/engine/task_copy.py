"""Copies into a retried task what it takes over from the task that it repeats, before its agent's code runs.

A worker does that, and not the request: a long log takes longer than a request may. It reads what the task already has,
so it goes on after a death. The copies are whole: the task that it repeats may expire or be erased.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent import TaskFailed
from a2a_serverless.domain.contents import SCHEME, ContentNotFound, StoredFile
from a2a_serverless.domain.events import ArtifactEvent, EarlierStatus, StatusEvent
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.task_copies import select_acts
from a2a_serverless.domain.values import LIST_LIMIT, StoredText, ValueScope
from a2a_serverless.store.payloads import dump_event, dump_step, load_event, load_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from a2a_serverless.domain.events import Event, Incoming
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.records import NamedResult
    from a2a_serverless.domain.task_copies import Act
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.ports.system import ContentStore
    from a2a_serverless.protocol.v1 import Message
    from a2a_serverless.store.task_log import TaskLog
    from a2a_serverless.store.value_store import ValueStore

STATUSES: Final = 50
"""The most statuses that are copied into one event."""


class TaskCopier:
    """Copies the task that the session's task repeats. ``contents`` are the files of tasks, if they are stored."""

    def __init__(self, log: TaskLog, values: ValueStore, contents: ContentStore | None, session: RunSession) -> None:
        self._log, self._values, self._contents, self._session = log, values, contents, session
        self._source: TaskKey = session.key._replace(task=session.head.repeats)
        self._address: Final = re.compile(rf"{SCHEME}{re.escape(self._source.task)}/([0-9a-f]{{64}})/([0-9]+)")
        self._moved: dict[str, str] = {}
        self._statuses: list[EarlierStatus] = []

    def copy(self, events: Sequence[Event], has_time: Callable[[], bool]) -> bool:
        """Copies what is not among ``events``, the task's log, yet. False if there was no time for all.

        Raises TaskFailed if the task that it repeats does not exist any more.
        """
        read = self._log.read_log(self._source)
        if read is None:
            raise TaskFailed("The task that this one repeats does not exist any more. Send its message again.")
        acts = select_acts(
            self._in_own_files(read[1]), self._log.read_steps(self._source), self._session.head.repeats_from
        )
        for act in self._missing(acts, events):
            if not has_time():
                return False
            self._session.renew_when_due()
            self._copy_act(act)
        self._write_statuses()
        self._copy_values()
        self._session.note_copied()
        return True

    def _missing(self, acts: Sequence[Act], events: Sequence[Event]) -> Iterator[Act]:
        """Those acts that an earlier run has not copied."""
        stored = self._session.steps()
        statuses = sum(len(event.earlier) for event in events if isinstance(event, StatusEvent))
        emits = {event.artifact.artifact_id: event.emits[1] for event in events if isinstance(event, ArtifactEvent)}
        for act in acts:
            if isinstance(act, EarlierStatus):
                statuses -= 1
                if statuses < 0:
                    yield act
            elif isinstance(act, ArtifactEvent):
                if act.emits[1] > emits.get(act.artifact.artifact_id, 0):
                    yield act
            elif act[0] not in stored:
                yield act

    def _copy_act(self, act: Act) -> None:
        if isinstance(act, EarlierStatus):
            self._statuses.append(self._renamed(act))
            if len(self._statuses) >= STATUSES:
                self._write_statuses()
            return
        self._write_statuses()
        if isinstance(act, ArtifactEvent):
            self._session.write_chunk(act._replace(fence=self._session.fence))
        else:
            self._copy_result(act)

    def _write_statuses(self) -> None:
        if self._statuses:
            self._session.copy_statuses(self._statuses)
            self._statuses = []

    def _copy_result(self, named: NamedResult) -> None:
        name, result = named
        self._session.store_step(
            name, replace(load_step(self._moved_text(dump_step(result))), began_at=self._session.now())
        )

    def _copy_values(self) -> None:
        """Copies the task's values, as they are: a value has no history."""
        after = ""
        while page := self._values.list_values(ValueScope(self._source), "", after, LIST_LIMIT):
            for value in page:
                self._copy_value(StoredText(value.key, self._moved_text(value.text), value.version))
            after = page[-1].key

    def _copy_value(self, value: StoredText) -> None:
        scope = ValueScope(self._session.key)
        self._session.renew_when_due()
        self._session.write_value(lambda head: self._values.put_value(head, scope, value, None))

    def _in_own_files(self, events: Sequence[Event]) -> list[Event]:
        return [load_event(self._moved_text(dump_event(event)), event.n, event.append_id) for event in events]

    def _renamed(self, status: EarlierStatus) -> EarlierStatus:
        """The status with messages of this task."""
        own = {"task_id": self._session.key.task}
        message: Message | None = status.message and status.message.model_copy(update=own)
        incoming: Incoming | None = status.incoming
        if incoming:
            incoming = replace(incoming, message=incoming.message.model_copy(update=own))
        return replace(status, message=message, incoming=incoming)

    def _moved_text(self, text: str) -> str:
        """The text with the addresses of copies in place of those of the other task's files."""
        return self._address.sub(lambda found: self._move(found[0], found[1], int(found[2])), text)

    def _move(self, address: str, sha256: str, size: int) -> str:
        if self._contents and address not in self._moved:
            owner = Principal(self._source.tenant, self._source.owner)
            try:
                content = self._contents.read(owner, StoredFile(self._source.task, sha256, size))
            except ContentNotFound:
                return address
            self._moved[address] = self._contents.store(self._session.key, content).address
        return self._moved.get(address, address)
