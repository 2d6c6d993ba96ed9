"""Executors of the official SDK, 1.x or 0.3, whichever this environment has, as agents of a deployment."""

from __future__ import annotations

import asyncio
import base64
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("a2a", reason="a2a-sdk is not installed here: make frameworks")

import httpx
from a2a import types
from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskUpdater

from a2a_serverless import Part, Skill, TaskState, current_task
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.a2a_sdk import IS_0_3, ConversationTaskStore, from_executor
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_at_random, kill_everywhere
from tests.frameworks.pages import run_example
from tests.frameworks.warm import ask_model, assert_two_tasks_end_well

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a.server.agent_execution import RequestContext
    from a2a.server.events import EventQueue

    from a2a_serverless import Agent

ROOT = Path(__file__).parents[2]
SEEDS = range(int(os.environ.get("SEEDS", "1")))
FIELDS: dict[str, Any] = {"id": "sdk", "name": "SDK", "description": "x", "skills": (Skill("s", "s", "s", ("s",)),)}


def text(value: str) -> Any:
    return types.Part(root=types.TextPart(text=value)) if IS_0_3 else types.Part(text=value)


def data(value: dict[str, Any]) -> Any:
    if IS_0_3:
        return types.Part(root=types.DataPart(data=value))
    from google.protobuf.json_format import ParseDict

    return ParseDict({"data": value}, types.Part())


class Executor(AgentExecutor):
    """An executor with an updater and the client's text."""

    canceled: list[str]

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        await self.work(context, updater)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        raise NotImplementedError


def agent_of(executor: Callable[[], AgentExecutor], **fields: Any) -> Agent:
    return from_executor(executor, **(FIELDS | fields))


# ---- What an executor says


class Greeter(Executor):
    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        await updater.start_work(updater.new_agent_message([text("I think.")]))
        await updater.add_artifact([text("Hello, ")], artifact_id="a", name="greeting")
        await updater.add_artifact(
            [text(f"{context.get_user_input()}!")], artifact_id="a", name="greeting", append=True, last_chunk=True
        )
        await updater.add_artifact([data({"n": 1.0})], metadata={"kind": "count"})
        await updater.complete(updater.new_agent_message([text("Done."), data({"ok": True})]))


def test_artifacts_progress_and_the_last_message_come_through() -> None:
    reply = AgentTestHarness(agent_of(Greeter)).send("Ada")
    assert (reply.state, reply.text("greeting"), reply.said) == (TaskState.COMPLETED, "Hello, Ada!", "Done.")
    assert reply.task.status.message
    assert reply.task.status.message.data() == {"ok": True}
    assert reply.data("artifact") == {"n": 1}
    assert reply.artifacts["artifact"].metadata == {"kind": "count"}
    assert "I think." in [message.text() for message in reply.task.history]


ENDS = {"complete": "completed", "failed": "failed", "reject": "rejected", "cancel": "failed"}


@pytest.mark.parametrize("end", ENDS)
def test_each_end_of_an_executor_ends_the_task_with_its_message(end: str) -> None:
    class Ending(Executor):
        async def work(self, _: RequestContext, updater: TaskUpdater) -> None:
            await getattr(updater, end)(updater.new_agent_message([text("Why."), data({"code": 1.0})]))
            await updater.event_queue.enqueue_event(updater.new_agent_message([text("Too late.")]))

    reply = AgentTestHarness(agent_of(Ending)).send("x")
    assert (reply.state, reply.said) == (ENDS[end], "Why.")
    assert reply.task.status.message
    assert reply.task.status.message.data() == {"code": 1}


def test_an_executor_that_answers_with_a_message_completes_its_task() -> None:
    class Answering(Executor):
        async def work(self, _: RequestContext, updater: TaskUpdater) -> None:
            await updater.event_queue.enqueue_event(updater.new_agent_message([text("Hi.")]))

    reply = AgentTestHarness(agent_of(Answering)).send("x")
    assert (reply.state, reply.said) == (TaskState.COMPLETED, "Hi.")


def test_an_executor_that_enqueues_its_task_and_says_nothing_of_its_end_completes_it() -> None:
    class Enqueuing(Executor):
        async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
            state = "submitted" if IS_0_3 else "TASK_STATE_SUBMITTED"
            task = types.Task(id=context.task_id, context_id=context.context_id, status=types.TaskStatus(state=state))
            await updater.event_queue.enqueue_event(task)

    assert AgentTestHarness(agent_of(Enqueuing)).send("x").state is TaskState.COMPLETED


