"""The API for agent authors: an agent's card fields, its async function, and the task that the function works on.

Agents do not depend on AWS, HTTP, protocol versions or queues. The engine implements ``TaskContext``; the test harness
runs the same engine in memory.
"""

from __future__ import annotations

import inspect
import json
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, get_args, overload

from a2a_serverless.domain.budgets import METADATA_KEY, NO_BUDGET, Budget
from a2a_serverless.domain.push_configs import WebhookEvents

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from datetime import datetime

    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.model import Json, JsonObject, Principal
    from a2a_serverless.domain.remotes import Remote
    from a2a_serverless.domain.schedules import Schedule
    from a2a_serverless.protocol.v1 import Message, Part, Task
    from a2a_serverless.protocol.v1_card import AgentCard

Item = TypeVar("Item")
P = ParamSpec("P")
T = TypeVar("T")
Content: TypeAlias = "str | bytes | Part | dict[str, Json] | list[Json]"
Runs: TypeAlias = Literal["queued", "inline"]
MessageContent: TypeAlias = "str | dict[str, Json] | Sequence[Part] | Message"
"""The content of an agent's message: a text, a dict (a data part), parts, or the message, which gets the task's ids."""
Answer: TypeAlias = "MessageContent | None"
"""What an agent's function returns: nothing, or the message of the final status. See ``Agent.runs``."""


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
    """A step did not finish within three whole runs: split it, or submit the work and wait for a callback."""


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


class InvalidAnswer(TypeError):
    """An agent's function has returned no message. The text names agent, file, line and a remedy, and no content."""

    def __init__(self, agent: Agent, why: Exception) -> None:
        remedy = "Return a text, a dict (data), a list of parts, a Message or None."
        super().__init__(f"{_described(agent.id, agent.work)} returned no message: {why}. {remedy}")


class TaskEnded(Exception):
    """The agent's function has ended, and with it its task: an asyncio task that it left behind cannot use it."""


class CancelReason(StrEnum):
    """The reason why an agent's work is cancelled."""

    CLIENT = "client"
    """The client has canceled the task."""
    HAND_OVER = "hand-over"
    """Another run continues the task: this run's time is over, its code was replaced, or the task waits."""
    LEASE_LOST = "fence"
    """This run may not write any more: another run has the lease, or the task has ended."""
    STORE = "store"
    """The store has failed: another run continues from the stored state."""


class VersionConflict(Exception):
    """A value was not written, because its stored version is not the expected version."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A stored value. ``version`` identifies the write that stored it."""

    key: str
    value: Json | bytes
    version: str


class KeyValueStore(Protocol):
    """Values by key: JSON values or bytes of at most 10 MiB, under keys of 1 to 512 characters (percent-encoded).

    Reads return the present values, in every run. Each write costs one transaction, and needs the task's lease. Other
    keys and values raise ValueError or TypeError.
    """

    async def get(self, key: str) -> StoredValue | None:
        """The value, or None."""

    async def list(self, prefix: str = "", *, after: str = "", limit: int = 100) -> Sequence[StoredValue]:
        """The values whose keys begin with ``prefix``, in a fixed order: at most ``limit`` (1000), after ``after``."""

    async def put(self, key: str, value: Json | bytes, *, version: str | None = None) -> str:
        """Stores a value and returns its version.

        ``version`` is the version to replace, "" if no value may be stored. Raises ``VersionConflict`` if another
        version is stored. Without ``version`` any value is replaced.
        """

    async def delete(self, key: str, *, version: str | None = None) -> None:
        """Deletes a value, if there is one; ``version`` as in ``put``."""


@dataclass(frozen=True, slots=True)
class CallbackRequest:
    """A request to the address of a callback. Another party wrote it: trust nothing in it that you have not checked.

    ``headers`` are those about content, signatures and ids of messages, by their names in lower case.
    """

    body: bytes
    headers: Mapping[str, str]
    received_at: datetime

    def json(self) -> Json:
        """The body as a JSON value. Raises ValueError if it is none."""
        from a2a_serverless.domain.errors import A2AError
        from a2a_serverless.protocol.strict_json import loads

        try:
            return loads(self.body)
        except A2AError as invalid:
            raise ValueError(str(invalid)) from None


