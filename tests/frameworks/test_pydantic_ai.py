"""Pydantic AI agents through the framework's own loop, with its own fake model."""

from __future__ import annotations

import asyncio
from functools import partial
from runpy import run_path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed here: make frameworks")

import httpx2
from pydantic import BaseModel, TypeAdapter
from pydantic_ai import Agent, CallDeferred, ModelRetry, RunContext, capabilities
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from a2a_serverless import (
    Budget,
    BudgetExceeded,
    Message,
    Part,
    StoredValue,
    Task,
    TaskContext,
    TaskFailed,
    VersionConflict,
    current_task,
)
from a2a_serverless import agent as plain
from a2a_serverless.agent_loader import by_id
from a2a_serverless.domain.model import Principal
from a2a_serverless.protocol.v1 import Role
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.history import load_history, save_turn
from a2a_serverless_frameworks.pydantic_ai import agent, call_agent, run
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere
from tests.frameworks.pages import names_of, page_tests, run_example
from tests.frameworks.purchases import SEEDS, Purchase, assert_no_death_pays_twice, assert_no_deaths_pay_twice, step_of
from tests.frameworks.warm import ask_model, assert_two_tasks_end_well

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from pydantic_ai.messages import ModelMessage

    from a2a_serverless import Agent as A2AAgent


step_of_agent = partial(step_of, suffix="__model")
"""The end of the name of the step that stores a payment."""


def shopper(ledger: Ledger, seed: int) -> A2AAgent:
    """Calls tools in parallel, of which one asks for a retry and one needs an approval; then it answers in words."""
    purchase = Purchase(ledger, seed)

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del info
        turn = 1 + sum(isinstance(message, ModelResponse) for message in messages)
        tried = purchase.pay(f"model {turn}")
        if turn == 1:
            yield "I look at the prices. "
            for place, price in enumerate(purchase.prices):
                yield {place: DeltaToolCall("look", f'{{"price": {price}}}', tool_call_id=f"look-{place}")}
            yield {len(purchase.prices): DeltaToolCall("stumble", "{}", tool_call_id="stumble-1")}
        elif turn == 2:
            yield {0: DeltaToolCall("buy", f'{{"price": {max(purchase.prices)}}}', tool_call_id="buy-1")}
        else:
            for word in purchase.words:
                await asyncio.sleep(purchase.pause_s)
                yield f"{word}{tried} "

    shop = Agent(FunctionModel(stream_function=answer), name="shop")

    @shop.tool_plain
    async def look(price: int) -> int:
        return int(await purchase.look(price))

    @shop.tool_plain
    def stumble() -> str:
        purchase.pay("stumble-1")
        raise ModelRetry("Do not ask for this again.")

    @shop.tool_plain(requires_approval=True)
    async def buy(price: int) -> str:
        return purchase.buy(price)

    return agent(shop, description="Buys the most expensive thing.")


def assert_whole(played: Played) -> None:
    """The answer is the text of the last response that was stored, and nothing else."""
    assert_one_answer(played)
    last = max((name for name in played.steps if "__model" in name), key=lambda name: name.partition("#")[2] or "1")
    response = TypeAdapter(ModelResponse).validate_python(played.steps[last].value)
    assert played.answer() == "".join(part.content for part in response.parts if isinstance(part, TextPart))
    assert {"buy-1", "stumble-1", "look-0"} <= set(played.ledger.paid)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_death_at_any_call_pays_nothing_twice_and_leaves_one_whole_answer(seed: int) -> None:
    assert_no_death_pays_twice(shopper, assert_whole, seed, step_of_agent)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_or_three_deaths_pay_no_call_of_the_model_twice(seed: int) -> None:
    assert_no_deaths_pay_twice(shopper, assert_whole, seed, step_of_agent)


