"""How an agent's function ends its task: the state, and the message that the client reads."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent import (
    Agent,
    BudgetExceeded,
    InvalidAnswer,
    StepConflict,
    TaskFailed,
    TaskRejected,
)
from a2a_serverless.domain.errors import A2AError, safe_error_fields, text_of
from a2a_serverless.domain.model import digest
from a2a_serverless.engine.calls import TaskCanceled
from a2a_serverless.protocol.v1 import Message, TaskState

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import MessageContent
    from a2a_serverless.engine.acts import Acts
    from a2a_serverless.engine.engine import Engine
    from a2a_serverless.engine.run_session import RunSession


RETRY_EARLIER: Final = "This task repeats another one: if its code has changed, retry that one from an earlier step."

logger = logging.getLogger(__name__)


def fail(
    error: BaseException, agent: Agent, acts: Acts, session: RunSession, engine: Engine
) -> tuple[TaskState, Message]:
    """Tells the author of an error that ends the task. Returns the task's state, and the message for the client."""
    acts.steps.note_failed(error)
    if stated := _stated_reason(error, session):
        engine.on_error(session.key, error, "")
        return stated
    reference = digest([session.key.task, session.fence])[:8]
    engine.on_error(session.key, error, reference)
    about: dict[str, object] = {"task": session.key.task, "agent": agent.id, "fence": session.fence}
    about |= {"reference": reference}
    about |= {"remedy": str(error)} if isinstance(error, InvalidAnswer) else {}
    logger.error("agent failed", extra=safe_error_fields(error) | about)
    return TaskState.FAILED, session.make_message(f"The agent stopped with an error (reference {reference}).")


def make_answer(agent: Agent, answer: MessageContent, session: RunSession) -> Message:
    """The final message, from the result of the agent's function. Raises InvalidAnswer."""
    try:
        return session.make_message(answer)
    except (TypeError, ValueError) as invalid:
        raise InvalidAnswer(agent, invalid) from None


def _stated_reason(error: BaseException, session: RunSession) -> tuple[TaskState, Message] | None:
    """The state and message of an exception whose content the client reads; None for any other."""
    try:
        if isinstance(error, TaskRejected):
            return TaskState.REJECTED, session.make_message(error.content)
        if isinstance(error, A2AError) and (text := text_of(error)):
            return TaskState.REJECTED, session.make_message(text)
        if isinstance(error, StepConflict) and session.head.origin:
            return TaskState.FAILED, session.make_message(f"{error} {RETRY_EARLIER}")
        if isinstance(error, TaskFailed):
            metadata = error.metadata if isinstance(error, BudgetExceeded) else None
            state = TaskState.CANCELED if isinstance(error, TaskCanceled) else TaskState.FAILED
            return state, session.make_message(error.content, metadata)
    except TaskFailed as unprintable:
        return TaskState.FAILED, session.make_message(unprintable.content)
    except (TypeError, ValueError) as invalid:  # the content is no message
        error.add_note(f"Its content is no message: {invalid}.")
    return None
