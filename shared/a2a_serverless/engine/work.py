"""The task as its agent sees it: the author's side of a run."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast, overload

from a2a_serverless.domain.agent import Content, Failed, StepConflict
from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.domain.events import ArtifactEvent, Event, StatusEvent
from a2a_serverless.domain.head import Fenced
from a2a_serverless.domain.model import Artifact, Json, Message, Part, Role, Task, TaskState
from a2a_serverless.domain.references import references_in
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.engine.calls import Apart, Calls, Limit
from a2a_serverless.engine.files import INLINE, Files
from a2a_serverless.engine.hold import StoreFailed
from a2a_serverless.ports import StepResult

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Answer, Cancellation, PictureModel, TextModel
    from a2a_serverless.domain.card import Card
    from a2a_serverless.engine.calls import Directory
    from a2a_serverless.engine.hold import Hold
    from a2a_serverless.engine.others import Others


class Waits(BaseException):
    """The task waits for its client: the run ends here, and no author's ``except Exception`` may keep it."""


P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="Callable[..., Coroutine[Any, Any, Any]]")
NAME_LIMIT: Final = 256
SIGNALS: Final = (Waits, Apart, Fenced, StoreFailed, StepConflict, IllegalTransition)
"""What ends a run when the author's side raises it, whatever the agent or one of its libraries makes of it."""


