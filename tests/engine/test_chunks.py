"""Many small chunks become few events: sooner or later, in order, each once, and the task is the same as ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.events import PART_BYTES, ArtifactEvent, StatusEvent
from a2a_serverless.engine.chunks import DELAY_S, SIZE, ChunkBuffer
from a2a_serverless.protocol.v1 import Artifact, Part, Task, TaskState
from tests.echo import agent_of
from tests.faults.plans import At, Count, NoFaults, die, fail
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.task_context import TaskContext

Work = Callable[["TaskContext"], Awaitable[object]]
DELAY_MS = int(DELAY_S * 1000)


def chunk(
    number: int, text: str = "x", *, append: bool = True, last: bool = False, artifact: str = "a"
) -> ArtifactEvent:
    emitted = Artifact(artifact_id=artifact, parts=(Part(text=text),), name="a.txt")
    return ArtifactEvent(0, 0, "", emitted, append, last, (number, number))


def filled(*chunks: ArtifactEvent) -> ChunkBuffer:
    waiting = ChunkBuffer()
    assert all(waiting.add(one) for one in chunks)
    return waiting


async def talk(task: TaskContext, words: range, pause_s: float = 0.06) -> None:
    for word in words:
        await task.emit("talk.txt", f"{word} ", append=True, last=word == LAST)
        await asyncio.sleep(pause_s)


FIRST_HALF, SECOND_HALF = range(12), range(12, 24)
LAST = 23


async def chatty(task: TaskContext) -> str:
    """Speaks, thinks, speaks again."""
    await talk(task, FIRST_HALF)
    await task.step("think", asyncio.sleep, 0.1)
    await talk(task, SECOND_HALF)
    return "That is all."


def played(work: Work, faults: Any = None) -> tuple[World, Task]:
    world = World([agent_of(work)], faults=faults or NoFaults())
    task = world.send("hello", push=False)
    world.settle()
    return world, world.get(task.id)


def chunks_of(world: World, task: Task) -> list[ArtifactEvent]:
    return [event for event in world.events(task.id) if isinstance(event, ArtifactEvent)]


def said(task: Task) -> list[Any]:
    return [part.value for artifact in task.artifacts for part in artifact.parts]


# ---- Which chunks become one


def test_chunks_of_an_artifact_become_one_text_with_their_range() -> None:
    waiting = filled(chunk(3, "one ", append=False), chunk(4, "two "), chunk(5, "three", last=True))
    whole = Artifact(artifact_id="a", parts=(Part(text="one two three"),), name="a.txt")
    assert waiting.take() == [ArtifactEvent(0, 0, "", whole, append=False, last_chunk=True, emits=(3, 5))]
    assert waiting.take() == []


BOLD = Part(text="b", media_type="text/markdown")
DATA = Part(data={"n": 1})


@pytest.mark.parametrize(
    ("chunks", "parts"),
    [
        ([[Part(text="a")], [Part(text="b")], [Part(text="")], [Part(text="c")]], [Part(text="abc")]),
        (
            [[Part(text="a"), Part(text="b")], [Part(text="c"), Part(text="d")]],
            [Part(text=x) for x in ("a", "bc", "d")],
        ),
        (
            [[Part(text="a")], [BOLD], [BOLD], [DATA], [DATA]],
            [Part(text="a"), BOLD.with_content(text="bb"), DATA, DATA],
        ),
        ([[Part(text="a", metadata={"n": 1})], [Part(text="b")]], [Part(text="a", metadata={"n": 1}), Part(text="b")]),
        ([[Part(text="a", filename="a")], [Part(text="b")]], [Part(text="a", filename="a"), Part(text="b")]),
        ([[Part(url="https://example.com/a")]] * 2, [Part(url="https://example.com/a")] * 2),
    ],
    ids=["texts", "texts of one chunk stay apart", "media types", "metadata", "file names", "files"],
)
def test_a_text_continues_the_one_before_it_in_one_event_and_over_events(
    chunks: list[list[Part]], parts: list[Part]
) -> None:
    async def at_once(task: TaskContext) -> None:
        for content in chunks:
            await task.emit("a", content, append=True)

    async def one_by_one(task: TaskContext) -> None:
        for content in chunks:
            await task.emit("a", content, append=True)
            await asyncio.sleep(1)

    world, task = played(at_once)
    assert [list(event.artifact.parts) for event in chunks_of(world, task)] == [parts]
    world, slow = played(one_by_one)
    assert [list(event.artifact.parts) for event in chunks_of(world, slow)] == chunks
    assert [list(one.artifacts[0].parts) for one in (task, slow)] == [parts, parts]


def test_chunks_of_several_artifacts_wait_side_by_side_in_the_order_in_which_they_began() -> None:
    waiting = filled(chunk(1, artifact="a"), chunk(1, artifact="b"), chunk(2, artifact="a"), chunk(2, artifact="b"))
    assert [(one.artifact.artifact_id, one.emits) for one in waiting.take()] == [("a", (1, 2)), ("b", (1, 2))]


described = chunk(2)._replace(
    artifact=Artifact(artifact_id="a", parts=(Part(text="x"),), name="a.txt", description="in other words")
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (chunk(1), chunk(2, append=False)),
        (chunk(1, last=True), chunk(2)),
        (chunk(1), described),
        (chunk(1), chunk(2)._replace(step="think")),
    ],
    ids=[
        "it begins the artifact anew",
        "the last one has been",
        "it describes the artifact otherwise",
        "another step has emitted it",
    ],
)
def test_the_buffer_does_not_join_a_chunk_with_the_next_when(before: ArtifactEvent, after: ArtifactEvent) -> None:
    waiting = filled(before)
    assert not waiting.add(after)
    assert waiting.take() == [before]


def test_a_buffer_of_chunks_is_full_at_sixteen_kilobytes_of_utf_8() -> None:
    waiting = filled(chunk(1, "水" * ((SIZE - PART_BYTES) // 3 - 1)))
    assert not waiting.is_full
    waiting.add(chunk(2, "水"))
    assert waiting.is_full
    waiting.take()
    assert not waiting.is_full


def test_a_buffer_of_chunks_is_full_at_the_last_byte_after_each_take() -> None:
    waiting = ChunkBuffer()
    for _ in range(2):
        waiting.add(chunk(1, "x" * (SIZE - PART_BYTES - 1)))
        assert not waiting.is_full
        waiting.take()
    waiting.add(chunk(2, "x" * (SIZE - PART_BYTES)))
    assert waiting.is_full


# ---- When they are written


def test_a_thousand_chunks_in_ten_seconds_take_sixty_writes_at_most_and_nothing_is_lost() -> None:
    async def work(task: TaskContext) -> None:
        for number in range(1000):
            await task.emit("talk.txt", f"word {number} ", append=True)
            await asyncio.sleep(0.01)

    count = Count(frozenset({"table"}))
    world, task = played(work, count)
    calls = [call for call in count.calls if call in {"table.append", "table.append_chunk", "table.update_head"}]
    assert len(calls) <= 60
    assert said(task) == ["".join(f"word {number} " for number in range(1000))]
    ranges = [event.emits for event in chunks_of(world, task)]
    assert [first for first, _ in ranges] == [1, *(last + 1 for _, last in ranges[:-1])]


@pytest.mark.requirement(8)
def test_a_chunk_is_in_the_log_a_quarter_of_a_second_later_whatever_the_agent_does() -> None:
    seen: list[int] = []

    async def work(task: TaskContext) -> None:
        await task.emit("talk.txt", "at once")
        for _ in range(10):
            seen.append(len(chunks_of(world, sent)))
            await asyncio.sleep(DELAY_S / 2)

    world = World([agent_of(work)])
    sent = world.send("hello", push=False)
    world.settle()
    assert seen == [0, 0, *[1] * 8]


def test_big_chunks_do_not_wait() -> None:
    async def work(task: TaskContext) -> None:
        for number in range(4):
            await task.emit("big.txt", str(number) * SIZE, append=True)
            assert len(chunks_of(world, sent)) == number + 1

    world = World([agent_of(work)])
    sent = world.send("hello", push=False)
    world.settle()
    assert world.get(sent.id).status.state is TaskState.COMPLETED


NEXT: dict[str, Work] = {
    "a step": lambda task: task.step("look", asyncio.sleep, 0.1),
    "progress": lambda task: task.report_progress("on"),
    "a question": lambda task: task.ask("Which?"),
    "the end": lambda task: asyncio.sleep(0, task),
}


@pytest.mark.parametrize("then", NEXT)
def test_chunks_of_an_agent_are_in_the_log_before_its_next_act(then: str) -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", "one ", append=True)
        await task.emit("a.txt", "two ", append=True)
        await NEXT[then](task)

    world, task = played(work)
    chunks = chunks_of(world, task)
    assert [(event.n, event.emits) for event in chunks] == [(3, (1, 2))]


def test_a_step_does_not_begin_before_what_was_emitted_is_in_the_log() -> None:
    async def snapshot() -> int:
        return len(chunks_of(world, sent))

    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", "one")
        assert await task.step("look", snapshot) == 1

    world = World([agent_of(work)])
    sent = world.send("hello", push=False)
    world.settle()
    assert world.get(sent.id).status.state is TaskState.COMPLETED


# ---- When something happens meanwhile


def test_an_agent_that_fails_leaves_what_it_emitted_before() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", "one ")
        raise ValueError

    _, task = played(work)
    assert (task.status.state, said(task)) == (TaskState.FAILED, ["one "])


def test_rule_02_chunks_that_wait_when_the_task_is_canceled_are_not_written() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", "one ")
        world.cancel(sent.id)
        await asyncio.sleep(10)

    world = World([agent_of(work)])
    sent = world.send("hello", push=False)
    world.settle()
    task = world.get(sent.id)
    assert (task.status.state, said(task)) == (TaskState.CANCELED, [])


def test_rule_06_chunks_that_wait_in_a_run_without_its_lease_are_written_by_the_next_run_only() -> None:
    stood: list[int] = []

    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", "one ", append=True)
        if not stood:
            stood.append(1)
            world.elsewhere(300_000)
        await asyncio.sleep(1)
        await task.emit("a.txt", "two", append=True)

    world = World([agent_of(work)])
    key = ME.key(world.send("hello", push=False).id)
    world.queue.clear()
    world.survives(lambda: world.run(key))
    world.settle()
    task = world.get(key.task)
    assert (task.status.state, said(task)) == (TaskState.COMPLETED, ["one two"])
    assert {event.fence for event in chunks_of(world, task)} == {2}


def calls_of_the_run() -> range:
    """The numbers of all calls but the client's: it makes the task with the first two and reads it with the last."""
    count = Count()
    played(chatty, count)
    assert (count.calls[:2], count.calls[-1]) == (["table.create", "queue.enqueue"], "table.read_task")
    return range(3, len(count.calls))