def test_an_executor_that_raises_fails_its_task_and_the_author_gets_the_error() -> None:
    class Raising(Executor):
        async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:  # noqa: ARG002
            raise ZeroDivisionError

    reply = AgentTestHarness(agent_of(Raising)).send("x")
    assert reply.state is TaskState.FAILED
    assert isinstance(reply.error, ZeroDivisionError)


# ---- Turns


class Tailor(Executor):
    """Asks for a colour, then for a form; each turn is a new executor."""

    async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
        told = context.current_task.history if context.current_task else []
        await updater.add_artifact([text(f"{len(told)} {context.get_user_input()}")], name="note")
        if len(told) >= 5:
            await updater.complete(updater.new_agent_message([text("A coat.")]))
        else:
            await updater.requires_input(updater.new_agent_message([text("Which?"), data({"choices": ["a", "b"]})]))


def test_a_question_keeps_its_parts_and_the_next_turn_gets_the_task_and_the_answer() -> None:
    harness = AgentTestHarness(agent_of(Tailor))
    asked = harness.send("a coat")
    assert (asked.state, asked.said) == (TaskState.INPUT_REQUIRED, "Which?")
    assert asked.task.status.message
    assert asked.task.status.message.data() == {"choices": ["a", "b"]}
    again = harness.send("red", task_id=asked.task.id)
    assert again.state is TaskState.INPUT_REQUIRED
    done = harness.send("wool", task_id=asked.task.id)
    assert (done.state, done.said) == (TaskState.COMPLETED, "A coat.")
    assert [artifact.name for artifact in done.task.artifacts] == ["note", "note 2", "note 3"]
    assert done.text("note 2").endswith(" red")


def diary(ledger: Ledger | None = None, *, keep: bool = True) -> Agent:
    """An executor that remembers in the process what it has heard, and asks once."""

    class Diary(Executor):
        def __init__(self) -> None:
            self.heard: list[str] = []

        async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
            self.heard.append(context.get_user_input())
            await updater.add_artifact([text(" ".join(self.heard))], name=f"note {len(self.heard)}")
            if ledger:
                ledger.pay("turn")
            if context.get_user_input() == "go":
                await updater.requires_input(updater.new_agent_message([text("And?")]))
            else:
                await updater.complete(updater.new_agent_message([text(" ".join(self.heard))]))

    return agent_of(Diary, keep_executor=keep)


def test_an_executor_is_kept_for_the_turns_of_a_conversation_if_that_is_asked_for() -> None:
    harness = AgentTestHarness(diary())
    asked = harness.send("go")
    assert harness.send("on", task_id=asked.task.id).said == "go on"
    assert harness.send("again", context_id=asked.task.context_id).said == "go on again"
    assert harness.send("other").said == "other"
    forgetful = AgentTestHarness(diary(keep=False))
    first = forgetful.send("one")
    assert forgetful.send("two", context_id=first.task.context_id).said == "two"


def test_an_executor_that_has_missed_a_turn_of_its_conversation_is_not_used_again() -> None:
    here, there = diary(), diary()
    harness = AgentTestHarness(here)
    context_id = harness.send("one").task.context_id
    harness.deploy(there)
    assert harness.send("two", context_id=context_id).said == "two"
    harness.deploy(here)
    assert harness.send("three", context_id=context_id).said == "three"
    assert harness.send("four", context_id=context_id).said == "three four"


def test_a_process_keeps_a_limited_number_of_executors() -> None:
    harness = AgentTestHarness(diary())
    first, second = harness.send("one"), harness.send("one")
    for _ in range(99):
        harness.send("other")
    assert harness.send("two", context_id=second.task.context_id).said == "one two"
    assert harness.send("two", context_id=first.task.context_id).said == "two"


def test_rule_07_whenever_a_process_dies_a_kept_executor_has_heard_no_message_twice() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        message = played.task.status.message
        assert message
        assert message.text() in {"go on", "on"}

    report = kill_everywhere(Scenario(diary, step_of, answers=["on"]), check)
    assert report.wrong == []


def test_tasks_that_an_executor_keeps_are_in_the_conversation() -> None:
    class Keeper(Executor):
        async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
            store, call = ConversationTaskStore(), context.call_context
            assert call
            said, kept = context.get_user_input(), await store.get("draft", call)
            if said == "delete":
                await store.delete("draft", call)
            elif not kept:
                state = types.TaskState.working if IS_0_3 else types.TaskState.TASK_STATE_WORKING
                status = types.TaskStatus(state=state)
                await store.save(types.Task(id="draft", context_id=said, status=status), call)
            await updater.complete(updater.new_agent_message([text(kept.context_id if kept else "none")]))

    harness = AgentTestHarness(agent_of(Keeper))
    first = harness.send("one")
    context_id = first.task.context_id
    said = [harness.send(word, context_id=context_id).said for word in ("two", "delete", "three", "four")]
    assert [first.said, *said] == ["none", "one", "one", "none", "three"]
    assert harness.send("other").said == "none"


