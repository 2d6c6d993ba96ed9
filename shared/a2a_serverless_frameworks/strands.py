"""Runs a Strands agent as an agent of a deployment.

    from a2a_serverless_frameworks.strands import agent

    weather = agent(make_weather_agent, id="weather", description="Tells the weather.")

The framework's own loop runs. Each model call and each tool call is a step: a later run of the task gets the stored
result. Everything between steps runs again, so it must be deterministic: hooks, other middleware, plugins.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakSet

import strands
from strands import ToolContext, tool
from strands.agent.state import AgentState
from strands.hooks import MessageAddedEvent
from strands.interrupt import Interrupt
from strands.middleware import ExecuteToolStage, InvokeModelStage, ModelStopReason, ToolResultEvent
from strands.multiagent import MultiAgentBase
from strands.types.session import decode_bytes_values, encode_bytes_values
from strands.vended_interventions.hitl import HumanInTheLoop

from a2a_serverless import Agent, Part, Step, current_task
from a2a_serverless.domain.agent import skills_of
from a2a_serverless.engine.framework_task import NoResult, fit_name, framework_task
from a2a_serverless_frameworks.answers import (
    ANSWER,
    UNREAD,
    AnswerStream,
    UnreadableAnswer,
    answers_by_id,
    ask_until_read,
    content_of,
    read_approval,
    text_in,
)
from a2a_serverless_frameworks.history import load_history, save_turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from strands.agent import AgentResult
    from strands.middleware import ExecuteToolContext, InvokeModelContext, MiddlewareNext, TypedEvent
    from strands.tools.decorator import DecoratedFunctionTool
    from strands.types.agent import AgentInput
    from strands.types.content import Message

    from a2a_serverless import Message as A2AMessage
    from a2a_serverless import Skill, TaskContext
    from a2a_serverless.domain.model import Json

_OUTSIDE: Final[WeakSet[Any]] = WeakSet()
"""The tools that run outside of steps."""
_COUNTED: Final[WeakSet[strands.Agent]] = WeakSet()
"""The agents that are tools, and record their usage."""
APPROVALS: Final = {HumanInTheLoop.name, "approval"}
"""The names of the interrupts to which "yes" and "no" are answers."""


def agent(  # noqa: PLR0913 - the fields of a card
    make: Callable[[], strands.Agent],
    *,
    id: str,  # noqa: A002 - the card's word
    description: str,
    name: str = "",
    skills: Sequence[Skill] = (),
    history: int = 40,
    streaming: bool = True,
    **card: Any,  # noqa: ANN401 - the other fields of ``Agent``
) -> Agent:
    """Makes an ``Agent`` of a function that returns a new Strands agent. Its output is the artifact ``answer``.

    The name defaults to the id, the skills to one skill with the description. The agent gets the messages of the newest
    ``history`` tasks of the conversation, and the state that the last of them has left; with 0 it gets neither. Do not
    give it a session manager.
    """

    async def work(task: TaskContext) -> None:
        strands_agent = make()
        messages = strands_agent.messages
        strands_agent.messages = (
            [*messages, *decode_bytes_values(await load_history(task, id))] if history else messages
        )
        if history and (state := await task.step("state", partial(_read_state, task, id))) is not None:
            strands_agent.state = AgentState(state)
        before, added = strands_agent.state.get(), list[Any]()
        strands_agent.add_hook(lambda event: added.append(event.message), MessageAddedEvent)
        result = await run(strands_agent, await read_prompt(task), stream=streaming)
        await _emit_output(task, result, streamed=streaming)
        if history:
            await save_turn(task, id, encode_bytes_values([_without_files(message) for message in added]), history)
            if (now := strands_agent.state.get()) != before:
                await task.conversation.put(_state_key(id), now)

    own_skills = skills_of(id, name or id, description, skills)
    return Agent(id, name or id, description, own_skills, work, streaming=streaming, **card)


def _state_key(agent_id: str) -> str:
    return f"state/{agent_id}"


async def _read_state(task: TaskContext, agent_id: str) -> Any:  # noqa: ANN401 - JSON
    """The state that the conversation's last task has left; None if no task has changed it."""
    entry = await task.conversation.get(_state_key(agent_id))
    return entry.value if entry else None


