"""``init`` writes this repository's own files, with another name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from a2a_serverless.project import read_project
from a2a_serverless.project_check import check_project
from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.library import CHECKOUT, expand, read_requirements
from a2a_serverless.stack.new_project import create

EXAMPLE = CHECKOUT / "examples/project"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    create("night-shift", tmp_path)
    return tmp_path / "night-shift"


def test_the_deployment_is_this_repository_s(project: Path) -> None:
    for name in ("template.yaml", "observability.yaml"):
        assert (project / name).read_text() == (CHECKOUT / name).read_text()
    for folder in ("functions", "events"):
        theirs, ours = (
            {path.relative_to(root) for path in (root / folder).rglob("*") if path.is_file() and path.suffix != ".pyc"}
            for root in (project, CHECKOUT)
        )
        assert theirs == ours
    same = [
        path for path in sorted((project / "functions").rglob("*")) if path.suffix == ".py" or path.name == "stream"
    ]
    for path in same:
        original = CHECKOUT / path.relative_to(project)
        assert (path.read_text(), path.stat().st_mode) == (original.read_text(), original.stat().st_mode)


def test_a_function_needs_what_this_repository_s_needs_but_for_what_the_samples_draw_with(project: Path) -> None:
    for file in project.glob("functions/*/requirements.txt"):
        ours = expand(read_requirements(CHECKOUT / file.relative_to(project)))
        assert expand(read_requirements(file)) == [line for line in ours if not line.startswith("pillow")]
        assert re.fullmatch(r"(a2a-serverless(\[[a-z,]+\])?\n|a2a-webhook-receiver\n)+", file.read_text())


def test_the_options_for_sam_are_this_repository_s_with_the_project_s_name(project: Path) -> None:
    theirs = tomllib.loads((project / "samconfig.toml").read_text())
    ours = tomllib.loads((CHECKOUT / "samconfig.example.toml").read_text())["default"]
    ours["global"]["parameters"]["stack_name"] = "night-shift"
    ours["deploy"]["parameters"]["tags"] = "service=night-shift"
    assert theirs == {"version": 0.1, "default": ours}


def test_events_are_for_the_agent_that_there_is(project: Path) -> None:
    assert "tailor" in (project / "events/api-send.json").read_text()
    assert not [path for path in project.glob("events/*") if re.search(r"\bdocument\b", path.read_text())]


def test_the_rest_is_the_example_with_the_project_s_name(project: Path) -> None:
    written = {path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()}
    assert {"night_shift/tailor.py", "tests/test_tailor.py", ".gitignore", ".github/workflows/deploy.yml"} <= written
    assert not [path for path in project.rglob("*") if path.is_file() and re.search(r"my.agents", path.read_text())]
    assert read_project(project).agents == ("night_shift.tailor:tailor",)
    assert [one["id"] for one in check_project(read_project(project)).agents["night_shift.tailor:tailor"]] == ["tailor"]


def test_the_workflow_takes_short_lived_credentials(project: Path) -> None:
    workflow = (project / ".github/workflows/deploy.yml").read_text()
    assert "id-token: write" in workflow
    assert "secrets." not in workflow


def test_the_agent_is_the_readme_s() -> None:
    shown = re.findall(r"^```python\n(.*?)^```$", (CHECKOUT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    assert (EXAMPLE / "my_agents/tailor.py").read_text().endswith(shown)


@pytest.mark.parametrize("name", ["", "My-agents", "my_agents", "1st", "a--b", "a-", "../a", "a" * 51])
def test_a_bad_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(StackError, match="is no name: lower case"):
        create(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    with pytest.raises(StackError, match="exists already"):
        create("shop", tmp_path)
    assert not list((tmp_path / "shop").iterdir())
