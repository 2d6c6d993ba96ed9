"""What an author of an agent sees: a card, one async function, and the task that it works on.

An agent knows nothing of AWS, HTTP, wire versions or queues. ``AgentTask`` is implemented by the engine; a test harness
implements it in memory with the same engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from a2a_serverless.domain.card import AgentCard, AgentExtension
    from a2a_serverless.domain.model import Json, Message, Part, Task

P = ParamSpec("P")
T = TypeVar("T")
Content: TypeAlias = "str | bytes | Part | dict[str, Json] | list[Json]"
Runs: TypeAlias = Literal["queued", "inline"]
Answer: TypeAlias = "str | Message | None"
"""What an agent's function returns: nothing, or a last word. See ``Agent.runs``."""


class TaskRejected(Exception):
    """The agent will not do the task; the text is the reason that the client reads."""


class TaskFailed(Exception):
    """The agent could not do the task; the text is the reason that the client reads."""


class StepTimedOut(TaskFailed):
    """A step took longer than it may."""


class AgentCallFailed(TaskFailed):
    """Another agent could not be reached, or refused; the text says which and why."""


class CancelReason(StrEnum):
    """Why an agent's work is being cancelled."""

    CLIENT = "client"
    """The client has canceled the task."""
    HAND_OVER = "hand-over"
    """The task goes on in another run: this one's time ends, or the task waits for an answer."""
    LEASE_LOST = "fence"
    """This run may write nothing more: another run has taken the task, or the task has ended."""
    STORE = "store"
    """The store has failed: another run goes on from what is stored."""


