"""The errors of agents. The client reads the text of a ``TaskRejected`` and of a ``TaskFailed``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.budgets import METADATA_KEY

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.task_context import MessageContent

DIFFERENCES: Final = (
    "Code outside of steps must do the same in each run. Clocks, random numbers, the order of a set, and changed code"
    " do not; asyncio.as_completed starts coroutines in the order of a set, unless asyncio.ensure_future has started"
    " them."
)


class _ClientReads(Exception):
    """``content`` is the reason that the client reads; the exception's text is its text."""

    def __init__(self, content: MessageContent | Exception = "") -> None:
        self.content: MessageContent = str(content) if isinstance(content, Exception) else content
        super().__init__(_text_of(self.content))


class TaskRejected(_ClientReads):
    """The agent refuses the task, for a reason that the client reads: a text, data, parts or a message."""


class TaskFailed(_ClientReads):
    """The agent could not do the task, for a reason that the client reads: a text, data, parts or a message."""


class StepTimedOut(TaskFailed):
    """A step did not finish within three whole runs: split it, or submit the work and wait for a callback.

    ``path`` is that of the step; "" if no step was running.
    """

    def __init__(self, content: MessageContent, path: str = "") -> None:
        super().__init__(content)
        self.path = path


class StepFailed(Exception):
    """A step raised an error that cannot be raised again in a later run. The text names the step and the error."""


class BudgetExceeded(TaskFailed):
    """The task has spent its budget, and fails. The text says whose bound it is, and how much was spent.

    ``metadata`` is the same for programs, and is sent with the text.
    """

    def __init__(self, whose: str, kind: str, spent: float, bound: float) -> None:
        unit = "USD" if kind == "usd" else kind
        super().__init__(f"The budget of the {whose} is spent: {spent:.15g} of {bound:.15g} {unit}.")
        self.metadata: JsonObject = {METADATA_KEY: {"whose": whose, "kind": kind, "spent": spent, "bound": bound}}


class AgentCallFailed(TaskFailed):
    """Another agent could not be reached, or refused; the text names the agent and the reason."""


class SecretNotRead(Exception):
    """A secret is not listed, or has no value. The text names it."""


class TaskEnded(Exception):
    """The agent's function has ended, and with it its task: an asyncio task that it left behind cannot use it."""


def _text_of(content: MessageContent) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False, default=str)
    parts = content if isinstance(content, list | tuple) else getattr(content, "parts", ())
    return "\n\n".join(text for text in (part.readable for part in parts) if text)


class StepConflict(TaskFailed):
    """The agent uses a step's name twice, or uses steps or artifacts wrongly: the agent's code has a bug."""


class RunDiffers(StepConflict):
    """The agent comes to the act of this ``path`` otherwise than an earlier run: with ``new`` in place of ``stored``.

    The text says what differs, without any content.
    """

    def __init__(self, what: str, path: str, stored: str, new: str) -> None:
        super().__init__(f"{what} Stored: {stored}; this run: {new}. {DIFFERENCES}")
        self.path, self.stored, self.new = path, stored, new