def talker(*turns: Sequence[Any], pause_s: float = 0, paid: list[int] | None = None) -> FunctionModel:
    """A model that says in each turn what is given: pieces of text, and tool calls as (name, JSON, id)."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del info
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        (paid if paid is not None else []).append(turn)
        for place, said in enumerate(turns[min(turn, len(turns) - 1)]):
            await asyncio.sleep(pause_s)
            if isinstance(said, str):
                yield said
            else:
                yield {place: DeltaToolCall(said[0], said[1], tool_call_id=said[2])}

    async def answer_at_once(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = [one async for one in answer(messages, info)]
        calls = [call for one in said if isinstance(one, dict) for call in one.values()]
        text = TextPart("".join(one for one in said if isinstance(one, str)))
        return ModelResponse([text, *(ToolCallPart(one.name, one.json_args, one.tool_call_id) for one in calls)])

    return FunctionModel(answer_at_once, stream_function=answer, model_name="fake")


def test_the_card_is_that_of_the_agent() -> None:
    made = agent(Agent("test", name="shop", description="Sells."), version="2.0.0")
    assert (made.id, made.name, made.description, made.version) == ("shop", "shop", "Sells.", "2.0.0")
    assert [(skill.id, skill.description) for skill in made.skills] == [("shop", "Sells.")]


def test_usage_is_on_the_task() -> None:
    harness = AgentTestHarness(agent(Agent(talker(["Hello", "!"]), name="greeter"), history=0))
    metadata = harness.send("hi").task.metadata or {}
    usage: Any = metadata["a2a-serverless/usage"]
    assert usage["fake"]["requests"] == 1
    assert usage["fake"]["output_tokens"] > 0


class Offer(BaseModel):
    """A thing and its price."""

    thing: str
    price: int


def test_a_structured_output_is_a_data_part() -> None:
    reply = AgentTestHarness(agent(Agent(TestModel(), name="offers", output_type=Offer), history=0)).send("a car")
    assert reply.data("answer") == {"thing": "a", "price": 0}


def test_an_output_that_a_validator_refuses_is_replaced() -> None:
    strict = Agent(talker(["no", "!"], ["yes", "!"]), name="strict")

    @strict.output_validator
    def check(said: str) -> str:
        if said == "no!":
            raise ModelRetry("Say yes.")
        return said

    assert AgentTestHarness(agent(strict, history=0)).send("well?").text("answer") == "yes!"


def test_a_tool_that_raises_fails_the_task_and_its_client_reads_a_reference() -> None:
    broken = Agent(talker([("divide", "{}", "c1")]), name="broken")

    @broken.tool_plain
    def divide() -> float:
        return 1 / 0

    reply = AgentTestHarness(agent(broken, history=0)).send("divide")
    assert reply.state == "failed"
    assert reply.said.startswith("The agent stopped with an error (reference")
    assert isinstance(reply.error, ZeroDivisionError)


def guarded(done: list[str], says: str = "Done.") -> Agent[None, str]:
    """Deletes files, if the client approves."""
    guard = Agent(talker([("delete", '{"path": "a.txt"}', "c1")], [says]), name="guard")

    @guard.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        done.append(path)
        return "deleted"

    return guard


def test_an_approval_is_answered_after_a_deployment() -> None:
    done: list[str] = []
    harness = AgentTestHarness(agent(guarded(done), history=0))
    asked = harness.send("delete a.txt")
    question = asked.task.status.message
    assert (asked.state, asked.said) == (
        "input-required",
        'May I call delete({"path": "a.txt"})? Answer yes, edit and the arguments as JSON, or no and why.',
    )
    assert question
    assert question.data() == {
        "kind": "approval",
        "tool": "delete",
        "tool_call_id": "c1",
        "arguments": {"path": "a.txt"},
    }
    assert question.metadata == {"kind": "approval"}
    harness.deploy(agent(guarded(done, "Done by the new version."), history=0))
    assert harness.send("Yes.", task_id=asked.task.id).text("answer") == "Done by the new version."
    assert done == ["a.txt"]


@pytest.mark.parametrize(
    ("answer", "deleted"),
    [
        ("yes", ["a.txt"]),
        ("Accept!", ["a.txt"]),
        ({"approved": True}, ["a.txt"]),
        ({"kind": "tool-approved", "override_args": None}, ["a.txt"]),
        ({"kind": "tool-approved", "override_args": {"path": "b.txt"}}, ["b.txt"]),
        ('edit {"path": "b.txt"}', ["b.txt"]),
        ({"type": "edit", "edited_action": {"name": "delete", "args": {"path": "b.txt"}}}, ["b.txt"]),
        ("no, keep it", []),
        ({"approved": False, "message": "keep it"}, []),
        ({"kind": "tool-denied", "message": "keep it"}, []),
    ],
)
def test_a_client_approves_changes_or_denies_a_call(answer: Any, deleted: list[str]) -> None:
    done: list[str] = []
    heard: list[str] = []
    guard = guarded(done)

    @guard.output_validator
    def note(ctx: RunContext[None], said: str) -> str:
        heard.extend(
            str(part.content) for one in ctx.messages for part in one.parts if isinstance(part, ToolReturnPart)
        )
        return said

    harness = AgentTestHarness(agent(guard, history=0))
    asked = harness.send("delete a.txt")
    assert harness.send(answer, task_id=asked.task.id).state == "completed"
    assert (done, heard) == (deleted, ["deleted"] if deleted else ["keep it"])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("hm", "It does not begin with a yes or a no."),
        ({"approved": "yes"}, "It is an object without a decision"),
        ({"approved": True, "only": "today"}, "I do not know what to do with the members approved, only"),
        ({"approved": True, "override_args": {"path": 7}}, "delete does not take these arguments"),
        ({"approved": True, "override_args": {"file": "b.txt"}}, "delete does not take these arguments"),
        ({"type": "edit", "edited_action": {"name": "read", "args": {}}}, "cannot be changed to one of read"),
        ("respond deleted", "The decision 'respond' is not possible here."),
    ],
)
def test_an_answer_that_cannot_be_read_is_asked_for_again(answer: Any, reason: str) -> None:
    done: list[str] = []
    harness = AgentTestHarness(agent(guarded(done), history=0))
    asked = harness.send("delete a.txt")
    again = harness.send(answer, task_id=asked.task.id)
    assert again.state == "input-required"
    assert reason in again.said
    assert asked.said in again.said
    assert (harness.send("yes", task_id=asked.task.id).state, done) == ("completed", ["a.txt"])


def test_the_fourth_answer_that_cannot_be_read_is_a_denial() -> None:
    done: list[str] = []
    harness = AgentTestHarness(agent(guarded(done), history=0))
    reply = harness.send("delete a.txt")
    for left in ("After 3 more, an", "After 2 more, an", "This is the last time: an"):
        reply = harness.send("perhaps", task_id=reply.task.id)
        assert f"{left} answer that I cannot read is a no." in reply.said
    assert (harness.send("perhaps", task_id=reply.task.id).state, done) == ("completed", [])


def test_two_approvals_are_two_questions_and_the_tools_run_once_each() -> None:
    done: list[str] = []
    calls = [("delete", '{"path": "a"}', "c1"), ("look", "{}", "c2"), ("delete", '{"path": "b"}', "c3")]
    guard = Agent(talker(calls, ["Done."]), name="guard")

    @guard.tool_plain
    def look() -> None:
        done.append("look")

    @guard.tool_plain(requires_approval=True)
    def delete(path: str) -> None:
        done.append(path)

    harness = AgentTestHarness(agent(guard))
    asked = harness.send("delete both")
    assert 'delete({"path": "a"})' in asked.said
    again = harness.send("yes", task_id=asked.task.id)
    assert 'delete({"path": "b"})' in again.said
    assert harness.send("no", task_id=asked.task.id).text("answer") == "Done."
    assert done == ["look", "a"]


def test_an_external_tool_is_a_question_whose_answer_is_its_result() -> None:
    heard: list[Any] = []
    remote = Agent(talker([("measure", "{}", "c1")], ["Noted."]), name="remote")

    @remote.tool_plain
    def measure() -> float:
        raise CallDeferred

    @remote.output_validator
    def note(ctx: RunContext[None], said: str) -> str:
        heard.extend(part.content for one in ctx.messages for part in one.parts if isinstance(part, ToolReturnPart))
        return said

    harness = AgentTestHarness(agent(remote, history=0))
    asked = harness.send("measure")
    assert asked.said == "What is the result of measure({})?"
    assert asked.task.status.message
    assert asked.task.status.message.metadata is None
    assert harness.send({"degrees": 20}, task_id=asked.task.id).text("answer") == "Noted."
    assert heard == [{"degrees": 20}]


def test_a_cancel_in_the_middle_of_a_response_leaves_a_canceled_task() -> None:
    harness = AgentTestHarness(agent(Agent(talker(["a", "b", "c", "d"], pause_s=10), name="slow"), history=0))
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.at(harness.now + 25_000, lambda: harness.cancel(task.id))
    harness.settle()
    reply = harness.reply(task.id)
    assert (reply.state, reply.text("answer")) == ("canceled", "a")


def test_tools_get_dependencies_and_the_task() -> None:
    named = Agent(talker([("greet", "{}", "c1")], ["Done."]), name="named", deps_type=str)
    greeted: list[str] = []

    @named.tool
    async def greet(ctx: RunContext[str]) -> str:
        greeted.append(f"{ctx.deps} {current_task().caller.owner}")
        return "greeted"

    async def deps(task: TaskContext) -> str:
        return await task.step("deps", lambda: f"for {task.text()}")

    AgentTestHarness(agent(named, deps=deps, history=0)).send("Ada")
    assert greeted == ["for Ada client"]


def test_a_function_of_ones_own_may_run_several_agents() -> None:
    first, second = Agent(talker(["one"]), name="first"), Agent(talker(["two"]), name="second")

    @plain(id="both", name="Both", description="Asks two agents.", skills=[])
    async def both(task: TaskContext) -> str:
        results = [await run(one, task.text()) for one in (first, second, first)]
        return " ".join(result.output for result in results)

    assert AgentTestHarness(both).send("?").said == "one two one"


def delegating(*, ours: bool, shares_usage: bool, paid: list[int]) -> Agent[None, str]:
    """An agent that runs another one in a tool, by our ``run`` or by the framework's."""
    inner = Agent(talker([("buy", "{}", "c1")], ["Bought."], paid=paid), name="inner")
    chief = Agent(talker([("delegate", "{}", "c1")], [("check", "{}", "c2")], ["Done."]), name="chief")

    @inner.tool_plain(requires_approval=ours)
    async def buy() -> str:
        return "bought"

    @chief.tool
    async def delegate(ctx: RunContext[None]) -> str:
        usage = ctx.usage if shares_usage else None
        if ours:
            return (await run(inner, "go", stream=False, usage=usage)).output
        return (await inner.run("go", usage=usage)).output

    @chief.tool_plain(requires_approval=not ours)
    async def check() -> str:
        return "checked"

    return chief