def test_an_executor_that_needs_a_sign_in_waits_for_it() -> None:
    class Guarded(Executor):
        async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
            if context.current_task:
                await updater.complete()
            else:
                await updater.requires_auth(updater.new_agent_message([text("Sign in.")]))

    harness = AgentTestHarness(agent_of(Guarded))
    asked = harness.send("x")
    assert (asked.state, asked.said) == (TaskState.AUTH_REQUIRED, "Sign in.")
    assert harness.send("done", task_id=asked.task.id).state is TaskState.COMPLETED


def test_an_artifact_of_an_earlier_turn_goes_on_under_its_id() -> None:
    class Appending(Executor):
        async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
            task = context.current_task
            await updater.add_artifact([text("1")], artifact_id="mine", name="log", append=bool(task))
            if task:
                known = task.artifacts[0].artifact_id
                await updater.add_artifact([text("2")], artifact_id=known, name="log", append=True)
                await updater.complete()
            else:
                await updater.requires_input(updater.new_agent_message([text("More?")]))

    harness = AgentTestHarness(agent_of(Appending))
    asked = harness.send("x")
    done = harness.send("yes", task_id=asked.task.id)
    assert {one.name: one.text() for one in done.task.artifacts} == {"log": "112"}


def test_an_executor_knows_its_caller_its_files_and_its_task() -> None:
    seen: list[Any] = []

    class Curious(Executor):
        async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
            assert context.call_context
            seen.append((context.call_context.user.user_name, context.call_context.user.is_authenticated))
            seen.append(context.task_id)
            assert context.message
            part = context.message.parts[1]
            seen.append(base64.b64decode(part.root.file.bytes) if IS_0_3 else part.raw)
            await updater.complete()

    png = Part(raw=base64.b64encode(b"...").decode(), media_type="image/png", filename="cat.png")
    reply = AgentTestHarness(agent_of(Curious, input_modes=("*/*",))).send([Part(text="Look"), png])
    assert seen == [("client", True), reply.task.id, b"..."]


# ---- Cancels


def test_only_a_client_s_cancel_calls_the_executor_s_and_later_events_are_dropped() -> None:
    canceled: list[str] = []

    class Slow(Executor):
        async def work(self, _: RequestContext, updater: TaskUpdater) -> None:
            await asyncio.sleep(2000)
            await updater.complete()

        async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
            assert context.current_task
            canceled.append(context.current_task.id)
            updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
            await updater.cancel(updater.new_agent_message([text("Stopped.")]))

    harness = AgentTestHarness(agent_of(Slow))
    task: Any = harness.begin("x")
    harness.at(harness.now + 1_000_000, lambda: harness.cancel(task.id))
    harness.settle()
    reply = harness.reply(task.id)
    assert (reply.state, reply.said, len(canceled)) == (TaskState.CANCELED, "", 1)
    assert len(harness.runs) == 2, "the hand-over after fifteen minutes was no cancel"


# ---- Cards


@pytest.mark.enable_socket
def test_a_client_whose_connections_stay_open_works_in_the_next_task_of_the_process() -> None:
    def make(url: str) -> Agent:
        client = httpx.AsyncClient()

        class Served(Executor):
            async def execute(self, context: Any, event_queue: Any) -> None:
                updater = TaskUpdater(event_queue, context.task_id, context.context_id)
                await updater.add_artifact([text(await ask_model(client, url))], name="answer")

        return agent_of(Served)

    assert_two_tasks_end_well(make)


def test_the_card_s_fields_become_the_agent_s() -> None:
    skill = types.AgentSkill(id="s", name="Skill", description="Does.", tags=["t"], examples=["e"], input_modes=["a/b"])
    extension = types.AgentExtension(uri="https://example.com/x", required=True)
    card = types.AgentCard(
        name="Tailor",
        description="Makes coats.",
        version="2.0.0",
        skills=[skill],
        default_input_modes=["text/plain"],
        default_output_modes=["text/html"],
        capabilities=types.AgentCapabilities(extensions=[extension]),
        **({"url": "https://example.com"} if IS_0_3 else {}),
    )
    agent = from_executor(Greeter, card, id="tailor", description="Sews.")
    assert (agent.id, agent.name, agent.description, agent.version) == ("tailor", "Tailor", "Sews.", "2.0.0")
    assert agent.skills == (Skill("s", "Skill", "Does.", ("t",), ("e",), ("a/b",)),)
    assert (agent.input_modes, agent.output_modes) == (("text/plain",), ("text/html",))
    assert [(one.uri, one.required) for one in agent.extensions] == [("https://example.com/x", True)]


