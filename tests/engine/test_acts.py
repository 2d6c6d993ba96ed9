"""What the acts of a task promise beside their results: ids, contents, turns, and what a signal leaves to be done."""

from __future__ import annotations

import asyncio
import gc
import math
import threading
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.agent_errors import SecretNotRead, StepConflict
from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.events import Incoming, StatusEvent
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.framework_task import framework_task
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.engine.lease import MARGIN_MS
from a2a_serverless.protocol.v1 import Message, Part, Role, TaskState
from tests.echo import agent_of
from tests.engine.test_run import DONE, LATE, for_ever, last_word, world_with_task
from tests.faults.plans import Count
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

DEADLINE_S = 30


def short(text: str) -> str:
    """The form of all ids that are made of names: they are stored, and so they never change."""
    return sha256(text.encode()).hexdigest()[:32]


# ---- Ids


def test_the_ids_of_what_an_agent_says_are_made_of_the_task_and_the_scope_and_never_change() -> None:
    made = list[str]()

    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", "x")
        await task.report_progress("half")
        with task.scope("part"):
            made.extend(framework_task(task).make_id("tool") for _ in range(2))
        await task.record_usage("model", input_tokens=1)
        await task.ask("Which?")

    world, key = world_with_task(work)
    world.run(key)
    task = world.get(key.task)
    assert task.artifacts[0].artifact_id == short(f"{key.task}\na.txt")
    assert made == [short(f"{key.task}\npart\ntool\n{number}") for number in (1, 2)]
    said = [event.message for event in world.events(key.task) if isinstance(event, StatusEvent) and event.message]
    expected = [
        (kind, digest([digest([Part(text=text)]), None, []]))
        for kind, text in (("progress", "half"), ("ask", "Which?"))
    ]
    assert [one.message_id for one in said] == [
        short(f"{key.task}\n\n{kind}\n{content}\n1") for kind, content in expected
    ]
    usage = [name for name in world.table.read_steps(key) if name.startswith("@usage/")]
    assert usage == [f"@usage/{digest(['', 'model', {'input_tokens': 1}])[:16]}/1"]


def test_a_question_of_a_called_agent_has_an_id_of_its_call_and_its_own_message() -> None:
    async def parent(task: TaskContext) -> None:
        await task.call("choose", "child", "hello")

    async def child(task: TaskContext) -> None:
        await task.ask("Which?")

    world = World([agent_of(parent, "parent"), agent_of(child, "child")])
    task = world.send("hello", agent="parent", push=False)
    world.wait(60_000)
    asked = world.get(task.id, "parent").status.message
    (name,) = [
        one.agent and one.task for one in world.table.list_page(ME, None, None, 0, 10)[0] if one.agent == "child"
    ]
    theirs = world.get(name, "child").status
    assert asked
    assert theirs.message
    assert asked.message_id == short(f"{task.id}\nask\n@call/choose/answer/1")
    assert asked.message_id != theirs.message.message_id


# ---- Contents