def requests_in(reply: Any) -> int:
    return int(reply.task.metadata["a2a-serverless/usage"]["fake"]["requests"])


@pytest.mark.parametrize("shares_usage", [True, False])
def test_usage_of_an_agent_in_a_tool_counts_once_and_its_approval_reaches_the_client(shares_usage: bool) -> None:  # noqa: FBT001
    paid: list[int] = []
    harness = AgentTestHarness(agent(delegating(ours=True, shares_usage=shares_usage, paid=paid)))
    asked = harness.send("go")
    assert asked.said.startswith("May I call buy({})?"), asked.error
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.text("answer"), paid, requests_in(reply)) == (None, "Done.", [0, 1], 5)


def test_the_model_calls_of_an_agent_in_a_tool_are_in_the_budget() -> None:
    chief = delegating(ours=True, shares_usage=False, paid=[])
    harness = AgentTestHarness(agent(chief, budget=Budget(steps=4)))
    reply = harness.send("yes", task_id=harness.send("go").task.id)
    assert (reply.state, type(reply.error)) == ("failed", BudgetExceeded)


@pytest.mark.parametrize("shares_usage", [True, False])
def test_the_framework_s_own_run_in_a_tool_is_one_step_and_its_usage_is_not_counted(shares_usage: bool) -> None:  # noqa: FBT001
    paid: list[int] = []
    harness = AgentTestHarness(agent(delegating(ours=False, shares_usage=shares_usage, paid=paid)))
    asked = harness.send("go")
    assert asked.said.startswith("May I call check({})?"), asked.error
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.text("answer"), paid, requests_in(reply)) == ("Done.", [0, 1], 3)


