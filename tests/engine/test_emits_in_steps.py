"""What a step emits while it runs: each text once, whatever run said it, and never two versions in one artifact."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.protocol.v1 import Task, TaskState
from tests.echo import agent_of
from tests.faults.plans import At, Count, NoFaults, die, fail
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.task_context import Content, TaskContext

Work = Callable[["TaskContext"], Awaitable[object]]
A_WHILE = 1.0


class Model:
    """A model that streams its words, other ones at each try, and may stand still for an hour after one of them."""

    def __init__(self, *tries: Sequence[str], stands_still_after: int | None = None, name: str = "a.txt") -> None:
        self.tries = tries
        self.stands_still_after = stands_still_after
        self.name = name
        self.asked = 0

    async def stream(self, task: TaskContext) -> str:
        words = self.tries[min(self.asked, len(self.tries) - 1)]
        self.asked += 1
        for count, word in enumerate(words, 1):
            await task.emit(self.name, word, append=True)
            await asyncio.sleep(0.3)
            if self.asked == 1 and count == self.stands_still_after:
                await asyncio.sleep(3600)
        return "".join(words)


def world_with_task(work: Work, **world: Any) -> tuple[World, TaskKey]:
    made = World([agent_of(work)], **world)
    return made, ME.key(made.send("hello", push=False).id)


def handed_over(work: Work, times: int = 1) -> tuple[World, Task]:
    """The world once the task has been run again: the time of the first run, or runs, ended after a few seconds."""
    world, key = world_with_task(work)
    world.run_ms = 24_000
    for _ in range(times):
        world.run(key)
    world.run_ms = 900_000
    world.settle()
    return world, world.get(key.task)


def text(task: Task, name: str = "a.txt") -> str:
    return next(artifact.text() for artifact in task.artifacts if artifact.name == name)


def told(world: World, task: str) -> list[str]:
    """The texts of the task's status events."""
    return [event.message.text() for event in world.events(task) if isinstance(event, StatusEvent) and event.message]


def last_word(task: Task) -> str:
    assert task.status.message
    return task.status.message.text()


def chunks(world: World, task: Task) -> list[tuple[str, bool, str]]:
    events = [event for event in world.events(task.id) if isinstance(event, ArtifactEvent)]
    return [(event.artifact.text(), event.append, event.step) for event in events]


def streaming(model: Model, *, pause: bool = False) -> Work:
    """An agent that writes a title, streams a model's words in a step, and ends the artifact."""
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        runs.append(1)
        await task.emit("a.txt", "Title. ")
        await task.step("think", partial(model.stream, task))
        if pause and len(runs) < 2:
            await asyncio.sleep(3600)
        await task.emit("a.txt", "The end.", append=True, last=True)

    return work


# ---- A step that is read back


def test_rule_07_chunks_of_a_stored_step_are_not_emitted_again() -> None:
    model = Model(["one ", "two "])
    _, task = handed_over(streaming(model, pause=True))
    assert (text(task), model.asked) == ("Title. one two The end.", 1)


def test_rule_07_progress_that_a_stored_step_has_told_counts_as_told() -> None:
    runs: list[int] = []

    async def think(task: TaskContext) -> None:
        await task.report_progress("thinking")

    async def work(task: TaskContext) -> None:
        runs.append(1)
        await task.step("think", partial(think, task))
        if len(runs) < 2:
            await asyncio.sleep(3600)
        await task.report_progress("writing")

    world, task = handed_over(work)
    assert told(world, task.id) == ["thinking", "writing"]


def test_rule_07_progress_of_a_stored_step_within_a_stored_step_counts_as_told() -> None:
    runs: list[int] = []

    async def look_up(task: TaskContext) -> None:
        await task.report_progress("looking up")

    async def think(task: TaskContext) -> None:
        await task.step("look up", partial(look_up, task))
        if len(runs) < 2:
            await asyncio.sleep(3600)

    async def work(task: TaskContext) -> None:
        runs.append(1)
        await task.step("think", partial(think, task))
        if len(runs) < 3:
            await asyncio.sleep(3600)
        await task.report_progress("writing")

    world, task = handed_over(work, times=2)
    assert (told(world, task.id), len(runs)) == (["looking up", "writing"], 3)


