"""Runs a Pydantic AI agent as an agent of a deployment.

    from a2a_serverless_frameworks.pydantic_ai import agent

    support = agent(Agent("openai:gpt-5.2", name="support"), description="Answers questions.")

The framework's own loop runs. Each model request and each tool call is a step: a later run of the task gets the stored
result. Everything between steps runs again, so it must be deterministic: instructions, output validators, hooks.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, Union, cast, get_args, get_origin

from pydantic_ai import BinaryContent, ModelRetry, RunContext, Tool, ToolApproved, ToolDenied
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    CallableOperationBackend,
    DurabilityEngineSpec,
    JournalOperationNamer,
    ModelRequestId,
    RoleBasedOperationConfig,
    ToolsetCallToolId,
)
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_core import ValidationError, to_jsonable_python

from a2a_serverless import Agent, AgentCallFailed, Part, Step, current_task
from a2a_serverless.domain.agent import skills_of
from a2a_serverless.engine.framework_task import fit_name, framework_task
from a2a_serverless_frameworks.answers import (
    ANSWER,
    UNREAD,
    AnswerStream,
    UnreadableAnswer,
    ask_until_read,
    content_of,
    data_or_text,
    how_to_answer,
    read_approval,
    text_in,
)
from a2a_serverless_frameworks.history import load_history, save_turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pydantic_ai import Agent as PydanticAgent
    from pydantic_ai.durable_exec import DurableOperationId
    from pydantic_ai.messages import AgentStreamEvent, ModelMessage, ModelResponse, UserContent
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition
    from pydantic_ai.toolsets import ToolsetTool

    from a2a_serverless import Message, Skill, TaskContext
    from a2a_serverless_frameworks.answers import Decision

APPROVALS: Final[tuple[Decision, ...]] = ("approve", "edit", "reject")
IN_STEP: Final = "a2a_serverless"
"""The key of a tool's metadata; False runs the tool outside of a step, so that it may use the task."""


def agent(  # noqa: PLR0913 - the fields of a card
    wrapped: PydanticAgent[Any, Any],
    *,
    id: str = "",  # noqa: A002 - the card's word
    name: str = "",
    description: str = "",
    skills: Sequence[Skill] = (),
    deps: Callable[[TaskContext], Any] | None = None,
    models: Mapping[str, Model] | None = None,
    history: int = 40,
    streaming: bool = True,
    **card: Any,  # noqa: ANN401 - the other fields of ``Agent``
) -> Agent:
    """Makes an ``Agent`` of a Pydantic AI agent. Its output is the artifact ``answer``.

    ``deps`` makes the dependencies from the task, in each run of it. ``models`` are the models that the agent may use
    beside its own, unless it names them by strings. The id, the name and the description default to the agent's own,
    the skills to one skill with these. The agent gets the messages of the newest ``history`` tasks of the conversation.
    Raises ``pydantic_ai.exceptions.UserError`` for an agent without a model, or with toolsets that have no id.
    """
    name = name or wrapped.name or id
    id = id or name  # noqa: A001 - as above
    description = description or str(wrapped.description or name)
    _Durability(name=id, models=models).for_agent(wrapped)
    work = _AgentRun(wrapped, id, deps, models, history, streaming and _has_text(wrapped.output_type))
    own_skills = skills_of(id, name, description, skills)
    return Agent(id, name, description, own_skills, work, streaming=streaming, **card)


@dataclass(frozen=True, slots=True)
class _AgentRun:
    """An agent's function: a run with the conversation's messages, and its output as the artifact."""

    wrapped: PydanticAgent[Any, Any]
    id: str
    deps: Callable[[TaskContext], Any] | None
    models: Mapping[str, Model] | None
    history: int
    stream: bool

    async def __call__(self, task: TaskContext) -> None:
        deps = self.deps(task) if self.deps else None
        options = {"deps": await deps if inspect.isawaitable(deps) else deps, "models": self.models}
        before = ModelMessagesTypeAdapter.validate_python(await load_history(task, self.id) if self.history else [])
        prompt = await read_prompt(task)
        result = await run(self.wrapped, prompt, name=self.id, stream=self.stream, message_history=before, **options)
        await _emit_output(task, result, streamed=self.stream)
        if self.history:
            await save_turn(task, self.id, _without_files(result.new_messages()), self.history)


async def run(
    wrapped: PydanticAgent[Any, Any],
    prompt: str | Sequence[UserContent] | None = None,
    *,
    name: str | None = None,
    models: Mapping[str, Model] | None = None,
    stream: bool = True,
    **options: Any,  # noqa: ANN401 - those of the framework
) -> AgentRunResult[Any]:
    """``wrapped.run(prompt, **options)`` with durable model requests and tool calls, in an agent's function.

    With ``stream`` text is emitted as the artifact ``answer`` while it arrives. ``name`` is the prefix of the steps; it
    defaults to the agent's name. ``models`` as in ``agent``. Approvals and external tools are questions to the client.
    """
    durability = _Durability(name=name, models=models, event_stream_handler=_emit_text if stream else None)
    own = options.pop("capabilities", None) or ()
    return await wrapped.run(prompt, capabilities=[*own, durability], **options)


