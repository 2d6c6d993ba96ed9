"""Copies into a retried task what it takes over from the task that it repeats, before its agent's code runs.

A worker does that, and not the request: a long log takes longer than a request may. A run that follows a dead one goes
on with it. The copies are whole, with their files: the task that this one repeats may expire or be erased. The lease is
renewed after each page that is read, each act and each file: an act may name any number of files.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.contents import SCHEME, ContentNotFound, StoredFile
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.step_results import StepResult, late_names
from a2a_serverless.domain.task_copies import select_acts
from a2a_serverless.domain.values import StoredText, ValueScope
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

PAGE: Final = 25  # results or events, each of which may be a blob
GONE: Final = "The task that this one repeats does not exist any more: send its message again."


class TaskCopy:
    """The copy of the task that the session's task repeats. ``contents`` are the files of tasks, if they are stored."""

    def __init__(self, log: TaskLog, values: ValueStore, contents: ContentStore | None, session: RunSession) -> None:
        self._log, self._values, self._contents, self._session = log, values, contents, session
        self._source = session.key._replace(task=session.head.repeats)
        # An address is looked up only where a part names it: any other text may have any number of them.
        # tests/faults/test_retries.py: test_texts_that_look_like_addresses_of_files_are_not_looked_up
        address = f"({SCHEME}{re.escape(self._source.task)}/([0-9a-f]{{64}})/(0|[1-9][0-9]{{0,11}}))"
        self._address = re.compile(f'((?<!\\\\)"url":")?{address}')
        self._addresses: dict[str, str] = {}
        self._has_time: Callable[[], bool] = lambda: True

    def complete(self, events: Sequence[Event], has_time: Callable[[], bool]) -> list[Event] | None:
        """Copies what is not among ``events``, the task's log, yet; returns the log.

        None if there was no time for all. None also if the task to copy does not exist any more: then this one fails.
        """
        self._has_time = has_time
        with suppress(_TimeIsOver):
            return self._complete(events)
        return None

    def _complete(self, events: Sequence[Event]) -> list[Event] | None:
        source, session = self._read_events(), self._session
        steps = self._read_steps()
        if not self._is_there():
            return None
        status_count = sum(
            bool(one.message or one.incoming) for one in events if isinstance(one, StatusEvent) and one.fence
        )
        emits = {event.artifact.artifact_id: event.emits[1] for event in events if isinstance(event, ArtifactEvent)}
        for act in select_acts(source, steps, session.head.repeats_from):
            self._go_on()
            is_copied = isinstance(act, ArtifactEvent) and act.emits[1] <= emits.get(act.artifact.artifact_id, 0)
            if isinstance(act, StatusEvent) and status_count:
                status_count -= 1
                is_copied = True
            self._copy(act, is_copied=is_copied)
        self._copy_values()
        return session.note_copied() if self._is_there() else None

    def _is_there(self) -> bool:
        """Whether nothing of the task to copy has been erased so far; if something has, this task fails.

        Its first event is erased before its later ones, its steps and its values.
        """
        if self._log.read(self._source, 0, 1):
            return True
        self._session.report_status(TaskState.FAILED, self._session.make_message(GONE))
        return False

    def _go_on(self) -> None:
        """Renews the lease when that is due; raises _TimeIsOver if the next run has to go on."""
        if not self._has_time():
            raise _TimeIsOver
        self._session.renew_when_due()

    def _read_events(self) -> list[Event]:
        """The log of the task to copy; empty if that does not exist any more."""
        events: list[Event] = []
        while page := self._log.read(self._source, len(events), PAGE):
            events += page
            self._go_on()
        return events

    def _read_steps(self) -> dict[str, StepResult]:
        """The results of the task to copy, without those that came late."""
        steps: dict[str, StepResult] = {}
        after = ""
        while page := self._log.list_steps(self._source, after, PAGE):
            steps.update(page)
            after = page[-1][0]
            self._go_on()
        late = late_names(steps)
        return {name: step for name, step in steps.items() if name not in late}

    def _copy(self, act: Act, *, is_copied: bool) -> None:
        """Copies an act. Of an act that an earlier run has copied only the files count: later texts may name them."""
        session = self._session
        if not isinstance(act, StatusEvent | ArtifactEvent):
            session.store_step(act[0], load_step(self._own(dump_step(act[1])), session.now()))
            return
        text = self._own(dump_event(act))
        if is_copied:
            return
        event = load_event(text, 0, "")
        if isinstance(event, ArtifactEvent):
            session.write_chunk(event._replace(fence=session.fence))
        else:
            session.copy_status(event)

    def _copy_values(self) -> None:
        """Copies the task's values as they are now: a value has no history."""
        after, scope = "", ValueScope(self._session.key)
        while page := self._values.list_values(ValueScope(self._source), "", after, PAGE):
            for value in page:
                write = partial(self._put, scope, StoredText(value.key, self._own(value.text), value.version))
                self._go_on()
                self._session.write_value(value.key, write)
            after = page[-1].key

    def _put(self, scope: ValueScope, value: StoredText, head: Head) -> str | None:
        return self._values.put_value(head, scope, value, None)

    def _own(self, text: str) -> str:
        """The text with this task's id and files in place of those of the other one."""
        text = text.replace(f'"taskId":"{self._source.task}"', f'"taskId":"{self._session.key.task}"')
        return self._address.sub(self._move, text)

    def _move(self, match: re.Match[str]) -> str:
        """The address of this task's copy of a file, if a part names it here or has named it before; else the same."""
        member, address, sha256, size = match[1] or "", match[2], match[3], int(match[4])
        if member and self._contents and address not in self._addresses:
            self._addresses[address] = self._copy_file(self._contents, address, sha256, size)
        return member + self._addresses.get(address, address)

    def _copy_file(self, contents: ContentStore, address: str, sha256: str, size: int) -> str:
        """Copies a file, unless an earlier run has; returns the copy's address, or ``address`` if there is no file."""
        self._go_on()
        owner, copy = Principal(*self._source[:2]), StoredFile(self._session.key.task, sha256, size)
        if contents.exists(owner, copy):
            return copy.address
        try:
            content = contents.read(owner, StoredFile(self._source.task, sha256, size))
        except ContentNotFound:
            return address
        self._session.renew_when_due()
        return contents.store(self._session.key, content).address


class _TimeIsOver(Exception):
    """The run's time does not suffice: the next run goes on with the copy."""
