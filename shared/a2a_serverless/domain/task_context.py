"""The task that an agent's function works on.

The engine implements ``TaskContext``; the test harness runs the same engine in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from datetime import datetime

    from pydantic import BaseModel

    from a2a_serverless.domain.budgets import Budget
    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.key_value_store import KeyValueStore
    from a2a_serverless.domain.model import Json, JsonObject, Principal
    from a2a_serverless.domain.steps import Step
    from a2a_serverless.protocol.v1 import Message, Part, Task
    from a2a_serverless.protocol.v1_card import AgentCard

Item = TypeVar("Item")
P = ParamSpec("P")
T = TypeVar("T")
Content: TypeAlias = "str | bytes | Part | BaseModel | dict[str, Json] | list[Json]"
MessageContent: TypeAlias = "str | dict[str, Json] | BaseModel | Sequence[Part] | Message"
"""The content of an agent's message: a text, a dict (a data part), parts, or the message, which gets the task's ids."""


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

        The result is a JSON value, or a value of any type that pydantic knows, which the annotation of ``work`` names
        (``-> Quote``, ``-> list[date]``) or the codec of the ``Step``. It is read back at once. If it does not come
        back whole, it is stored raw and ``TaskFailed`` is raised; a retry with code that reads it does not do the work
        again. The arguments are such values, too. A plain function runs in a thread. The chunks of the work are stored
        with the result; an interrupted step runs again, and then the new chunks count. Raises ``StepConflict`` when
        ``name`` was used before in this run, or stored with other arguments, and ``StepTimedOut`` when the step did not
        finish within three whole runs. A step that raised may be tried again under its name;
        ``Step(name, retry=Retry())`` does that by itself, and raises the last error, or ``StepFailed`` in place of one
        that cannot be stored.
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
