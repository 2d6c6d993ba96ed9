"""Runs an agent of Google's Agent Development Kit (ADK) as an agent of a deployment.

    from a2a_serverless_frameworks.adk import agent

    support_agent = agent(root_agent, id="support", description="Answers questions.")

The framework's own Runner runs. Each model call and each tool call is a step: a later run of the task gets the stored
result. Everything between steps runs again, so it must be deterministic: callbacks, plugins, instructions, agents of
your own classes. A session is a conversation of A2A, and it is stored in the conversation's values.
"""

from __future__ import annotations

import json
from contextlib import aclosing, contextmanager
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm, LlmResponse
from google.adk.platform.time import set_time_provider
from google.adk.platform.uuid import set_id_provider
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, State
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.set_model_response_tool import SetModelResponseTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool
from google.genai import types
from pydantic_core import to_jsonable_python

from a2a_serverless import Agent, AgentCallFailed, Part, Step, TaskFailed, current_task
from a2a_serverless.domain.agent import skills_of
from a2a_serverless.engine.framework_task import fit_name, framework_task
from a2a_serverless_frameworks.adk_sessions import ConversationSessions, dump, load, session_key
from a2a_serverless_frameworks.answers import (
    ANSWER,
    UNREAD,
    AnswerStream,
    ask_until_read,
    content_of,
    data_or_text,
    how_to_answer,
    read_approval,
    text_in,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models import LlmRequest
    from google.adk.sessions import Session
    from google.adk.tools import BaseTool, ToolContext
    from google.adk.workflow import BaseNode

    from a2a_serverless import Message, Skill, TaskContext

CONFIRMATION: Final = "adk_request_confirmation"
INPUT: Final = "adk_request_input"
CREDENTIAL: Final = "adk_request_credential"
PART: Final = "google.genai.Part"
"""The key under which a part in a tool's result is stored."""


def agent(  # noqa: PLR0913 - the fields of a card
    source: BaseNode | App | Callable[[], BaseNode | App],
    *,
    id: str,  # noqa: A002 - the card's word
    description: str = "",
    name: str = "",
    skills: Sequence[Skill] = (),
    history: int = 40,
    streaming: bool = True,
    services: Callable[[], dict[str, Any]] = dict,
    **card: Any,  # noqa: ANN401 - the other fields of ``Agent``
) -> Agent:
    """Makes an ``Agent`` of a root agent, an ``App``, or a function that makes one for each run of a task.

    The output is the artifact ``answer``. The name defaults to the id, the description to the root agent's, the skills
    to one skill with the description. The session has the events of the newest ``history`` tasks of the conversation.
    ``services`` makes other services of the ``Runner`` (``artifact_service``, ``memory_service``) for each run.
    """
    root = None if callable(source) else source.root_agent if isinstance(source, App) else source
    description = description or (root.description if root else "") or name or id

    async def work(task: TaskContext) -> None:
        record, at = await task.step("session", partial(_begin, task, id))
        sessions = ConversationSessions(history, record=record, at_end=True)
        app = _app_of(source() if callable(source) else source, id)
        app_run = _AppRun(task, app, id, stream=streaming, session_service=sessions, **services())
        set_time_provider(lambda: at)
        await app_run.play(await read_prompt(task))
        await app_run.emit_output()
        if history:
            await sessions.save()

    own_skills = skills_of(id, name or id, description, skills)
    return Agent(id, name or id, description, own_skills, work, streaming=streaming, **card)


async def run(
    source: BaseNode | App,
    prompt: str | types.Content,
    *,
    stream: bool = True,
    session_service: BaseSessionService | None = None,
    **services: Any,  # noqa: ANN401 - those of the Runner
) -> Event | None:
    """The last output of a root agent or an app, with durable model and tool calls, in an agent's function.

    With ``stream`` text is emitted as the artifact ``answer`` while it arrives. Confirmations and long-running tools
    are questions to the client. By default the session is a new one.
    """
    task, sessions = current_task(), session_service or InMemorySessionService()
    now = await task.now("adk")
    set_time_provider(now.timestamp)
    app_run = _AppRun(
        task, _app_of(source, source.name), source.name, stream=stream, session_service=sessions, **services
    )
    await app_run.play(
        types.Content(role="user", parts=[types.Part(text=prompt)]) if isinstance(prompt, str) else prompt
    )
    return app_run.output


def call_agent(agent_id: str, *, description: str, name: str = "") -> FunctionTool:
    """A tool that sends a message to another A2A agent (``TaskContext.call``). Meanwhile the task uses no compute."""

    async def call(message: str) -> dict[str, Any]:
        try:
            return {"answer": content_of(await current_task().call(agent_id, agent_id, message))}
        except AgentCallFailed as failure:
            return {"error": str(failure)}

    call.__name__, call.__doc__ = name or f"call_{agent_id}", description
    return _AgentCallTool(call)


async def read_prompt(task: TaskContext) -> types.Content:
    """The task's message as content: text, data as JSON, files as inline data."""
    return types.Content(role="user", parts=[await _part(task, part) for part in task.message.parts])


async def _part(task: TaskContext, part: Part) -> types.Part:
    if (text := text_in(part)) is not None:
        return types.Part(text=text)
    media_type = part.media_type or "application/octet-stream"
    return types.Part.from_bytes(data=await task.read_file(part), mime_type=media_type)


async def _begin(task: TaskContext, app_name: str) -> list[Any]:
    """The stored session and the time: a run that begins later gets the same."""
    entry = await task.conversation.get(session_key(app_name, task.context_id))
    return [entry.value if entry else None, time()]


def _app_of(source: BaseNode | App, name: str) -> App:
    """The app of a root agent: its agents go on after a question where they were."""
    if isinstance(source, App):
        return source
    return App.model_construct(
        name=name, root_agent=source, plugins=[], resumability_config=ResumabilityConfig(is_resumable=True)
    )


class _AppRun:
    """A run of a task: the framework's loop, its questions and its output."""

    def __init__(
        self,
        task: TaskContext,
        app: App,
        name: str,
        *,
        stream: bool,
        session_service: BaseSessionService,
        **services: Any,  # noqa: ANN401 - the framework's
    ) -> None:
        self._task = task
        self._steps = _StepPlugin(session_service, stream=stream)
        self._outputs: dict[str, Event] = {}
        self._decided: dict[str, str] = {}
        app = app.model_copy(update={"plugins": [*app.plugins, self._steps]})
        self._runner = Runner(
            app=app, app_name=name, session_service=session_service, auto_create_session=True, **services
        )
        set_id_provider(partial(framework_task(task).make_id, "adk"))

    @property
    def output(self) -> Event | None:
        """The last event with an output of an agent."""
        return next(reversed(self._outputs.values()), None)

    async def play(self, prompt: types.Content) -> None:
        """Runs the agent to its end, and asks its questions.

        Raises TaskFailed if the agent ends without the result of a call that the client has decided on.
        """
        async with self._runner:
            waiting = await self._advance(prompt)
            while waiting:
                (_, message), *others = [(event, await self._answers_to(calls)) for event, calls in waiting]
                await self._add_answers(others)
                waiting = await self._advance(message)
        for call in self._decided.values():
            raise TaskFailed(f"The agent has ended without the result of {call}, which was asked for.")

    async def _answers_to(self, calls: Sequence[types.FunctionCall]) -> types.Content:
        """The client's answers to the calls of one agent."""
        answers = []
        for call in calls:
            answers.append(await _ask(self._task, call))
            self._decided.pop(str(call.id), None)
            if call.name == CONFIRMATION:
                original = (call.args or {})["originalFunctionCall"]
                self._decided[original["id"]] = _text_of_call(original["name"], original.get("args") or {})
        return types.Content(role="user", parts=[types.Part(function_response=answer) for answer in answers])

    async def _add_answers(self, answers: Sequence[tuple[Event, types.Content]]) -> None:
        """Adds answers to the session, each in the branch of the event with the calls.

        The framework puts a message into one branch: the agents in parallel ones would not see their answers in it.
        """
        if not answers:
            return
        service, name = self._runner.session_service, self._runner.app_name
        user, session_id = self._task.caller.owner, self._task.context_id
        session = await service.get_session(app_name=name, user_id=user, session_id=session_id)
        for event, content in answers:
            place = {name: getattr(event, name) for name in ("invocation_id", "branch", "isolation_scope")}
            await service.append_event(cast("Session", session), Event(author="user", content=content, **place))

    async def _advance(self, message: types.Content) -> list[tuple[Event, list[types.FunctionCall]]]:
        """Runs the agent until it ends or waits; returns the calls that wait for the client, by their events."""
        waiting: dict[tuple[str | None, str], tuple[Event, dict[str, types.FunctionCall]]] = {}
        user, session = self._task.caller.owner, self._task.context_id
        async with aclosing(self._runner.run_async(user_id=user, session_id=session, new_message=message)) as events:
            async for event in events:
                for response in event.get_function_responses():
                    self._decided.pop(str(response.id), None)
                ids = event.long_running_tool_ids or ()
                if calls := {str(call.id): call for call in event.get_function_calls() if call.id in ids}:
                    _, earlier = waiting.get((event.branch, event.author), (event, {}))
                    waiting[event.branch, event.author] = event, earlier | calls
                if event.is_final_response() and _has_output(event):
                    name = _artifact(event.branch, event.author)
                    self._outputs.pop(name, None)
                    self._outputs[name] = event
        return [(event, _without_confirmed(calls)) for event, calls in waiting.values()]

    async def emit_output(self) -> None:
        """Emits the output of the agents, one artifact each."""
        for name, event in self._outputs.items():
            await self._emit(name, event)

    async def _emit(self, name: str, event: Event) -> None:
        """Emits an agent's output as the artifact ``name``, unless its model has streamed it."""
        text = _text_of(event.content)
        if event.error_code and not text:
            raise RuntimeError(f"{event.error_code}: {event.error_message}")
        if event.author in self._steps.structured and text:
            await self._task.emit(name, Part(data=json.loads(text)), last=True)
        elif text and text != self._steps.streamed.get(name):
            await self._task.emit(name, text, last=True)
        elif event.output is not None and not text:
            await self._task.emit(name, Part(data=to_jsonable_python(event.output, fallback=str)), last=True)
        elif results := _results_in(event):
            await self._task.emit(name, [_part_of(result) for result in results], last=True)


def _without_confirmed(calls: dict[str, types.FunctionCall]) -> list[types.FunctionCall]:
    """The calls without those that a confirmation stands for."""
    confirmations = [call.args or {} for call in calls.values() if call.name == CONFIRMATION]
    confirmed = {arguments["originalFunctionCall"]["id"] for arguments in confirmations}
    return [call for identity, call in calls.items() if identity not in confirmed]


def _has_output(event: Event) -> bool:
    return bool(_text_of(event.content) or event.error_code or event.output is not None or _results_in(event))


def _results_in(event: Event) -> list[Any]:
    """The results of tools that are the answer, because a tool has set ``skip_summarization``."""
    if not event.actions.skip_summarization:
        return []
    responses = [response.response or {} for response in event.get_function_responses()]
    return [response["result"] if response.keys() == {"result"} else response for response in responses]


def _part_of(result: Any) -> Part:  # noqa: ANN401 - any result of a tool
    if isinstance(result, str):
        return Part(text=result)
    return Part(data=to_jsonable_python(result, fallback=str))


def _artifact(branch: str | None, author: str) -> str:
    """The artifact of an agent's text: that of parallel agents has the agent's name."""
    return author if branch else ANSWER


def _is_last(agent: BaseAgent) -> bool:
    """Whether its answer is the last one: no agent comes after it in a sequence, a loop or beside it."""
    while agent := agent.parent_agent:
        if not isinstance(agent, LlmAgent):
            return False
    return True


class _StepPlugin(BasePlugin):
    """Makes each model call and each tool call a step. The author's own plugins and callbacks run around it.

    ``streamed`` are the texts of the last responses by artifact, if their last chunks are marked;
    ``structured`` are the agents that answer in a schema.
    """

    def __init__(self, sessions: BaseSessionService, *, stream: bool) -> None:
        super().__init__(name="a2a_serverless")
        self._sessions = sessions
        self._stream = stream
        self.streamed: dict[str, str] = {}
        self.structured: set[str] = set()

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        """Lets the invocation use a copy of the agent, whose model makes steps. The agent itself stays as it is."""
        if not isinstance(agent, LlmAgent) or isinstance(agent.model, _AdkStepModel):
            return
        context: InvocationContext = callback_context._invocation_context  # noqa: SLF001 - it has no public name
        name = f"{context.branch}: {agent.name}" if context.branch else agent.name
        artifact = None
        if context.session_service is self._sessions:  # not within a tool
            if agent.output_schema:
                self.structured.add(agent.name)
            elif self._stream:
                artifact = _artifact(context.branch, agent.name)
        inner, step = agent.canonical_model, f"{name}: model"
        model = _AdkStepModel(
            model=inner.model, inner=inner, step=step, artifact=artifact, is_last=_is_last(agent), steps=self
        )
        context.agent = agent.model_copy(update={"model": model})

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """Makes the call that follows a step. Callbacks and confirmations come before it, as without us.

        An agent in an ``AgentTool`` cannot wait for a confirmation, so the client is asked here.
        """
        if isinstance(tool, IN_PROCESS):
            return
        _CALLS[tool_context] = tool_context.get_invocation_context().session_service is not self._sessions
        if _CALLS[tool_context] and await tool.check_require_confirmation(tool_args, tool_context):
            await _confirm(tool, tool_args, tool_context)
        if getattr(tool.run_async, "func", None) is not _call_tool:
            tool.run_async = partial(_call_tool, tool, tool.run_async)

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: dict[str, Any]
    ) -> None:
        """Adds why the client has refused a call, which the framework has not made. It says only that it is refused."""
        del tool, tool_args
        confirmation = tool_context.tool_confirmation
        if tool_context in _CALLS and confirmation and not confirmation.confirmed and confirmation.payload is not None:
            result["reason"] = confirmation.payload


