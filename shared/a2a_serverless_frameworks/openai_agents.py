"""Runs an agent of the OpenAI Agents SDK as an agent of a deployment.

    from a2a_serverless_frameworks.openai_agents import agent

    support = agent(Agent("Support", tools=[find_order]), id="support", description="Answers questions.")

The SDK's own loop runs. Each model call and each tool call is a step: a later run of the task gets the stored result.
Everything between steps runs again, so it must be deterministic: instructions, hooks, guardrails, handoffs.

The SDK's default runner is replaced by ``_Runner``, which differs only within ``run``: an agent that is used as a tool,
or that a tool or a guardrail runs, is durable there, too.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import inspect
import json
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import agents
from agents.mcp import MCPServerManager
from agents.run import AgentRunner, set_default_agent_runner
from agents.tool import invoke_function_tool
from openai.types.responses import Response, ResponseCompletedEvent
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from a2a_serverless import Agent, AgentCallFailed, Part, Step, TaskFailed, TaskRejected, current_task
from a2a_serverless.domain.agent import skills_of
from a2a_serverless.engine.framework_task import fit_name, framework_task
from a2a_serverless_frameworks.answers import ANSWER, AnswerStream, ask_approval, content_of, text_in
from a2a_serverless_frameworks.history import load_history, save_turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from agents.tool import Tool
    from agents.tool_context import ToolContext

    from a2a_serverless import Skill, TaskContext

_RESPONSES: Final = TypeAdapter(agents.ModelResponse)
_LOCAL: Final = (agents.ApplyPatchTool, agents.ComputerTool, agents.CustomTool, agents.LocalShellTool)
_OUTPUTS: Final = (agents.ToolOutputText, agents.ToolOutputImage, agents.ToolOutputFileContent)
_CALL: Final = "function_call"


def agent(  # noqa: PLR0913 - the fields of a card, and the options of a run
    wrapped: agents.Agent[Any],
    *,
    id: str,  # noqa: A002 - the card's word
    description: str,
    name: str = "",
    skills: Sequence[Skill] = (),
    context: Callable[[TaskContext], Any] | None = None,
    options: Mapping[str, Any] | None = None,
    history: int = 40,
    streaming: bool = True,
    tracing: bool = False,
    **card: Any,  # noqa: ANN401 - the other fields of ``Agent``
) -> Agent:
    """Makes an ``Agent`` of an agent of the SDK. Its output is the artifact ``answer``.

    ``context`` makes the SDK's context from the task, in each run of it. ``options`` are those of ``Runner.run``, such
    as ``max_turns``. The name defaults to the agent's own, the skills to one skill with the description. The agent gets
    the items of the newest ``history`` tasks of the conversation. ``tracing`` is as in ``run``.
    """

    async def work(task: TaskContext) -> None:
        made = context(task) if context else None
        given = {"context": await made if inspect.isawaitable(made) else made, **(options or {})}
        before = await load_history(task, id) if history else []
        prompt = await read_prompt(task)
        try:
            result = await run(wrapped, [*before, *prompt], stream=streaming, tracing=tracing, **given)
        except agents.InputGuardrailTripwireTriggered as refused:
            guardrail = refused.guardrail_result.guardrail.get_name()
            raise TaskRejected(f"The guardrail {guardrail} refuses the message.") from refused
        except agents.OutputGuardrailTripwireTriggered as refused:
            guardrail = refused.guardrail_result.guardrail.get_name()
            raise TaskFailed(f"The guardrail {guardrail} refuses the answer.") from refused
        await _emit_output(task, result)
        if history:
            items = to_jsonable_python(result.to_input_list()[len(before) + len(prompt) :])
            await save_turn(task, id, [*map(_without_files, prompt), *items], history)

    name = name or wrapped.name
    own_skills = skills_of(id, name, description, skills)
    return Agent(id, name, description, own_skills, work, streaming=streaming, **card)


async def run(
    wrapped: agents.Agent[Any],
    prompt: str | list[Any],
    *,
    stream: bool = True,
    tracing: bool = False,
    connect: bool = True,
    **options: Any,  # noqa: ANN401 - those of ``Runner.run``
) -> agents.RunResult:
    """``Runner.run(wrapped, prompt, **options)`` with durable model and tool calls, in an agent's function.

    With ``stream`` text is emitted as the artifact ``answer`` while it arrives. Approvals are questions to the client.
    The SDK traces nothing, unless with ``tracing``. The MCP servers of agents that run are connected, unless
    ``connect`` is false.
    """
    own = options.pop("run_config", None)
    given = _config_of(own) or agents.RunConfig()
    async with AsyncExitStack() as stack:
        if own is None:
            stack.push_async_callback(given.model_provider.aclose)
        one = _DurableRun(given, stream, tracing, stack, connect)
        with one.entered():
            start, options["run_config"] = one.durable(wrapped), one.config
            result = await AgentRunner().run(start, prompt, **options)
            while result.interruptions:
                state = result.to_state()
                for approval in result.interruptions:
                    await _decide(state, approval)
                result = await AgentRunner().run(start, state, **options)
    return result


def call_agent(agent_id: str, *, description: str, name: str = "") -> agents.FunctionTool:
    """A tool that sends a message to another A2A agent (``TaskContext.call``). Meanwhile the task uses no compute."""
    schema = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
    return agents.FunctionTool(name or f"call_{agent_id}", description, schema, _AgentCall(agent_id))


@dataclass(frozen=True)
class _AgentCall:
    """The function of a tool that calls another A2A agent. It is no step."""

    agent_id: str

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:  # noqa: ANN401 - any answer
        del context
        try:
            message = json.loads(arguments)["message"]
            return content_of(await current_task().call(self.agent_id, self.agent_id, message))
        except (AgentCallFailed, KeyError, TypeError, ValueError) as failed:
            return f"The call has failed: {failed!r}"


async def read_prompt(task: TaskContext) -> list[Any]:
    """The task's message as an input item: text, data as JSON, images and files."""
    return [{"role": "user", "content": [await _content(task, part) for part in task.message.parts]}]