async def run(strands_agent: strands.Agent, prompt: AgentInput, *, stream: bool = True, **options: Any) -> AgentResult:  # noqa: ANN401
    """``made.invoke_async(prompt, **options)`` with durable model and tool calls, in an agent's function.

    With ``stream`` text is emitted as the artifact ``answer`` while it arrives. Interrupts are questions to the client.
    """
    if isinstance(strands_agent, MultiAgentBase):
        raise TypeError("graphs and swarms do not run here: make an agent of each node, and let them call each other")
    task, steps = current_task(), dict[str, str]()
    strands_agent.state = _State.around(strands_agent.state)
    strands_agent.add_middleware(InvokeModelStage, partial(_call_model, stream=stream))
    strands_agent.add_middleware(ExecuteToolStage, partial(_call_tool, steps=steps))
    questions = _InterruptQuestions(task, f"{strands_agent.name}: question")
    result = await strands_agent.invoke_async(prompt, **options)
    while result.stop_reason == "interrupt":
        pending = [(steps.pop(interrupt.id, ""), interrupt) for interrupt in result.interrupts or ()]
        result = await strands_agent.invoke_async(await questions.answer(pending), **options)
    return result


def call_agent(agent_id: str, *, description: str, name: str = "") -> DecoratedFunctionTool[Any, Any]:
    """A tool that sends a message to another A2A agent (``TaskContext.call``). Meanwhile the task uses no compute."""

    async def call(message: str, tool_context: ToolContext) -> Any:  # noqa: ANN401 - any answer of the agent
        task, use_id = current_task(), tool_context.tool_use["toolUseId"]
        with task.scope(fit_name(f"{agent_id}:{use_id}")):
            answer = await task.call(agent_id, agent_id, message)
        return {"status": "success", "content": [{"json": {"answer": content_of(answer)}}]}

    agent_tool = tool(name=name or f"call_{agent_id}", description=description, context=True)(call)
    _OUTSIDE.add(agent_tool)
    return agent_tool


async def read_prompt(task: TaskContext) -> list[Any]:
    """The task's message as content blocks: text, data as JSON, images and documents."""
    return [await _block(task, part) for part in task.message.parts]


async def _block(task: TaskContext, part: Part) -> dict[str, Any]:
    if (text := text_in(part)) is not None:
        return {"text": text}
    kind, _, form = (part.media_type or "").partition("/")
    source = {"bytes": await task.read_file(part)}
    if kind == "image":
        return {"image": {"format": form, "source": source}}
    stem, _, suffix = (part.filename or "file").rpartition(".")
    return {"document": {"format": suffix if stem else form, "name": stem or suffix, "source": source}}


def _without_files(message: Message) -> dict[str, Any]:
    """The message with the kinds of the client's files in place of their bytes."""
    if message["role"] != "user":
        return dict(message)
    kinds = [("image", block) if "image" in block else ("document", block) for block in message["content"]]
    return {**message, "content": [{"text": f"[{kind}]"} if kind in block else block for kind, block in kinds]}


class _Bytes:
    """Stores values with bytes, as the framework's sessions do."""

    def dump(self, value: object) -> Any:  # noqa: ANN401 - JSON
        return encode_bytes_values(value)

    def load(self, stored: object) -> Any:  # noqa: ANN401 - the framework's
        return decode_bytes_values(stored)


_COPIES: Final[ContextVar[dict[int, dict[str, Any]]]] = ContextVar("strands_states", default={})  # noqa: B039 - it stays empty
"""The copies of states that the running tools change, by ``id()`` of the state: a tool may run another agent."""


class _State(AgentState):
    """An agent's state, whose members are those of ``root``, or in a tool those of the tool's copy."""

    def __init__(self, state: AgentState) -> None:
        super().__init__()
        self.root: dict[str, Any] = state.get()

    @classmethod
    def around(cls, state: AgentState) -> _State:
        """The state, of which each tool changes a copy."""
        return state if isinstance(state, cls) else cls(state)

    def get(self, key: str | None = None) -> Any:  # noqa: ANN401 - JSON
        """A copy of the value of a key, or of all values."""
        members = self._members
        return deepcopy(members if key is None else members.get(key))

    def set(self, key: str, value: Any) -> None:  # noqa: ANN401 - JSON
        """Sets a value."""
        AgentState().set(key, value)  # it checks both
        self._members[key] = deepcopy(value)

    def delete(self, key: str) -> None:
        """Deletes a key."""
        AgentState().delete(key)  # it checks the key
        self._members.pop(key, None)

    @property
    def _members(self) -> dict[str, Any]:
        return _COPIES.get().get(id(self), self.root)


class _InterruptRequested(NoResult):
    """A tool has asked for an interrupt: the step has no result. The argument is the framework's event."""


async def _call_model(
    context: InvokeModelContext, next_fn: MiddlewareNext, *, stream: bool
) -> AsyncIterator[TypedEvent]:
    """Middleware that makes each model call a step."""
    task = current_task()

    async def work() -> list[Any]:
        stop = await _consume(task, next_fn(context), stream=stream)
        await _record_usage(task, context.model, stop.usage)
        _make_unique(stop.message)
        return [stop.stop_reason, stop.message, stop.usage, stop.metrics]

    name = f"{context.agent.name}: model"
    yield ModelStopReason(*await task.step(_step(name), work))


