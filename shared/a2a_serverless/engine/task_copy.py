"""Copies into a retried task what it takes over from the task that it repeats, before its agent's code runs.

A worker does that, and not the request: a long log takes longer than a request may. A run that follows a dead one goes
on with it. The copies are whole, with their files: the task that this one repeats may expire or be erased.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from a2a_serverless.domain.contents import SCHEME, ContentNotFound, StoredFile
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.task_copies import select_acts
from a2a_serverless.domain.values import LIST_LIMIT, StoredText, ValueScope
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.store.stored_forms import dump_event, dump_step, load_event, load_step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.task_copies import Act
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.store.stores import ContentStore
    from a2a_serverless.store.task_log import TaskLog
    from a2a_serverless.store.value_store import ValueStore

GONE: Final = "The task that this one repeats does not exist any more: send its message again."


class TaskCopy:
    """The copy of the task that the session's task repeats. ``contents`` are the files of tasks, if they are stored."""

    def __init__(self, log: TaskLog, values: ValueStore, contents: ContentStore | None, session: RunSession) -> None:
        self._log, self._values, self._contents, self._session = log, values, contents, session
        self._source = session.key._replace(task=session.head.repeats)
        self._address = re.compile(f"{SCHEME}{re.escape(self._source.task)}/([0-9a-f]{{64}})/(0|[1-9][0-9]{{0,11}})")
        self._addresses: dict[str, str] = {}

    def complete(self, events: Sequence[Event], has_time: Callable[[], bool]) -> list[Event] | None:
        """Copies what is not among ``events``, the task's log, yet; returns the log.

        None if there was no time for all. None also if the task to copy does not exist any more: then this one fails.
        """
        source, session = self._log.read_log(self._source), self._session
        if source is None:
            session.report_status(TaskState.FAILED, session.make_message(GONE))
            return None
        status_count = sum(
            bool(one.message or one.incoming) for one in events if isinstance(one, StatusEvent) and one.fence
        )
        emits = {event.artifact.artifact_id: event.emits[1] for event in events if isinstance(event, ArtifactEvent)}
        for act in select_acts(source[1], self._log.read_steps(self._source), session.head.repeats_from):
            if not has_time():
                return None
            session.renew_when_due()
            if isinstance(act, StatusEvent) and status_count:
                status_count -= 1
            elif not isinstance(act, ArtifactEvent) or act.emits[1] > emits.get(act.artifact.artifact_id, 0):
                self._copy(act)
        self._copy_values()
        return session.note_copied()

    def _copy(self, act: Act) -> None:
        session = self._session
        if isinstance(act, StatusEvent):
            session.copy_status(cast("StatusEvent", load_event(self._own(dump_event(act)), 0, "")))
        elif isinstance(act, ArtifactEvent):
            chunk = cast("ArtifactEvent", load_event(self._own(dump_event(act)), 0, ""))
            session.write_chunk(chunk._replace(fence=session.fence))
        else:
            session.store_step(act[0], load_step(self._own(dump_step(act[1])), session.now()))

    def _copy_values(self) -> None:
        """Copies the task's values as they are now: a value has no history."""
        after, scope = "", ValueScope(self._session.key)
        while page := self._values.list_values(ValueScope(self._source), "", after, LIST_LIMIT):
            for value in page:
                write = partial(self._put, scope, StoredText(value.key, self._own(value.text), value.version))
                self._session.renew_when_due()
                self._session.write_value(value.key, write)
            after = page[-1].key

    def _put(self, scope: ValueScope, value: StoredText, head: Head) -> str | None:
        return self._values.put_value(head, scope, value, None)

    def _own(self, text: str) -> str:
        """The text with this task's id and files in place of those of the other one."""
        text = text.replace(f'"taskId":"{self._source.task}"', f'"taskId":"{self._session.key.task}"')
        return self._address.sub(lambda match: self._move(match[0], match[1], int(match[2])), text)

    def _move(self, address: str, sha256: str, size: int) -> str:
        if self._contents and address not in self._addresses:
            owner = Principal(self._source.tenant, self._source.owner)
            try:
                content = self._contents.read(owner, StoredFile(self._source.task, sha256, size))
                self._addresses[address] = self._contents.store(self._session.key, content).address
            except ContentNotFound:  # a text that looks like an address
                self._addresses[address] = address
        return self._addresses.get(address, address)