@pytest.mark.parametrize("late", [False, True], ids=["before the call", "after it took effect"])
@pytest.mark.parametrize("what", [die, fail])
def test_rule_07_every_chunk_is_there_once_after_a_fault_at_any_call(what: Callable[[], None], late: bool) -> None:  # noqa: FBT001
    for number in calls_of_the_run():
        world, task = played(chatty, At(number, late=late, what=what))
        assert task.status.state is TaskState.COMPLETED, number
        assert said(task) == ["".join(f"{word} " for word in (*FIRST_HALF, *SECOND_HALF))], number
        emits = [event.emits for event in chunks_of(world, task)]
        assert [first for first, _ in emits] == [1, *(last + 1 for _, last in emits[:-1])], number


def test_an_agent_that_ends_as_a_write_of_its_chunk_fails_loses_no_chunk() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", "one")
        await asyncio.sleep(DELAY_S)

    world, task = played(work, At(1, late=False, what=die, only="table.append_chunk"))
    assert world.kills == 1
    assert (task.status.state, said(task)) == (TaskState.COMPLETED, ["one"])


def test_rule_02_no_end_is_written_behind_a_chunk_that_failed_at_the_moment_at_which_the_agent_ended() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", "one")
        await asyncio.sleep(DELAY_S)

    world, task = played(work, At(1, late=False, what=fail, only="table.append_chunk"))
    assert (task.status.state, said(task)) == (TaskState.COMPLETED, ["one"])
    assert [type(event) for event in world.events(task.id)[2:]] == [ArtifactEvent, StatusEvent]