async def _content(task: TaskContext, part: Part) -> dict[str, str]:
    if (text := text_in(part)) is not None:
        return {"type": "input_text", "text": text}
    media_type = part.media_type or "application/octet-stream"
    url = f"data:{media_type};base64,{base64.b64encode(await task.read_file(part)).decode()}"
    if media_type.startswith("image/"):
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_file", "filename": part.filename or "file", "file_data": url}


def _without_files(item: Any) -> Any:  # noqa: ANN401 - JSON
    """The client's message with the kinds of its files in place of their bytes."""
    texts = [one.get("text", f"[{one['type'].removeprefix('input_')}]") for one in item["content"]]
    return {**item, "content": [{"type": "input_text", "text": text} for text in texts]}


@dataclass(frozen=True)
class _DurableRun:
    """A run of the SDK's loop. ``given`` is the configuration that it was called with.

    ``stack`` closes the connections that the run makes to MCP servers, if it ``connects``. ``call_ids`` are those of
    the tool calls in the run. ``copies`` are the durable copies of agents, each after its agent, by its ``id()``.
    """

    given: agents.RunConfig
    stream: bool
    tracing: bool
    stack: AsyncExitStack
    connects: bool
    connected: set[Any] = field(default_factory=set)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    call_ids: set[str] = field(default_factory=set)
    copies: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    config: agents.RunConfig = field(init=False)

    def __post_init__(self) -> None:
        """Makes the configuration for the loop. The models are in the copies of the agents."""
        given, guardrails = self.given, _scoped(self.given)
        off = given.tracing_disabled or not self.tracing
        object.__setattr__(self, "config", replace(given, model=None, tracing_disabled=off, **guardrails))

    def nested(self, options: dict[str, Any]) -> _DurableRun:
        """The run of another agent within this one. Its configuration is this one's if it has none."""
        own = _config_of(options.get("run_config"))
        given = own or agents.RunConfig(model_provider=self.given.model_provider)
        given = self.given if given is self.config else given
        return replace(self, given=given, stream=False, call_ids=set(), copies={})

    @contextmanager
    def entered(self) -> Iterator[None]:
        """While it is entered, it is the current run."""
        token = _RUN.set(self)
        try:
            yield
        finally:
            _RUN.reset(token)

    def durable(self, one: agents.Agent[Any]) -> agents.Agent[Any]:
        """A copy of the agent: its calls are steps, and so are those of the agents that it hands over to."""
        one = one.model.original if isinstance(one.model, _StepModel) else one
        if id(one) not in self.copies:
            own_model = one.model if self.given.model is None else self.given.model
            clone = one.clone(model=own_model, **_scoped(one))
            model = own_model if isinstance(own_model, agents.Model) else self.given.model_provider.get_model(own_model)
            clone.model = _StepModel(model, one, self)
            vars(clone)["get_all_tools"] = partial(self._all_tools, clone)
            self.copies[id(one)] = (one, clone)
            clone.handoffs = [self._handoff(target) for target in one.handoffs]
        result: agents.Agent[Any] = self.copies[id(one)][1]
        return result

    def _handoff(self, target: agents.Agent[Any] | agents.Handoff[Any, Any]) -> Any:  # noqa: ANN401 - as ``target``
        if not isinstance(target, agents.Handoff):
            return self.durable(target)

        async def invoke(context: Any, arguments: str) -> agents.Agent[Any]:  # noqa: ANN401 - the SDK's
            return self.durable(await _hand_over(target, context, arguments))

        handoff = copy.copy(target)
        handoff.on_invoke_handoff = invoke
        return handoff

    async def _all_tools(self, one: agents.Agent[Any], context: Any) -> list[Tool]:  # noqa: ANN401 - the SDK's
        """The tools of a durable agent, also those of MCP servers, which are connected once."""
        async with self.lock:
            for server in one.mcp_servers:
                if self.connects and server not in self.connected:
                    options = {"strict": True, "suppress_cancelled_error": False, "connect_in_parallel": True}
                    await self.stack.enter_async_context(MCPServerManager([server], **options))
                    self.connected.add(server)
        return [_durable_tool(tool) for tool in await type(one).get_all_tools(one, context)]


