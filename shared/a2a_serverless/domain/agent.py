"""An agent: the fields of its card, its options, and its async function.

Agents do not depend on AWS, HTTP, protocol versions or queues.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from a2a_serverless.domain.budgets import METADATA_KEY, NO_BUDGET, Budget
from a2a_serverless.domain.push_configs import WebhookEvents

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.remotes import Remote
    from a2a_serverless.domain.schedules import Schedule
    from a2a_serverless.domain.task_context import MessageContent, TaskContext

Runs: TypeAlias = Literal["queued", "inline"]
Answer: TypeAlias = "MessageContent | None"
"""What an agent's function returns: nothing, or the message of the final status. See ``Agent.runs``."""


_ID: Final = re.compile(r"[A-Za-z0-9_.~-]+")  # RFC 3986 encodes no such character in a path


def refuse_single(describe: Callable[[], str], **values: object) -> None:
    """Raises TypeError for a text, a skill, a schedule or an extension in the place of several.

    Of a text Python would take each letter for one of them.
    """
    for name, value in values.items():
        if isinstance(value, str):
            raise TypeError(f"{describe()} needs several texts, not one, as {name}. Write {name}=({value!r},).")
        if is_dataclass(value):
            kind = type(value).__name__
            raise TypeError(
                f"{describe()} needs several values, not one {kind}, as {name}. Write {name}=[{kind}(...)]."
            )


def skills_of(agent_id: str, name: str, description: str, skills: Iterable[Skill]) -> tuple[Skill, ...]:
    """The skills of an agent; without any, one with its name. Raises TypeError for a skill that is in no list."""
    refuse_single(lambda: f"The agent {agent_id!r}", skills=skills)
    return tuple(skills) or (Skill(agent_id, name, description, (agent_id,)),)


class InvalidAnswer(TypeError):
    """An agent's function has returned no message. The text names agent, file, line and a remedy, and no content."""

    def __init__(self, agent: Agent, why: Exception) -> None:
        remedy = "Return a text, a dict, model or dataclass (data), a list of parts, a Message or None."
        super().__init__(f"{_described(agent.id, agent.work)} returned no message: {why}. {remedy}")


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill on an agent's card (specification 4.4.5)."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises TypeError for a text in the place of a tuple of texts."""
        modes = {"input_modes": self.input_modes, "output_modes": self.output_modes}
        refuse_single(lambda: f"The skill {self.id!r}", tags=self.tags, examples=self.examples, **modes)


@dataclass(frozen=True, slots=True)
class AgentExtension:
    """An extension that the agent supports, or requires of its clients (4.4.4)."""

    uri: str
    description: str = ""
    required: bool = False
    params: JsonObject | None = None


BUDGET_EXTENSION: Final = AgentExtension(
    "urn:a2a-serverless:budget:1",
    f"The metadata of a message may have {METADATA_KEY}: the most that its task may spend, as usd, tokens and steps.",
)

WEBHOOK_EXTENSIONS: Final[dict[WebhookEvents, AgentExtension]] = {
    "states": AgentExtension(
        "urn:a2a-serverless:webhook-states:1",
        "The webhook of the request is notified of the task's states, without artifacts.",
    ),
    "results": AgentExtension(
        "urn:a2a-serverless:webhook-results:1",
        "The webhook of the request is notified of the task's states, and at its end of the whole task.",
    ),
    "all": AgentExtension(
        "urn:a2a-serverless:webhook-all:1",
        "The webhook of the request is notified of the task's states and of each chunk of its artifacts.",
    ),
}


def requested_webhook_events(extensions: Iterable[str]) -> WebhookEvents | None:
    """The events that the first of a request's extensions about them names; None without such an extension."""
    events = {extension.uri: name for name, extension in WEBHOOK_EXTENSIONS.items()}
    return next((events[uri] for uri in extensions if uri in events), None)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent: the fields of its card, and the function that does its work.

    ``runs`` is "queued" (the worker runs the function) or "inline" (the request runs it). When an inline agent returns
    a text or a message without having used its task, the response is that message and no task is created.
    ``extended_skills`` are only on the extended card, which needs authentication (3.1.11). With ``answers_by_context``
    a message with a contextId and no taskId answers the one open question of that context. With ``whole_last_chunk``
    the last chunk of an artifact is the whole artifact and replaces the chunks before it (``append=false``), for
    clients that keep one chunk. ``budget`` is the most that a task of it may spend. At the times of ``schedules`` the
    agent starts by itself. Webhooks are notified of ``webhook_events`` unless their request names others; None is the
    deployment's setting. A mirror has a ``remote``: the engine passes its messages on, in place of ``work``.
    """

    id: str
    name: str
    description: str
    skills: tuple[Skill, ...]
    work: Callable[[TaskContext], Awaitable[Answer]]
    version: str = "1.0.0"
    runs: Runs = "queued"
    input_modes: tuple[str, ...] = ("text/plain", "application/json")
    output_modes: tuple[str, ...] = ("text/plain", "application/json")
    streaming: bool = True
    push: bool = True
    extensions: tuple[AgentExtension, ...] = ()
    extended_skills: tuple[Skill, ...] = ()
    answers_by_context: bool = False
    whole_last_chunk: bool = False
    budget: Budget = NO_BUDGET
    schedules: tuple[Schedule, ...] = ()
    webhook_events: WebhookEvents | None = None
    remote: Remote | None = None

    def __post_init__(self) -> None:
        """Raises ValueError with an id that fits if ``id`` fits no URL, and TypeError for a value that is in no tuple.

        Both name the function's file and line.
        """
        tuples = ("skills", "input_modes", "output_modes", "extensions", "extended_skills", "schedules")
        # Described only when it is refused: that imports the function, which a function that runs no agent cannot.
        refuse_single(lambda: _described(self.id, self.work), **{name: getattr(self, name) for name in tuples})
        if not _ID.fullmatch(self.id) or self.id in {".", ".."}:
            described = f"The agent {self.id!r}" if self.remote else _described(self.id, self.work)
            raise ValueError(
                f"{described} needs an id of ASCII letters, digits, '-', '_', '.' and '~': it is a"
                f" path segment of its URL. For people there is `name`. Write, for example, id={slug(self.id)!r}."
            )

    @property
    def offered_extensions(self) -> tuple[AgentExtension, ...]:
        """Its extensions, and the library's."""
        return (*self.extensions, BUDGET_EXTENSION, *(WEBHOOK_EXTENSIONS.values() if self.push else ()))