def whole(work: Callable[[TaskContext], Awaitable[None]]) -> Agent:
    """An agent whose last chunks are whole artifacts."""
    return replace(agent_of(work), whole_last_chunk=True)


async def tells(task: TaskContext) -> None:
    await task.emit("story.txt", "Once ", append=True, description="A story")
    await task.step("pause", asyncio.sleep, 0)
    await task.emit("story.txt", "upon ", append=True)
    await task.step("rest", asyncio.sleep, 0)
    await task.emit("story.txt", "a time.", append=True, last=True)


def test_with_the_option_the_last_chunk_is_the_whole_artifact_under_the_fields_of_its_first_chunk() -> None:
    world = World([whole(tells)])
    task = world.send("hello", push=False)
    world.settle()
    events = [event for event in world.events(task.id) if isinstance(event, ArtifactEvent)]
    assert [(event.append, event.last_chunk, event.artifact.text()) for event in events] == [
        (False, False, "Once "),
        (True, False, "upon "),
        (False, True, "Once upon a time."),
    ]
    (artifact,) = world.get(task.id).artifacts
    assert (artifact.description, [part.text for part in artifact.parts]) == ("A story", ["Once upon a time."])


def test_rule_07_an_agent_with_the_option_whose_step_is_interrupted_tells_one_whole_story() -> None:
    tries = iter(range(99))

    async def streams(task: TaskContext) -> None:
        async def tell() -> None:
            number = next(tries)
            for word in ("Once ", f"upon {number} "):
                await task.emit("story.txt", word, append=True)
                await asyncio.sleep(1)
            await task.emit("story.txt", "a time.", append=True, last=True)
            await asyncio.sleep(1 if number else 3600)

        await task.emit("story.txt", "# Story\n", append=True)
        await task.step("tell", tell)

    world = World([whole(streams)])
    task = world.send("hello", push=False)
    world.settle()
    (artifact,) = world.get(task.id).artifacts
    assert artifact.text() == "# Story\nOnce upon 1 a time."
    last = [event for event in world.events(task.id) if isinstance(event, ArtifactEvent)][-1]
    assert (last.append, last.last_chunk, last.artifact.text()) == (False, True, artifact.text())


def test_an_artifact_of_one_chunk_is_sent_once() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a.txt", "all", append=True, last=True)

    world = World([whole(work)])
    task = world.send("hello", push=False)
    world.settle()
    assert sum(isinstance(event, ArtifactEvent) for event in world.events(task.id)) == 1