_RUN: Final[ContextVar[_DurableRun | None]] = ContextVar("openai_agents_run", default=None)


@contextmanager
def _nested(one: agents.Agent[Any], options: dict[str, Any]) -> Iterator[agents.Agent[Any]]:
    """Yields the agent; within ``run`` its durable copy, and the options get the configuration of a run in that run."""
    if not (around := _RUN.get()):
        yield one
        return
    nested = around.nested(options)
    options["run_config"] = nested.config
    with nested.entered():
        yield nested.durable(one)


class _Runner(AgentRunner):
    """The runner behind ``Runner.run``: durable within ``run``, the SDK's own elsewhere."""

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> agents.RunResult:  # noqa: A002, ANN401
        with _nested(starting_agent, options) as start:
            return await super().run(start, input, **options)

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> agents.RunResultStreaming:  # noqa: A002, ANN401
        with _nested(starting_agent, options) as start:
            return super().run_streamed(start, input, **options)


set_default_agent_runner(_Runner())


def _config_of(own: Any) -> Any:  # noqa: ANN401 - a configuration, its fields, or None
    return agents.RunConfig(**own) if isinstance(own, dict) else own


def _scoped(holder: agents.Agent[Any] | agents.RunConfig) -> dict[str, Any]:
    """The guardrails of an agent or a configuration, each in a scope, because they may run beside the model."""

    def scoped(guardrail: Any) -> Any:  # noqa: ANN401 - an input or an output guardrail
        async def check(*arguments: Any) -> Any:  # noqa: ANN401 - the SDK's
            with current_task().scope(fit_name(f"guardrail {name}")):
                output = guardrail.guardrail_function(*arguments)
                return await output if inspect.isawaitable(output) else output

        name = guardrail.get_name()
        return replace(guardrail, guardrail_function=check, name=name)

    names = ("input_guardrails", "output_guardrails")
    return {name: [scoped(guardrail) for guardrail in getattr(holder, name) or ()] for name in names}


def _durable_tool(tool: Tool) -> Tool:
    if isinstance(tool, _LOCAL) or (isinstance(tool, agents.ShellTool) and tool.executor):
        raise agents.UserError(f"The tool {tool.name} would act outside of steps; write a function tool instead.")
    if not isinstance(tool, agents.FunctionTool):
        return tool  # the model's provider executes it, in the model call
    durable_tool = copy.copy(tool)
    durable_tool.on_invoke_tool, durable_tool.timeout_seconds = partial(_invoke, tool), None  # the step has the timeout
    if callable(tool.needs_approval):
        durable_tool.needs_approval = partial(_needs_approval, tool)
    return durable_tool