def call_agent(agent_id: str, *, description: str, name: str | None = None) -> Tool[Any]:
    """A tool that sends a message to another A2A agent (``TaskContext.call``). Meanwhile the task uses no compute."""

    async def call(ctx: RunContext[Any], message: str) -> Any:  # noqa: ANN401 - any answer of the agent
        task, name = current_task(), fit_name(f"{agent_id}:{ctx.tool_call_id}")
        try:
            with task.scope(name):
                return content_of(await task.call(agent_id, agent_id, message))
        except AgentCallFailed as failed:
            raise ModelRetry(str(failed)) from failed

    return Tool(call, name=name or f"call_{agent_id}", description=description, metadata={IN_STEP: False})


async def read_prompt(task: TaskContext) -> str | list[UserContent]:
    """The task's message as a prompt: text, data as JSON, files as binary content."""
    contents = [await _user_content(task, part) for part in task.message.parts]
    return "\n\n".join(map(str, contents)) if all(isinstance(content, str) for content in contents) else contents


async def _user_content(task: TaskContext, part: Part) -> UserContent:
    if (text := text_in(part)) is not None:
        return text
    return BinaryContent(await task.read_file(part), media_type=part.media_type or "application/octet-stream")


def _without_files(messages: Sequence[ModelMessage]) -> list[Any]:
    """The messages as JSON, with the media types of the client's files in place of their bytes."""
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            part.content = [
                f"[{content.media_type}]" if isinstance(content, BinaryContent) else content for content in part.content
            ]
    dumped: list[Any] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return dumped


class _Durability(BaseDurabilityCapability[Any]):
    """Makes the operations of one ``Agent.run`` steps of the current task."""

    engine_spec = DurabilityEngineSpec(
        engine_name="a2a-serverless",
        durable_unit_noun="step",
        durable_container_noun="task",
        codec=JSON_CODEC,
        tool_config_key=IN_STEP,
    )
    in_durable_context = True

    def get_durable_operation_backend(self) -> _Steps:
        config = RoleBasedOperationConfig(model=None, event=None, capability=None, tool=None, resolve_tool=_config_of)
        return _Steps(namer=JournalOperationNamer(self.name), config=config)

    def get_default_run_id(self) -> str:
        return framework_task(current_task()).make_id("run")

    def get_default_conversation_id(self, run_id: str) -> str:
        del run_id
        return current_task().context_id

    def wrap_run_event_stream(
        self, ctx: RunContext[Any], *, stream: AsyncIterable[AgentStreamEvent]
    ) -> AsyncIterable[AgentStreamEvent]:
        """Passes the events on. The base class would make a step of each event."""
        del ctx
        return stream

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:  # noqa: ANN401 - any result of the tool
        """Gives each call of a tool outside of steps a scope, so that simultaneous calls may use the same names."""
        del ctx
        if _is_step(tool_def):
            return await handler(args)
        with current_task().scope(fit_name(f"{call.tool_name}:{call.tool_call_id}")):
            return await handler(args)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults:
        """Asks the client for approvals, and for the results of external tools, one after the other."""
        tools = (ctx.tool_manager.tools if ctx.tool_manager else None) or {}
        approvals = {
            call.tool_call_id: await _ask_approval(call, tools.get(call.tool_name)) for call in requests.approvals
        }
        calls = {call.tool_call_id: await _ask_result(call) for call in requests.calls}
        return requests.build_results(approvals=approvals, calls=calls)


class _Steps(CallableOperationBackend[None]):
    """Runs each operation as a step, under the framework's name and the id of the tool call. There are no options.

    The requests of all models have one name: a later run gets the response at once if a fallback model made it.
    """

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: None,
    ) -> object:
        del config
        task = current_task()
        if not isinstance(operation_id, ModelRequestId):
            call = next((key for key in cache_key if isinstance(key, RunContext) and key.tool_call_id), None)
            if call and isinstance(operation_id, ToolsetCallToolId):
                return await _call_tool(call, name, body)
            step = f"{name}:{call.tool_call_id}" if call else name
            return await task.step(Step(fit_name(step), repeat=True), body)

        async def request() -> object:
            response = await body()
            await _record_usage(task, cast("dict[str, Any]", response))
            return response

        model = f"{name.rpartition('__model.request')[0]}__model"
        return await task.step(Step(fit_name(model), repeat=True), request)