def test_an_executor_that_was_made_already_is_refused() -> None:
    with pytest.raises(TypeError, match="executor's class"):
        agent_of(Greeter())


# ---- The documents


def names_of(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(code, "page", "exec"), names)  # noqa: S102 - our own page
    return names


PAGE = (ROOT / "docs" / "frameworks" / "a2a-sdk.md").read_text()
IN_1 = pytest.mark.skipif(IS_0_3, reason="parts have another form in 0.3")


@IN_1
def test_the_examples_of_the_page_pass() -> None:
    names = names_of("\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)))
    names["test_the_greeter_greets"]()


@IN_1
def test_the_agent_of_the_example_asks_before_it_orders() -> None:
    shop = names_of((ROOT / "examples" / "a2a_sdk_agent.py").read_text())["shop_agent"]
    harness = AgentTestHarness(shop)
    asked = harness.send("a coat")
    assert asked.said == "May I order a coat for 6 euros?"
    done = harness.send("yes", task_id=asked.task.id)
    assert (done.text("answer"), done.said) == ("It is ordered.", "")


@IN_1
def test_the_test_of_a_new_project_passes() -> None:
    run_example("a2a_sdk_agent.py")


# ---- Deaths


def other_words_each_time(ledger: Ledger) -> Agent:
    """An executor that says something else in each try; two artifacts in two turns, with made-up ids."""

    class Moody(Executor):
        async def work(self, context: RequestContext, updater: TaskUpdater) -> None:
            turn = 2 if context.current_task else 1
            tries = ledger.pay(f"turn {turn}")
            ids = [f"{turn} {tries} {number}" for number in range(2)]
            await updater.start_work(updater.new_agent_message([text("On it.")]))
            for word in ("same ", f"{tries} ", f"{tries} "):
                for artifact_id in ids[: 1 if tries == 1 else 2]:
                    await updater.add_artifact([text(word)], artifact_id, "answer", append=word != "same ")
                    await asyncio.sleep(0.3)
            if turn == 1:
                await updater.requires_input(updater.new_agent_message([text(f"{tries}?")]))
            else:
                await updater.complete(updater.new_agent_message([text(f"{tries}.")]))

    return agent_of(Moody)


def step_of(what: str) -> str:
    return {"turn 1": "turn", "turn 2": "turn#2", "turn": "never"}[what]


MOODY = Scenario(other_words_each_time, step_of, answers=["go on"])


def of_one_try(played: Played) -> None:
    """Every artifact has the words of one try only, the one that was stored; there is one end."""
    assert_one_answer(played)
    first = int(played.steps["turn"].value["message"]["parts"][0]["text"].rstrip("?"))
    second = int(played.steps["turn#2"].value["message"]["parts"][0]["text"].rstrip("."))
    said = {one.name: one.text() for one in played.task.artifacts if one.text()}
    names = [(first, number) for number in range(1 if first == 1 else 2)]
    names += [(second, number) for number in range(1 if second == 1 else 2)]
    assert sorted(said.values()) == sorted(f"same {tried} {tried} " for tried, _ in names), said
    assert {one.name for one in played.task.artifacts} <= {"answer", "answer 2", "answer 3", "answer 4"}
    assert played.task.status.message
    assert played.task.status.message.text() == f"{second}."


def test_rule_07_whenever_a_process_dies_each_artifact_has_the_words_of_one_try() -> None:
    report = kill_everywhere(MOODY, of_one_try)
    assert report.wrong == []
    assert sum(report.kills.values()) > 40


def with_a_step_inside(ledger: Ledger) -> Agent:
    class Careful(Executor):
        async def work(self, _: RequestContext, updater: TaskUpdater) -> None:
            async def model() -> int:
                return ledger.pay("model")

            await current_task().step("model", model)
            await updater.complete()

    return agent_of(Careful)


def test_rule_07_a_step_inside_a_turn_is_not_paid_again_once_it_is_stored() -> None:
    report = kill_everywhere(Scenario(with_a_step_inside, lambda what: what), assert_one_answer)
    assert report.wrong == []


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_07_each_artifact_has_the_words_of_one_try_after_two_or_three_deaths(seed: int) -> None:
    assert kill_at_random(MOODY, of_one_try, seed).wrong == []