def test_rule_07_a_question_that_a_stored_step_has_asked_is_asked_again_outside_of_it() -> None:
    async def choose(task: TaskContext) -> str:
        return (await task.ask("Which colour?")).text()

    async def work(task: TaskContext) -> str:
        first = await task.step("choose", partial(choose, task))
        second = (await task.ask("Which colour?")).text()
        return f"{first} and {second}"

    world, key = world_with_task(work)
    for answer in ("red", "blue"):
        world.settle()
        assert world.get(key.task).status.state is TaskState.INPUT_REQUIRED
        world.send(answer, push=False, task_id=key.task)
    world.settle()
    assert last_word(world.get(key.task)) == "red and blue"


# ---- A step that was interrupted


def test_an_artifact_that_is_written_anew_keeps_the_fields_of_its_first_chunk() -> None:
    model = Model(["2", "3"], ["4"], stands_still_after=2, name="a")

    async def work(task: TaskContext) -> None:
        await task.emit("a", "1", metadata={"a": 1}, description="Numbers")
        await task.step("stream", partial(model.stream, task))

    _, task = handed_over(work)
    (artifact,) = task.artifacts
    assert (artifact.text(), artifact.metadata, artifact.description) == ("14", {"a": 1}, "Numbers")


@pytest.mark.parametrize("again", [["one ", "two ", "three "], ["on", "e t", "wo ", "three "]])
def test_rule_07_a_step_that_repeats_its_chunks_replaces_the_first_in_one_event(again: list[str]) -> None:
    model = Model(["one ", "two ", "three "], again, stands_still_after=2)
    world, task = handed_over(streaming(model))
    assert (text(task), model.asked) == ("Title. one two three The end.", 2)
    assert [said for said, append, _ in chunks(world, task)[1:] if not append] == [f"Title. {again[0]}"]


SAID: dict[str, list[Content]] = {
    "texts that become one event": ["one ", "two ", "three "],
    "an empty text": ["one ", "", "two "],
    "values": [{"a": 1}, {"a": 2}],
    "a value between texts": ["one ", {"a": 1}, "two "],
    "bytes after a text": ["one ", b"two"],
}


@pytest.mark.parametrize("case", SAID)
@pytest.mark.parametrize("title", ["Title. ", ""])
def test_rule_07_a_step_that_emits_again_writes_its_artifact_once_more(case: str, title: str) -> None:
    runs: list[int] = []

    async def say(task: TaskContext) -> None:
        runs.append(1)
        for content in SAID[case]:
            await task.emit("a.txt", content, append=True)
        await asyncio.sleep(3600 if len(runs) == 1 else 0)

    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", title)
        await task.step("say", partial(say, task))

    world, task = handed_over(work)
    assert (task.status.state, len(runs)) == (TaskState.COMPLETED, 2)
    said = [part for part in task.artifacts[0].parts if part.value != ""]
    alone = World([agent_of(work)])
    other = alone.get(alone.send("hello", push=False).id)
    alone.settle()
    other = alone.get(other.id)
    assert said == [part for part in other.artifacts[0].parts if part.value != ""]
    assert sum(not append for _, append, _ in chunks(world, task)) == 2


def test_rule_07_a_step_that_says_something_else_leaves_only_that() -> None:
    model = Model(["one ", "two ", "three "], ["one ", "2 ", "3 "], stands_still_after=3)
    world, task = handed_over(streaming(model))
    assert text(task) == "Title. one 2 3 The end."
    (anew,) = [chunk for chunk in chunks(world, task)[1:] if not chunk[1]]
    assert anew == ("Title. one ", False, "think"), "one event restores it, the others append"


LESS: dict[str, tuple[list[str], str]] = {
    "less": (["one "], "Title. one The end."),
    "nothing": ([], "Title. The end."),
    "across the end of what was said": (["one two three four "], "Title. one two three four The end."),
}