async def _consume(task: TaskContext, events: AsyncIterator[TypedEvent], *, stream: bool) -> ModelStopReason:
    """Emits the text of a response; returns the event that ends it, the last one.

    The framework takes a response whose connection breaks for a whole one. This raises RuntimeError.
    """
    answer, response_text, is_whole = AnswerStream(task), "", False
    async for event in events:
        is_whole = is_whole or "messageStop" in (event.get("event") or ())
        text = _text_in(event) if stream else ""
        response_text += text
        await answer.add(text)
    if not is_whole:
        raise RuntimeError("the model's response has no end")
    stop = cast("ModelStopReason", event)
    if stream and response_text != _text_of(stop.message):  # a guardrail has replaced the text
        answer = AnswerStream(task)
        await answer.add(_text_of(stop.message))
    await answer.end(last=stop.stop_reason != "tool_use")
    return stop


def _make_unique(message: dict[str, Any]) -> None:
    """Changes ids that two tool calls of a response have: weak models repeat them, and each call counts."""
    ids = set[str]()
    for use in (block["toolUse"] for block in message["content"] if "toolUse" in block):
        first, number = use["toolUseId"], 1
        while use["toolUseId"] in ids:
            number += 1
            use["toolUseId"] = f"{first}-{number}"
        ids.add(use["toolUseId"])


