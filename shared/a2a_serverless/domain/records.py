"""Records of tasks that the store writes and returns, beside their heads and events."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from a2a_serverless.domain.delivery import Cursor, PushConfig
    from a2a_serverless.domain.events import StatusEvent
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json, JsonObject, TaskKey
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.protocol.v1 import Task, TaskState


SHARDS: Final = 8
MOMENT_BITS: Final = 20

Admit: TypeAlias = "Callable[[int], bool]"
"""Is called with the bytes of each text before the text is read. False ends the reading there; it may raise, too."""


class IdempotencyRecord(NamedTuple):
    """Makes a send idempotent: it records which ``task`` a (tenant, owner, agent, message id) created.

    ``digest`` is the SHA-256 of the message's canonical form; it shows when the same id comes with another body.
    """

    agent: str
    message_id: str
    digest: str
    task: str


class LastTick(NamedTuple):
    """The last tick of a schedule that started a task, its time (ms) and the task's id."""

    schedule: str
    at: int
    task: str


class TickConflict(Exception):
    """Another tick of the schedule has started a task meanwhile."""


class NewTask(NamedTuple):
    """All items of a new task; they are written in one transaction.

    ``tick`` is stored in the place of ``last_tick``, which must not have changed; None without one.
    """

    head: Head
    event: StatusEvent
    idempotency: IdempotencyRecord | None
    pushes: tuple[tuple[PushConfig, Cursor], ...] = ()
    tick: LastTick | None = None
    last_tick: LastTick | None = None


@dataclass(frozen=True, slots=True)
class StepResult:
    """The stored result of a named step; the first write wins. ``arguments`` is a digest of the step's arguments.

    ``attempt`` marks the chunks of the log that belong to it (``ArtifactEvent.attempt``), ``sequence`` orders the
    endings of steps and waits (``engine.endings``), and ``usage`` is the models' usage in it. ``moment`` is its place
    in the order of the results that runs have stored one by one: above its ``MOMENT_BITS`` lowest bits it is the number
    of the last event before it. Times are ms. ``error`` (the class of the exception that ended a failed step) is
    written and not read back with the result: ``TaskLog.list_step_times`` lists it.
    """

    arguments: str
    value: Json
    attempt: int = 0
    sequence: int = 0
    usage: Usage = field(default_factory=dict)
    began_at: int = field(default=0, compare=False)
    ended_at: int = field(default=0, compare=False)
    error: str = field(default="", compare=False)
    moment: int = field(default=0, compare=False)


NamedResult: TypeAlias = tuple[str, StepResult]
"""A result and the name under which it is stored."""


class DueItem(NamedTuple):
    """An item that is due: the head of ``key``, or with ``config_id`` that configuration's cursor.

    ``item_key`` is its key in the store. ``key`` is None when this release cannot interpret the item key.
    """

    item_key: tuple[str, str]
    key: TaskKey | None
    config_id: str | None = None


class TaskEntry(NamedTuple):
    """A task in the index, which is eventually consistent. ``position`` is the token of the page after it."""

    task: str
    agent: str
    state: TaskState
    position: str


class TaskPart(NamedTuple):
    """A task as it was asked for, its head, and about how many bytes of stored text were read for it."""

    head: Head
    task: Task
    size: int


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


@dataclass(frozen=True, slots=True)
class SentCall(_CallRecord):
    """The task that the agent made; ``push`` says that the agent sends callbacks."""

    agent: str
    task: str
    push: bool = False