def test_a_tool_that_is_no_step_may_ask_the_client_itself() -> None:
    asker = Agent(talker([("ask", "{}", "c1")], ["Done."]), name="asker")
    answers: list[str] = []

    @asker.tool_plain(metadata={"a2a_serverless": False})
    async def ask() -> str:
        answers.append((await current_task().ask("Which colour?")).text())
        return answers[-1]

    harness = AgentTestHarness(agent(asker))
    asked = harness.send("go")
    assert asked.said == "Which colour?"
    assert harness.send("red", task_id=asked.task.id).text("answer") == "Done."
    assert set(answers) == {"red"}, "each run reads the stored answer"


def test_the_agent_has_what_a_card_needs() -> None:
    assert by_id((agent(Agent("test", name="shop")),))


def test_two_other_agents_are_called_at_once_as_tools_while_nothing_runs_here() -> None:
    calls = [("call_echo", '{"message": "a"}', "c1"), ("call_echo", '{"message": "b"}', "c2")]
    caller = Agent(talker(calls, ["Both."]), name="caller", tools=[call_agent("echo", description="Repeats.")])

    @plain(id="echo", name="Echo", description="Repeats.", skills=[])
    async def echo(task: TaskContext) -> None:
        await asyncio.sleep(600)
        await task.emit("said", task.text(), last=True)

    harness = AgentTestHarness(agent(caller, history=0), echo)
    reply = harness.send("call")
    assert reply.text("answer") == "Both."
    assert sorted(entry.agent for entry in harness.tasks(reply.task.context_id)) == ["caller", "echo", "echo"]
    own = [end - began for task_id, began, end in harness.runs if task_id == reply.task.id]
    assert sum(own) < 60_000, "nothing runs here while the other agents work"