class _AdkStepModel(BaseLlm):
    """A model whose calls are steps. Its text is emitted as ``artifact`` while it arrives, unless that is None."""

    inner: Any
    step: str
    artifact: str | None
    is_last: bool
    steps: Any

    @property
    def capabilities(self) -> Any:  # noqa: ANN401 - the framework's
        """Those of the model."""
        return self.inner.capabilities

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:  # noqa: FBT001, FBT002 - the framework's
        """The complete responses of one call. The framework never sees the pieces of them."""
        del stream
        step = Step(fit_name(self.step), repeat=True)
        for dumped in await current_task().step(step, partial(self._respond, llm_request)):
            response = load(LlmResponse, dumped)
            if self.artifact and self.is_last:
                self.steps.streamed[self.artifact] = _text_of(response.content)
            yield response

    async def _respond(self, request: LlmRequest) -> list[Any]:
        task, responses, streamed = current_task(), list[LlmResponse](), ""
        answer = AnswerStream(task, self.artifact or ANSWER)
        async with aclosing(self.inner.generate_content_async(request, stream=bool(self.artifact))) as stream:
            async for response in stream:
                if response.partial and self.artifact:
                    streamed += _text_of(response.content)
                    await answer.add(_text_of(response.content))
                elif not response.partial:
                    responses.append(response)
        if self.artifact:
            text = "".join(_text_of(response.content) for response in responses)
            if text != streamed:  # the model does not stream, or has taken text back
                answer = AnswerStream(task, self.artifact)
                await answer.add(text)
            await answer.end(last=self.is_last and not _calls_in(responses))
        await _record_usage(task, self.model, responses)
        ids = set[str]()
        for call in _calls_in(responses):
            if call.id in ids:
                call.id = None  # weak models repeat ids; the framework makes another one
            ids.add(call.id)
        return [dump(response) for response in responses]


