"""``init`` writes the example with another name, ``eject`` this repository's template and functions."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from typing import TYPE_CHECKING, get_args

import pytest
import yaml

from a2a_serverless_tools.cli.stack import FrameworkName
from a2a_serverless_tools.project import read_project
from a2a_serverless_tools.project_check import check_project
from a2a_serverless_tools.stack.bases import parse_template
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.library import CHECKOUT, read_requirements, resolve
from a2a_serverless_tools.stack.new_project import EJECTED, create, eject
from a2a_serverless_tools.stack.paths import find
from tests.stack.wheels import dist, wheels_in

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["dist"]

EXAMPLE = CHECKOUT / "examples/project"
FRAMEWORKS = get_args(FrameworkName)


@pytest.fixture
def project(dist: Path, tmp_path: Path) -> Path:
    create(tmp_path / "night-shift", lambda _: wheels_in(dist))
    return tmp_path / "night-shift"


@pytest.fixture
def project_files(dist: Path, tmp_path: Path) -> set[str]:
    """The files of a project without a framework."""
    folder = tmp_path / "other" / "night-shift"
    return {path.relative_to(folder).as_posix() for path in create(folder, lambda _: wheels_in(dist))}


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(dist: Path, tmp_path: Path, framework: str) -> Path:
    """A project of a framework."""
    create(tmp_path / "night-shift", lambda _: wheels_in(dist), framework=framework)
    return tmp_path / "night-shift"


def test_a_project_has_settings_and_no_template(project: Path) -> None:
    assert sorted(path.name for path in project.iterdir()) == [
        *(".github", ".gitignore", ".python-version", "README.md", "night_shift", "pyproject.toml", "samconfig.toml"),
        *("tests", "wheels"),
    ]
    assert find(project).template == CHECKOUT / "template.yaml"


def test_every_setting_that_is_shown_as_a_comment_is_one(project: Path) -> None:
    file = project / "pyproject.toml"
    text = file.read_text()
    shown = re.findall(r"^# (\[+[\w.-]+\]+|[\w-]+ = .*)$", text, re.MULTILINE)
    assert len(shown) > 5
    file.write_text(re.sub(r"^# (?=\[+[\w.-]+\]+$|[\w-]+ = )", "", text, flags=re.MULTILINE))
    settings = read_project(project)
    unset = {name for name, value in settings if not value}
    assert unset <= {"environment"}


def test_an_ejected_project_has_this_repository_s_template_and_functions(project: Path) -> None:
    written = {path.relative_to(project).as_posix() for path in eject(read_project(project))}
    command = ["git", "ls-files", *EJECTED]
    ours = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)  # noqa: S603
    assert written == {*ours.stdout.split()}
    assert find(project).template == project / "template.yaml"
    for name in written:
        copy, original = project / name, CHECKOUT / name
        assert copy.stat().st_mode == original.stat().st_mode
        if copy.suffix in {".py", ".yaml", ""}:
            assert copy.read_text() == original.read_text()


def test_an_ejected_function_names_the_library_and_needs_nothing_that_only_the_samples_draw_with(project: Path) -> None:
    eject(read_project(project))
    for file in project.glob("functions/*/requirements.txt"):
        ours, _ = resolve(read_requirements(CHECKOUT / file.relative_to(project)))
        assert resolve(read_requirements(file))[0] == [line for line in ours if not line.startswith("pillow")]
        assert re.fullmatch(r"(a2a-(serverless|webhook-receiver)(\[[a-z,]+\])?\n)+", file.read_text())


def test_ejected_events_are_for_an_agent_of_the_project(project: Path) -> None:
    eject(read_project(project))
    assert "tailor" in (project / "events/api-send.json").read_text()
    assert not [path for path in project.glob("events/*") if re.search(r"\bdocument\b", path.read_text())]


def test_ejected_events_are_json_whatever_the_agent_is_called(project: Path) -> None:
    module = next(project.glob("*/tailor.py"))
    module.write_text(module.read_text().replace('id="tailor"', 'id="a~b.1"'))
    eject(read_project(project))
    assert json.loads((project / "events/api-send.json").read_text())["path"] == "/a~b.1"
    assert [json.loads(path.read_text()) for path in project.glob("events/*.json")]


@pytest.mark.parametrize("name", EJECTED)
def test_eject_refuses_to_overwrite_a_file_or_folder(name: str, project: Path) -> None:
    (project / name).mkdir()
    with pytest.raises(StackError, match=f"{name} exists already"):
        eject(read_project(project))
    assert sum((project / one).exists() for one in EJECTED) == 1


def test_the_options_for_sam_are_this_repository_s_with_the_project_s_name(project: Path) -> None:
    theirs = tomllib.loads((project / "samconfig.toml").read_text())
    ours = tomllib.loads((CHECKOUT / "samconfig.example.toml").read_text())["default"]
    ours["global"]["parameters"]["stack_name"] = "night-shift"
    ours["deploy"]["parameters"]["tags"] = "service=night-shift"
    assert theirs == {"version": 0.1, "default": ours}


def test_the_rest_is_the_example_with_the_project_s_name(project: Path) -> None:
    written = {path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()}
    assert {"night_shift/tailor.py", "tests/test_tailor.py", ".gitignore", ".github/workflows/deploy.yml"} <= written
    texts = [path for path in project.rglob("*") if path.is_file() and path.suffix != ".whl"]
    assert not [path for path in texts if re.search(r"my.agents", path.read_text())]
    assert read_project(project).agents == ("night_shift.tailor:tailor",)
    assert [one["id"] for one in check_project(read_project(project)).agents["night_shift.tailor:tailor"]] == ["tailor"]


def test_every_framework_of_the_library_has_projects() -> None:
    file = CHECKOUT / "shared/a2a_serverless_frameworks/pyproject.toml"
    assert {*FRAMEWORKS} == {*tomllib.loads(file.read_text())["project"]["optional-dependencies"]}


def test_a_project_of_a_framework_has_its_example_its_test_and_its_extra(framework: str, shop: Path) -> None:
    example = CHECKOUT / "examples" / f"{framework.replace('-', '_')}_agent.py"
    assert (shop / "night_shift/shop.py").read_text() == example.read_text()
    assert "from night_shift.shop import SCRIPT, make_shop" in (shop / "tests/test_shop.py").read_text()
    settings = read_project(shop)
    assert settings.agents == ("night_shift.shop:shop_agent",)
    assert settings.dependencies == (f"a2a-serverless[{framework}]>=0.1,<0.2",)


def test_a_project_of_a_framework_is_else_like_any_other(shop: Path, project_files: set[str]) -> None:
    written = {path.relative_to(shop).as_posix() for path in shop.rglob("*") if path.is_file()}
    tailor = {"night_shift/tailor.py", "tests/test_tailor.py"}
    assert written == (project_files - tailor) | {"night_shift/shop.py", "tests/test_shop.py"}
    texts = [path.read_text() for path in shop.rglob("*") if path.is_file() and path.suffix != ".whl"]
    assert not [text for text in texts if re.search(r"my.agents|tailor|colour", text)]
    readme = (shop / "README.md").read_text()
    assert all(words in readme for words in ('send shop "a coat"', "`night_shift/shop.py`"))


@pytest.mark.parametrize(
    ("framework", "name"), [("openai-agents", "agents"), ("strands", "strands"), ("adk", "google"), ("a2a-sdk", "a2a")]
)
def test_a_project_does_not_hide_the_framework_that_it_needs(framework: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(StackError, match="is a package that the project needs"):
        create(tmp_path / name, framework=framework)
    assert not list(tmp_path.iterdir())


def test_the_workflow_takes_short_lived_credentials(project: Path) -> None:
    text = (project / ".github/workflows/deploy.yml").read_text()
    assert "secrets." not in text
    workflow = yaml.safe_load(text)
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {}
    with_token = {name for name, job in jobs.items() if "id-token" in job["permissions"]}
    assert with_token == {name for name, job in jobs.items() if "environment" in job} == {"deploy"}
    assert "uv run" not in str(jobs["deploy"]), "no code of the project runs where the role can be taken"
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in used), used


def test_the_agent_is_the_tutorial_s() -> None:
    shown = re.findall(
        r"^```python\n(.*?)^```$", (CHECKOUT / "docs/tutorial-agent.md").read_text(), re.MULTILINE | re.DOTALL
    )[0]
    written = (EXAMPLE / "my_agents/tailor.py").read_text()
    assert re.sub(r"^# .*\n|  # .*", "", written, flags=re.MULTILINE).endswith(shown)


UNUSABLE = {
    "is no name: lower case": ["My-agents", "my_agents", "1st", "a--b", "a-", "a" * 51],
    "is a word of Python": ["class", "import"],
    "is a module of Python's library": ["json", "test", "email"],
    "is a folder of each project": ["tests", "functions", "events", "wheels"],
    "is a package that the project needs": [
        *(
            "a2a-serverless",
            "a2a-webhook-receiver",
            "pydantic",
            "pyyaml",
            "yaml",
            "pytest",
            "dateutil",
            "pydantic-core",
        ),
    ],
}


@pytest.mark.parametrize(("why", "name"), [(why, name) for why, names in UNUSABLE.items() for name in names])
def test_a_name_that_cannot_work_is_refused(why: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(StackError, match=why):
        create(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_the_python_of_the_project_is_the_functions(project: Path) -> None:
    runtime = parse_template((CHECKOUT / "template.yaml").read_text())["Parameters"]["Runtime"]["Default"]
    assert f"python{(project / '.python-version').read_text()}" == f"{runtime}\n"


def test_init_refuses_to_overwrite_an_existing_folder(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    with pytest.raises(StackError, match="exists already"):
        create(tmp_path / "shop")
    assert not list((tmp_path / "shop").iterdir())
