"""Tracebacks for an agent's author: his own lines are whole, those of libraries are one line."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.tracebacks import format_traceback
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext


def parse(text: str) -> object:
    return json.loads(text)


def lines_of(error: BaseException) -> list[str]:
    return format_traceback(error, lambda file: file == __file__).splitlines()


def raised(work: Any) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any
        work()
    return caught.value


def test_lines_of_libraries_are_one_line_that_names_the_innermost() -> None:
    lines = lines_of(raised(lambda: parse("{")))
    assert [line.split(",")[-1] for line in lines if line.startswith("  File")][-1] == " in parse"
    (joined,) = [line for line in lines if line.startswith("  ...")]
    assert joined.startswith("  ... 3 lines of libraries, to ")
    assert "json/decoder.py" in joined.replace("\\", "/")
    assert lines[-1].startswith("json.decoder.JSONDecodeError: ")


def test_own_lines_below_a_library_are_whole() -> None:
    async def inner() -> None:
        raise ValueError("blunt")

    lines = lines_of(raised(lambda: asyncio.run(inner())))
    assert [line.startswith("  ...") for line in lines].count(True) == 1
    assert any(line.endswith("in inner") for line in lines)
    assert 'raise ValueError("blunt")' in "".join(lines)


def test_causes_and_groups_are_shortened_too() -> None:
    def both() -> None:
        try:
            parse("{")
        except ValueError as error:
            raise ExceptionGroup("two", [error]) from error

    lines = lines_of(raised(both))
    assert [line.strip(" |").startswith("... 3 lines") for line in lines].count(True) == 2
    assert any("direct cause" in line for line in lines)


def test_an_error_without_a_line_of_its_author_is_only_itself() -> None:
    assert lines_of(ValueError("x")) == ["ValueError: x"]


async def doubled(text: str) -> str:
    return text * 2


async def unstorable(_: str) -> object:
    return {1, 2}


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (lambda task: task.step("r", doubled("a")), 'task.step("...", doubled, ...)'),
        (lambda task: task.map("r", doubled("a"), ["a"]), 'task.map("...", doubled, ...)'),
        (lambda task: task.step("r", "aa"), 'got a str: give the function, not its call: task.step("...", function'),
    ],
    ids=["coroutine", "map", "value"],
)
def test_a_call_in_place_of_a_function_is_explained_with_its_line(
    work: Any, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def calls(task: TaskContext) -> None:
        await work(task)

    AgentTestHarness(agent_of(calls)).send("go")
    shown = capsys.readouterr().err
    assert "give the function, not its call" in shown
    assert text in shown
    assert "await work(task)" in shown


@pytest.mark.parametrize("replay", [True, False])
@pytest.mark.parametrize(
    ("function", "text"),
    [(unstorable, "gave a set, which is not a JSON value"), (parse, "JSONDecodeError")],
    ids=["no JSON value", "its own error"],
)
def test_an_error_of_a_step_is_shown_with_the_line_of_the_step(
    function: Any, text: str, capsys: pytest.CaptureFixture[str], *, replay: bool
) -> None:
    async def steps(task: TaskContext) -> None:
        await task.step("the step", function, "a")

    AgentTestHarness(agent_of(steps), replay=replay).send("go")
    shown = capsys.readouterr().err
    assert 'await task.step("the step", function, "a")' in shown
    assert text in shown