def test_runs_of_one_task_go_on_with_the_messages_of_the_run_before() -> None:
    worker = Agent(talker(["not said"], [("delegate", "{}", "c1")], ["one"]), name="worker")
    helper = Agent(TestModel(custom_output_text="two"), name="helper")
    before: list[Any] = []

    @worker.tool_plain
    async def delegate() -> str:
        return (await run(helper, "help", stream=False, message_history=before)).output

    @plain(id="runs", name="Runs", description="Runs agents.", skills=[])
    async def runs(task: TaskContext) -> str:
        first = await run(helper, task.text())
        before[:] = first.all_messages()
        second = await run(worker, "delegate", message_history=before)
        answer = await task.ask("Go on?")
        third = await run(helper, answer.text(), message_history=second.all_messages())

        async def later() -> int:
            fourth = await run(helper, "again", stream=False, message_history=third.all_messages())
            return len(fourth.all_messages())

        return f"{[len(one.new_messages()) for one in (first, second, third)]} {await task.step('later', later)}"

    harness = AgentTestHarness(runs)
    asked = harness.send("go")
    assert (asked.error, asked.said) == (None, "Go on?")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.said) == (None, "[2, 4, 2] 10")


def test_a_denied_call_is_not_executed_though_ids_and_arguments_repeat() -> None:
    done: list[str] = []
    twice = [("delete", "{}", "c1"), ("look", "{}", "c3"), ("delete", "{}", "c2")]
    guard = Agent(talker(twice, [("delete", "{}", "c1")], ["Done."]), name="guard")

    @guard.tool_plain
    async def look() -> str:
        await asyncio.sleep(5)
        return "seen"

    @guard.tool_plain(requires_approval=True)
    def delete(ctx: str = "") -> str:
        done.append("deleted")
        return ctx

    harness = AgentTestHarness(agent(guard, history=0))
    reply = harness.send("delete")
    for answer, deleted in (("yes", 0), ("no", 0), ("no", 1)):
        assert len(done) == deleted
        reply = harness.send(answer, task_id=reply.task.id)
    assert (reply.state, len(done)) == ("completed", 1)


def test_tools_that_are_no_steps_run_at_once_and_use_the_same_names() -> None:
    calls = [("paint", "{}", "c1"), ("paint", "{}", "c2")]
    painter = Agent(talker(calls, calls, ["Done."]), name="painter")
    painted: list[str] = []

    async def mix() -> int:
        await asyncio.sleep(3)
        return len(painted)

    @painter.tool_plain(metadata={"a2a_serverless": False})
    async def paint() -> str:
        task = current_task()
        await task.step("mix", mix)
        colour = (await task.ask("Which colour?")).text()

        async def use() -> str:
            painted.append(colour)
            return colour

        return await task.step("use", use)

    harness = AgentTestHarness(agent(painter, history=0))
    reply = harness.send("go")
    for colour in ("red", "green", "blue", "white"):
        assert reply.said == "Which colour?", reply.error
        reply = harness.send(colour, task_id=reply.task.id)
    assert (reply.text("answer"), painted) == ("Done.", ["red", "green", "blue", "white"])