async def _call_tool(
    context: ExecuteToolContext, next_fn: MiddlewareNext, *, steps: dict[str, str]
) -> AsyncIterator[TypedEvent]:
    """Middleware that makes each tool call a step, except calls of tools that only pass a value in this process.

    ``steps`` gets an id of the step for each interrupt in it: a later run that reads the step back does not ask again.
    """
    if context.tool and (context.tool in _OUTSIDE or context.tool.tool_type == "structured_output"):
        async for event in next_fn(context):
            yield event
        return
    _count_agent(context)
    task, use = framework_task(current_task()), context.tool_use
    state = context.agent.state = _State.around(context.agent.state)

    async def work(members: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        _COPIES.set({**_COPIES.get(), id(state): members})
        *_, last = [event async for event in next_fn(context)]
        if not isinstance(last, ToolResultEvent):
            interrupts = last["tool_interrupt_event"]["interrupts"]
            steps.update({interrupt.id: task.make_id("interrupt") for interrupt in interrupts})
            raise _InterruptRequested(last)
        return last.tool_result

    try:
        step = _step(f"{use['name']}:{use['toolUseId']}", use["name"])
        result, _ = await task.step_with_state(step, work, state=state.root, name="agent.state")
    except _InterruptRequested as request:
        (event,) = request.args
        yield event
    else:
        yield ToolResultEvent(result)


def _count_agent(context: ExecuteToolContext) -> None:
    """Lets the task count what the models of an agent use that is the tool."""
    inner = getattr(context.tool, "agent", None)
    if isinstance(inner, strands.Agent) and inner not in _COUNTED:
        _COUNTED.add(inner)
        inner.add_middleware(InvokeModelStage, _count_model)
        inner.add_middleware(ExecuteToolStage, _count_tool)


async def _count_model(context: InvokeModelContext, next_fn: MiddlewareNext) -> AsyncIterator[TypedEvent]:
    """Middleware that records the usage of a model call within a tool's step."""
    async for event in next_fn(context):
        if isinstance(event, ModelStopReason):
            await _record_usage(current_task(), context.model, event.usage)
        yield event


async def _count_tool(context: ExecuteToolContext, next_fn: MiddlewareNext) -> AsyncIterator[TypedEvent]:
    """Middleware that counts the agents that are tools of an agent that is a tool."""
    _count_agent(context)
    async for event in next_fn(context):
        yield event


def _step(name: str, tool: str = "") -> Step:
    return Step(fit_name(name), repeat=True, codec=_Bytes(), tool=tool)


async def _record_usage(task: TaskContext, model: Any, usage: dict[str, int]) -> None:  # noqa: ANN401
    names = {
        "input_tokens": "inputTokens",
        "output_tokens": "outputTokens",
        "cache_read_tokens": "cacheReadInputTokens",
        "cache_write_tokens": "cacheWriteInputTokens",
    }
    used = {name: usage[member] for name, member in names.items() if usage.get(member)}
    name = model.get_config().get("model_id") or type(model).__name__
    await task.record_usage(str(name), requests=1, **used)


def _text_in(event: TypedEvent) -> str:
    """The text in a chunk of a response; "" if there is none."""
    chunk = event.get("event")
    delta = chunk.get("contentBlockDelta", {}).get("delta", {}) if isinstance(chunk, dict) else {}
    return str(delta.get("text") or "")


def _text_of(message: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in message["content"])


class _InterruptQuestions:
    """The questions of a run. The interrupts of each are stored: a later run does not come to those of stored steps."""

    def __init__(self, task: TaskContext, name: str) -> None:
        self._task = task
        self._name = name
        self._responses: dict[tuple[str, str], Any] = {}

    async def answer(self, pending: Sequence[tuple[str, Interrupt]]) -> list[Any]:
        """The client's answers to interrupts, each with an id of the step that asks, or ""."""
        places = [(step, interrupt.id) for step, interrupt in pending]
        while rest := [one for one, place in zip(pending, places, strict=True) if place not in self._responses]:
            await self._ask(rest)
        return [
            {"interruptResponse": {"interruptId": place[1], "response": self._responses.pop(place)}} for place in places
        ]

    async def _ask(self, pending: Sequence[tuple[str, Interrupt]]) -> None:
        """Asks the next question. A later run repeats the stored questions, whatever waits then."""

        async def work() -> list[Any]:
            return [[step, interrupt.id, interrupt.name, interrupt.reason] for step, interrupt in pending]

        with framework_task(self._task).optional():
            rows = await self._task.step(_step(self._name), work)
            interrupts = [Interrupt(*fields) for _, *fields in rows]
            steps = {fields[0]: step for step, *fields in rows}
            denials = {interrupt.id: UNREAD for interrupt in interrupts}
            read = partial(_responses, interrupts)
            is_approval = all(interrupt.name in APPROVALS for interrupt in interrupts)
            responses = await ask_until_read(self._task, _question(interrupts), read, denials, is_approval=is_approval)
        self._responses |= {(steps[identity], identity): response for identity, response in responses.items()}


def _question(interrupts: Sequence[Interrupt]) -> list[Part]:
    """A text, and data in the form of the framework's own executor."""
    rows: list[Json] = []
    texts: list[str] = []
    for interrupt in interrupts:
        reason = encode_bytes_values({"": interrupt.reason})[""]
        rows.append({"interruptId": interrupt.id, "name": interrupt.name, "reason": reason})
        text = reason if isinstance(reason, str) else json.dumps(reason, ensure_ascii=False)
        texts.append(interrupt.name if reason is None else f"{interrupt.name}: {text}")
    return [Part(text="\n".join(texts)), Part(data={"interrupts": rows})]


def _responses(interrupts: Sequence[Interrupt], answer: A2AMessage) -> dict[str, Any]:
    """The client's answers by id, at least that to the first interrupt. Raises UnreadableAnswer.

    Data parts may have the form of the framework's own executor. An answer to its ``HumanInTheLoop`` becomes its word.
    """
    names = {interrupt.id: interrupt.name for interrupt in interrupts}
    values: list[Any] = [part.value for part in answer.parts if part.kind == "data"]
    match [value["interruptResponse"] for value in values if isinstance(value, dict) and "interruptResponse" in value]:
        case []:
            responses = answers_by_id(answer, list(names))
        case client_responses:
            if not all(isinstance(one, dict) and one.keys() == {"interruptId", "response"} for one in client_responses):
                raise UnreadableAnswer("An interruptResponse has the members interruptId and response.")
            responses = {str(one["interruptId"]): one["response"] for one in client_responses}
    if others := responses.keys() - names.keys():
        raise UnreadableAnswer(f"No question that is open has the id {', '.join(others)}.")
    if None in responses.values():  # the framework's mark of an interrupt that is not answered
        raise UnreadableAnswer("An interrupt takes any answer but null.")
    return {
        identity: _word(response) if names[identity] == HumanInTheLoop.name else response
        for identity, response in responses.items()
    }


def _word(response: Any) -> str:  # noqa: ANN401 - JSON
    """A decision in the words of ``HumanInTheLoop``, which takes any word that it does not know for a no."""
    if isinstance(response, str) and response.strip().lower() in {"t", "trust"}:
        return "trust"
    return "yes" if read_approval(response).decision == "approve" else "no"


async def _emit_output(task: TaskContext, result: AgentResult, *, streamed: bool) -> None:
    """Emits the output as the artifact, unless the last response has streamed it."""
    if result.structured_output is not None:
        await task.emit(ANSWER, Part(data=result.structured_output.model_dump(mode="json")), last=True)
    elif not streamed:
        await task.emit(ANSWER, _text_of(result.message), last=True)
