"""How an agent's function ends its task: the state, and the message that the client reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent import Agent, InvalidAnswer
from a2a_serverless.domain.agent_errors import BudgetExceeded, StepConflict, TaskFailed, TaskRejected
from a2a_serverless.domain.errors import A2AError, text_of
from a2a_serverless.engine.calls import TaskCanceled
from a2a_serverless.protocol.v1 import Message, TaskState

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import MessageContent
    from a2a_serverless.engine.run_session import RunSession


RETRY_EARLIER: Final = "This task repeats another one: if its code has changed, retry that one from an earlier step."


def make_answer(agent: Agent, answer: MessageContent, session: RunSession) -> Message:
    """The final message, from the result of the agent's function. Raises InvalidAnswer."""
    try:
        return session.make_message(answer)
    except (TypeError, ValueError) as invalid:
        raise InvalidAnswer(agent, invalid) from None


def stated_end(error: BaseException, session: RunSession) -> tuple[TaskState, Message] | None:
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