def test_a_called_agent_that_fails_or_is_absent_is_a_retry_for_the_model() -> None:
    calls = [("call_broken", '{"message": "a"}', "c1"), ("call_absent", '{"message": "b"}', "c2")]
    tools = [call_agent(name, description="Fails.") for name in ("broken", "absent")]
    heard: list[str] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del info
        heard.extend(str(part.content) for part in messages[-1].parts if isinstance(part, ToolReturnPart))
        if len(messages) > 1:
            yield "Without them."
            return
        for place, (name, given, call_id) in enumerate(calls):
            yield {place: DeltaToolCall(name, given, tool_call_id=call_id)}

    @plain(id="broken", name="Broken", description="Fails.", skills=[])
    async def broken(task: TaskContext) -> None:
        del task
        raise TaskFailed("No paper.")

    caller = Agent(FunctionModel(stream_function=answer), name="caller", tools=tools)
    assert AgentTestHarness(agent(caller), broken).send("go").text("answer") == "Without them."
    assert "The task of the other agent is failed: No paper." in str(heard)
    assert "no agent 'absent'" in str(heard)


def unreliable(ledger: Ledger) -> A2AAgent:
    """Its first model fails once in each turn, so that the second one answers."""
    failed: set[int] = set()

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del info
        turn = 1 + sum(isinstance(message, ModelResponse) for message in messages)
        tried = ledger.pay(f"model {turn}")
        if turn == 1:
            yield {0: DeltaToolCall("look", "{}", tool_call_id=f"look-{tried}")}
        else:
            yield f"answer {tried}"

    async def fail(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if len(messages) not in failed:
            failed.add(len(messages))
            raise ModelHTTPError(503, "first")
        async for said in answer(messages, info):
            yield said

    second = FunctionModel(stream_function=answer)
    made = Agent(
        FunctionModel(stream_function=fail), name="fallback", capabilities=[capabilities.ModelFallback(second)]
    )

    @made.tool_plain
    async def look() -> str:
        return "seen"

    return agent(made, description="Has two models.", models={"second": second})


@pytest.mark.skipif(not hasattr(capabilities, "ModelFallback"), reason="Pydantic AI has it since 2.66")
def test_a_death_after_a_fallback_does_not_pay_the_response_again() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        assert played.answer().startswith("answer ")
        assert set(played.steps) >= {"fallback__model", "fallback__model#2"}

    report = kill_everywhere(Scenario(unreliable, step_of_agent), check)
    assert not report.wrong


def test_work_over_several_time_limits_is_paid_once() -> None:
    paid: list[int] = []
    calls = [[("wait", "{}", f"c{turn}")] for turn in range(4)]
    patient = Agent(talker(*calls, ["Done."], paid=paid), name="patient")
    waited: list[str] = []

    @patient.tool_plain
    async def wait() -> str:
        await asyncio.sleep(500)
        waited.append("500 s")
        return "waited"

    harness = AgentTestHarness(agent(patient))
    assert harness.send("go").text("answer") == "Done."
    assert (paid, len(waited)) == ([0, 1, 2, 3, 4], 4)
    assert len(harness.runs) >= 3


def test_a_conversation_of_forty_turns_is_the_history_and_the_oldest_turns_are_forgotten() -> None:
    heard: list[list[str]] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del info
        heard.append([str(part.content) for one in messages for part in one.parts if isinstance(part, UserPromptPart)])
        yield f"answer {len(heard)}"

    harness = AgentTestHarness(agent(Agent(FunctionModel(stream_function=answer), name="chat"), history=38))
    context_id = harness.send("turn 0").task.context_id
    for turn in range(1, 40):
        assert harness.send(f"turn {turn}", context_id=context_id).text("answer") == f"answer {turn + 1}"
    assert heard[37] == [f"turn {turn}" for turn in range(38)]
    assert heard[39] == [f"turn {turn}" for turn in range(1, 40)]


def test_another_conversation_another_owner_and_another_agent_have_another_history() -> None:
    heard: list[int] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del info
        heard.append(len(messages))
        yield "Yes."

    made = [agent(Agent(FunctionModel(stream_function=answer), name=name)) for name in ("one", "two")]
    harness = AgentTestHarness(*made)
    context_id = harness.send("a", to="one").task.context_id
    harness.send("b", to="one")
    harness.send("c", to="two", context_id=context_id)
    message = Message(message_id="m", role=Role.USER, parts=(Part(text="d"),), context_id=context_id)
    harness.take("one", message, Principal("tenant", "somebody"))
    harness.settle()
    assert heard == [1, 1, 1, 1]


def test_a_file_is_read_by_the_model_once_and_is_only_named_in_the_history() -> None:
    heard: list[Any] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del info
        heard.append([part.content for one in messages for part in one.parts if isinstance(part, UserPromptPart)])
        yield "Seen."

    harness = AgentTestHarness(agent(Agent(FunctionModel(stream_function=answer), name="eyes"), input_modes=("*/*",)))
    png = Part(raw="iVBOR0==", media_type="image/png")
    first = harness.send([Part(text="Look"), png, Part(data={"at": 1})])
    harness.send("And?", context_id=first.task.context_id)
    assert heard[0][0][1].media_type == "image/png"
    assert heard[1][0] == ["Look", "[image/png]", '{"at": 1}']


def test_two_tasks_of_a_conversation_that_end_at_the_same_time_are_both_in_the_history() -> None:
    class Store:
        def __init__(self) -> None:
            self.stored: list[tuple[Any, str]] = []
            self.refused = 0

        async def get(self, key: str) -> StoredValue | None:
            return StoredValue(key, *self.stored[-1]) if self.stored else None

        async def put(self, key: str, value: Any, *, version: str) -> None:
            del key
            if not self.refused:
                self.refused += 1
                self.stored.append(([{"task": "other", "messages": ["theirs"]}], "1"))
                raise VersionConflict
            assert version == "1"
            self.stored.append((value, "2"))

    store = Store()
    task: Any = SimpleNamespace(id="this", conversation=store)
    asyncio.run(save_turn(task, "chat", ["ours"], 40))
    assert [turn["messages"] for turn in store.stored[-1][0]] == [["theirs"], ["ours"]]
    assert asyncio.run(load_history(task, "chat")) == ["theirs"]


def test_the_history_is_bounded_in_characters() -> None:
    async def long(task: TaskContext) -> int:
        for number in range(5):
            await save_turn(replace_id(task, f"t{number}"), "chat", ["x" * 100_000], 40)
        return len(await load_history(task, "chat"))

    def replace_id(task: TaskContext, task_id: str) -> Any:
        return SimpleNamespace(id=task_id, conversation=task.conversation)

    @plain(id="long", name="Long", description="Long.", skills=[])
    async def work(task: TaskContext) -> str:
        return str(await long(task))

    assert AgentTestHarness(work).send("go").said == "2"


def test_the_agent_of_the_example_asks_before_it_orders() -> None:
    harness = AgentTestHarness(run_path("examples/pydantic_ai_agent.py")["shop_agent"])
    asked = harness.send("a car")
    assert asked.said.startswith('May I call order({"thing": "a car"})? Answer yes, edit')
    assert harness.send("yes", task_id=asked.task.id).text("answer") == "ordered: a car (no MODEL is set)"


def test_the_test_of_a_new_project_passes() -> None:
    run_example("pydantic_ai_agent.py")


@pytest.mark.enable_socket
def test_a_client_whose_connections_stay_open_works_in_the_next_task_of_the_process() -> None:
    def make(url: str) -> A2AAgent:
        client = httpx2.AsyncClient()

        async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            del messages, info
            return ModelResponse([TextPart(await ask_model(client, url))])

        return agent(Agent(FunctionModel(answer), name="warm"), streaming=False)

    assert_two_tasks_end_well(make)


@pytest.mark.parametrize("name", page_tests("pydantic-ai.md"))
def test_each_example_of_the_page_passes(name: str) -> None:
    names_of("pydantic-ai.md")[name]()


def test_the_page_for_those_who_have_an_agent_shows_one_that_runs() -> None:
    support = names_of("../bring-your-agent.md")["support_agent"]
    assert AgentTestHarness(support).send("Where is it?").text("answer") == "success (no tool calls)"
