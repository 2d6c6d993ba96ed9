"""What an author's steps, chunks and progress come to, in one run and over several."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.protocol.strict_json import STORED
from a2a_serverless.protocol.v1 import Part, Task, TaskState
from tests.echo import agent_of
from tests.engine.test_run import world_with_task
from tests.faults.plans import kill_at
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.task_context import TaskContext

Work = Callable[["TaskContext"], Awaitable[object]]


def done(work: Work, *, runs: int = 1) -> Task:
    """What the client has after the task has been run so often; all runs but the last are handed on in good order."""
    world = World([agent_of(work)])
    task = world.send("hello", push=False)
    for _ in range(runs - 1):
        world.run_ms = 20_000
        world.run(ME.key(task.id))
    world.run_ms = 900_000
    world.settle()
    return world.get(task.id)


def events_of(work: Work) -> list[ArtifactEvent]:
    world = World([agent_of(work)])
    task = world.send("hello", push=False)
    world.settle()
    return [event for event in world.events(task.id) if isinstance(event, ArtifactEvent)]


def last_word(task: Task) -> str:
    assert task.status.message
    return task.status.message.text()


def texts(task: Task) -> dict[str | None, list[Any]]:
    return {artifact.name: [part.value for part in artifact.parts] for artifact in task.artifacts}


@dataclass
class Counted:
    """A step that counts how often it ran."""

    ran: int = 0

    async def __call__(self, *args: Any) -> Any:
        self.ran += 1
        await asyncio.sleep(0.1)
        return [*args, self.ran]


# ---- Steps


def test_a_step_gives_what_its_work_gives() -> None:
    async def work(task: TaskContext) -> None:
        async def shout(text: str, *, times: int) -> str:
            await asyncio.sleep(1)
            return text.upper() * times

        await task.emit("a", await task.step("shout", shout, task.text(), times=2))

    assert texts(done(work)) == {"a": ["HELLOHELLO"]}


def test_a_plain_function_is_a_step_too() -> None:
    def shout(text: str) -> str:
        return text.upper()

    async def work(task: TaskContext) -> None:
        await task.emit("a", await task.step("shout", shout, task.text()))

    assert texts(done(work)) == {"a": ["HELLO"]}


def test_an_object_that_is_called_like_an_async_function_is_a_step_too() -> None:
    counted = Counted()

    async def work(task: TaskContext) -> None:
        await task.emit("a", await task.step("count", counted, "x"))

    assert texts(done(work)) == {"a": [["x", 1]]}


@pytest.mark.parametrize("runs", [2, 3, 4])
def test_rule_07_a_step_runs_once_and_is_read_back_by_every_later_run(runs: int) -> None:
    first, second = Counted(), Counted()
    results: list[object] = []

    async def work(task: TaskContext) -> None:
        results.append(await task.step("first", first, 1))
        if len(results) < runs:
            await asyncio.sleep(3600)
        await task.emit("a", await task.step("second", second, 2))

    assert texts(done(work, runs=runs)) == {"a": [[2, 1]]}
    assert (first.ran, second.ran, results) == (1, 1, [[1, 1]] * runs)


def test_rule_07_a_first_run_and_a_re_run_are_given_the_same_value() -> None:
    given: list[object] = []

    async def work(task: TaskContext) -> None:
        async def make() -> object:
            return {"pair": (1, 2), 3: None}

        given.append(await task.step("make", make))
        if len(given) < 2:
            await asyncio.sleep(3600)

    done(work, runs=2)
    assert given == [{"pair": [1, 2], "3": None}] * 2


def test_an_agent_runs_five_steps_side_by_side() -> None:
    async def slow(number: int) -> int:
        await asyncio.sleep(10)
        return number

    async def work(task: TaskContext) -> None:
        numbers = await asyncio.gather(*(task.step(f"slow {number}", slow, number) for number in range(5)))
        await task.emit("a", {"sum": sum(numbers)})

    world = World([agent_of(work)])
    task = world.send("hello", push=False)
    begun = world.now
    world.run(ME.key(task.id))
    assert texts(world.get(task.id)) == {"a": [{"sum": 10}]}
    assert world.now - begun < 15_000


BAD_NAMES = {
    "used twice": (["same", "same"], "The step 'same' was used twice. Give each step its own name."),
    "empty": ([""], "A step's name has 1 to 256 characters"),
    "half a character": (["a\ud800"], "A step's name has 1 to 256 characters"),
    "too long": (["x" * 257], "A step's name has 1 to 256 characters"),
}


@pytest.mark.parametrize("case", BAD_NAMES)
def test_rule_07_a_name_that_cannot_be_kept_fails_the_task_and_says_why(case: str) -> None:
    names, reason = BAD_NAMES[case]

    async def work(task: TaskContext) -> None:
        for name in names:
            await task.step(name, Counted())

    task = done(work)
    assert task.status.state is TaskState.FAILED
    assert last_word(task).startswith(reason)


def test_rule_07_a_step_that_raised_may_be_tried_again_under_its_name() -> None:
    tries: list[int] = []

    async def fail_twice() -> int:
        tries.append(len(tries))
        if len(tries) < 3:
            raise ValueError
        return tries[-1]

    results: list[int] = []

    async def work(task: TaskContext) -> None:
        for _ in range(3):
            with suppress(ValueError):
                results.append(await task.step("try", fail_twice))
                break
        await asyncio.sleep(3600 if len(results) < 2 else 0)

    assert done(work, runs=2).status.state is TaskState.COMPLETED
    assert (results, tries) == ([2, 2], [0, 1, 2])


def test_rule_07_a_step_that_was_stored_with_other_arguments_fails_the_task() -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        runs.append(len(runs))
        await task.step("first", Counted(), runs[-1])
        await asyncio.sleep(3600 if len(runs) < 2 else 0)

    task = done(work, runs=2)
    assert task.status.state is TaskState.FAILED
    assert last_word(task).startswith("The step 'first' was stored with other arguments. Stored: ")


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), float("nan"), float("inf")])
def test_a_step_whose_result_cannot_be_kept_fails_the_task(value: object) -> None:
    async def work(task: TaskContext) -> None:
        async def make() -> object:
            return value

        await task.step("make", make)

    task = done(work)
    assert task.status.state is TaskState.FAILED
    assert last_word(task).startswith(f"The step 'make' gave a {type(value).__name__}, which is not a JSON value")


def nested(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"a": 10**4300}, "an integer has more than 4300 digits"),
        (-(10**5000), "an integer has more than 4300 digits"),
        (nested(STORED.depth + 1), "it has more than 200 levels"),
        (nested(100_000), "it has more than 200 levels"),
    ],
    ids=["digits", "many digits", "levels", "many levels"],
)
def test_a_result_that_no_later_run_could_read_is_not_stored(value: Json, reason: str) -> None:
    async def work(task: TaskContext) -> None:
        async def make() -> Json:
            return value

        await task.step("make", make)

    world, key = world_with_task(work)
    world.run(key)
    assert last_word(world.get(key.task)).endswith(f"{reason}."), last_word(world.get(key.task))
    assert "make" not in world.table.read_steps(key)


def test_the_greatest_results_are_read_by_the_next_run() -> None:
    value = {"a": 10**4300 - 1, "b": nested(STORED.depth - 1)}
    runs: list[object] = []

    async def work(task: TaskContext) -> None:
        async def make() -> Json:
            return value

        runs.append(await task.step("make", make))
        await asyncio.sleep(3600 if len(runs) < 2 else 0)

    assert done(work, runs=2).status.state is TaskState.COMPLETED
    assert runs == [value, value]


def test_a_step_that_raises_is_not_kept_and_runs_again() -> None:
    tries: list[int] = []

    async def shaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return "done"

    async def work(task: TaskContext) -> None:
        for number in range(3):
            try:
                await task.emit("a", await task.step(f"try {number}", shaky))
            except ValueError:
                await task.report_progress("again")

    assert texts(done(work)) == {"a": ["done"]}


def test_rule_07_a_death_between_a_step_and_its_keeping_runs_it_again_and_after_it_does_not() -> None:
    ran = []
    for late in (False, True):
        counted = Counted()

        async def work(task: TaskContext, counted: Counted = counted) -> None:
            await task.step("count", counted)

        faults = kill_at(1, late=late, only="table.store_step")
        world = World([agent_of(work)], faults=faults)
        task = world.send("hello", push=False)
        world.settle()
        assert faults.met == ["table.store_step"]
        assert world.get(task.id).status.state is TaskState.COMPLETED
        ran.append(counted.ran)
    assert ran == [2, 1]


def test_rule_07_chunks_beside_a_step_are_in_the_log_before_the_result_of_the_step() -> None:
    async def work(task: TaskContext) -> None:
        async def aside() -> None:
            await asyncio.sleep(0.02)
            await task.emit("a", "aside", last=True)

        await asyncio.gather(task.step("think", asyncio.sleep, 0.04), aside())

    faults = kill_at(1, late=True, only="table.store_step")
    world = World([agent_of(work)], faults=faults)
    key = ME.key(world.send("hello", push=False).id)
    world.wait(100)
    assert (faults.met, list(world.table.read_steps(key))) == (["table.store_step"], ["think"])
    assert [part.value for artifact in world.get(key.task).artifacts for part in artifact.parts] == ["aside"]


def test_rule_07_a_deploy_that_adds_a_step_a_chunk_and_a_question_shifts_nothing() -> None:
    ran: list[str] = []

    async def note(name: str) -> str:
        ran.append(name)
        return f"{name} "

    async def before(task: TaskContext) -> None:
        await task.emit("a", await task.step("one", note, "one"), append=True)
        colour = await task.ask("Which colour?")
        await task.emit("a", await task.step("two", note, colour.text()), append=True, last=True)

    async def after(task: TaskContext) -> None:
        await task.emit("b", await task.step("new", note, "new"), last=True)
        await task.emit("a", await task.step("one", note, "one"), append=True)
        size = await task.ask("Which size?")
        colour = await task.ask("Which colour?")
        await task.emit("a", await task.step("two", note, f"{size.text()} {colour.text()}"), append=True, last=True)

    world = World([agent_of(before)])
    task_id = world.send("hello").id
    world.settle()
    world.engine = replace(world.engine, agents={"echo": agent_of(after)})
    for answer in ("red", "large"):
        world.send(answer, task_id=task_id)
        world.settle()
    assert ran == ["one", "new", "large red"]
    assert texts(world.get(task_id)) == {"a": ["one large red "], "b": ["new "]}


# ---- Chunks


def test_chunks_are_numbered_for_each_artifact_and_appended_in_order() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a", "one ", append=True)
        await task.emit("b", "1 ")
        await task.emit("a", "two", append=True, last=True, description="words")

    found = [
        (event.artifact.name, event.emits, event.append, event.last_chunk, event.artifact.description)
        for event in events_of(work)
    ]
    assert found == [
        ("a", (1, 1), False, False, None),
        ("b", (1, 1), False, False, None),
        ("a", (2, 2), True, True, "words"),
    ]
    assert texts(done(work)) == {"a": ["one two"], "b": ["1 "]}


def test_an_artifact_that_is_emitted_anew_begins_again() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a", "draft")
        await task.emit("a", "final", last=True)

    assert texts(done(work)) == {"a": ["final"]}


def test_a_re_run_skips_what_the_log_holds() -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        runs.append(1)
        await task.report_progress("begun")
        await task.emit("a", f"one in run {len(runs)} ")
        if len(runs) < 3:
            await asyncio.sleep(3600)
        await task.report_progress("nearly")
        await task.emit("a", f"two in run {len(runs)}", append=True)

    task = done(work, runs=3)
    assert texts(task) == {"a": ["one in run 1 two in run 3"]}
    assert [message.text() for message in task.history] == ["hello", "begun", "nearly"]


def test_an_artifact_has_the_same_id_in_every_run_and_another_in_every_task() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a", "x")

    world = World([agent_of(work)])
    ids = []
    for _ in range(2):
        task = world.send("hello", push=False)
        world.settle()
        ids.append(world.get(task.id).artifacts[0].artifact_id)
    assert len(set(ids)) == 2


def test_an_artifact_keeps_the_id_that_earlier_releases_gave_it() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a", "x")

    task = done(work)
    assert task.artifacts[0].artifact_id == sha256(f"{task.id}\na".encode()).hexdigest()[:32]


@pytest.mark.parametrize("limit", [1, 2])
def test_an_agent_gets_the_newest_earlier_tasks_of_its_conversation(limit: int) -> None:
    async def work(task: TaskContext) -> str:
        return " ".join(earlier.id for earlier in await task.get_previous_tasks(limit))

    world = World([agent_of(work)])
    sent = [world.send("hello", push=False)]
    for _ in range(3):
        world.wait(5_000)
        sent.append(world.send("hello", push=False, context_id=sent[0].context_id))
    world.settle()
    assert last_word(world.get(sent[3].id)).split() == [sent[2].id, sent[1].id][:limit]


def test_content_becomes_the_part_that_it_is() -> None:
    given = Part(url="https://example.com/x", media_type="image/png", filename="x.png")

    async def work(task: TaskContext) -> None:
        await task.emit("text", "x", media_type="text/markdown")
        await task.emit("bytes", b"x")
        await task.emit("data", {"x": [1]})
        await task.emit("part", given)
        await task.emit("parts", [given, Part(text="y")])

    parts = [event.artifact.parts for event in events_of(work)]
    assert parts == [
        (Part(text="x", media_type="text/markdown"),),
        (Part(raw=base64.b64encode(b"x").decode(), media_type="application/octet-stream"),),
        (Part(data={"x": [1]}),),
        (given,),
        (given, Part(text="y")),
    ]


# ---- What the agent knows


def test_the_agent_knows_its_task_and_its_message() -> None:
    seen: dict[str, object] = {}

    async def work(task: TaskContext) -> None:
        seen.update(id=task.id, context=task.context_id, text=task.text(), data=task.data(), message=task.message)

    task = done(work)
    assert seen == {
        "id": task.id,
        "context": task.context_id,
        "text": "hello",
        "data": None,
        "message": task.history[0],
    }


def test_a_follow_up_during_a_run_does_not_change_what_a_re_run_is_given() -> None:
    heard: list[str] = []

    async def work(task: TaskContext) -> None:
        heard.append(task.text())
        await task.step("hear", Counted(), task.text())
        if len(heard) < 2:
            await asyncio.sleep(3600)

    world = World([agent_of(work)])
    task = world.send("hello", push=False)
    world.run_ms = 22_000
    world.plan(500, lambda: world.send("and more", push=False, task_id=task.id))
    world.settle()
    assert world.get(task.id).status.state is TaskState.COMPLETED
    assert set(heard) == {"hello"}
    assert [message.text() for message in world.get(task.id).history] == ["hello", "and more"]


def failed_steps(work: Work) -> list[tuple[str, str]]:
    """The name and error of each step that the timeline shows as failed."""
    world = World([agent_of(work)])
    key = ME.key(world.send("hello", push=False).id)
    world.settle()
    times = world.table.list_step_times(key, 100)
    return [(one.name, one.error) for one in times if one.name.startswith("@failed/")]


async def breaks() -> None:
    raise KeyError("a secret")


async def alone(task: TaskContext) -> None:
    await task.step("breaks", breaks)


async def wrapped(task: TaskContext) -> None:
    try:
        await task.step("breaks", breaks)
    except KeyError as error:
        raise RuntimeError from error


async def within(task: TaskContext) -> None:
    async def outer() -> None:
        await task.step("breaks", breaks)

    await task.step("outer", outer)


async def retried(task: TaskContext) -> None:
    for _ in range(3):
        with suppress(KeyError):
            await task.step("breaks", breaks)
    await task.step("breaks", breaks)


@pytest.mark.parametrize("work", [alone, wrapped, within, retried])
def test_the_innermost_step_whose_error_ends_a_task_is_stored_with_its_class(work: Work) -> None:
    path = "outer > breaks" if work is within else "breaks"
    assert failed_steps(work) == [(f"@failed/{path}", "KeyError")]


def test_a_result_that_cannot_be_stored_is_the_error_of_its_step() -> None:
    async def work(task: TaskContext) -> None:
        await task.step("set", lambda: {1})

    assert failed_steps(work) == [("@failed/set", "TaskFailed")]


def test_an_error_that_the_agent_handles_marks_no_step_nor_does_one_outside_of_steps() -> None:
    async def handles(task: TaskContext) -> None:
        with suppress(KeyError):
            await task.step("breaks", breaks)

    async def raises_later(task: TaskContext) -> None:
        await handles(task)
        raise ValueError

    assert failed_steps(handles) == []
    assert failed_steps(raises_later) == []