def _signals(method: M) -> M:
    """Remembers the first signal that a method of the author's side raises; every later call raises it again."""

    @wraps(method)
    async def remembering(self: Work, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the method's own
        if self.signal:
            await asyncio.sleep(0)  # an agent that calls in a loop must not keep its keeper from running
            raise self.signal.with_traceback(None)
        try:
            return await method(self, *args, **kwargs)
        except SIGNALS as signal:
            if self.cancellation is None:
                self.signal = self.signal or signal
            raise

    return cast("M", remembering)


@dataclass(frozen=True, slots=True)
class Models:
    """The generators that this deployment is set to."""

    text: TextModel
    pictures: PictureModel


class Work:
    """Implements ``domain.agent.AgentTask`` over a hold."""

    def __init__(
        self,
        hold: Hold,
        events: Sequence[Event],
        models: Models,
        others: Others,
        directory: Directory,
        files: Files = INLINE,
    ) -> None:
        self._files = files
        self._hold = hold
        self._others = others
        self._closed = False
        self.cancellation: Cancellation | None = None
        self.signal: BaseException | None = None
        self._emitted = _emits_in(events)
        self._emits: Counter[str] = Counter()
        self._said_before = sum(1 for event in events if isinstance(event, StatusEvent) and _is_progress(event))
        self._said = 0
        self._incoming = next(event.incoming for event in events if isinstance(event, StatusEvent) and event.incoming)
        self._answers = _answers_in(events)
        self._asked: Counter[str] = Counter()
        self._steps = hold.steps()
        self._used: set[str] = set()
        self._busy = 0
        self.calls = Calls(directory, hold, self._steps, self._keep)
        self._models = models

    @property
    def id(self) -> str:
        """The task's id."""
        return self._hold.key.task

    @property
    def context_id(self) -> str:
        """The id of the conversation."""
        return self._hold.head.context_id

    @property
    def message(self) -> Message:
        """The message that the task was made for."""
        return self._incoming.message

    @property
    def accepted_output_modes(self) -> tuple[str, ...]:
        """The media types that the client can take."""
        return self._incoming.accepted_output_modes

    @property
    def text_model(self) -> TextModel:
        """The text generator."""
        return self._models.text

    @property
    def picture_model(self) -> PictureModel:
        """The picture generator."""
        return self._models.pictures

    def text(self) -> str:
        """The text of the message."""
        return self.message.text()

    def data(self) -> Json:
        """The first data part of the message; None when there is none."""
        return self.message.data()

    @overload
    async def step(self, name: str, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    async def step(self, name: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    @_signals
    async def step(self, name: str, work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        """See ``AgentTask.step``."""
        self._check_name(name)
        arguments = digest([list(args), kwargs])
        kept = self._steps.get(name)
        if kept is None:
            began = self._hold.now()
            self._hold.flush()
            with self._at_work():
                value = await _result_of(work, *args, **kwargs)
            self._check_open()
            self._hold.metrics.measure({"StepTime": self._hold.now() - began}, task=self.id)
            kept = self._steps[name] = self._hold.keep_step(name, StepResult(arguments, _json_value(name, value)))
        if kept.arguments != arguments:
            raise StepConflict(f"The step {name!r} was stored with other arguments.")
        return kept.value

    @_signals
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
        """See ``AgentTask.emit``."""
        self._check_open()
        artifact_id = _artifact_id(self.id, name)
        self._emits[artifact_id] += 1
        number = self._emits[artifact_id]
        if number <= self._emitted[artifact_id]:
            return
        parts = tuple(self._files.kept(self._hold.key, part) for part in parts_of(content, media_type))
        artifact = Artifact(artifact_id, parts, name, description)
        self._hold.emit(artifact, number, append=append and number > 1, last=last)
        await asyncio.sleep(0)

    @_signals
    async def file(self, part: Part) -> bytes:
        """See ``AgentTask.file``."""
        with self._at_work():
            return await asyncio.to_thread(self._files.read, self._hold.key, part)

    @_signals
    async def progress(self, text: str) -> None:
        """See ``AgentTask.progress``."""
        self._check_open()
        self._said += 1
        if self._said <= self._said_before:
            return
        self._hold.report(TaskState.WORKING, self._hold.say(text))
        await asyncio.sleep(0)

    @_signals
    async def ask(self, question: str, *, sign_in: bool = False) -> Message:
        """See ``AgentTask.ask``."""
        self._asked[question] += 1
        state = TaskState.AUTH_REQUIRED if sign_in else TaskState.INPUT_REQUIRED
        return await self._answer(question, f"{self._asked[question]}\n{question}", state)

    @_signals
    async def card(self, agent: str) -> Card:
        """See ``AgentTask.card``."""
        self._check_reach(agent)
        return await self.calls.card(agent)

    @_signals
    async def call(
        self,
        name: str,
        agent: str,
        content: Content | Sequence[Part],
        *,
        timeout_s: float | None = None,
        deadline_s: float | None = None,
    ) -> Task | Message:
        """See ``AgentTask.call``."""
        self._check_name(f"call {name}")
        self._check_reach(agent)
        return await self.calls.call(name, agent, parts_of(content), Limit(timeout_s, deadline_s), self._answer)

    @_signals
    async def references(self, message: Message | None = None) -> list[Task]:
        """See ``AgentTask.references``."""
        said = message or self.message
        pointed_at = (reference.task_id for reference in references_in(said.parts))
        return self._others.named([*said.reference_task_ids, *pointed_at])

    @_signals
    async def earlier(self, limit: int = 20) -> list[Task]:
        """See ``AgentTask.earlier``."""
        return self._others.in_context(self.context_id, limit)

    @property
    def idle(self) -> bool:
        """Whether nothing happens here: every step is done, and a call waits for another agent."""
        return self.calls.waiting and self._busy == 0

    def outcome(self, done: asyncio.Future[Answer]) -> Answer:
        """What the agent's function gave. Raises the signal if there was one, else what the function raised."""
        if self.signal:
            raise self.signal
        return done.result()

    def close(self, why: Cancellation | None = None) -> None:
        """After this the agent can write nothing more, whatever it does with its cancellation."""
        self._closed = True
        self.cancellation = why

    async def _answer(self, question: str, name: str, state: TaskState = TaskState.INPUT_REQUIRED) -> Message:
        """The answer to the question ``name``, whose message has the same id in every run; asks it if need be."""
        self._check_open()
        message_id = _question_id(self.id, name)
        if message_id in self._answers:
            return self._answers[message_id]
        self._hold.report(state, replace(self._hold.say(question), message_id=message_id))
        self.close()
        raise Waits

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    def _keep(self, name: str, value: Json) -> Json:
        """Stores something of our own beside the author's steps; what is stored already counts."""
        self._check_open()
        kept = self._steps.get(name)
        if kept is None:
            kept = self._steps[name] = self._hold.keep_step(name, StepResult("", value))
        return kept.value

    def _check_open(self) -> None:
        if self._closed:
            raise Fenced

    def _check_reach(self, agent: str) -> None:
        self._check_open()
        try:
            self.calls.check_reach(agent)
        except Apart:
            self.close()
            raise

    def _check_name(self, name: str) -> None:
        self._check_open()
        if not name or len(name) > NAME_LIMIT or name.startswith("@"):
            raise StepConflict(f"A step's name has 1 to {NAME_LIMIT} characters and does not begin with @.")
        if name in self._used:
            raise StepConflict(f"The step {name!r} was used twice. Give each step its own name.")
        self._used.add(name)


def _emits_in(events: Sequence[Event]) -> Counter[str]:
    """The highest emit number that the log holds, for each artifact."""
    highest: Counter[str] = Counter()
    for event in events:
        if isinstance(event, ArtifactEvent):
            artifact_id = event.artifact.artifact_id
            highest[artifact_id] = max(highest[artifact_id], event.emits[1])
    return highest


def _answers_in(events: Sequence[Event]) -> dict[str, Message]:
    """The answers to the questions that the log holds, by the question's id: to each, the client's next message."""
    answers: dict[str, Message] = {}
    asked: str | None = None
    for event in events:
        if not isinstance(event, StatusEvent):
            continue
        if event.state in INTERRUPTED and event.message:
            asked = event.message.message_id
        if event.incoming and asked:
            answers[asked], asked = event.incoming.message, None
    return answers


def _is_progress(event: StatusEvent) -> bool:
    return event.state is TaskState.WORKING and event.fence > 0 and event.message is not None


async def _result_of(work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> object:
    """What an async function gives, or a plain one in a thread of its own."""
    if inspect.iscoroutinefunction(work):
        return await work(*args, **kwargs)
    result = await asyncio.to_thread(work, *args, **kwargs)
    return await result if inspect.isawaitable(result) else result


def _json_value(name: str, value: object) -> Json:
    """The value as it will be read back, so that a first run and a re-run give the agent the same."""
    try:
        return cast("Json", json.loads(json.dumps(value, allow_nan=False)))
    except (TypeError, ValueError):
        raise Failed(f"The step {name!r} gave a {type(value).__name__}, which is not a JSON value.") from None


def _artifact_id(task_id: str, name: str) -> str:
    """The same artifact has the same id in every run, and another one in every task."""
    return sha256(f"{task_id}\n{name}".encode()).hexdigest()[:32]


def _question_id(task_id: str, name: str) -> str:
    return sha256(f"{task_id}\nask\n{name}".encode()).hexdigest()[:32]


def placed(answer: Answer, context_id: str | None, task_id: str | None = None) -> Answer:
    """What an agent has returned, as it can be sent: a message of its own belongs to the conversation (4.1.4).

    Raises ValueError for one that has no parts (5.7) or is not the agent's.
    """
    if not isinstance(answer, Message):
        return answer
    if not answer.parts or answer.role is not Role.AGENT:
        raise ValueError("an agent's message has parts, and the role of an agent")
    return replace(answer, context_id=context_id, task_id=task_id)


def parts_of(content: Content | Sequence[Part], media_type: str | None = None) -> list[Part]:
    """What an author gave, as parts. ``media_type`` is that of a single text, bytes or JSON value."""
    several = [one for one in content if isinstance(one, Part)] if isinstance(content, list | tuple) else []
    return several or [_part(cast("Content", content), media_type)]


def _part(content: Content, media_type: str | None) -> Part:
    if isinstance(content, Part):
        return content
    if isinstance(content, str):
        return Part("text", content, media_type)
    if isinstance(content, bytes):
        return Part("raw", base64.b64encode(content).decode(), media_type or "application/octet-stream")
    return Part("data", content, media_type)
