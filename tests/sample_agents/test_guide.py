"""The author's guide and the example agent: every snippet runs, and so does every test in it."""

from __future__ import annotations

import ast
import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Skill
from a2a_serverless.agent_loader import by_id
from a2a_serverless_tools.project import read_project
from a2a_serverless_tools.project_check import check_project
from sample_agents.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PAGES = (
    *("agents.md", "replay.md", "steps.md", "approval.md", "calls.md", "task.md", "budgets.md", "retry.md"),
    *("code-changes.md", "waiting.md", "schedules.md", "test-your-agent.md"),
)
GUIDE = "".join((ROOT / "docs" / page).read_text() for page in PAGES)
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
TESTS = re.findall(r"^def (test_\w+)", "\n".join(BLOCKS), re.MULTILINE)


@cache
def guide() -> dict[str, Any]:
    """The names of the guide, once all its blocks have run in their order."""
    names: dict[str, Any] = {"__name__": "guide"}
    exec(compile("\n".join(BLOCKS), "docs/agents.md", "exec"), names)  # noqa: S102 - our own page
    return names


@pytest.mark.parametrize("name", TESTS)
def test_each_test_in_the_guide_passes(name: str) -> None:
    told: Callable[[], None] = guide()[name]
    told()


def test_the_guide_shows_the_example_as_it_is() -> None:
    example = (ROOT / "examples" / "hello_agent.py").read_text()
    assert BLOCKS[0].strip() == example.split("\n\n", 1)[1].strip()


def test_the_example_becomes_an_agent_by_one_file_and_one_line(tmp_path: Path) -> None:
    (file, path) = re.findall(r"copy it to `(\S+)` in \S+ \S+ and add `(.*?)` to `agents`", GUIDE)[0]
    (tmp_path / file).parent.mkdir()
    shutil.copy(ROOT / "examples/hello_agent.py", tmp_path / file)
    (tmp_path / "pyproject.toml").write_text(f"[tool.a2a-serverless]\nagents = ['{path}']\n")
    assert [one["id"] for one in check_project(read_project(tmp_path)).agents[path]] == ["hello"]


@pytest.mark.requirement(87)
@pytest.mark.parametrize(
    "missing", [{"skills": ()}, {"skills": (Skill("s", "s", "s", ()),)}, {"input_modes": ()}, {"output_modes": ()}]
)
def test_an_agent_whose_card_would_lack_something_is_not_deployed(missing: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the card of summary needs"):
        by_id((replace(summary, **missing),))


def test_the_guide_names_every_member_of_the_authors_task() -> None:
    from a2a_serverless import TaskContext

    public = {name for name in vars(TaskContext) if not name.startswith("_")}
    assert {name for name in public if f"task.{name}" not in GUIDE} <= {"id", "context_id", "accepted_output_modes"}


def test_the_messages_of_common_mistakes_are_those_of_the_code() -> None:
    messages, translated = (
        re.findall(r"^\| `([^`]+)`", (ROOT / page).read_text().partition(f"\n## {heading}\n")[2], re.MULTILINE)
        for page, heading in (("docs/agents.md", "Common mistakes"), ("docs/zh/agents.md", "常见错误"))
    )
    code = "\n".join(text for path in (ROOT / "shared/a2a_serverless").rglob("*.py") for text in _texts(path))
    assert len(messages) > 10
    assert translated == messages
    assert [message for message in messages if not re.search(_pattern(message), code)] == []


def _texts(path: Path) -> list[str]:
    """The texts in a module, with {} in the place of each value."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return [
        "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in getattr(node, "values", [node]))
        for node in nodes
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    ]


def _pattern(message: str) -> str:
    """A pattern for a message that has x, 'x' and numbers as its values."""
    return re.sub(r"'x'|\bmy\\\.module:x\b|\bx\b|\b\d+\b", r"\\{\\}", re.escape(message))


def test_the_tutorials_agent_is_the_one_that_init_makes() -> None:
    block = re.search(
        r"^```python\n(.*?)^```$", (ROOT / "docs/tutorial-agent.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert block is not None
    written = ast.parse((ROOT / "examples/project/my_agents/tailor.py").read_text())
    assert ast.unparse(ast.parse(block[1])) == ast.unparse(ast.Module(written.body[1:], []))  # without its docstring