@pytest.mark.parametrize("case", LESS)
def test_rule_07_a_step_that_says_otherwise_leaves_what_it_said_last(case: str) -> None:
    again, whole = LESS[case]
    _, task = handed_over(streaming(Model(["one ", "two ", "three "], again, stands_still_after=3)))
    assert text(task) == whole


def test_rule_07_a_step_that_begins_its_artifact_and_says_something_else_begins_it_again() -> None:
    model = Model(["one ", "two "], ["1 ", "2 "], stands_still_after=2)

    async def work(task: TaskContext) -> None:
        await task.step("think", partial(model.stream, task))
        await task.emit("a.txt", "The end.", append=True, last=True)

    _, task = handed_over(work)
    assert text(task) == "1 2 The end."


def test_rule_07_a_draft_and_a_final_text_of_one_step_come_to_the_final_text() -> None:
    tries: list[int] = []

    async def write(task: TaskContext) -> None:
        tries.append(1)
        await task.emit("a.txt", f"Draft {len(tries)}.")
        await task.emit("a.txt", f"Text {len(tries)}. ")
        await asyncio.sleep(3600 if len(tries) == 1 else 0)

    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", "Title. ")
        await task.step("write", partial(write, task))
        await task.emit("a.txt", "The end.", append=True, last=True)

    _, task = handed_over(work)
    assert text(task) == "Text 2. The end."


def test_rule_07_a_last_chunk_that_only_the_second_try_reached_is_told() -> None:
    async def write(task: TaskContext) -> None:
        tries.append(1)
        await task.emit("a.txt", "one")
        await asyncio.sleep(3600 if len(tries) == 1 else 0)
        await task.emit("a.txt", "", append=True, last=True)

    async def work(task: TaskContext) -> None:
        await task.step("write", partial(write, task))

    tries: list[int] = []
    world, task = handed_over(work)
    events = [event for event in world.events(task.id) if isinstance(event, ArtifactEvent)]
    assert (text(task), events[-1].last_chunk) == ("one", True)


@pytest.mark.parametrize("draft_is_last", [False, True])
@pytest.mark.parametrize("flags", [[], [False], [True], [False, True], [True, False]])
def test_rule_07_an_artifact_without_the_draft_of_an_interrupted_try_has_the_flags_of_what_is_left(
    flags: list[bool],
    draft_is_last: bool,  # noqa: FBT001
) -> None:
    tries: list[int] = []

    async def draft(task: TaskContext) -> None:
        tries.append(1)
        if len(tries) == 1:
            await task.emit("a.txt", "draft", append=True, last=draft_is_last)
            await asyncio.sleep(3600)

    async def work(task: TaskContext) -> None:
        for number, last in enumerate(flags):
            await task.emit("a.txt", f"{number} ", append=True, last=last)
            await asyncio.sleep(0.3)  # each chunk is an event of its own
        await task.step("think", partial(draft, task))

    world, task = handed_over(work)
    events = [event for event in world.events(task.id) if isinstance(event, ArtifactEvent)]
    assert len(events) == len(flags) + 2
    left = "".join(f"{number} " for number in range(len(flags)))
    assert (events[-1].append, events[-1].last_chunk, text(task)) == (False, [False, *flags][-1], left)


def test_rule_07_steps_that_stream_side_by_side_each_mend_their_own_artifact() -> None:
    models = [
        Model(["one ", "two ", "three "], ["one ", "2 ", "3 "], stands_still_after=3, name="a.txt"),
        Model(["uno ", "due ", "tre "], stands_still_after=2, name="b.txt"),
        Model(["eins "], [], stands_still_after=1, name="c.txt"),
    ]

    async def work(task: TaskContext) -> None:
        await asyncio.gather(*(task.step(model.name, partial(model.stream, task)) for model in models))
        for model in models:
            await task.emit(model.name, "end.", append=True, last=True)

    _, task = handed_over(work)
    assert [text(task, model.name) for model in models] == ["one 2 3 end.", "uno due tre end.", "end."]


SECOND_TRIES: dict[str, tuple[str, bool, str]] = {
    "the same": ("broken. ", True, "broken. Helped out. The end."),
    "something else": ("failed. ", True, "broken. Helped out. The end."),
    "something else before one that begins anew": ("failed. ", False, "Helped out. The end."),
}


