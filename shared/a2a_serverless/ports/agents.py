"""Running agents inside a request, calling other agents, and the callbacks of called agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from a2a_serverless.domain.agent_errors import AgentCallFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.protocol.v1 import Message, SendMessageRequest, StreamContent, Task, TaskPushNotificationConfig
    from a2a_serverless.protocol.v1_card import AgentCard


class InlineRunner(Protocol):
    """Runs inline agents inside the request."""

    def answer_directly(self, agent_id: str, principal: Principal, request: Incoming) -> Message | None:
        """The agent's message if the agent answers without a task; None otherwise."""

    def run(self, key: TaskKey, time_ms: int) -> None:
        """Runs the task for at most ``time_ms`` and hands over the rest of its work."""

    def start(self, key: TaskKey, time_ms: int) -> None:
        """As ``run``, but returns without waiting for the end."""


class AgentUnavailable(AgentCallFailed):
    """The agent gave no answer, or answered that it cannot answer now. A later try may succeed.

    The request may have taken effect. ``retry_after_s`` is the time that the agent asks for, 0 if it names none.
    ``is_slow`` says that the try itself took long.
    """

    def __init__(self, text: str, retry_after_s: int = 0, *, is_slow: bool = False) -> None:
        super().__init__(text)
        self.retry_after_s, self.is_slow = retry_after_s, is_slow


class TaskForgotten(AgentCallFailed):
    """The agent answered that there is no such task."""


class RemoteAgents(Protocol):
    """A client of other agents, by their names in the agent registry.

    Every failure raises AgentCallFailed: AgentUnavailable if a later try may succeed, any other is final.

    Calls are made in the name of ``caller``: agents of the same deployment serve that caller only, within its scopes.
    """

    def address(self, agent: str) -> str:
        """The agent's base URL in the registry."""

    def for_run(self, trace: str, goes_on: Callable[[], bool]) -> RemoteAgents:
        """A client whose calls belong to ``trace`` (a ``traceparent``; "" means none).

        Each request breaks within half a second after ``goes_on`` returns False.
        """

    def card(self, agent: str) -> AgentCard:
        """The agent's card, with the interfaces that we support."""

    def tags(self) -> dict[str, tuple[str, ...]]:
        """The ids and the tags of the skills of each agent in the registry, by the agent's name, as far as readable."""

    def send(
        self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig
    ) -> Task | Message:
        """Sends a message without waiting for the task, whose callbacks come to ``callback``. Idempotent.

        An agent without push notifications gets no ``callback`` and makes none. If its sends are idempotent for sure,
        it may work for some seconds before it answers.
        """

    def has_push(self, agent: str) -> bool:
        """Whether the agent makes callbacks, as its card says, or its answer to the last ``send``."""

    def keeps_message_ids(self, agent: str) -> bool:
        """Whether each read of the agent's task shows a message with the same id: an agent of this deployment."""

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        """The current task. Raises TaskForgotten if the agent knows of no such task."""

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        """Cancels the task. No error if it has ended."""


class MirroredAgents(RemoteAgents, Protocol):
    """A client of the remote agents of mirrors, too."""

    def stream(
        self,
        caller: Caller,
        agent: str,
        request: SendMessageRequest,
        extensions: Sequence[str],
        goes_on: Callable[[], bool],
    ) -> Generator[StreamContent]:
        """As ``send``: yields the items of the answer's stream, or the answer.

        The request has the webhook, and names these ``extensions`` (URIs). The stream ends at the first bytes, also of
        a keep-alive, after which ``goes_on`` returns False; without any it breaks within half a second.
        """

    def subscribe(
        self, caller: Caller, agent: str, task_id: str, goes_on: Callable[[], bool]
    ) -> Generator[StreamContent]:
        """Yields the items of the task's stream from now on; many agents yield the whole task first."""


@dataclass(frozen=True, slots=True)
class IncomingNotification:
    """A received callback: header names in lower case, the body as sent."""

    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ExpectedCallback:
    """The callback that a call expects: from the agent at ``address`` to ``url``, with ``token``.

    ``task`` is the id of the agent's task, if that is known.
    """

    address: str
    url: str
    token: str
    task: str | None = None


class InvalidCallback(Exception):
    """A callback without proof that it comes from the called agent. The text is for the log."""


class CallbackVerifier(Protocol):
    """Checks that a callback comes from the called agent."""

    def verify(self, incoming: IncomingNotification, call: ExpectedCallback) -> str | None:
        """The challenge to answer with; None for a notification. Raises InvalidCallback, Overloaded (no keys now)."""