async def _needs_approval(tool: Any, context: Any, arguments: dict[str, Any], call_id: str) -> bool:  # noqa: ANN401
    """As the SDK: the tool's function decides only if the tool gets the arguments as they are."""
    prepare = getattr(tool.on_invoke_tool, "prepare_arguments", None)
    prepared = prepare(json.dumps(arguments), tool.name) if prepare else None
    if prepared is not None and not prepared.unchanged:
        return True
    decision = tool.needs_approval(context, arguments, call_id)
    return bool(await decision if inspect.isawaitable(decision) else decision)


async def _invoke(tool: agents.FunctionTool, context: ToolContext[Any], arguments: str) -> Any:  # noqa: ANN401
    """Calls the tool in a step; an agent in a scope, in which its own calls are steps."""
    task, name = current_task(), fit_name(f"{tool.name}:{context.tool_call_id}")

    async def work(state: Any) -> Any:  # noqa: ANN401 - the author's, JSON
        context.context = state
        try:
            output = await invoke_function_tool(function_tool=tool, context=context, arguments=arguments)
        finally:
            context.context = shared
        return to_jsonable_python(output) if tool.output_json_schema else _dump_output(output)

    if isinstance(tool.on_invoke_tool, _AgentCall) or getattr(tool, "_is_agent_tool", False):
        with task.scope(name):
            return await tool.on_invoke_tool(context, arguments)
    shared, step = context.context, Step(name, repeat=True, tool=tool.name)
    output, _ = await framework_task(task).step_with_state(step, work, state=shared, name="context")
    return output


async def _hand_over(
    handoff: agents.Handoff[Any, Any],
    context: agents.RunContextWrapper[Any],
    arguments: str,
) -> agents.Agent[Any]:
    """The agent to which is handed over. The callback is called in a step, with what it changes in the context.

    A handoff that somebody made without ``handoff()`` chooses the agent by itself, in each run.
    """
    target = handoff._agent_ref and handoff._agent_ref()  # noqa: SLF001 - the SDK's loop reads it, too
    if target is None:
        return await handoff.on_invoke_handoff(context, arguments)

    async def work(state: Any) -> None:  # noqa: ANN401 - the author's
        context.context = state
        try:
            await handoff.on_invoke_handoff(context, arguments)
        finally:
            context.context = shared

    shared, step = context.context, Step(fit_name(f"handoff {handoff.tool_name}"), repeat=True)
    await framework_task(current_task()).step_with_state(step, work, state=shared, name="context")
    return target


def _dump_output(output: Any) -> Any:  # noqa: ANN401 - any result of a tool
    """The output as JSON that is the same to the model."""
    if isinstance(output, _OUTPUTS):
        return output.model_dump(mode="json", exclude_none=True)
    if isinstance(output, list | tuple):
        return [_dump_output(one) for one in output]
    try:
        json.dumps(output, allow_nan=False)
    except (TypeError, ValueError):
        return str(output)
    return output


class _Responses:
    """Stores model responses, without members that they do not have, by the names of fields."""

    def dump(self, value: agents.ModelResponse) -> Any:  # noqa: ANN401 - JSON
        return _RESPONSES.dump_python(value, mode="json", by_alias=False, exclude_unset=True, warnings=False)

    def load(self, stored: object) -> agents.ModelResponse:
        return _RESPONSES.validate_python(stored, by_alias=False, by_name=True)