class AgentTask(Protocol):
    """The task as the agent's function gets it."""

    @property
    def id(self) -> str:
        """The task's id."""
        ...

    @property
    def context_id(self) -> str:
        """The id of the conversation that the task belongs to."""
        ...

    @property
    def message(self) -> Message:
        """The message that the task was made for. Answers to questions come from ``ask``."""
        ...

    @property
    def accepted_output_modes(self) -> tuple[str, ...]:
        """The media types that the client can take; empty means that it did not say."""
        ...

    @property
    def cancellation(self) -> CancelReason | None:
        """Why this work is being cancelled; None as long as it is not. It is known when the cancellation arrives."""
        ...

    def text(self) -> str:
        """The text of the message: its text parts, and the text files in it, one after the other."""
        ...

    def data(self) -> Json:
        """The first data part of the message; None when there is none."""
        ...

    @overload
    async def step(self, name: str, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    async def step(self, name: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def step(self, name: str, work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        """The result of ``work(*args)``, which runs once: it is kept, and read back when the task runs again.

        The result must be a JSON value, the arguments JSON values or dataclasses. A plain function runs in a thread.
        What the work emits is kept with the result; a step that was interrupted runs again, and what it emits then
        counts. Raises ``StepConflict`` when ``name`` was used before in this run, or stored with other arguments, and
        ``StepTimedOut`` when the step has not been done within three whole runs.
        """
        ...

    async def emit(
        self,
        name: str,
        content: Content | Sequence[Part],
        *,
        append: bool = False,
        last: bool = False,
        media_type: str | None = None,
        description: str | None = None,
    ) -> None:
        """Sends a chunk of the artifact ``name``. A re-run skips what the log holds.

        Raises ``StepConflict`` when two steps that run at the same time emit the same artifact, when a step within a
        step emits, and when a step does that is over.

        It is in the log within a quarter of a second, together with what is emitted meanwhile, and in any case before
        whatever comes next: a step, a question, a call, progress, the end.
        """
        ...

    async def read_file(self, part: Part) -> bytes:
        """The bytes of a file part: one that came inline, was uploaded, or lies at a URL. Raises ``TaskFailed``.

        A URL is fetched past the guard that webhooks pass: https, public addresses, no redirects, 100 MiB at most in
        a minute. A run that goes on after a break fetches it again.
        """
        ...

    async def ask(self, question: str, *, sign_in: bool = False) -> Message:
        """The client's answer to a question. Until it comes the task waits as input-required and holds no compute.

        With ``sign_in`` it waits as auth-required: the client signs in elsewhere and says so (specification 7.6).
        """
        ...

    async def get_card(self, agent: str) -> AgentCard:
        """The card of another agent, as it was when this task first read it. Raises as ``call`` does."""
        ...

    async def call(
        self,
        name: str,
        agent: str,
        content: Content | Sequence[Part],
        *,
        timeout_s: float | None = None,
        deadline_s: float | None = None,
    ) -> Task | Message:
        """What another agent answers: its task once that has ended, or a plain message. ``name`` names the call.

        Sent once, with this task's contextId; while it runs this task holds no compute and its webhook brings it back.
        A question of the other agent becomes this task's question to its client, and the answer goes back. The other
        task is canceled ``timeout_s`` after the call, and ``deadline_s`` after this task was made, which is a limit for
        all calls together. A failed task is returned too: look at its status. Raises ``AgentCallFailed`` when the agent
        cannot be reached or refuses, or when there is no time left to call it.
        """
        ...

    async def get_referenced_tasks(self, message: Message | None = None) -> list[Task]:
        """The tasks that a message refers to, as far as they are the same client's: by default the task's message.

        By ``referenceTaskIds``, and by artifact references (``taskId``, ``artifactId``) in the metadata of parts.
        """
        ...

    async def get_previous_tasks(self, limit: int = 20) -> list[Task]:
        """The same client's other tasks in this conversation, the newest first."""
        ...

    async def report_progress(self, text: str) -> None:
        """Tells the client how far the work is (a ``working`` status with a message). A re-run skips it."""
        ...


def with_retries(
    work: Callable[P, Awaitable[T]], *, times: int = 3, timeout_s: float | None = None, pause_s: float = 1.0
) -> Callable[P, Awaitable[T]]:
    """``work`` for a step that may fail: tried ``times`` in all, each for at most ``timeout_s``.

    Between two tries it waits ``pause_s``, doubled each time. ``TaskRejected`` and ``TaskFailed`` are not retried. The
    last error is raised; a time limit as ``TaskFailed``.
    """

    async def again(*args: P.args, **kwargs: P.kwargs) -> T:
        for number in range(times - 1):
            try:
                return await _in_time(work(*args, **kwargs), timeout_s)
            except Exception as error:  # the last try's goes through
                if isinstance(error, TaskRejected | TaskFailed) and not isinstance(error, StepTimedOut):
                    raise
            await asyncio.sleep(pause_s * 2**number)
        return await _in_time(work(*args, **kwargs), timeout_s)

    return again


async def _in_time(work: Awaitable[T], timeout_s: float | None) -> T:
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except TimeoutError as error:
        raise StepTimedOut(f"A step took longer than {timeout_s} s.") from error


class StepConflict(TaskFailed):
    """A step's name means two things. The agent's code is wrong, and a wrong answer would be worse than none."""


@dataclass(frozen=True, slots=True)
class AgentSkill:
    """What an agent can do, for its card (specification 4.4.5)."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent: what its card says, and the function that does its work.

    ``runs`` is "queued" (the worker does the work) or "inline" (the request that waits does it). An inline agent that
    returns a text or a message without having used its task has answered with a message, and no task is made.
    ``extended_skills`` are told to callers that have signed in only, by the extended card (3.1.11).
    """

    id: str
    name: str
    description: str
    skills: tuple[AgentSkill, ...]
    work: Callable[[AgentTask], Awaitable[Answer]]
    version: str = "1.0.0"
    runs: Runs = "queued"
    input_modes: tuple[str, ...] = ("text/plain", "application/json")
    output_modes: tuple[str, ...] = ("text/plain", "application/json")
    streaming: bool = True
    push: bool = True
    extensions: tuple[AgentExtension, ...] = ()
    extended_skills: tuple[AgentSkill, ...] = ()


def agent(  # noqa: PLR0913 - the fields of a card
    *,
    id: str,  # noqa: A002 - the card's word
    name: str,
    description: str,
    skills: list[AgentSkill],
    runs: Runs = "queued",
    version: str = "1.0.0",
    input_modes: tuple[str, ...] = ("text/plain", "application/json"),
    output_modes: tuple[str, ...] = ("text/plain", "application/json"),
    extended_skills: Sequence[AgentSkill] = (),
) -> Callable[[Callable[[AgentTask], Awaitable[Answer]]], Agent]:
    """Makes an agent of an async function. ``id`` is the path segment of its base URL.

    ``extended_skills`` are told to callers that have signed in only.
    """

    def decorate(work: Callable[[AgentTask], Awaitable[Answer]]) -> Agent:
        return Agent(
            id=id,
            name=name,
            description=description,
            skills=tuple(skills),
            work=work,
            version=version,
            runs=runs,
            input_modes=input_modes,
            output_modes=output_modes,
            extended_skills=tuple(extended_skills),
        )

    return decorate