class _AgentCallTool(FunctionTool):
    """A tool that calls another A2A agent."""


IN_PROCESS: Final = (SetModelResponseTool, TransferToAgentTool)
"""Tools of the framework that only set a value in this process."""
_CALLS: Final[WeakKeyDictionary[ToolContext, bool]] = WeakKeyDictionary()
"""The calls that an agent makes, of which each becomes a step, and whether the agent is in an ``AgentTool``."""


async def _call_tool(
    tool: BaseTool, run_async: Callable[..., Awaitable[Any]], *, args: dict[str, Any], tool_context: ToolContext
) -> Any:  # noqa: ANN401 - any result of the tool
    """Calls the tool in a step, which also stores the actions of the call and what it writes into the state.

    Calls of other agents, and agents as tools, run in a scope instead: they have steps of their own.
    """
    if tool_context not in _CALLS:
        return await run_async(args=args, tool_context=tool_context)
    is_inside, task = _CALLS.pop(tool_context), framework_task(current_task())
    name = fit_name(f"{tool.name}:{tool_context.function_call_id}")
    if isinstance(tool, _AgentCallTool) or (isinstance(tool, AgentTool) and tool.include_plugins):
        with task.scope(name):
            try:
                return await run_async(args=args, tool_context=tool_context)
            except BaseException as exception:  # noqa: BLE001 - raised again, after the end of the scope
                error = exception
        raise error  # of an agent that waits: the framework goes on with it after the answer, in another scope

    state = tool_context.state
    shared = vars(state)["_value"]  # the session's, which has no public name

    async def work(members: dict[str, Any]) -> list[Any]:
        with _changing(tool_context, members):
            result = _dump_result(await run_async(args=args, tool_context=tool_context))
        actions = tool_context.actions.model_dump_json(by_alias=False, exclude_defaults=True, exclude={"state_delta"})
        return [result, json.loads(actions)]

    step = Step(name, repeat=True, tool=tool.name)
    (result, members), changed = await task.step_with_state(step, work, state=shared, name="state")
    actions = load(EventActions, members)
    for field in actions.model_fields_set:
        setattr(tool_context.actions, field, getattr(actions, field))
    state.update({key: shared[key] for key in changed if key in shared})
    if is_inside and tool_context.actions.requested_tool_confirmations:
        await _confirm(tool, args, tool_context)
        _CALLS[tool_context] = True
        return await _call_tool(tool, run_async, args=args, tool_context=tool_context)
    return _load_result(result)


