"""The work of a mirror: it passes its task's message on to a remote agent, and the remote task back to the client.

It is a call (``engine/calls.py``): sent once, waited for without compute, canceled with its task. Beside that, the
whole message goes there, and artifacts and progress come back while the remote task works: from its stream while the
run lasts, then at each look. A look at the remote task is what counts: what the log does not have of it is emitted. So
a stream may break anywhere, and a run that was killed goes on where the log ends.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from a2a_serverless.domain.agent import BUDGET_EXTENSION
from a2a_serverless.domain.agent_errors import AgentCallFailed, TaskFailed, TaskRejected
from a2a_serverless.domain.called_task import Source, join_artifacts, question_parts
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent, event_size, part_bytes
from a2a_serverless.domain.model import OWN_NAMES
from a2a_serverless.domain.remotes import PATH, remote_name
from a2a_serverless.domain.replay import is_same_text, join_chunks
from a2a_serverless.domain.states import INTERRUPTED, RUNNABLE, TERMINAL
from a2a_serverless.engine.artifact_writer import EMPTY
from a2a_serverless.engine.calls import CLOSE_S, LAST_MS, AgentCalls, CallLimit, TaskCanceled, callback_of
from a2a_serverless.engine.store_guard import run_guarded
from a2a_serverless.protocol.v1 import (
    Message,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from a2a_serverless.domain.agent import Answer
    from a2a_serverless.domain.call_records import SentCall
    from a2a_serverless.domain.called_task import CalledTask
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.remotes import Remote
    from a2a_serverless.engine.calls import AgentRegistry, PendingCall
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.engine.task_files import TaskFiles
    from a2a_serverless.ports.agents import MirroredAgents
    from a2a_serverless.protocol.v1 import Artifact, Part, StreamContent, TaskStatus

logger = logging.getLogger(__name__)

FIRST_MS: Final = 300_000
"""So long the first item of a stream is waited for."""
NO_REASON: Final = "The agent gave no reason."
NO_TIME: Final = "It had not ended before the end of this task's life."


class _Progress(NamedTuple):
    """A message of progress, and when (ms) it was passed on."""

    message: Message
    at: int

    def is_same(self, message: Message, timestamp: int, now: int) -> bool:
        """Whether a message of a status is this one: some peers give it another id at each read.

        The same content later is news. ``timestamp`` (ms) is the status's, 0 without; one after ``now`` says nothing:
        the peer's clock is ahead.
        """
        same_content = (message.parts, message.metadata) == (self.message.parts, self.message.metadata)
        return same_content and not self.at < timestamp <= now


class MirrorCalls(AgentCalls):
    """The one call of a mirror's task, whose log is ``events``."""

    def __init__(
        self, execution: Execution, registry: AgentRegistry, files: TaskFiles, remote: Remote, events: Sequence[Event]
    ) -> None:
        super().__init__(execution, registry, files)
        self._remote, self._heard_at = remote, events[-1].at
        self._progress = _last_progress(events)
        self._artifact_ids = {event.artifact.artifact_id for event in events if isinstance(event, ArtifactEvent)}
        self._bytes, self._file_addresses = sum(map(event_size, events)), set[str]()
        self._stream: Generator[StreamContent] | None = None
        self._streams = remote.subscribes
        self._is_closed, self._reads_until = False, 0

    async def follow(self) -> Answer:
        """Passes the task's message on, and follows the remote task to its end. Returns its final message.

        Raises TaskFailed, TaskRejected or TaskCanceled as the remote task ends.
        """
        execution = self._execution
        execution.artifact_writer.resume()
        agent, message = remote_name(self._session.head.agent), execution.first_request.message
        answer = await self.call(
            PATH, agent, message.parts, CallLimit(), execution.ask_for_call, execution.open_scope()
        )
        if isinstance(answer, Message):
            return _as_agent(answer)
        state, final_message = answer.status.state, _from_agent(answer.status)
        if state is TaskState.COMPLETED:
            return final_message
        ends = {TaskState.REJECTED: TaskRejected, TaskState.CANCELED: TaskCanceled}
        is_late = self._session.now() >= self._session.head.deadline - LAST_MS
        raise ends.get(state, TaskFailed)(final_message or (NO_TIME if is_late else NO_REASON))

    def _post(self, call: PendingCall, message: Message) -> StreamContent:
        """Opens the stream of the agent's answer, and returns its first item. The rest is read later."""
        incoming = self._execution.request
        if message.task_id is None:
            original = incoming.message
            metadata = {**(original.metadata or {}), **(message.metadata or {})} or None
            message = message.model_copy(update={"metadata": metadata, "extensions": original.extensions})
        configuration = SendMessageConfiguration(
            accepted_output_modes=incoming.accepted_output_modes,
            task_push_notification_config=callback_of(call.opened),
            return_immediately=True,
        )
        # The names of this deployment say nothing there, and another deployment of this library refuses them.
        metadata = {name: value for name, value in (incoming.metadata or {}).items() if not name.startswith(OWN_NAMES)}
        request = SendMessageRequest(message=message, metadata=metadata or None, configuration=configuration)
        extensions = [uri for uri in incoming.extensions if uri != BUDGET_EXTENSION.uri]
        agents = cast("MirroredAgents", self._agents_for(call.opened))
        self._is_closed, self._reads_until = False, max(self._streams_until(), self._session.now() + FIRST_MS)
        items = agents.stream(self._caller, call.agent, request, extensions, self._reads_on)
        first = next(items, None)
        self._reads_until = self._streams_until()
        if first is None:
            raise AgentCallFailed(f"The agent {call.agent!r} gave an empty answer.")
        if isinstance(first, Message):
            items.close()
            return first
        self._stream, self._streams = _chain(first, items), self._remote.subscribes
        return first

    async def leave(self, *, is_handed_over: bool) -> None:
        await super().leave(is_handed_over=is_handed_over)
        if self._stream:
            self._stream.close()

    async def _read_task(self, call: PendingCall, known: CalledTask, get: Callable[[], Task]) -> None:
        await self._read_stream(known)
        await super()._read_task(call, known, get)

    def _is_told(self, call: PendingCall, known: CalledTask) -> bool:
        """False: the rest of the stream has to be read."""
        del call, known
        return False

    def _result(self, known: CalledTask) -> Task:
        """The task without artifacts, which the log has."""
        return known.task.model_copy(update={"artifacts": ()})

    def _take(self, known: CalledTask, item: StreamContent, source: Source) -> None:
        """Passes on what the log does not have. What an answer to a send said may be older than the log."""
        if not known.take(_without_parts(item), source):
            return
        match item:
            case Task():
                self._show_task(item, only_new=source is Source.SEND)
            case TaskStatusUpdateEvent(status=status):
                self._show_progress(status)
            case TaskArtifactUpdateEvent(artifact=artifact):
                self._show_chunk(artifact, append=item.append, last=item.last_chunk)

    async def _await_change(self, call: PendingCall, sent: SentCall, known: CalledTask, number: int, wake: int) -> None:
        session, agents = self._session, cast("MirroredAgents", self._agents_for(call.opened))
        silent_ms = session.now() - self._heard_at
        left_ms = int(self._remote.silence_s * 1000) - silent_ms
        if left_ms <= 0:  # its task is canceled when ours has ended
            raise AgentCallFailed(f"Nothing was heard of the task at {call.agent!r} for {silent_ms // 1000} s.")
        if known.status and known.status.state in RUNNABLE and self._streams and session.now() < self._streams_until():
            self._store_once(f"{call.name.opened}/attach/{session.fence}", None)
            self._is_closed, self._reads_until = False, self._streams_until()
            self._stream = agents.subscribe(self._caller, call.agent, sent.task, self._reads_on)
            self._streams = False
            return
        pause_ms = min(self._look_ms(call, sent), left_ms, self._repeats_ms(call, number))
        await self._pause(call, max(1, pause_ms), wake)

    async def _ask_client(self, call: PendingCall, status: TaskStatus, name: str) -> Message:
        question = _from_agent(status) or f"{call.agent} asks for input."
        answer = await self._execution.ask_for_call(question, name, call.scope, status.state)
        return answer.model_copy(update={"reference_task_ids": ()})

    async def _send_answer(self, call: PendingCall, question: TaskStatus, answer: Message) -> StreamContent | None:
        """As a call does. A task that waits for a sign-in may go on by itself after it, and refuse the answer."""
        try:
            return await super()._send_answer(call, question, answer)
        except AgentCallFailed:
            if question.state is not TaskState.AUTH_REQUIRED:
                raise
            return None

    def _streams_until(self) -> int:
        return self._execution.last_sent_at() + int(self._remote.stream_s * 1000)

    async def _read_stream(self, known: CalledTask) -> None:
        """Reads the open stream, if there is one, until it says that the task waits or has ended, or breaks."""
        items, self._stream = self._stream, None
        if items is None:
            return
        until, is_first = self._streams_until(), True
        try:
            with self._endings.at_work():
                while (item := await self._read_item(items)) is not None:
                    self._heard_at = self._session.now()
                    self._take(known, item, Source.STREAM)
                    if known.is_over or (_waits(item) and not is_first) or self._heard_at >= until:
                        break
                    is_first = False
        finally:
            self._is_closed = True
            with suppress(ValueError):  # a thread still waits for the next item
                items.close()

    async def _read_item(self, items: Generator[StreamContent]) -> StreamContent | None:
        """The next item of a stream, as ``_next_item``. If the run is cancelled, its thread ends before, or soon."""
        reading = asyncio.ensure_future(asyncio.to_thread(run_guarded, lambda: self._next_item(items)))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            self._is_closed = True
            await asyncio.wait([reading], timeout=CLOSE_S)
            raise

    def _next_item(self, items: Generator[StreamContent]) -> StreamContent | None:
        """The next item of a stream; None at its end, and if it breaks: the look that follows finds out why."""
        try:
            return next(items, None)
        except AgentCallFailed as failure:
            if self._reads_on():
                ids = {"task": self._session.key.task, "reason": str(failure)}
                logger.warning("the stream of a mirrored task broke", extra=ids)
            return None

    def _reads_on(self) -> bool:
        """Whether the open stream is still read. It also ends in the thread of a run that was cancelled."""
        return self._goes_on() and not self._is_closed and self._session.now() < self._reads_until

    def _show_task(self, task: Task, *, only_new: bool) -> None:
        """Emits what the log does not have of the task's artifacts, and its progress."""
        is_over = task.status.state in TERMINAL
        for artifact in join_artifacts(task.artifacts):
            parts = self._store_parts(artifact.parts)
            log_parts = self._execution.artifact_writer.parts(artifact.artifact_id)
            if log_parts and (only_new or not parts):
                continue  # absence removes nothing
            rest = rest_of(log_parts, parts)
            if rest is None or rest or (is_over and not log_parts):
                self._emit(artifact, parts if rest is None else rest, append=bool(log_parts and rest), last=is_over)
        self._show_progress(task.status)

    def _show_chunk(self, artifact: Artifact, *, append: bool, last: bool) -> None:
        has_parts = bool(artifact.parts)
        if has_parts or last:
            self._emit(artifact, self._store_parts(artifact.parts), append=append or not has_parts, last=last)

    def _show_progress(self, status: TaskStatus) -> None:
        sent_ids, message = self._execution.sent_ids, _from_agent(status)
        if status.state not in RUNNABLE or not message or message.message_id in sent_ids:
            return
        now = self._session.now()
        if self._progress and self._progress.is_same(message, status.timestamp, now):
            return
        self._count(message.parts)
        message_id = message.message_id or self._registry.ids.new()
        sent_ids.add(message_id)
        self._progress = _Progress(message, now)
        self._session.report_progress(self._session.make_message(message.model_copy(update={"message_id": message_id})))
        self._note_news()

    def _emit(self, artifact: Artifact, parts: tuple[Part, ...], *, append: bool, last: bool) -> None:
        self._artifact_ids.add(artifact.artifact_id)
        self._count(parts)
        chunk = artifact.model_copy(update={"parts": parts or (EMPTY,)})
        scope = self._execution.open_scope()
        self._execution.artifact_writer.emit(scope, artifact.artifact_id, lambda: chunk, append=append, last=last)
        self._note_news()

    def _count(self, parts: Sequence[Part]) -> None:
        """Counts what is to be passed on. Raises AgentCallFailed for more than is taken of one task."""
        self._bytes += sum(map(part_bytes, parts))
        counts = {"artifacts": len(self._artifact_ids), "bytes": self._bytes, "events": self._session.event_count}
        self._registry.bounds.check(remote_name(self._session.head.agent), **counts)

    def _note_news(self) -> None:
        """A stream that had news is worth another subscription when it breaks; any other one only a look."""
        self._heard_at, self._streams = self._session.now(), self._remote.subscribes

    def _store_parts(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """The parts for the log. The files that this run has stored count with their whole size."""
        stored = tuple(self._files.store(self._session.key, part) for part in parts)
        for before, after in zip(parts, stored, strict=True):
            if after is not before and (address := str(after.value)) not in self._file_addresses:
                self._file_addresses.add(address)
                self._bytes += part_bytes(before)
        return stored


def _last_progress(events: Sequence[Event]) -> _Progress | None:
    """The last message of progress in a task's log."""
    for event in reversed(events):
        if isinstance(event, StatusEvent) and event.message and event.fence and event.state is TaskState.WORKING:
            return _Progress(event.message, event.at)
    return None


def rest_of(beginning: Sequence[Part], whole: Sequence[Part]) -> tuple[Part, ...] | None:
    """The parts of ``whole`` after those that are shown; None if it does not begin with them."""
    before, after = ([*join_chunks((part,) for part in parts)] for parts in (beginning, whole))
    if not before:
        return tuple(after)
    *first, last = before
    if after[: len(first)] != first or len(after) < len(before):
        return None
    here, more = after[len(first)], after[len(before) :]
    if here == last:
        return tuple(more)
    if is_same_text(last, here) and str(here.value).startswith(str(last.value)):
        return (here.with_content(text=str(here.value)[len(str(last.value)) :]), *more)
    return None


def _chain(first: StreamContent, items: Generator[StreamContent]) -> Generator[StreamContent]:
    yield first
    yield from items


def _waits(item: StreamContent) -> bool:
    """Whether an item says that the task waits for its client."""
    return isinstance(item, Task | TaskStatusUpdateEvent) and item.status.state in INTERRUPTED


def _without_parts(item: StreamContent) -> StreamContent:
    """The item with artifacts without content, which the log has."""
    match item:
        case Task():
            artifacts = tuple(artifact.model_copy(update={"parts": ()}) for artifact in item.artifacts)
            return item.model_copy(update={"artifacts": artifacts, "history": ()})
        case TaskArtifactUpdateEvent():
            return item.model_copy(update={"artifact": item.artifact.model_copy(update={"parts": ()})})
    return item


def _from_agent(status: TaskStatus) -> Message | None:
    """The agent's message in a status; None for one without content, and for the user's own message."""
    return _as_agent(status.message) if status.message and question_parts(status) else None


def _as_agent(message: Message) -> Message | None:
    """A remote agent's message with the role of an agent; None for one without content."""
    return message.model_copy(update={"role": Role.AGENT, "reference_task_ids": ()}) if message.parts else None
