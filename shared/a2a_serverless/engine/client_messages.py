"""What an agent says to its client while it works: progress and questions."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.progress import with_percent
from a2a_serverless.engine.endings import Question

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.task_context import MessageContent
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.engine.scopes import Scope
    from a2a_serverless.engine.waits import Waits
    from a2a_serverless.protocol.v1 import Message, TaskState

SHORTEST_REMINDER_S: Final = 60


class ClientMessages:
    """The messages of an execution to its client. A message has the same id in every run."""

    def __init__(self, execution: Execution, waits: Waits) -> None:
        self._execution, self._session, self._waits = execution, execution.session, waits

    async def report_progress(
        self, content: MessageContent, metadata: JsonObject | None, percent: float | None
    ) -> None:
        """See ``TaskContext.report_progress``."""
        scope, sent_ids = self._execution.open_scope(), self._execution.sent_ids
        message = self._session.make_message(content, with_percent(metadata, percent))
        message_id = self._message_id(scope, "progress", message, content)
        if message_id not in sent_ids:
            sent_ids.add(message_id)
            self._session.report_progress(message.model_copy(update={"message_id": message_id}))
        # As in ``Artifacts.emit``.
        await asyncio.sleep(0)

    async def ask(
        self,
        content: MessageContent,
        state: TaskState,
        metadata: JsonObject | None,
        timeout_s: float | None,
        remind_s: float | None,
    ) -> Message:
        """Asks in this state and returns the answer. See ``TaskContext.ask``."""
        if remind_s is not None and not remind_s >= SHORTEST_REMINDER_S:
            raise ValueError(f"A question is repeated after {SHORTEST_REMINDER_S} seconds or more, not {remind_s}.")
        scope = self._execution.open_scope()
        message = self._session.make_message(content, metadata)
        message_id = self._message_id(scope, "ask", message, content)
        question = Question(message.model_copy(update={"message_id": message_id}), state)
        reminders = self._waits.remind(question, message_id, remind_s) if remind_s else nullcontext()
        async with self._waits.timeout(message_id, timeout_s), reminders:
            return await self._execution.ask(question, scope)

    def _message_id(self, scope: Scope, kind: str, message: Message, content: object) -> str:
        """The message's id, from its content: equal messages of a scope are recognised by it."""
        parts: Json = [self._session.digest(message.parts), message.metadata, list(message.extensions)]
        message_id = scope.message_id(self._session.origin, kind, parts)
        if scope.step is None:
            self._session.observer.note_message(kind, message_id, content)
        return message_id
