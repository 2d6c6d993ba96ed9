"""What can be told of a release without a build: the files agree, and what is missing is named."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from a2a_serverless_tools.stack.library import CHECKOUT
from a2a_serverless_tools.stack.wheels import SOURCES
from tests.releases.release import UNKNOWN, differences, left_to_do
from tests.stack.wheels import JAVASCRIPT

if TYPE_CHECKING:
    from pathlib import Path

GITHUB = CHECKOUT / ".github"
WORKFLOWS = {file.stem: yaml.safe_load(file.read_text()) for file in (GITHUB / "workflows").iterdir()}
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


def projects() -> dict[str, dict[str, Any]]:
    return {name: tomllib.loads((folder / "pyproject.toml").read_text())["project"] for name, folder in SOURCES.items()}


@pytest.mark.parametrize("field", ["version", "license", "license-files", "requires-python", "urls"])
def test_all_distributions_have_equal_metadata_in_their_projects(field: str) -> None:
    first, *others = [project[field] for project in projects().values()]
    assert others == [first] * (len(SOURCES) - 1)


def test_the_classifiers_name_the_python_versions_that_are_tested_and_the_lowest_is_the_required_one() -> None:
    tested = WORKFLOWS["tests"]["jobs"]["tests"]["strategy"]["matrix"]["python"]
    for project in projects().values():
        said = re.findall(r"Python :: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
        assert (said, project["requires-python"]) == (tested, f">={tested[0]}")
        assert "Typing :: Typed" in project["classifiers"]


def test_the_lowest_and_the_highest_version_are_tested_on_macos_too() -> None:
    jobs = WORKFLOWS["tests"]["jobs"]
    linux, macos = (jobs[name]["strategy"]["matrix"]["python"] for name in ("tests", "macos"))
    assert macos == [linux[0], linux[-1]]
    commands = [step["run"] for step in jobs["macos"]["steps"] if "run" in step]
    assert commands == ["make setup", "make test", "make integration ARGS=tests/dev", "make journeys"]


def test_each_distribution_has_the_licence_of_the_repository() -> None:
    folders = [*SOURCES.values(), CHECKOUT / JAVASCRIPT]
    assert {(folder / "LICENSE").read_text() for folder in folders} == {(CHECKOUT / "LICENSE").read_text()}


def test_the_workflow_publishes_each_distribution_from_an_environment_of_its_own() -> None:
    jobs = WORKFLOWS["release"]["jobs"]
    publish = jobs["publish"]
    assert sorted(publish["strategy"]["matrix"]["distribution"]) == sorted(SOURCES)
    assert publish["environment"]["name"] == "pypi-${{ matrix.distribution }}"
    assert publish["steps"][-1]["with"]["packages-dir"] == "dist/${{ matrix.distribution }}/"
    assert {name for name, job in jobs.items() if "id-token" in job["permissions"]} == {"attest", "publish", "npm"}


def test_the_npm_package_says_what_the_python_one_says() -> None:
    npm = json.loads((CHECKOUT / JAVASCRIPT / "package.json").read_text())
    python = projects()["a2a-webhook-receiver"]
    said = {name: npm[name] for name in ("name", "version", "description", "license")}
    assert said == {name: python[name] for name in said}
    assert npm["repository"]["url"] == f"git+{python['urls']['Repository']}.git"
    assert (npm["repository"]["directory"], npm["bugs"]) == (str(JAVASCRIPT), python["urls"]["Issues"])
    assert not npm.keys() & {"dependencies", "peerDependencies", "optionalDependencies"}


def test_the_workflow_publishes_the_npm_package_from_an_environment_of_its_own() -> None:
    npm = WORKFLOWS["release"]["jobs"]["npm"]
    assert (npm["needs"], npm["environment"]["name"]) == ("attest", "npm-a2a-webhook-receiver")
    assert npm["steps"][-1]["run"].startswith("npm publish ./dist/npm/a2a-webhook-receiver-")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_an_issue_form_has_what_github_requires(form: Path) -> None:
    read = yaml.safe_load(form.read_text())
    assert read.keys() >= {"name", "description", "body"}
    ids = [field["id"] for field in read["body"] if field["type"] != "markdown"]
    assert len(set(ids)) == len(ids)
    assert all(field["attributes"].get("label") or field["type"] == "markdown" for field in read["body"])


def test_files_that_differ_or_are_missing_are_named(tmp_path: Path) -> None:
    for folder, files in {"one": "abc", "two": "abd"}.items():
        (tmp_path / folder).mkdir()
        for name in files:
            (tmp_path / folder / name).write_text(folder if name == "b" else name)
    assert differences(tmp_path / "one", tmp_path / "two") == ["b", "c", "d"]
    assert differences(tmp_path / "one", tmp_path / "one") == []


def test_the_release_names_each_task_that_is_left_to_a_person(tmp_path: Path) -> None:
    for folder in SOURCES.values():
        (tmp_path / folder.relative_to(CHECKOUT)).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder.relative_to(CHECKOUT) / "pyproject.toml").touch()
    (tmp_path / JAVASCRIPT).mkdir()
    (tmp_path / JAVASCRIPT / "package.json").write_text("{}")
    settings, changes = tmp_path / "webhook_receiver/pyproject.toml", tmp_path / "CHANGELOG.md"
    settings.write_text(f'Repository = "https://{UNKNOWN}a2a-serverless"')
    changes.write_text("## 9.9.9 - unreleased\n")
    without_npm = [] if shutil.which("npm") else ["npm: install it, or the JavaScript receiver is not packed"]
    assert list(left_to_do(tmp_path, "9.9.9")) == [
        f"webhook_receiver/pyproject.toml: write the owner of the repository into {UNKNOWN}",
        *without_npm,
        "CHANGELOG.md: write the day of the release behind 9.9.9",
    ]
    settings.write_text('Repository = "https://github.com/somebody/a2a-serverless"')
    changes.write_text("## 9.9.9 - 2026-11-30\n")
    assert list(left_to_do(tmp_path, "9.9.9")) == without_npm
