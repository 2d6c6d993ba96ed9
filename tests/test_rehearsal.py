"""Stored tasks are played against other code: what would happen to them, without doing any of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless import TaskContext
from a2a_serverless.testing import AgentTestHarness
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


async def with_an_endless_loop(task: TaskContext) -> str:
    await task.step("draft", draft, task.text())
    while True:
        pass


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
