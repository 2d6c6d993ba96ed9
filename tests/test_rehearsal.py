"""Stored tasks are played against other code: what would happen to them, without doing any of it."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless import TaskContext  # noqa: TC001 - agents have it in their annotations
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless.testing.rehearsal import read_unfinished, sample
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.testing.rehearsal_report import Rehearsal

Work = "Callable[[TaskContext], Awaitable[str]]"

effects: list[str] = []


async def draft(text: str) -> str:
    effects.append(f"draft {text}")
    return f"draft of {text}"


async def mail(text: str) -> str:
    effects.append(f"mail {text}")
    return f"mailed {text}"


async def letter(task: TaskContext) -> str:
    text = await task.step("draft", draft, task.text())
    await task.step("mail", mail, text)
    await task.emit("letter", text)
    name = (await task.ask("Who signs?")).text()
    return f"{text} / {name}"


async def with_a_step_in_front(task: TaskContext) -> str:
    checked = await task.step("check", draft, task.text())
    text = await task.step("draft", draft, task.text())
    await task.step("mail", mail, text)
    await task.emit("letter", text)
    name = (await task.ask("Who signs?")).text()
    return f"{text} / {name} {checked}"


async def with_a_step_behind(task: TaskContext) -> str:
    text = await letter(task)
    return await task.step("file", draft, text)


async def with_a_renamed_step(task: TaskContext) -> str:
    text = await task.step("draft", draft, task.text())
    await task.step("send", mail, text)
    await task.emit("letter", text)
    return (await task.ask("Who signs?")).text()


async def with_other_arguments(task: TaskContext) -> str:
    text = await task.step("draft", draft, f"Dear {task.text()}")
    await task.step("mail", mail, text)
    await task.emit("letter", text)
    return (await task.ask("Who signs?")).text()


async def with_another_question(task: TaskContext) -> str:
    text = await task.step("draft", draft, task.text())
    await task.step("mail", mail, text)
    await task.emit("letter", text)
    return (await task.ask("Who signs this?")).text()


async def without_a_step(task: TaskContext) -> str:
    text = await task.step("draft", draft, task.text())
    await task.emit("letter", text)
    return (await task.ask("Who signs?")).text()


async def with_a_bug(task: TaskContext) -> str:
    text = await task.step("draft", draft, task.text())
    raise KeyError(text)


async def with_a_sleep_in_front_of_the_question(task: TaskContext) -> str:
    text = await task.step("draft", draft, task.text())
    await task.step("mail", mail, text)
    await task.emit("letter", text)
    await task.sleep("cool down", 60)
    return (await task.ask("Who signs?")).text()


async def with_an_emit_in_front_of_the_question(task: TaskContext) -> str:
    text = await task.step("draft", draft, task.text())
    await task.step("mail", mail, text)
    await task.emit("letter", text)
    await task.emit("summary", "short")
    return (await task.ask("Who signs?")).text()


async def with_a_scope(task: TaskContext) -> str:
    text = await task.step("draft", draft, task.text())
    with task.scope("post"):
        await task.step("mail", mail, text)
    await task.emit("letter", text)
    return (await task.ask("Who signs?")).text()


async def with_arguments_of_a_new_step(task: TaskContext) -> str:
    checked = await task.step("check", draft, task.text())
    text = await task.step("draft", draft, checked)
    await task.step("mail", mail, text)
    await task.emit("letter", text)
    return (await task.ask("Who signs?")).text()


async def with_a_branch_on_a_new_step(task: TaskContext) -> str:
    if await task.step("is polite", draft, task.text()) == "yes":
        return "no letter"
    return await letter(task)


async def with_steps_at_once(task: TaskContext) -> str:
    _, text = await asyncio.gather(task.step("check", draft, "all"), task.step("draft", draft, task.text()))
    await task.step("mail", mail, text)
    await task.emit("letter", text)
    return (await task.ask("Who signs?")).text()


async def with_a_step_moved_behind_the_question(task: TaskContext) -> str:
    text = await task.step("draft", draft, task.text())
    await task.emit("letter", text)
    name = (await task.ask("Who signs?")).text()
    return await task.step("mail", mail, text) + name


async def with_a_file(task: TaskContext) -> str:
    await task.step("draft", draft, task.text())
    with open("/tmp/must-not-exist-of-a-rehearsal", "w") as file:  # noqa: ASYNC230, PTH123, S108
        file.write("x")
    return await letter(task)


CHANGES: Final[dict[Any, tuple[str, str]]] = {
    letter: ("fits", ""),
    with_a_step_in_front: ("fits", ""),
    with_a_step_behind: ("fits", ""),
    with_steps_at_once: ("fits", ""),
    with_a_step_moved_behind_the_question: ("fits", ""),
    with_a_renamed_step: ("again", "another name"),
    with_a_scope: ("again", "another name"),
    with_another_question: ("again", "another text"),
    with_a_sleep_in_front_of_the_question: ("fits", "a new sleep in front of the open question"),
    with_an_emit_in_front_of_the_question: ("fits", "a new emit in front of the open question"),
    with_other_arguments: ("fails", "the arguments of a stored step have changed"),
    with_a_bug: ("fails", "KeyError"),
    with_arguments_of_a_new_step: ("fails", "come from a new step"),
    without_a_step: ("dropped", "is not used"),
    with_a_branch_on_a_new_step: ("unseen", "decides by the result of a new step"),
    with_a_file: ("unseen", "an effect, which was refused: open"),
}


@pytest.mark.parametrize("size", [1, 200], ids=["short names", "long names"])
def test_unchanged_code_fits_with_acts_in_steps_that_have_ended_or_lost_a_race(size: int) -> None:
    async def work(task: TaskContext) -> str:
        async def race(name: str, seconds: int) -> None:
            await task.step("i" * size, draft, name)
            await asyncio.sleep(seconds)

        with task.scope("scope" * (size // 5 + 1)):
            ways = [task.step(name * size, race, name, seconds) for name, seconds in (("a", 1), ("b", 60))]
            _, losers = await asyncio.wait(list(map(asyncio.ensure_future, ways)), return_when=asyncio.FIRST_COMPLETED)
            for loser in losers:
                loser.cancel()
        return (await task.ask("Go on?")).text()

    harness = AgentTestHarness(agent_of(work))
    harness.send("go", until_question=True)
    assert [rehearsal.verdict for rehearsal in harness.rehearse()] == ["fits"]


async def reminding(task: TaskContext) -> str:
    await task.step("draft", draft, task.text())
    return (await task.ask("Who signs?", remind_s=3600)).text()


async def with_another_reminder(task: TaskContext) -> str:
    await task.step("draft", draft, task.text())
    return (await task.ask("Who signs?", remind_s=7200)).text()


async def sleeping(task: TaskContext) -> str:
    await task.step("draft", draft, task.text())
    await task.sleep("a while", 3600)
    return await task.step("mail", mail, "later")


async def with_a_renamed_sleep(task: TaskContext) -> str:
    await task.step("draft", draft, task.text())
    await task.sleep("an hour", 3600)
    return await task.step("mail", mail, "later")


async def without_its_sleep(task: TaskContext) -> str:
    await task.step("draft", draft, task.text())
    return await task.step("mail", mail, "later")


async def receiving(task: TaskContext) -> str:
    done = await task.callback("done")
    await task.step("order", draft, done.url)
    return str((await done.received()).body)


async def with_a_renamed_callback(task: TaskContext) -> str:
    done = await task.callback("paid")
    await task.step("order", draft, done.url)
    return str((await done.received()).body)


async def asking_and_sleeping(task: TaskContext) -> str:
    nap = asyncio.create_task(task.sleep("nap", 600))
    name = (await task.ask("Who signs?")).text()
    await nap
    return name


async def emitting_before_it_asks_and_sleeps(task: TaskContext) -> str:
    await task.emit("summary", "short")
    return await asking_and_sleeping(task)


async def failing(task: TaskContext) -> str:
    try:
        await task.step("draft", raising, task.text())
    except LookupError:
        await task.step("mail", mail, "sorry")
    return (await task.ask("Who signs?")).text()


async def raising(text: str) -> str:
    raise LookupError(text)


async def within_a_step(task: TaskContext) -> str:
    async def work() -> str:
        await task.step("draft", draft, task.text())
        return (await task.ask("Who signs?")).text()

    return await task.step("outer", work)


async def remembering(task: TaskContext) -> str:
    await task.store.put("basket", task.text())
    seen = await task.conversation.get("history")
    await task.conversation.put("history", task.text(), version=seen.version if seen else "")
    return (await task.ask("And now?")).text()


async def with_a_new_value(task: TaskContext) -> str:
    await task.store.put("count", 1)
    return await remembering(task)


async def with_a_renamed_value(task: TaskContext) -> str:
    await task.store.put("cart", task.text())
    await task.conversation.get("history")
    await task.conversation.put("history", task.text(), version="")
    return (await task.ask("And now?")).text()


async def with_a_renamed_value_in_a_scope(task: TaskContext) -> str:
    await task.store.put("basket", task.text())
    with task.scope("past"):
        await task.conversation.get("history")
        await task.conversation.put("history", task.text())
    return (await task.ask("And now?")).text()


async def without_a_value(task: TaskContext) -> str:
    await task.conversation.get("history")
    await task.conversation.put("history", task.text(), version="")
    return (await task.ask("And now?")).text()


async def with_another_value_read(task: TaskContext) -> str:
    await task.store.put("basket", task.text())
    await task.conversation.get("past")
    await task.conversation.put("history", task.text(), version="")
    return (await task.ask("And now?")).text()


async def with_a_value_moved_behind_the_question(task: TaskContext) -> str:
    await task.conversation.get("history")
    await task.conversation.put("history", task.text(), version="")
    name = (await task.ask("And now?")).text()
    await task.store.put("basket", task.text())
    return name


async def with_a_step_in_the_place_of_a_value(task: TaskContext) -> str:
    await task.step("basket", draft, task.text())
    return await without_a_value(task)


OTHERS: Final[list[tuple[Any, Any, str]]] = [
    (reminding, reminding, "fits"),
    (reminding, with_another_reminder, "fits"),
    (sleeping, sleeping, "fits"),
    (sleeping, with_a_renamed_sleep, "again"),
    (sleeping, without_its_sleep, "dropped"),
    (receiving, receiving, "fits"),
    (receiving, with_a_renamed_callback, "fails"),
    (asking_and_sleeping, asking_and_sleeping, "fits"),
    (asking_and_sleeping, emitting_before_it_asks_and_sleeps, "again"),
    (failing, failing, "fits"),
    (within_a_step, within_a_step, "unseen"),
    (remembering, remembering, "fits"),
    (remembering, with_a_new_value, "fits"),
    (remembering, with_a_renamed_value, "again"),
    (remembering, with_a_renamed_value_in_a_scope, "again"),
    (remembering, without_a_value, "dropped"),
    (remembering, with_another_value_read, "dropped"),
    (remembering, with_a_value_moved_behind_the_question, "fits"),
    (remembering, with_a_step_in_the_place_of_a_value, "dropped"),
]


@pytest.mark.parametrize(("old", "new", "verdict"), OTHERS, ids=lambda one: getattr(one, "__name__", one))
def test_each_kind_of_wait_is_compared(old: Any, new: Any, verdict: str) -> None:
    harness = AgentTestHarness(agent_of(old))
    task = harness.begin("hello")
    for _ in range(3):
        harness.settle(1000)
    (rehearsal,) = harness.rehearse(agent_of(new))
    assert rehearsal.verdict == verdict, str(rehearsal)
    assert rehearsal.task == task.id  # type: ignore[union-attr]


def test_of_tasks_that_wait_for_the_same_some_of_each_code_are_sampled() -> None:
    harness = AgentTestHarness(agent_of(letter))
    for code in ("first", "first", "second"):
        harness.engine = replace(harness.engine, code=code)
        harness.send("hello")
    tasks = [*read_unfinished(harness.table, harness.table.items, harness.table.blobs.get)]
    assert sorted(task.head.code for task in sample(tasks, 1)) == ["first", "second"]
    assert len([*sample(tasks, 2)]) == 3


def test_a_write_that_happens_again_is_told_by_its_key_and_its_line() -> None:
    harness = AgentTestHarness(agent_of(remembering))
    harness.send("hello")
    (rehearsal,) = harness.rehearse(agent_of(with_a_renamed_value))
    (finding,) = rehearsal.findings
    assert (*map(str, finding.stored), *map(str, finding.came)) == ("value 'basket'", "value 'cart'")
    lines = Path(__file__).read_text("utf-8").splitlines()
    file, _, number = finding.line.rpartition(":")
    assert (file, '"cart"' in lines[int(number) - 1]) == (__file__, True)


def test_a_rehearsal_leaves_the_task_as_it_is_and_a_deployment_does_what_it_says() -> None:
    harness = AgentTestHarness(agent_of(letter))
    asked = harness.send("hello")
    partitions = deepcopy(harness.table.items.partitions)
    assert [one.verdict for one in harness.rehearse(agent_of(with_other_arguments))] == ["fails"]
    assert harness.table.items.partitions == partitions
    harness.deploy(agent_of(with_other_arguments))
    assert harness.send("Ada", task_id=asked.task.id).state == "failed"


def test_tasks_of_other_agents_and_ended_tasks_are_not_played() -> None:
    harness = AgentTestHarness(agent_of(letter), agent_of(sleeping, "other"))
    harness.send("hello", to="other")
    harness.send("hello")
    assert len(harness.rehearse()) == 1  # the other's task has ended
    assert harness.rehearse(agent_of(sleeping, "other")) == []


def rehearse(old: Any, new: Any, text: str = "hello") -> Rehearsal:
    harness = AgentTestHarness(agent_of(old))
    harness.send(text)
    effects.clear()
    (rehearsal,) = harness.rehearse(agent_of(new))
    assert effects == []
    return rehearsal


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_waiting_task_is_played_against_changed_code(change: Any) -> None:
    rehearsal = rehearse(letter, change)
    verdict, what = CHANGES[change]
    assert rehearsal.verdict == verdict, str(rehearsal)
    assert what in str(rehearsal)