async def _call_tool(call: RunContext[Any], name: str, body: Callable[[], Awaitable[object]]) -> object:
    """Makes a tool call in a step, which also stores what the tool changes in the dependencies."""
    shared, step = call.deps, Step(fit_name(f"{name}:{call.tool_call_id}"), repeat=True, tool=call.tool_name or "")

    async def work(state: Any) -> object:  # noqa: ANN401 - the author's
        call.deps = state
        try:
            return await body()
        finally:
            call.deps = shared

    kind = getattr(call.agent, "deps_type", None)
    result, _ = await framework_task(current_task()).step_with_state(
        step, work, state=shared, name="ctx.deps", kind=kind
    )
    return result


def _config_of(operation_id: DurableOperationId, tool: Any, name: str) -> Literal[False] | None:  # noqa: ANN401
    """False for a tool outside of steps."""
    del operation_id, name
    return None if tool is None or _is_step(tool.tool_def) else False


def _is_step(tool: ToolDefinition) -> bool:
    return (tool.metadata or {}).get(IN_STEP) is not False


async def _record_usage(task: TaskContext, response: dict[str, Any]) -> None:
    amounts = {name: amount for name, amount in response["usage"].items() if isinstance(amount, int) and amount}
    if "input_tokens" in amounts:  # the framework includes cached tokens in this count
        cache_tokens = amounts.get("cache_read_tokens", 0) + amounts.get("cache_write_tokens", 0)
        amounts["input_tokens"] = max(0, amounts["input_tokens"] - cache_tokens)
    await task.record_usage(str(response["model_name"]), requests=1, **amounts)


async def _emit_text(ctx: RunContext[Any], stream: AsyncIterable[AgentStreamEvent]) -> None:
    """Emits the text of one model response while it arrives. It is the whole answer unless the response calls tools."""
    del ctx
    answer, calls = AnswerStream(current_task()), False
    async for event in stream:
        calls = calls or (isinstance(event, PartStartEvent) and isinstance(event.part, ToolCallPart))
        await answer.add(_text_in(event))
    await answer.end(last=not calls)


def _text_in(event: AgentStreamEvent) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


async def _emit_output(task: TaskContext, result: AgentRunResult[Any], *, streamed: bool) -> None:
    """Emits the output as the artifact, unless the last response has streamed it."""
    output = result.output
    if isinstance(output, BinaryContent):
        await task.emit(ANSWER, output.data, media_type=output.media_type, last=True)
    elif not isinstance(output, str):
        await task.emit(ANSWER, Part(data=to_jsonable_python(output)), last=True)
    elif not streamed or output != _text_of(result.response):
        await task.emit(ANSWER, output, last=True)


def _text_of(response: ModelResponse) -> str | None:
    """The text of a response; None if it calls tools."""
    if any(isinstance(part, ToolCallPart) for part in response.parts):
        return None
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _has_text(output_type: Any) -> bool:  # noqa: ANN401 - any output type
    """Whether the output may be the text of a response."""
    if isinstance(output_type, list | tuple):
        return any(map(_has_text, output_type))
    if get_origin(output_type) in {Union, UnionType}:
        return any(map(_has_text, get_args(output_type)))
    return output_type is str


async def _ask_approval(call: ToolCallPart, tool: ToolsetTool[Any] | None) -> ToolApproved | ToolDenied:
    """The client's decision. Arguments that it changes must be what the tool takes."""

    def read(answer: Message) -> ToolApproved | ToolDenied:
        approval = read_approval(data_or_text(answer), APPROVALS)
        if approval.decision == "reject":
            return ToolDenied(approval.message or ToolDenied().message)
        if approval.action not in {"", call.tool_name}:
            raise UnreadableAnswer(f"The call of {call.tool_name} cannot be changed to one of {approval.action}.")
        try:
            if tool and approval.arguments is not None:
                tool.args_validator.validate_python(approval.arguments)
        except ValidationError as error:
            raise UnreadableAnswer(f"{call.tool_name} does not take these arguments: {error}.") from error
        return ToolApproved(override_args=approval.arguments)

    with _scope_of("approval", call):
        parts = _question("approval", call, f"May I call {{}}? {how_to_answer(APPROVALS)}")
        return await ask_until_read(current_task(), parts, read, ToolDenied(UNREAD), is_approval=True)


async def _ask_result(call: ToolCallPart) -> Any:  # noqa: ANN401 - any result
    with _scope_of("result", call):
        return data_or_text(await current_task().ask(_question("result", call, "What is the result of {}?")))


def _scope_of(kind: str, call: ToolCallPart) -> AbstractContextManager[None]:
    return current_task().scope(fit_name(f"{kind} {call.tool_call_id}"))


def _question(kind: str, call: ToolCallPart, text: str) -> list[Part]:
    arguments = call.args_as_dict()
    question = text.format(f"{call.tool_name}({json.dumps(arguments, ensure_ascii=False)})")
    data = {"kind": kind, "tool": call.tool_name, "tool_call_id": call.tool_call_id, "arguments": arguments}
    return [Part(text=question), Part(data=data)]
