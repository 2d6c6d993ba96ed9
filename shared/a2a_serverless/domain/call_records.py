"""The records of a call to another agent, as the JSON that is stored (names: ``record_names.CallName``)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from a2a_serverless.domain.origins import origin_of

if TYPE_CHECKING:
    from typing import Self

    from a2a_serverless.domain.model import JsonObject


class _CallRecord:
    """A record as the JSON that is stored."""

    @classmethod
    def of(cls, value: Any) -> Self:  # noqa: ANN401 - stored JSON
        """The record of a stored value. Raises TypeError for a value without its members."""
        return cls(**value)

    @property
    def value(self) -> JsonObject:
        """The JSON to store; empty members are left out."""
        return {name: member for name, member in asdict(self).items() if member != ""}  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class OpenedCall(_CallRecord):
    """A call's ids and addresses, the same in every run; stored before it is sent.

    ``content`` is a digest of agent and message, ``message`` the message's id. ``token`` and ``url`` are those of the
    callback, ``address`` is that of the agent. ``at`` is in ms. ``trace`` and ``parent`` are "" without tracing.
    ``budget`` has the bounds that are handed down, by their kind; "" without any.
    """

    agent: str
    content: str
    message: str
    token: str
    at: int
    url: str
    address: str
    trace: str = ""
    parent: str = ""
    budget: Any = ""

    @property
    def callback(self) -> str:
        """The last part of the callback's URL, under which the call can be looked up."""
        return self.url.rpartition("/")[2]

    @property
    def elsewhere(self) -> str:
        """The origin of an agent elsewhere, whose webhooks may not come; "" for an agent of this deployment."""
        origin = origin_of(self.address)
        return "" if origin == origin_of(self.url) else origin


@dataclass(frozen=True, slots=True)
class SentCall(_CallRecord):
    """The task that the agent made; ``push`` says that the agent sends callbacks.

    ``answer`` is the JSON of the agent's answer if that ends the task or asks a question; "" for any other answer.
    """

    agent: str
    task: str
    push: bool = False
    answer: Any = ""


@dataclass(frozen=True, slots=True)
class AnsweredQuestion(_CallRecord):
    """The answer to a question: its message's id, when it was sent (ms), and the agent's answer, as in ``SentCall``."""

    message: str
    at: int
    answer: Any = ""