class Callback(Protocol):
    """An address at which another system tells a task something, once."""

    @property
    def url(self) -> str:
        """The address: the same in each run. Any party that knows it can use it, so give it to that system only."""

    async def received(self, timeout_s: float | None = None) -> CallbackRequest:
        """The request to the address, once it has come. Meanwhile the task uses no compute.

        Raises TimeoutError after ``timeout_s`` seconds, which begin when a run first gets here. A later call of this
        method returns a later request.
        """


class TaskContext(Protocol):
    """The task that an agent's function gets."""

    @property
    def id(self) -> str:
        """The task's id."""

    @property
    def context_id(self) -> str:
        """The id of the conversation that the task belongs to."""

    @property
    def message(self) -> Message:
        """The message that created the task. ``ask`` returns the answers to questions."""

    @property
    def accepted_output_modes(self) -> tuple[str, ...]:
        """The media types that the client accepts; empty when it did not say."""

    @property
    def request(self) -> Incoming:
        """The client's last request: the one that created the task, after ``ask`` the one with the answer.

        It has ``message``, ``metadata`` (of the request), ``accepted_output_modes`` and ``extensions`` (their URIs).
        """

    @property
    def caller(self) -> Principal:
        """The client's ``tenant`` and ``owner``, to which the task belongs. Credentials are not passed on."""

    @property
    def store(self) -> KeyValueStore:
        """Values of this task. They live as long as the task."""

    @property
    def conversation(self) -> KeyValueStore:
        """Values of this conversation and owner, which all its tasks share, of all agents.

        For another agent's value the client needs a scope: for ``get`` the scope to read that agent, for ``put`` and
        ``delete`` the scope to use it. Without it the task is rejected; ``list`` leaves such values out.
        A value lives as long as the task that has written it. Tasks may run at the same time: use versions.
        """

    @property
    def cancellation(self) -> CancelReason | None:
        """Why this work is being cancelled; None while it is not. It is set before the cancellation arrives."""

    def text(self) -> str:
        """The text of the message: its text parts and text files, joined in order."""

    def data(self) -> Json:
        """The first data part of the message; None when there is none."""

    @overload
    async def step(self, name: str | Step, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    async def step(self, name: str | Step, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def step(self, name: str | Step, work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        """Runs ``work(*args)`` and stores its result; later runs of the task return the stored result.

        The result is a JSON value, or a pydantic model, a dataclass or a collection of them that the annotation of
        ``work`` names (``-> Quote``, ``-> list[Quote]``); for others the ``Step`` has a codec. The arguments are JSON
        values, models or dataclasses. A plain function runs in a thread. The chunks of the work are stored with the
        result; an interrupted step runs again, and then the new chunks count. Raises ``StepConflict`` when ``name`` was
        used before in this run, or stored with other arguments, and ``StepTimedOut`` when the step did not finish
        within three whole runs. A step that raised may be tried again under its name; ``Step(name, retry=Retry())``
        does that by itself, and raises the last error, or ``StepFailed`` in place of one that cannot be stored.
        """

    @overload
    async def map(
        self, name: str | Step, work: Callable[[Item], Awaitable[T]], items: Iterable[Item], *, limit: int = 10
    ) -> list[T]: ...

    @overload
    async def map(
        self, name: str | Step, work: Callable[[Item], T], items: Iterable[Item], *, limit: int = 10
    ) -> list[T]: ...

    @overload
    async def map(
        self,
        name: str | Step,
        work: Callable[[Item], Awaitable[T]],
        items: Iterable[Item],
        *,
        limit: int = 10,
        tolerate: int,
    ) -> list[T | Exception]: ...

    @overload
    async def map(
        self, name: str | Step, work: Callable[[Item], T], items: Iterable[Item], *, limit: int = 10, tolerate: int
    ) -> list[T | Exception]: ...

    async def map(
        self,
        name: str | Step,
        work: Callable[[Item], Any],
        items: Iterable[Item],
        *,
        limit: int = 10,
        tolerate: int = 0,
    ) -> Any:
        """Runs ``work(item)`` for each item, ``limit`` at a time, and returns the results in the order of the items.

        Each is a step named by its index (from 0) in a scope of this name, with the options of a ``Step``. At most
        ``tolerate`` steps may fail: their errors stand in the places of their results. One more error cancels the other
        steps and is raised. An error that cannot be stored is a ``StepFailed``. Raises ValueError for more than 1000
        items, and a ``limit`` below 1.
        """

    def scope(self, name: str) -> AbstractContextManager[None]:
        """A part of the agent's code whose steps, questions, messages and chunks have ids of their own (``with``).

        Parallel branches that use the same names need a scope each. A scope that ended well and is opened again in the
        same scope is another scope: its name gets a number.
        """

    async def sleep(self, name: str, seconds: float) -> None:
        """Waits, and uses no compute meanwhile. The time begins when a run first reaches the call.

        The second use of a name in a scope is another sleep. Raises ValueError, as ``sleep_until``, ``timeout`` and
        ``ask`` do, for a time that is over after the task's maximum life.
        """

    async def sleep_until(self, name: str, at: datetime) -> None:
        """As ``sleep``, until ``at``, which has a time zone. The ``at`` of the first run that gets here counts."""

    def timeout(self, name: str, seconds: float) -> AbstractAsyncContextManager[None]:
        """As ``asyncio.timeout``, for times that may be longer than a run. The time begins as for ``sleep``."""

    async def now(self, name: str) -> datetime:
        """The time (UTC) at which a run first came here: the same in each run."""

    async def record_usage(self, model: str, **amounts: float) -> None:
        """Adds named numbers, such as ``input_tokens``, ``output_tokens`` and ``cost_usd``, to the usage of a model.

        In a step, they are stored with its result, and count once. Outside a step, each call stores its own. The sums
        are in the task's metadata, under ``a2a-serverless/usage``, from the next status on.
        """

    async def budget_left(self) -> Budget:
        """What the task may still spend, without what it has handed down to agents that work for it.

        It is the same in each run: if there is a bound, it is stored, by a write.
        """

    async def emit(  # noqa: PLR0913 - the fields of an artifact
        self,
        name: str,
        content: Content | Sequence[Part],
        *,
        append: bool = False,
        last: bool = False,
        media_type: str | None = None,
        description: str | None = None,
        metadata: JsonObject | None = None,
        extensions: Sequence[str] = (),
    ) -> None:
        """Sends a chunk of the artifact ``name``. A later run skips the chunks that the log holds.

        The artifact has the description, metadata and extensions of its first chunk.

        Raises ``StepConflict`` when two steps that run at the same time emit the same artifact, when a nested step
        emits, and when a step emits after its end.

        The chunk is written within a quarter of a second, together with others emitted meanwhile, and always before
        the next step, question, call, progress report or the end.
        """

    async def read_file(self, part: Part) -> bytes:
        """The bytes of a file part, which may be inline, uploaded or at a URL. Raises ``TaskFailed``.

        URLs are checked as for webhooks: https, public addresses, no redirects; at most 100 MiB within a minute.
        Each run of the task fetches a URL again.
        """

    async def secret(self, name: str) -> str:
        """The secret of this name, as ``[tool.a2a-serverless] secrets`` lists it. Raises ``SecretNotRead``.

        It is read from AWS at most once in five minutes, and on a developer's machine from a variable such as
        ``A2A_SECRET_WEATHER``. A step whose result contains it raises ``StepConflict``: results are stored.
        """

    async def ask(
        self,
        question: MessageContent,
        *,
        sign_in: bool = False,
        metadata: JsonObject | None = None,
        timeout_s: float | None = None,
        remind_s: float | None = None,
    ) -> Message:
        """Asks the client and returns its answer. Meanwhile the task is input-required and uses no compute.

        Raises TimeoutError after ``timeout_s`` seconds, which begin when a run first comes here; a later answer stays
        in the history. Every ``remind_s`` seconds (60 or more) the question is asked again, in a new message.

        With ``sign_in`` the task is auth-required: the client signs in outside A2A and then answers (specification
        7.6). Neither the state nor the answer authorizes anything: check the permission before each operation (7.6.4).
        """

    async def callback(self, name: str, *, signed_with: str | None = None) -> Callback:
        """An address for the webhook of another system, for example one that works longer than a run may.

        It takes one body, by POST, of 256 KiB at most, until the task ends. The second use of a name in a scope is
        another address. ``signed_with`` is a scheme and the name of a secret of the project, such as
        ``stripe:payments``; the schemes are github, standard-webhooks and stripe. Then the address refuses requests
        that the provider has not signed with this secret, as it is now. Raises ValueError for another scheme and a
        secret that the scheme cannot use, ``SecretNotRead``, and ``StepConflict`` if a run before had another
        ``signed_with``.
        """

    async def get_card(self, agent: str) -> AgentCard:
        """The card of another agent, as it was when this task first read it. Raises the errors of ``call``."""

    async def find_agents(self, *tags: str) -> list[str]:
        """The names of the other agents that have all of these tags, or skills of these ids.

        ``call`` can call them. The list stays as it was when this task first asked: the agents of this deployment, and
        the agents elsewhere that the configuration names and whose cards can be read.
        """

    async def call(
        self,
        name: str,
        agent: str,
        content: Content | Sequence[Part],
        *,
        timeout_s: float | None = None,
        deadline_s: float | None = None,
        budget: Budget | None = None,
    ) -> Task | Message:
        """Calls another agent and returns its task once that has ended, or its message. ``name`` names the call.

        The message is sent once, with this task's contextId. While the other agent works, this task uses no compute;
        a webhook resumes it. If the other agent asks a question, this task asks its client and returns the answer. The
        other task is canceled ``timeout_s`` seconds after the call, and ``deadline_s`` seconds after this task was
        created, which limits all calls together. A failed task is returned too: check its status. Raises
        ``AgentCallFailed`` when the agent cannot be reached or refuses, or when no time is left to call it. A cancelled
        call, such as the loser of a race, cancels the other task, and is never made again under its name.

        If this task has a budget, the other one gets all that is left of it, or ``budget`` if that is less. A call for
        which nothing is left, because other calls have it, waits for their end.
        """

    async def get_task(self) -> Task:
        """The task as its client sees it now: state, history and artifacts. A later run sees a later state."""

    async def get_referenced_tasks(self, message: Message | None = None) -> list[Task]:
        """The same client's tasks that a message (default: the task's message) refers to, if its scopes allow that.

        References are ``referenceTaskIds``, and ``taskId`` with ``artifactId`` in the metadata of parts.
        """

    async def get_previous_tasks(self, limit: int = 20) -> list[Task]:
        """The same client's other tasks in this conversation, newest first: of the agents that it may read."""

    async def report_progress(
        self, content: MessageContent, *, metadata: JsonObject | None = None, percent: float | None = None
    ) -> None:
        """Sends a progress message to the client (as a ``working`` status). A later run does not send it again.

        ``percent`` (0 to 100) is in the message's metadata, under ``a2a-serverless/percent``. Raises ValueError for
        another number.
        """


_CURRENT_TASK: Final[ContextVar[TaskContext]] = ContextVar("current_task")


def current_task() -> TaskContext:
    """The task that the calling code works on. Raises LookupError when no agent's function is running.

    It is known in everything that the agent's function calls, in asyncio tasks that it starts, and in threads started
    by ``asyncio.to_thread`` or anyio. Methods of the task must be awaited in the event loop, not in a thread.
    """
    return _CURRENT_TASK.get()


async def work_on(agent: Agent, task: TaskContext) -> Answer:
    """Runs the agent's function. ``current_task`` returns ``task`` from now on, in the calling context."""
    _CURRENT_TASK.set(task)
    return await agent.work(task)


def _text_of(content: MessageContent) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False, default=str)
    parts = content if isinstance(content, list | tuple) else getattr(content, "parts", ())
    return "\n\n".join(text for text in (part.readable for part in parts) if text)


class Codec(Protocol[T]):
    """Converts a step's result to a JSON value and back. ``load`` must return the value for the agent."""

    def dump(self, value: T) -> Json:
        """The JSON value to store; raises TypeError or ValueError for a value that cannot be stored."""

    def load(self, stored: Json) -> T:
        """The value that was dumped; raises TypeError or ValueError."""


@dataclass(frozen=True, slots=True)
class Retry:
    """When a step that raises is tried again: ``tries`` (1 to 100) in all.

    The pause after the first try has ``first_s`` seconds. Each later one is ``factor`` (1 to 10) times as long, and has
    ``most_s`` seconds at most. No try begins later than ``total_s`` seconds after the first one. ``never`` are classes
    of errors that are raised at once; so are ``TaskFailed`` and ``TaskRejected``. Raises ValueError for other numbers.
    """

    tries: int = 3
    first_s: float = 1.0
    factor: float = 2.0
    most_s: float = 60.0
    total_s: float | None = None
    never: tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        """Checks the numbers."""
        times = (self.first_s, self.most_s, self.total_s or 0)
        if not (1 <= self.tries <= 100 and 1 <= self.factor <= 10 and all(0 <= time < float("inf") for time in times)):  # noqa: PLR2004 - as documented
            raise ValueError("A retry has 1 to 100 tries, a factor from 1 to 10, and times of 0 seconds or more.")
        if self.first_s > self.most_s:
            raise ValueError("The first pause of a retry (first_s) is longer than the longest one (most_s).")


@dataclass(frozen=True, slots=True)
class Step:
    """The name of a step, with options. It takes the place of the name in ``TaskContext.step``.

    With ``repeat`` the name may be used again: the second use is stored as ``name#2``, and so on, in the order of the
    calls. Two that run at the same time raise ``StepConflict``, because their order could differ in a later run.
    ``codec`` stores results that are no JSON values. A step that ``waits`` does no work of its own: while it runs, the
    task may be suspended because its calls wait, and then the step runs again. ``tool`` is the name of the tool whose
    call the step is, for traces. With ``retry`` a step that raises is tried again; each try that has ended is stored.
    """

    name: str
    repeat: bool = False
    codec: Codec[Any] | None = None
    waits: bool = False
    tool: str = ""
    retry: Retry | None = None


class StepConflict(TaskFailed):
    """The agent uses a step's name twice, or uses steps or artifacts wrongly: the agent's code has a bug."""


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

    ``extended_skills`` are only on the extended card, which needs authentication. ``answers_by_context`` is for clients
    that send no taskId: a message with a contextId alone answers the one open question of that context, and starts a
    task if there is none. If there are several, it is refused and must name one. Messages of other agents of the
    deployment always start a task. ``whole_last_chunk`` is for clients that keep one chunk of an artifact: the last one
    is the whole artifact and replaces the chunks before it (``append=false``, ``lastChunk=true``). ``budget`` is the
    most that a task may spend; a caller may set less. At the times of ``schedules`` the agent starts by itself.
    ``webhook_events`` are the events of which a webhook is notified whose request does not name them.

    Raises TypeError for a function that is not async, and ValueError for unknown ``webhook_events``.
    """
    if webhook_events not in {None, *get_args(WebhookEvents)}:
        raise ValueError(f"webhook_events must be one of {', '.join(get_args(WebhookEvents))}, not {webhook_events!r}")

    def decorate(work: Callable[[TaskContext], Awaitable[Answer]]) -> Agent:
        _check_async(id, work)
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
            answers_by_context=answers_by_context,
            whole_last_chunk=whole_last_chunk,
            budget=budget,
            schedules=tuple(schedules),
            webhook_events=webhook_events,
        )

    return decorate


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