@contextmanager
def _changing(tool_context: ToolContext, members: dict[str, Any]) -> Iterator[None]:
    """While it is entered, the tool reads and writes these members as the state."""
    state, actions, delta = tool_context.state, tool_context.actions, dict[str, Any]()
    shared_delta, actions.state_delta = actions.state_delta, delta
    vars(tool_context)["_state"] = State(members, delta, vars(state)["_schema"])
    try:
        yield
        members.update(delta)  # a tool may write into the actions, too
    finally:
        vars(tool_context)["_state"], actions.state_delta = state, shared_delta


async def _confirm(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
    """Asks the client for the confirmation of a call, and gives it to the call that follows."""
    call_id = str(tool_context.function_call_id)
    confirmation = tool_context.actions.requested_tool_confirmations.pop(call_id, ToolConfirmation())
    question = {"originalFunctionCall": {"name": tool.name, "args": args}, "toolConfirmation": dump(confirmation)}
    answer = await _ask_confirmation(current_task(), call_id, question)
    tool_context.tool_confirmation = ToolConfirmation.model_validate(answer)


def _dump_result(value: Any) -> Any:  # noqa: ANN401 - any result of a tool, as JSON
    match value:
        case types.Part():
            return {PART: dump(value)}
        case dict():
            return {str(key): _dump_result(item) for key, item in value.items()}
        case list() | tuple():
            return [_dump_result(item) for item in value]
        case _:
            return to_jsonable_python(value, fallback=str, inf_nan_mode="null")


def _load_result(value: Any) -> Any:  # noqa: ANN401 - JSON, and the result of a tool
    match value:
        case dict() if value.keys() == {PART}:
            return load(types.Part, value[PART])
        case dict():
            return {key: _load_result(item) for key, item in value.items()}
        case list():
            return [_load_result(item) for item in value]
        case _:
            return value


async def _record_usage(task: TaskContext, model: str, responses: Sequence[LlmResponse]) -> None:
    reports = [response.usage_metadata for response in responses if response.usage_metadata]
    if not reports:
        return await task.record_usage(model, requests=1)
    usage = reports[-1]
    cache_tokens = usage.cached_content_token_count or 0
    counts = {
        "input_tokens": (usage.prompt_token_count or 0) - cache_tokens,
        "output_tokens": (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
        "cache_read_tokens": cache_tokens,
    }
    return await task.record_usage(model, requests=1, **{name: count for name, count in counts.items() if count > 0})


def _parts(content: types.Content | None) -> list[types.Part]:
    return (content and content.parts) or []


def _calls_in(responses: Sequence[LlmResponse]) -> list[types.FunctionCall]:
    parts = [part for response in responses for part in _parts(response.content)]
    return [part.function_call for part in parts if part.function_call]


def _text_of(content: types.Content | None) -> str:
    """The text of the answer: without thoughts."""
    return "".join(part.text for part in _parts(content) if part.text and not part.thought)


async def _ask(task: TaskContext, call: types.FunctionCall) -> types.FunctionResponse:
    """The client's answer to a call that waits: a confirmation, an input, or the result of a long-running tool."""
    arguments = call.args or {}
    if call.name == CREDENTIAL:
        raise TaskFailed("A tool asks its user to sign in, which this agent does not support.")
    if call.name == CONFIRMATION:
        response = await _ask_confirmation(task, call.id, arguments)
    elif call.name == INPUT:
        question = str(arguments.get("message") or "Please give your input.")
        response = _response_in(await _send(task, "input", call.id, question, arguments))
    else:
        question = f"What is the result of {_text_of_call(call.name, arguments)}?"
        response = _response_in(
            await _send(task, "result", call.id, question, {"tool": call.name, "arguments": arguments})
        )
    return types.FunctionResponse(id=call.id, name=call.name, response=response)


async def _ask_confirmation(task: TaskContext, call_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The client's decision. Data may have a ``payload`` for the tool; without it the payload is why it denies."""
    original, confirmation = arguments["originalFunctionCall"], arguments["toolConfirmation"]
    tool, tool_arguments, hint = original["name"], original.get("args") or {}, confirmation.get("hint") or ""
    question = f"May I call {_text_of_call(tool, tool_arguments)}? {how_to_answer(('approve', 'reject'))}"
    if hint and not hint.startswith("Please approve or reject the tool call"):  # the framework's own hint
        question = f"{hint} {question}"
    data = {"tool": tool, "arguments": tool_arguments, "hint": hint, "payload": confirmation.get("payload")}
    with task.scope(fit_name(f"approval {call_id}")):
        parts, denial = _question("approval", question, data), {"confirmed": False, "payload": UNREAD}
        return await ask_until_read(task, parts, _read_confirmation, denial, is_approval=True)


def _read_confirmation(answer: Message) -> dict[str, Any]:
    """The members of the framework's ``ToolConfirmation``, whose form the answer may have. Raises UnreadableAnswer."""
    decision, payload = data_or_text(answer), None
    if isinstance(decision, dict):
        payload = decision.get("payload")
        decision = {name: value for name, value in decision.items() if name not in {"hint", "payload"}}
    approval = read_approval(decision)
    payload = approval.message or None if payload is None else payload
    return {"confirmed": approval.decision == "approve", "payload": payload}


async def _send(task: TaskContext, kind: str, call_id: str, question: str, data: dict[str, Any]) -> Message:
    with task.scope(fit_name(f"{kind} {call_id}")):
        return await task.ask(_question(kind, question, data))


def _question(kind: str, text: str, data: dict[str, Any]) -> list[Part]:
    """A text, and a data part for programs."""
    return [Part(text=text), Part(data={"kind": kind, **data})]


def _text_of_call(tool: str | None, arguments: dict[str, Any]) -> str:
    return f"{tool}({json.dumps(arguments, ensure_ascii=False)})"


def _response_in(answer: Message) -> dict[str, Any]:
    """The response for the model: an object of the client as it is, anything else as ``result``."""
    response = data_or_text(answer)
    return response if isinstance(response, dict) else {"result": response}
