"""The work of a mirror: it passes its task's message on to a remote agent, and the remote task back to the client.

It is a call (``engine/calls.py``): sent once, waited for without compute, canceled with its task. Beside that, the
whole message goes there, and artifacts and progress come back while the remote task works: from its stream while the
run lasts, then at each look. A look at the remote task is what counts: what the log does not have of it is emitted. So
a stream may break anywhere, and a run that was killed goes on where the log ends.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from a2a_serverless.domain.agent import BUDGET_EXTENSION
from a2a_serverless.domain.agent_errors import AgentCallFailed, TaskFailed, TaskRejected
from a2a_serverless.domain.decisions import SUSPEND_MS
from a2a_serverless.domain.model import OWN_NAMES
from a2a_serverless.domain.remotes import PATH, remote_name
from a2a_serverless.domain.replay import is_same_text, join_chunks
from a2a_serverless.domain.states import INTERRUPTED, RUNNABLE, TERMINAL
from a2a_serverless.engine.calls import AgentCalls, CallLimit, TaskCanceled, callback_of, look_pause_ms
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
    from a2a_serverless.domain.remotes import Remote
    from a2a_serverless.engine.calls import AgentRegistry, PendingCall
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.engine.task_files import TaskFiles
    from a2a_serverless.ports.agents import MirroredAgents
    from a2a_serverless.protocol.v1 import Artifact, Part, StreamContent, TaskStatus

NO_REASON: Final = "The agent gave no reason."


class MirrorCalls(AgentCalls):
    """The one call of a mirror's task. ``heard_at`` is the time (ms) of the newest event in the task's log."""

    def __init__(
        self, execution: Execution, registry: AgentRegistry, files: TaskFiles, remote: Remote, heard_at: int
    ) -> None:
        super().__init__(execution, registry, files)
        self._remote, self._heard_at = remote, heard_at
        self._stream: Generator[StreamContent] | None = None
        self._streams = remote.subscribes
        self._end: TaskStatus | None = None

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
            return _from_agent(answer)
        state, final_message = answer.status.state, _from_agent(answer.status.message)
        if state is TaskState.COMPLETED:
            return final_message
        ends = {TaskState.REJECTED: TaskRejected, TaskState.CANCELED: TaskCanceled}
        raise ends.get(state, TaskFailed)(final_message or NO_REASON)

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
        items = agents.stream(self._caller, call.agent, request, extensions)
        first = next(items, None)
        if first is None:
            raise AgentCallFailed(f"The agent {call.agent!r} gave an empty answer.")
        if isinstance(first, Message):
            items.close()
            return first
        self._stream, self._streams = _chain(first, items), self._remote.subscribes
        return first

    async def _read_task(self, call: PendingCall, get: Callable[[], Task]) -> Task:
        await self._read_stream()
        try:
            task = await self._ask_agent(call, get)
        except AgentCallFailed:  # it may have forgotten a task whose end was in the stream
            if self._end is None:
                raise
            task = Task(id="forgotten", status=self._end)
        self._show_task(task)
        return task.model_copy(update={"artifacts": (), "history": ()})

    async def _await_change(self, call: PendingCall, sent: SentCall, task: Task, wake: int) -> None:
        session, agents = self._session, cast("MirroredAgents", self._agents_for(call.opened))
        silent_ms = session.now() - self._heard_at
        left_ms = int(self._remote.silence_s * 1000) - silent_ms
        if left_ms <= 0:  # its task is canceled when ours has ended
            raise AgentCallFailed(f"Nothing was heard of the task at {call.agent!r} for {silent_ms // 1000} s.")
        if task.status.state in RUNNABLE and self._streams and session.now() < self._streams_until():
            self._store_once(f"{call.name.opened}/attach/{session.fence}", None)
            self._stream, self._streams = agents.subscribe(self._caller, call.agent, sent.task), False
            return
        pause_ms = SUSPEND_MS if sent.push else look_pause_ms(session.now() - call.opened.at)
        await self._pause(call, max(1, min(pause_ms, left_ms)), wake)

    async def _ask_client(self, call: PendingCall, status: TaskStatus, name: str) -> Message:
        question = _from_agent(status.message) or f"{call.agent} asks for input."
        answer = await self._execution.ask_for_call(question, name, call.scope, status.state)
        return answer.model_copy(update={"reference_task_ids": ()})

    async def _send_answer(self, call: PendingCall, question: TaskStatus, answer: Message) -> None:
        """As a call does. A task that waits for a sign-in may go on by itself after it, and refuse the answer."""
        try:
            await super()._send_answer(call, question, answer)
        except AgentCallFailed:
            if question.state is not TaskState.AUTH_REQUIRED:
                raise

    def _streams_until(self) -> int:
        return self._execution.last_sent_at() + int(self._remote.stream_s * 1000)

    async def _read_stream(self) -> None:
        """Reads the open stream, if there is one, until it says that the task waits or has ended, or breaks."""
        items, self._stream = self._stream, None
        if items is None:
            return
        until, is_first = self._streams_until(), True
        try:
            with self._endings.at_work():
                while (item := await asyncio.to_thread(run_guarded, lambda: next(items, None))) is not None:
                    self._heard_at = self._session.now()
                    if self._show(item, is_first=is_first) or self._heard_at >= until:
                        break
                    is_first = False
        except AgentCallFailed:
            pass  # the look that follows finds out what is the matter
        finally:
            with suppress(ValueError):  # a thread still waits for the next item
                items.close()

    def _show(self, item: StreamContent, *, is_first: bool) -> bool:
        """Passes an item of the stream on. True if the stream need not be read any more.

        The first item may show the task as it was before our message came.
        """
        match item:
            case Task():
                self._show_task(item)
                return item.status.state in TERMINAL or (item.status.state in INTERRUPTED and not is_first)
            case TaskStatusUpdateEvent(status=status):
                self._show_progress(status)
                self._end = status if status.state in TERMINAL else None
                return status.state not in RUNNABLE
            case TaskArtifactUpdateEvent(artifact=artifact):
                self._emit(artifact, self._store_parts(artifact.parts), append=item.append, last=item.last_chunk)
        return False

    def _show_task(self, task: Task) -> None:
        """Emits what the log does not have of the task's artifacts, and its progress."""
        for artifact in task.artifacts:
            parts = self._store_parts(artifact.parts)
            log_parts = self._execution.artifact_writer.parts(artifact.artifact_id)
            rest = rest_of(log_parts, parts)
            if rest is None or rest:
                is_over = task.status.state in TERMINAL
                self._emit(artifact, parts if rest is None else rest, append=bool(log_parts and rest), last=is_over)
        self._show_progress(task.status)

    def _show_progress(self, status: TaskStatus) -> None:
        message = _from_agent(status.message)
        if status.state in RUNNABLE and message and message.message_id not in self._execution.sent_ids:
            self._execution.sent_ids.add(message.message_id)
            self._session.report_progress(self._session.make_message(message))
            self._note_news()

    def _emit(self, artifact: Artifact, parts: tuple[Part, ...], *, append: bool, last: bool) -> None:
        chunk = artifact.model_copy(update={"parts": parts})
        scope = self._execution.open_scope()
        self._execution.artifact_writer.emit(scope, artifact.artifact_id, lambda: chunk, append=append, last=last)
        self._note_news()

    def _note_news(self) -> None:
        """A stream that had news is worth another subscription when it breaks; any other one only a look."""
        self._heard_at, self._streams = self._session.now(), self._remote.subscribes

    def _store_parts(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        return tuple(self._files.store(self._session.key, part) for part in parts)


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


def _from_agent(message: Message | None) -> Message | None:
    """A remote agent's message with the role of an agent; None for one without content."""
    if message is None or not message.parts:
        return None
    return message.model_copy(update={"role": Role.AGENT, "reference_task_ids": ()})
