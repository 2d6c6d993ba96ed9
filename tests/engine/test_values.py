"""The values that agents keep: over runs, over the tasks of a conversation, and when runs die."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import KeyValueStore, Step, StoredValue, VersionConflict
from a2a_serverless.domain.values import KEY_LIMIT, SIZE_LIMIT, dump_value
from a2a_serverless.engine.framework_task import framework_task
from a2a_serverless.protocol.strict_json import STORED
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of
from tests.faults.plans import At, Broken, Count, die, fail
from tests.simulated import Killed
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Task

Work = Callable[["TaskContext"], Awaitable[Any]]
NAMES = ["store", "conversation"]


def played(work: Work, faults: Any = None) -> tuple[World, Task]:
    world = World([agent_of(work)], faults)
    task = world.send("hello", push=False)
    world.settle()
    return world, world.client(lambda: world.get(task.id))


def last_word(task: Task) -> str:
    assert task.status.message
    return task.status.message.text()


def values(task: TaskContext, name: str) -> KeyValueStore:
    found: KeyValueStore = getattr(task, name)
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [None, 1, "ü", {"a": [1.5, True]}, b"", b"\x00\xff", "\ud800"])
def test_a_value_comes_back_as_it_was(name: str, value: Any) -> None:
    got: list[StoredValue | None] = []

    async def work(task: TaskContext) -> None:
        version = await values(task, name).put("a/b", value)
        got.append(await values(task, name).get("a/b"))
        got.append(StoredValue("a/b", value, version))
        await values(task, name).delete("a/b")
        got.append(await values(task, name).get("a/b"))

    assert played(work)[1].status.state == "completed"
    assert got[0] == got[1]
    assert got[2] is None


def in_two_runs(work: Work) -> list[object]:
    """What the work returns in its first run, which then waits for an answer, and in the next one."""
    runs: list[object] = []

    async def ask(task: TaskContext) -> str:
        runs.append(await work(task))
        await task.ask("Go on?")
        return "done"

    harness = AgentTestHarness(agent_of(ask), replay=False)  # there are two runs
    first = harness.send("go")
    assert harness.send("yes", task_id=first.task.id).state == "completed"
    assert len(runs) == 2
    return runs


@pytest.mark.parametrize("name", NAMES)
def test_rule_07_a_later_run_gets_the_values_that_the_first_run_got_and_writes_nothing(name: str) -> None:
    async def count(task: TaskContext) -> object:
        kept: Any = values(task, name)
        seen: list[object] = []
        for _ in range(3):
            found = await kept.get("n")
            seen.append((found.value, found.version) if found else None)
            seen.append(await kept.put("n", found.value + 1 if found else 1))
            seen.append([one.value for one in await kept.list()])
        await kept.delete("n")
        seen.append(await kept.get("n"))
        return seen

    first, second = in_two_runs(count)
    assert first == second


def test_equal_writes_have_versions_of_their_own_in_each_run() -> None:
    async def write(task: TaskContext) -> list[object]:
        versions = [await task.store.put("a", 1)]
        await task.store.delete("a")
        await task.ask("Go on?")
        versions.append(await task.store.put("a", 1))
        await task.store.delete("a")
        return [*versions, await task.store.put("a", 1)]

    runs: list[list[object]] = []

    async def work(task: TaskContext) -> str:
        runs.append(await write(task))
        return "done"

    for replay in (False, True):
        harness = AgentTestHarness(agent_of(work), replay=replay)
        asked = harness.send("go")
        assert harness.send("yes", task_id=asked.task.id).state == "completed"
        assert len({*runs[-1]}) == 3


KEYS = ["a", "a#2", "a#2#2", "@a", "a > b", "a>b", "a*", "a%23", "x" * 400, "x" * 401]


@pytest.mark.parametrize("name", NAMES)
def test_rule_07_each_key_is_one_of_its_own_whatever_characters_it_has(name: str) -> None:
    async def work(task: TaskContext) -> list[object]:
        kept = values(task, name)
        for key in KEYS:
            await kept.put(key, key)
        found = [await kept.get(key) for _ in range(3) for key in KEYS]
        lists = [[one.key for one in await kept.list(prefix)] for prefix in ("a*", "a", "")]
        return [[one and one.value for one in found], lists]

    first, second = in_two_runs(work)
    assert first == second == [KEYS * 3, [["a*"], sorted(KEYS[:3] + KEYS[4:8]), sorted(KEYS)]]


async def progress(task: TaskContext) -> list[object]:
    """Two branches, which write the same key in turn and read it."""

    async def branch(number: int) -> list[object]:
        seen: list[object] = []
        for at in range(3):
            await task.store.put("progress", [number, at])
            await task.step(f"{number} {at}", asyncio.sleep, 0)
            found = await task.store.get("progress")
            seen.append(found and found.value)
        return seen

    return [*await asyncio.gather(branch(1), branch(2))]


def test_rule_07_branches_that_write_one_key_read_the_same_in_each_run() -> None:
    first, second = in_two_runs(progress)
    assert first == second
    assert AgentTestHarness(agent_of(progress_and_end)).send("go").state == "completed"


async def progress_and_end(task: TaskContext) -> None:
    await progress(task)


def test_rule_07_a_write_that_was_refused_is_refused_in_each_run() -> None:
    async def claim(task: TaskContext) -> str:
        await task.conversation.put("owner", "somebody", version="")
        try:
            await task.conversation.put("owner", task.id, version="")
        except VersionConflict as conflict:
            await task.conversation.delete("owner")
            return str(conflict)
        return "claimed"

    first, second = in_two_runs(claim)
    assert first == second == "The value 'owner' has been changed meanwhile: read it again."


@pytest.mark.parametrize("writes", [1, 20])
def test_a_write_of_an_earlier_run_is_not_repeated_over_those_of_others(writes: int) -> None:
    async def work(task: TaskContext) -> str:
        if task.text() != "mine":
            await task.conversation.put("plan", task.text())
            return "written"
        await task.conversation.put("plan", "mine")
        await task.ask("Go on?")
        return await task.step("look", partial(look, task))

    async def look(task: TaskContext) -> str:
        found = await task.conversation.get("plan")
        return str(found and found.value)

    harness = AgentTestHarness(agent_of(work))
    mine = harness.send("mine").task
    for number in range(writes):
        harness.send(f"write {number}", context_id=mine.context_id)
    assert harness.send("yes", task_id=mine.id).said == f"write {writes - 1}"


def test_the_work_of_a_step_reads_the_values_of_now() -> None:
    async def read(task: TaskContext) -> object:
        found = await task.store.get("n")
        return found and found.value

    async def work(task: TaskContext) -> str:
        before = [await read(task), await task.step("read", partial(read, task))]
        await task.store.put("n", 1)
        return str([*before, await task.step("read again", partial(read, task))])

    assert AgentTestHarness(agent_of(work)).send("go").said == "[None, None, 1]"


def test_a_framework_gets_the_values_of_now_in_each_run() -> None:
    async def count(task: TaskContext) -> object:
        kept = framework_task(task).store
        found = await kept.get("n")
        await kept.put("n", found.value + 1 if found else 1)  # type: ignore[operator]
        return found and found.value

    assert in_two_runs(count) == [None, 1]


def test_tasks_of_a_conversation_share_its_values_and_each_has_its_own() -> None:
    async def work(task: TaskContext) -> str:
        before = await task.conversation.get("history")
        history = [*(before.value if before else []), task.text()]  # type: ignore[misc]
        await task.conversation.put("history", history, version=before.version if before else "")
        own = [one.key for one in await task.store.list()]
        await task.store.put("own", 1)
        return f"{history} {own}"

    world = World([agent_of(work)])
    first = world.send("one", push=False)
    world.settle()
    again = world.send("two", context_id=first.context_id, push=False)
    other = world.send("three", push=False)
    world.settle()
    assert last_word(world.get(again.id)) == "['one', 'two'] []"
    assert last_word(world.get(other.id)) == "['three'] []"


def test_of_two_tasks_that_replace_one_version_the_second_reads_again() -> None:
    tries: list[int] = []

    async def add(values: KeyValueStore, what: str) -> None:
        while True:
            tries.append(1)
            found = await values.get("list")
            old: Any = found.value if found else []
            await asyncio.sleep(0.1)
            try:
                await values.put("list", [*old, what], version=found.version if found else "")
            except VersionConflict:
                continue
            return

    async def work(task: TaskContext) -> str:
        await asyncio.gather(add(task.conversation, "a"), add(task.conversation, "b"))
        found = await task.conversation.get("list")
        return str(found and found.value)

    assert last_word(played(work)[1]) == "['a', 'b']"
    assert len(tries) == 3


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


BAD: dict[str, tuple[str, Any]] = {
    "no key": ("", 1),
    "a long key": ("x" * (KEY_LIMIT + 1), 1),
    "a long encoded key": ("ü" * (KEY_LIMIT // 3), 1),
    "NaN": ("key", float("nan")),
    "an object": ("key", object()),
    "an integer that no reader reads": ("key", [10**4300]),
    "too many levels": ("key", nested(STORED.depth)),
    "levels without end": ("key", nested(100_000)),
    "half a character": ("\ud800", 1),
    "too much": ("key", "x" * SIZE_LIMIT),
}


@pytest.mark.parametrize("case", BAD)
def test_a_key_or_value_that_cannot_be_stored_is_refused(case: str) -> None:
    async def work(task: TaskContext) -> str:
        try:
            await task.store.put(*BAD[case])
        except (TypeError, ValueError):
            return "refused"
        return "stored"

    assert last_word(played(work)[1]) == "refused"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("act", ["get", "put", "delete", "list"])
@pytest.mark.parametrize("key", ["", "x" * (KEY_LIMIT + 1), "a\ud800"], ids=["none", "long", "half"])
def test_a_key_that_cannot_be_stored_is_an_error_of_each_act_and_the_agent_goes_on(
    name: str, act: str, key: str
) -> None:
    async def work(task: TaskContext) -> str:
        store = values(task, name)
        acts: dict[str, Callable[[], Awaitable[object]]] = {
            "get": lambda: store.get(key),
            "put": lambda: store.put(key, 1),
            "delete": lambda: store.delete(key),
            "list": lambda: store.list(key or "x" * (KEY_LIMIT + 1)),
        }
        with pytest.raises(ValueError, match="1 to 512 characters, percent-encoded, and no lone surrogate"):
            await acts[act]()
        return "done"

    assert last_word(played(work)[1]) == "done"


def test_the_largest_value_is_stored_outside_the_table() -> None:
    largest = "x" * (SIZE_LIMIT - len(dump_value("")))

    async def work(task: TaskContext) -> str:
        await task.store.put("key", largest)
        found = await task.store.get("key")
        return str(found is not None and found.value == largest)

    assert last_word(played(work)[1]) == "True"


async def counting(task: TaskContext) -> str:
    for number in range(3):
        await task.store.put(str(number), number)
    await task.store.delete("0")
    await task.conversation.put("done", task.text())
    listed = [(one.key, one.value) for one in await task.store.list()]
    shared = [one.value for one in await task.conversation.list()]
    return f"{listed} {shared}"


def calls_of_the_run() -> range:
    """The numbers of the calls of a run that nothing disturbs; the first two are those of the send."""
    count = Count()
    played(counting, count)
    return range(3, len(count.calls))


@pytest.mark.parametrize("late", [False, True], ids=["before the call", "after it took effect"])
@pytest.mark.parametrize("what", [die, fail])
def test_rule_06_the_values_are_those_of_an_undisturbed_run_after_a_fault_at_any_call(
    what: Callable[[], None],
    late: bool,  # noqa: FBT001
) -> None:
    for number in calls_of_the_run():
        _, task = played(counting, At(number, late=late, what=what))
        assert last_word(task) == "[('1', 1), ('2', 2)] ['hello']", number


def test_a_put_outside_of_steps_is_two_writes_the_value_and_its_record() -> None:
    async def one(task: TaskContext) -> None:
        await task.store.put("key", 1)

    async def nothing(_: TaskContext) -> None:
        pass

    def calls(work: Work) -> list[str]:
        faults = Count()
        played(work, faults)
        return faults.calls

    more, less = calls(one), calls(nothing)
    assert len(more) == len(less) + 2
    assert more.count("table.put_value") == 1


@pytest.mark.parametrize(("limit", "listed"), [(0, []), (1, ["b"]), (2, ["b", "c"]), (3, ["b", "c"])])
def test_a_list_has_at_most_as_many_values_as_its_limit_and_is_one_call_of_the_store(
    limit: int, listed: list[str]
) -> None:
    async def work(task: TaskContext) -> str:
        for key in "abc":
            await task.store.put(key, key)
        return str([one.key for one in await task.store.list(after="a", limit=limit)])

    faults = Count()
    assert last_word(played(work, faults)[1]) == str(listed)
    assert faults.calls.count("table.list_values") == (limit > 0)


async def adding(task: TaskContext) -> str:
    """Adds one to a number: it reads it in a step, and replaces the version that it has read."""

    async def read(key: str) -> list[Any]:
        found = await task.conversation.get(key)
        return [found.value, found.version] if found else [0, ""]

    for key in ("a", "a", "b"):
        number, version = await task.step(Step(f"read {key}", repeat=True), read, key)
        await task.conversation.put(key, number + 1, version=version)
    await task.conversation.delete("b")
    return str([(one.key, one.value) for one in await task.conversation.list()])


@pytest.mark.parametrize("late", [False, True], ids=["before the call", "after it took effect"])
@pytest.mark.parametrize("what", [die, fail])
def test_a_number_is_raised_once_whatever_call_goes_wrong(what: Callable[[], None], late: bool) -> None:  # noqa: FBT001
    count = Count()
    played(adding, count)
    for number in range(3, len(count.calls)):
        _, task = played(adding, At(number, late=late, what=what))
        assert last_word(task) == "[('a', 2)]", number


@pytest.mark.parametrize("what", [die, fail])
def test_a_write_whose_answer_was_lost_does_not_overwrite_what_another_task_wrote_meanwhile(
    what: Callable[[], None],
) -> None:
    async def work(task: TaskContext) -> str:
        if task.text() != "look":
            await task.conversation.put("plan", task.text())
        found = await task.conversation.get("plan")
        return str(found and found.value)

    world = World([agent_of(work)], At(1, late=True, what=what, only="table.put_value"))
    first = world.send("mine", push=False)
    with suppress(Broken, Killed):
        world.run(ME.key(first.id))
    for text in ("theirs", "another's"):
        other = world.send(text, context_id=first.context_id, push=False)
        world.run(ME.key(other.id))
    world.settle()
    assert last_word(world.get(first.id)) == "another's"
    look = world.send("look", context_id=first.context_id, push=False)
    world.settle()
    assert last_word(world.get(look.id)) == "another's"