@pytest.mark.parametrize("case", SECOND_TRIES)
def test_a_step_that_failed_in_an_earlier_run_does_not_say(case: str) -> None:
    """Its error is raised again without the step."""
    again, append, whole = SECOND_TRIES[case]
    runs: list[int] = []

    async def first(task: TaskContext) -> None:
        for word in ("broken. " if len(runs) == 1 else again).split():
            await task.emit("a.txt", f"{word} ", append=True)
        raise OSError

    async def second(task: TaskContext) -> None:
        await task.emit("a.txt", "Helped out. ", append=append)

    async def work(task: TaskContext) -> None:
        runs.append(1)
        try:
            await task.step("first", partial(first, task))
        except OSError:
            await task.step("second", partial(second, task))
        await asyncio.sleep(3600 if len(runs) == 1 else 0)
        await task.emit("a.txt", "The end.", append=True, last=True)

    _, task = handed_over(work)
    assert text(task) == whole


# ---- Deaths


def played(work: Work, faults: Any = None) -> tuple[World, Task]:
    world = World([agent_of(work)], faults=faults or NoFaults())
    task = world.send("hello", push=False)
    world.settle()
    return world, world.client(lambda: world.get(task.id))


def other_words_each_time() -> Work:
    tries: list[int] = []

    async def stream(task: TaskContext) -> str:
        tries.append(1)
        for word in ("same ", f"{len(tries)} ", f"{len(tries)} "):
            await task.emit("a.txt", word, append=True)
            await asyncio.sleep(0.3)
        return f"{len(tries)} "

    async def work(task: TaskContext) -> str:
        await task.emit("a.txt", "Title. ")
        said = ""
        for name in ("first", "second"):
            said += f"same {2 * await task.step(name, partial(stream, task))}"
        await task.emit("a.txt", "The end.", append=True, last=True)
        return f"Title. {said}The end."

    return work


def calls_of_the_run() -> range:
    count = Count()
    played(other_words_each_time(), count)
    return range(3, len(count.calls))


@pytest.mark.parametrize("late", [False, True], ids=["before the call", "after it took effect"])
@pytest.mark.parametrize("what", [die, fail])
def test_rule_07_the_artifact_has_the_chunks_of_the_stored_steps_after_a_fault_at_any_call(
    what: Callable[[], None],
    late: bool,  # noqa: FBT001
) -> None:
    for number in calls_of_the_run():
        _, task = played(other_words_each_time(), At(number, late=late, what=what))
        assert (task.status.state, text(task)) == (TaskState.COMPLETED, last_word(task)), number


def test_rule_07_two_deaths_one_after_the_other_leave_what_the_stored_steps_said() -> None:
    numbers = calls_of_the_run()
    for first in numbers[::3]:
        for second in range(first + 1, first + 12):
            _, task = played(other_words_each_time(), At(first, second, late=False, what=die))
            assert (task.status.state, text(task)) == (TaskState.COMPLETED, last_word(task)), (first, second)


@pytest.mark.parametrize(("second_run_ms", "tried"), [(900_000, 2), (50_000, 3)], ids=["is done", "is broken off"])
def test_rule_06_a_result_that_an_overtaken_run_stores_late_is_refused(second_run_ms: int, tried: int) -> None:
    """The first run has said everything and stands still before it stores; the second says something else meanwhile."""
    tries: list[int] = []

    async def stream(task: TaskContext) -> str:
        tries.append(1)
        said = [f"{len(tries)}a ", f"{len(tries)}b ", f"{len(tries)}c "]
        for word in said:
            await task.emit("a.txt", word, append=True)
            await asyncio.sleep(0.3 if len(tries) == 1 else 15)
        return "".join(said)

    async def work(task: TaskContext) -> str:
        await task.emit("a.txt", "Title. ")
        said = await task.step("think", partial(stream, task))
        await task.emit("a.txt", "The end.", append=True, last=True)
        return f"Title. {said}The end."

    faults = At(1, late=False, what=lambda: world.wait(60000), only="table.store_step")
    world, key = world_with_task(work, faults=faults)
    world.queue.clear()
    world.together(world.worker(key), world.later(40_000, world.worker(key, time_ms=second_run_ms)))
    world.settle()
    task = world.get(key.task)
    words = f"Title. {tried}a {tried}b {tried}c The end."
    assert (task.status.state, last_word(task), text(task), len(tries)) == (TaskState.COMPLETED, words, words, tried)