class _StepModel(agents.Model):
    """A model whose calls are steps. ``streams`` is whether its text is emitted while it arrives.

    Output guardrails get the whole answer first, and structured output is no text.
    """

    def __init__(self, model: agents.Model, original: agents.Agent[Any], one: _DurableRun) -> None:
        self.original = original
        self.streams = one.stream and original.output_type in {None, str}
        self.streams &= not (original.output_guardrails or one.given.output_guardrails)
        self._model, self._run = model, one

    async def get_response(self, system_instructions: Any, input: Any, *arguments: Any, **options: Any) -> Any:  # noqa: A002, ANN401
        """The response, from the step."""
        earlier = (item for item in input if isinstance(item, dict) and item.get("type") == _CALL)
        call_ids = self._run.call_ids | {item["call_id"] for item in earlier}

        async def work() -> agents.ModelResponse:
            call = self._stream if self.streams else self._model.get_response
            response = await call(system_instructions, input, *arguments, **options)
            await self._record_usage(response.usage)
            _make_unique(response, set(call_ids))
            return response

        name = fit_name(f"{self.original.name}: model")
        response = await current_task().step(Step(name, repeat=True, codec=_Responses()), work)
        self._run.call_ids.update(item.call_id for item in response.output if item.type == _CALL)
        return response

    async def stream_response(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - the SDK's
        """The whole response as one event."""
        response = await self.get_response(*arguments, **options)
        whole = Response.model_construct(id=response.response_id, output=response.output, usage=response.usage)
        yield ResponseCompletedEvent.model_construct(type="response.completed", sequence_number=0, response=whole)

    async def _stream(self, *arguments: Any, **options: Any) -> agents.ModelResponse:  # noqa: ANN401 - the SDK's
        """Emits the text of a response while it arrives. It is the whole answer unless the response calls tools."""
        answer, items, response = AnswerStream(current_task()), list[Any](), None
        async for event in self._model.stream_response(*arguments, **options):
            match event.type:
                case "response.output_text.delta":
                    await answer.add(event.delta)
                case "response.output_item.done":
                    items.append(event.item)
                case "response.completed":
                    response = event.response
        if response is None:
            raise agents.ModelBehaviorError("The model's response is not complete.")
        usage = agents.Usage(requests=1, **(vars(response.usage) if response.usage else {}))
        whole = agents.ModelResponse(
            response.output or items, usage, response.id
        )  # some models give items in events only
        await answer.end(last=_last_text(whole) is not None)
        return whole

    async def _record_usage(self, usage: agents.Usage) -> None:
        details = usage.input_tokens_details  # the SDK includes cached tokens in the count
        cache_reads, cache_writes = details.cached_tokens or 0, getattr(details, "cache_write_tokens", 0) or 0
        input_tokens = max(0, usage.input_tokens - cache_reads - cache_writes)
        amounts = {"input_tokens": input_tokens, "output_tokens": usage.output_tokens}
        amounts |= {"cache_read_tokens": cache_reads, "cache_write_tokens": cache_writes}
        used = {name: amount for name, amount in amounts.items() if amount}
        name = getattr(self._model, "model", None) or type(self._model).__name__
        await current_task().record_usage(str(name), requests=max(1, usage.requests), **used)


def _make_unique(response: agents.ModelResponse, call_ids: set[str]) -> None:
    """Changes ids of tool calls that the run has already, as weak models repeat them: the SDK would refuse them."""
    for item in response.output:
        if item.type == _CALL:
            first, number = item.call_id or "call", 1
            while not item.call_id or item.call_id in call_ids:
                number += 1
                item.call_id = f"{first}-{number}"
            call_ids.add(item.call_id)


async def _emit_output(task: TaskContext, result: agents.RunResult) -> None:
    """Emits the output as the artifact, unless the last response has streamed it."""
    output, streams = result.final_output, getattr(result.last_agent.model, "streams", False)
    if not isinstance(output, str):
        await task.emit(ANSWER, Part(data=to_jsonable_python(output, fallback=str)), last=True)
    elif not (streams and output == _last_text(result.raw_responses[-1])):
        await task.emit(ANSWER, output, last=True)


def _last_text(response: agents.ModelResponse) -> str | None:
    """The text of a response; None if the model is called again after it."""
    if any(item.type in {_CALL, "mcp_approval_request"} for item in response.output):
        return None
    messages = (item for item in response.output if item.type == "message")
    return "".join(agents.ItemHelpers.extract_text(message) or "" for message in messages)


async def _decide(state: agents.RunState[Any], approval: agents.ToolApprovalItem) -> None:
    """Asks the client for the approval."""
    try:
        arguments = json.loads(approval.arguments or "{}")
    except ValueError:  # a weak model's: the tool will tell it
        arguments = approval.arguments
    call = f"{approval.name}({json.dumps(arguments, ensure_ascii=False)})"
    data = {"kind": "approval", "tool": approval.name, "tool_call_id": approval.call_id, "arguments": arguments}
    task = current_task()
    with task.scope(fit_name(f"approval {approval.call_id}")):
        answer = await ask_approval(task, f"May I call {call}?", data)
    if answer.decision == "approve":
        state.approve(approval)
    else:
        state.reject(approval, rejection_message=answer.message or None)