def agent(  # noqa: PLR0913 - the fields of a card
    *,
    id: str,  # noqa: A002 - the card's word
    name: str,
    description: str,
    skills: list[Skill],
    runs: Runs = "queued",
    version: str = "1.0.0",
    input_modes: tuple[str, ...] = ("text/plain", "application/json"),
    output_modes: tuple[str, ...] = ("text/plain", "application/json"),
    extended_skills: Sequence[Skill] = (),
    answers_by_context: bool = False,
    whole_last_chunk: bool = False,
    budget: Budget = NO_BUDGET,
    schedules: Sequence[Schedule] = (),
    webhook_events: WebhookEvents | None = None,
) -> Callable[[Callable[[TaskContext], Awaitable[Answer]]], Agent]:
    """Makes an ``Agent`` of an async function. ``id`` is the path segment of its base URL.

    An agent without ``skills`` gets one with its name. ``extended_skills`` are only on the extended card, which needs
    authentication. ``answers_by_context`` is for clients that send no taskId: a message with a contextId alone answers
    the one open question of that context, and starts a task if there is none. If there are several, it is refused and
    must name one. Messages of other agents of the deployment always start a task. ``whole_last_chunk`` is for clients
    that keep one chunk of an artifact: the last one is the whole artifact and replaces the chunks before it
    (``append=false``, ``lastChunk=true``). ``budget`` is the most that a task may spend; a caller may set less. At the
    times of ``schedules`` the agent starts by itself. ``webhook_events`` are the events of which a webhook is notified
    whose request does not name them.

    Raises TypeError for a function that is not async and for one value in place of several, and ValueError for an
    ``id`` that is no path segment and for unknown ``webhook_events``.
    """
    if webhook_events not in {None, *get_args(WebhookEvents)}:
        raise ValueError(f"webhook_events must be one of {', '.join(get_args(WebhookEvents))}, not {webhook_events!r}")

    def decorate(work: Callable[[TaskContext], Awaitable[Answer]]) -> Agent:
        _check_async(id, work)
        several = {"skills": skills, "extended_skills": extended_skills, "schedules": schedules}
        refuse_single(lambda: _described(id, work), **several)
        return Agent(
            id=id,
            name=name,
            description=description,
            skills=skills_of(id, name, description, skills),
            work=work,
            version=version,
            runs=runs,
            input_modes=input_modes,
            output_modes=output_modes,
            extended_skills=tuple(extended_skills),
            answers_by_context=answers_by_context,
            whole_last_chunk=whole_last_chunk,
            budget=budget,
            schedules=tuple(schedules),
            webhook_events=webhook_events,
        )

    return decorate


def slug(name: str) -> str:
    """A path segment made of a name: ``weather-agent`` of "Weather Agent"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "agent"


def _check_async(agent_id: str, work: object) -> None:
    """Raises TypeError, with file, line and a remedy, if ``work`` is no async function."""
    function = _function_of(work)
    if inspect.iscoroutinefunction(function):
        return
    described, name = _described(agent_id, work), getattr(function, "__name__", "")
    if not inspect.isroutine(function):
        raise TypeError(f"{described} is no function: `agent(...)` takes an async function.")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"{described} is a generator: send each piece by `await task.emit(...)`, without `yield`.")
    raise TypeError(f"{described} is a plain function: write `async def {name}(task)`.")


def _function_of(work: object) -> object:
    """The author's function in partials, wrappers and objects with ``__call__``; the object itself if it has none."""
    while isinstance(work, partial) or hasattr(work, "__wrapped__"):
        work = work.func if isinstance(work, partial) else work.__wrapped__
    return work if inspect.isroutine(work) else work.__call__ if callable(work) else work


def _described(agent_id: str, work: object) -> str:
    """The agent with file and line of its function."""
    code = getattr(_function_of(work), "__code__", None)
    return f"The agent {agent_id!r} ({code.co_filename}:{code.co_firstlineno})" if code else f"The agent {agent_id!r}"