# ---- What is refused


def test_rule_07_two_steps_that_emit_one_artifact_at_the_same_time_fail_the_task_and_say_so() -> None:
    models = [Model(["one ", "two "]), Model(["uno ", "due "])]

    async def work(task: TaskContext) -> None:
        await asyncio.gather(*(task.step(f"step {n}", partial(model.stream, task)) for n, model in enumerate(models)))

    _, task = played(work)
    assert task.status.state is TaskState.FAILED
    assert last_word(task) == (
        "One artifact is emitted at the same time by the step 'step 0' and the step 'step 1'."
        " Give each an artifact of its own."
    )


def test_steps_that_follow_each_other_may_emit_one_artifact() -> None:
    models = [Model(["one "]), Model(["two "])]

    async def work(task: TaskContext) -> None:
        for number, model in enumerate(models):
            await task.step(f"step {number}", partial(model.stream, task))
            await task.emit("a.txt", "and ", append=True)

    _, task = played(work)
    assert text(task) == "one and two and "


def test_a_step_within_a_step_that_emits_fails_the_task_and_says_so() -> None:
    model = Model(["one "])

    async def outer(task: TaskContext) -> None:
        await task.step("inner", partial(model.stream, task))

    async def work(task: TaskContext) -> None:
        await task.step("outer", partial(outer, task))

    _, task = played(work)
    expected = "The step 'inner' is a part of another step, so it cannot emit. Emit in the outer one."
    assert (task.status.state, last_word(task)) == (TaskState.FAILED, expected)


def test_an_asyncio_task_of_a_step_cannot_emit_after_the_step() -> None:
    left: list[asyncio.Task[None]] = []

    async def leave(task: TaskContext) -> None:
        async def later() -> None:
            await asyncio.sleep(A_WHILE)
            await task.emit("a.txt", "late")

        left.append(asyncio.create_task(later()))

    async def work(task: TaskContext) -> None:
        await task.step("leave", partial(leave, task))
        await left[0]

    _, task = played(work)
    expected = "'leave' is over, and an asyncio task that was started in it goes on. Await it in there."
    assert (task.status.state, last_word(task)) == (TaskState.FAILED, expected)


# ---- A step that does not fit into a run


def test_a_step_that_needs_longer_than_a_run_fails_the_task_after_three_runs_and_says_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tries: list[int] = []

    async def train() -> None:
        tries.append(1)
        await asyncio.sleep(3600)

    async def work(task: TaskContext) -> None:
        await task.step("train", train)

    _, task = played(work)
    assert (task.status.state, len(tries)) == (TaskState.FAILED, 3)
    assert last_word(task) == (
        "The step 'train' did not finish within one run, 3 times. It had at most 14.7 minutes."
        " Split it into smaller steps, or submit the work to another system and wait for its webhook with"
        " task.callback."
    )
    (line,) = [vars(record) for record in caplog.records if record.msg == "task failed"]
    assert (line["error"], line["step"]) == ("StepTimedOut", "train")


def test_a_step_that_waits_while_others_are_done_may_take_many_runs() -> None:
    one_at_a_time = asyncio.Semaphore(1)

    async def slow(number: int) -> int:
        async with one_at_a_time:
            await asyncio.sleep(800)
        return number

    async def work(task: TaskContext) -> str:
        nonlocal one_at_a_time
        one_at_a_time = asyncio.Semaphore(1)
        return str(sum(await asyncio.gather(*(task.step(f"slow {number}", slow, number) for number in range(6)))))

    _, task = played(work)
    assert (task.status.state, last_word(task)) == (TaskState.COMPLETED, "15")