CONTENTS: dict[str, tuple[Any, str | None, list[Part]]] = {
    "text": ("x", "text/markdown", [Part(text="x", media_type="text/markdown")]),
    "bytes": (b"x", None, [Part(raw="eA==", media_type="application/octet-stream")]),
    "bytes of a type": (b"x", "image/png", [Part(raw="eA==", media_type="image/png")]),
    "data": ({"a": 1}, "application/x", [Part(data={"a": 1}, media_type="application/x")]),
    "a list as data": ([1, "x"], None, [Part(data=[1, "x"])]),
    "no parts as data": ([], None, [Part(data=[])]),
    "a part": (Part(text="x"), None, [Part(text="x")]),
    "parts": ((Part(text="x"), Part(text="y")), None, [Part(text="x"), Part(text="y")]),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_an_artifact_has_its_content_its_media_type_and_its_description(case: str) -> None:
    content, media_type, parts = CONTENTS[case]

    async def work(task: TaskContext) -> None:
        await task.emit("a", content, media_type=media_type, description="about it")

    world, key = world_with_task(work)
    world.run(key)
    (artifact,) = world.get(key.task).artifacts
    assert ([*artifact.parts], artifact.name, artifact.description) == (parts, "a", "about it")


def test_a_change_of_content_or_metadata_after_an_act_changes_nothing() -> None:
    async def work(task: TaskContext) -> None:
        content: dict[str, Any] = {"n": 1}
        metadata: dict[str, Any] = {"n": 1}
        await task.emit("a", content, metadata=metadata)
        await task.report_progress("x", metadata=metadata)
        content["n"] = metadata["n"] = 2

    world, key = world_with_task(work)
    world.run(key)
    task = world.get(key.task)
    (artifact,) = task.artifacts
    assert (artifact.parts[0].data, artifact.metadata, task.history[-1].metadata) == ({"n": 1}, {"n": 1}, {"n": 1})


def test_a_plain_function_gets_the_arguments_of_its_step_by_position_and_by_name() -> None:
    async def work(task: TaskContext) -> str:
        return await task.step("sort", sorted_text, "bac", reverse=True)

    world, key = world_with_task(work)
    world.run(key)
    assert last_word(world.get(key.task)) == "cba"


def sorted_text(text: str, *, reverse: bool = False) -> str:
    return "".join(sorted(text, reverse=reverse))


# ---- Order


@pytest.mark.parametrize("act", ["put", "step", "ask", "call"])
def test_a_chunk_is_written_before_the_next_act_of_the_agent(act: str) -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a", "x")
        if act == "put":
            await task.store.put("key", 1)
        elif act == "step":
            await task.step("think", int, "1")
        elif act == "ask":
            await task.ask("Which?")
        else:
            await task.call("write", "other", "hello")

    count = Count()
    world = World([agent_of(work), agent_of(for_ever, "other")], count)
    world.run(ME.key(world.send("hello", push=False).id))
    writes = ("table.append_chunk", "table.put_value", "table.store_step", "table.store_callback", "table.append")
    begun = count.calls.index("table.append")
    assert next(call for call in count.calls[begun + 1 :] if call in writes) == "table.append_chunk"


def test_a_run_writes_artifacts_and_progress_before_it_hands_over() -> None:
    async def work(task: TaskContext) -> None:
        await asyncio.sleep(4.9)
        await task.emit("a", "x")
        await task.report_progress("said")
        await asyncio.sleep(1_000)

    world, key = world_with_task(work)
    world.run_ms = MARGIN_MS + 5_000
    assert world.run(key) is RunOutcome.HANDED_OVER
    task = world.get(key.task)
    assert (task.artifacts[0].text(), last_word(task)) == ("x", "said")


def test_an_answer_that_comes_while_a_step_runs_beside_the_question_reaches_the_same_run() -> None:
    answered_at = list[int]()

    async def work(task: TaskContext) -> str:
        async def ask() -> str:
            answer = (await task.ask("Which?")).text()
            answered_at.append(world.now)
            return answer

        async with asyncio.TaskGroup() as both:
            asking = both.create_task(ask())
            both.create_task(task.sleep("first", 5))
            both.create_task(beside(task))
        return asking.result()

    async def beside(task: TaskContext) -> None:
        await task.sleep("before", 10)
        await task.step("think", asyncio.sleep, 100)

    world = World([agent_of(work)])
    task, began = world.send("hello", push=False), world.now
    world.plan(50_000, lambda: world.send("red", push=False, task_id=task.id))
    world.settle()
    assert last_word(world.get(task.id)) == "red"
    assert answered_at
    assert answered_at[0] - began < 55_000


@pytest.mark.parametrize("act", ["emit", "progress", "return"])
def test_a_run_beside_an_open_question_says_that_it_works_before_the_first_thing_that_the_client_sees(act: str) -> None:
    async def work(task: TaskContext) -> str:
        asking = asyncio.create_task(task.ask("Which?"))
        await task.sleep("a minute", 60)
        if act == "emit":
            await task.emit("a", "x")
        elif act == "progress":
            await task.report_progress("x")
        if act != "return":
            await asking
        return "done"

    world = World([agent_of(work)])
    task, began = world.send("hello", push=False), world.now
    world.wait(120_000)
    events = [event for event in world.events(task.id) if event.at - began > 30_000]
    said = [event.state if isinstance(event, StatusEvent) else "chunk" for event in events]
    seen = {"emit": ["chunk", "input-required"], "progress": ["input-required"], "return": ["completed"]}
    assert said == ["working", *seen[act]]


def test_a_message_after_an_answer_is_not_another_answer() -> None:
    async def work(task: TaskContext) -> str:
        answer = await task.ask("Which?")
        await task.sleep("a minute", 60)
        return answer.text()

    world, key = world_with_task(work)
    world.run(key)
    for text in ("red", "blue"):
        world.send(text, push=False, task_id=key.task)
        world.wait(10_000)
    world.settle()
    assert last_word(world.get(key.task)) == "red"


def test_an_ending_has_a_number_only_if_other_code_could_run_meanwhile() -> None:
    async def work(task: TaskContext) -> None:
        async def at_once() -> int:
            return 1

        await task.step("at once", at_once)
        await task.step("slow", asyncio.sleep, 1)
        await task.step("at once again", at_once)

    world, key = world_with_task(work)
    world.run(key)
    numbers = {name: one.sequence for name, one in world.table.read_steps(key).items()}
    assert numbers == {"at once": 0, "slow": 1, "at once again": 0}


# ---- Turns and times


@pytest.mark.parametrize("act", ["emit", "progress"])
def test_an_agent_that_says_much_lets_its_other_code_go_on_and_takes_no_time(act: str) -> None:
    order = list[str]()

    async def work(task: TaskContext) -> None:
        async def talk(name: str) -> None:
            for number in range(3):
                order.append(f"{name}{number}")
                await (task.emit(name, "x", append=True) if act == "emit" else task.report_progress(f"{name}{number}"))

        began = world.now
        await asyncio.gather(talk("a"), talk("b"))
        assert world.now - began < 1_000

    world, key = world_with_task(work)
    world.run(key)
    assert world.get(key.task).status.state is TaskState.COMPLETED
    assert order == ["a0", "b0", "a1", "b1", "a2", "b2"]


@pytest.mark.parametrize("seconds", [-0.5, math.inf, math.nan])
def test_a_sleep_of_a_negative_or_endless_time_is_refused(seconds: float) -> None:
    async def work(task: TaskContext) -> None:
        with pytest.raises(ValueError, match="0 seconds or more"):
            await task.sleep("a while", seconds)
        await task.sleep("no time", 0)
        await task.sleep("half a second", 0.5)

    world, key = world_with_task(work)
    world.settle()
    assert world.get(key.task).status.state is TaskState.COMPLETED


@pytest.mark.parametrize("ends", ["with its block", "with the run"])
def test_a_time_limit_leaves_no_complaint(ends: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work(task: TaskContext) -> None:
        async with task.timeout("an hour", 3600):
            if ends == "with the run":
                await task.ask("Which?")

    world, key = world_with_task(work)
    world.run(key)
    gc.collect()
    assert caplog.records == []


@pytest.mark.parametrize(("seconds", "outlives"), [(999.5, False), (1000.5, True)])
def test_a_timer_that_outlives_the_run_ends_the_task_at_once(seconds: float, *, outlives: bool) -> None:
    errors = list[BaseException]()

    async def work(task: TaskContext) -> None:
        async with asyncio.TaskGroup() as both:
            both.create_task(task.sleep("an hour", 3600))
            both.create_task(asyncio.sleep(seconds))

    world, key = world_with_task(work)
    world.engine = replace(world.engine, on_error=lambda _, error, __: errors.append(error))
    world.run_ms, began = 1_000_000 + MARGIN_MS, world.now
    assert world.run(key) is (RunOutcome.ENDED if outlives else RunOutcome.WAITING)
    assert [type(one) for one in errors] == [StepConflict] * outlives
    assert not outlives or world.now - began < 1_000


# ---- After a signal


@pytest.mark.parametrize("call", LATE)
def test_an_agent_that_catches_a_conflict_does_no_further_act_when_it(call: str) -> None:
    refused = list[type[BaseException]]()

    async def work(task: TaskContext) -> None:
        for _ in range(2):
            try:
                await task.step("same", asyncio.sleep, 0)
            except StepConflict as conflict:
                refused.append(type(conflict))
        try:
            await LATE[call](task)
        except BaseException as error:  # noqa: BLE001 - that is its nature
            refused.append(type(error))

    DONE.clear()
    world, key = world_with_task(work)
    assert world.run(key) is RunOutcome.ENDED
    task = world.get(key.task)
    assert (task.status.state, refused, DONE, task.artifacts) == (TaskState.FAILED, [StepConflict] * 2, [], ())


def test_an_error_that_a_step_raises_because_its_run_ends_is_not_stored() -> None:
    runs = list[int]()

    async def work(task: TaskContext) -> str:
        async def careless() -> str:
            runs.append(1)
            try:
                await asyncio.sleep(1_000 if len(runs) == 1 else 1)
            except asyncio.CancelledError:
                raise LookupError from None
            return "done"

        return await task.step("careless", careless)

    world, key = world_with_task(work)
    world.run_ms = MARGIN_MS + 5_000
    world.settle()
    task = world.get(key.task)
    assert (task.status.state, last_word(task), len(runs)) == (TaskState.COMPLETED, "done", 2)


def test_an_agent_whose_calls_are_refused_lets_other_code_go_on() -> None:
    order = list[str]()

    async def work(task: TaskContext) -> None:
        async def refused() -> None:
            for _ in range(3):
                with suppress(StepConflict):
                    await task.emit("a", "x")
                order.append("refused")

        async def other() -> None:
            for _ in range(3):
                order.append("other")
                await asyncio.sleep(0)

        with suppress(StepConflict):
            for _ in range(2):
                await task.step("same", asyncio.sleep, 0)
        await asyncio.gather(refused(), other())

    world, key = world_with_task(work)
    world.run(key)
    assert order == ["other", "refused"] * 3


def test_a_change_of_a_value_after_a_conflict_is_not_stored() -> None:
    async def work(task: TaskContext) -> None:
        try:
            for _ in range(2):
                await task.step("same", asyncio.sleep, 0)
        except StepConflict:
            await task.conversation.put("late", 1)

    count = Count()
    world, key = world_with_task(work, faults=count)
    world.run(key)
    assert "table.put_value" not in count.calls


# ---- Runs that reach the time limit


@pytest.mark.parametrize("act", ["emit", "progress", "step", "usage", "nothing"])
def test_runs_that_reach_the_time_limit_go_on_as_long_as_each_stores_something(act: str) -> None:
    runs = list[int]()

    async def work(task: TaskContext) -> None:
        runs.append(1)
        for number in range(len(runs)):
            name = str(number)
            if act == "emit":
                await task.emit(name, "x")
            elif act == "progress":
                await task.report_progress(name)
            elif act == "step":
                await task.step(name, int, "1")
            elif act == "usage":
                await task.record_usage(name, input_tokens=1)
        await asyncio.sleep(100 if len(runs) < 6 else 0)

    world, key = world_with_task(work)
    world.run_ms = MARGIN_MS + 5_000
    world.settle()
    is_completed = world.get(key.task).status.state is TaskState.COMPLETED
    assert (is_completed, len(runs)) == ((False, 3) if act == "nothing" else (True, 6))


def test_a_step_beside_which_others_are_stored_may_take_more_than_three_runs() -> None:
    runs = list[int]()

    async def work(task: TaskContext) -> str:
        runs.append(1)

        async def long() -> None:
            await asyncio.sleep(1_000 if len(runs) < 6 else 1)

        async with asyncio.TaskGroup() as both:
            both.create_task(task.step("long", long))
            for number in range(len(runs)):
                both.create_task(task.step(str(number), asyncio.sleep, 2))
        return "done"

    world, key = world_with_task(work)
    world.run_ms = MARGIN_MS + 5_000
    world.settle()
    assert (last_word(world.get(key.task)), len(runs)) == ("done", 6)


# ---- Usage


@pytest.mark.parametrize("act", ["progress", "ask", "return"])
def test_each_later_status_has_the_usage_of_earlier_steps(act: str) -> None:
    async def work(task: TaskContext) -> None:
        await task.record_usage("model", input_tokens=7)
        if act == "progress":
            await task.report_progress("x")
        elif act == "ask":
            await task.ask("Which?")

    world, key = world_with_task(work)
    world.run(key)
    states = {"progress": "working", "ask": "input-required", "return": "completed"}
    said = [event for event in world.events(key.task)[2:] if event.state == states[act]]
    assert [event.usage for event in said] == [{"model": {"input_tokens": 7}}]


# ---- Secrets


def test_a_secret_that_is_not_set_is_an_error_with_its_name() -> None:
    async def work(task: TaskContext) -> None:
        with pytest.raises(SecretNotRead, match="The secret 'KEY' is not set"):
            await task.secret("KEY")

    world, key = world_with_task(work)
    world.run(key)
    assert world.get(key.task).status.state is TaskState.COMPLETED


SECRET = "hunter2"
LEAKS: dict[str, Any] = {
    "a text": f"the secret is {SECRET}",
    "a text in a list": ["x", [SECRET]],
    "a member": {"a": {"b": SECRET}},
    "the name of a member": [{SECRET: 1}],
}


@pytest.mark.parametrize("raised", [True, False])
@pytest.mark.parametrize("leak", [*LEAKS, "none"])
def test_no_step_stores_a_secret_wherever_it_is_in_its_result_or_error(leak: str, *, raised: bool) -> None:
    async def work(task: TaskContext) -> None:
        await task.secret("KEY")

        async def tell() -> Any:
            if raised:
                raise LookupError(LEAKS.get(leak, "fine"))
            return LEAKS.get(leak, ["fine"])

        await task.step("tell", tell)

    world, key = world_with_task(work)
    world.engine = replace(world.engine, read_secret=lambda _: SECRET)
    world.run(key)
    assert SECRET not in str(world.table.read_steps(key))
    is_stored = any(name == "tell" or name.startswith("@raised/") for name in world.table.read_steps(key))
    assert is_stored is (leak == "none" or raised), "an error is stored by its type only"
    is_completed = world.get(key.task).status.state is TaskState.COMPLETED
    assert is_completed is (leak == "none" and not raised)


# ---- What it costs


def test_chunks_of_several_artifacts_are_one_write_each() -> None:
    async def work(task: TaskContext) -> None:
        for name in ("a", "b", "c"):
            await task.emit(name, "x")

    count = Count()
    world, key = world_with_task(work, faults=count)
    world.run(key)
    assert len(world.get(key.task).artifacts) == 3
    assert count.calls.count("table.append_chunk") == 3


def test_the_first_run_of_a_task_reads_no_steps_and_each_later_one_reads_them_once() -> None:
    async def work(task: TaskContext) -> None:
        await task.step("think", asyncio.sleep, 1)
        await task.ask("Which?")

    count = Count()
    world, key = world_with_task(work, faults=count)
    world.run(key)
    assert count.calls.count("table.read_steps") == 0
    world.send("red", push=False, task_id=key.task)
    world.settle()
    assert count.calls.count("table.read_steps") == 1


def test_messages_that_came_together_are_one_page_of_the_log() -> None:
    async def work(task: TaskContext) -> None:
        await task.step("think", asyncio.sleep, 10)

    count = Count()
    world, key = world_with_task(work, faults=count)
    for _ in range(4):
        world.plan(2_500, lambda: world.send("more", push=False, task_id=key.task))
    world.run(key)
    assert len(world.get(key.task).history) == 5
    assert count.calls.count("table.read") == 2, "and one that says that nothing follows"


def test_the_newest_tasks_of_a_conversation_are_one_page_of_its_index() -> None:
    ids = list[str]()

    async def work(task: TaskContext) -> None:
        ids[:] = [one.id for one in await task.get_previous_tasks(2)]

    count = Count()
    world = World([agent_of(work)], count)
    first = world.send("hello", push=False)
    tasks = [first.id]
    for _ in range(4):
        world.settle()
        tasks.append(world.send("hello", push=False, context_id=first.context_id).id)
    before = count.calls.count("table.list_page")
    world.settle()
    assert ids == tasks[-2:-4:-1]
    assert count.calls.count("table.list_page") == before + 1


# ---- Inside a request


@pytest.mark.parametrize(("seconds", "answers"), [(9, True), (11, False)])
def test_an_inline_agent_has_ten_seconds_to_answer_without_a_task(seconds: int, *, answers: bool) -> None:
    async def work(task: TaskContext) -> str:
        await asyncio.sleep(seconds)
        return task.text()

    world = World([replace(agent_of(work), runs="inline")])
    began = world.now
    request = Incoming(Message(message_id="m", role=Role.USER, parts=(Part(text="hello"),)))
    answer = EngineInlineRunner(world.engine, world.play).answer_directly("echo", ME, request)
    assert (answer and answer.text()) == ("hello" if answers else None)
    assert (world.now - began) // 1000 == min(seconds, 10)


def test_an_inline_run_that_is_started_goes_on_in_a_thread_of_its_own() -> None:
    threads = list[threading.Thread]()
    done = threading.Event()

    def play(run: Any) -> Any:
        threads.append(threading.current_thread())
        run.close()
        done.set()

    world = World([replace(agent_of(for_ever), runs="inline")])
    EngineInlineRunner(world.engine, play).start(ME.key("task"), 1_000)
    assert done.wait(DEADLINE_S)
    assert threads[0] is not threading.current_thread()


# ---- A framework's units


def test_a_unit_that_a_framework_begins_anew_does_its_acts_again_under_the_same_names() -> None:
    async def work(author: TaskContext) -> str:
        task, unit = framework_task(author), "node"
        task.set_unit(lambda: unit)
        ids = [task.make_id("tool"), task.make_id("tool")]
        task.begin_units("other")
        ids.append(task.make_id("tool"))
        task.begin_units("no")
        ids.append(task.make_id("tool"))
        return " ".join(str(ids.index(one)) for one in ids)

    world, key = world_with_task(work)
    world.run(key)
    assert last_word(world.get(key.task)) == "0 1 2 0"


def test_a_chunk_that_a_unit_emits_again_is_there_once() -> None:
    async def work(author: TaskContext) -> None:
        task = framework_task(author)
        task.set_unit(lambda: "node")
        for _ in range(2):
            task.begin_units("no")
            for text in ("a", "b"):
                await author.emit("a.txt", text, append=True)

    world, key = world_with_task(work)
    world.run(key)
    assert world.get(key.task).artifacts[0].text() == "ab"
