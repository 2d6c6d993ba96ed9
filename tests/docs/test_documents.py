"""What the documents say is so: their links lead somewhere, their lists are those of the code, their snippets run."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import typer

import idle
from a2a_serverless.store import keys
from a2a_serverless_tools.cli.app import make_app
from tests.docs.documents import DOCUMENTS, LINK, ROOT, anchor, blocks
from tests.docs.drawn import DRAWINGS, OWNER_LIMITS, drawn_in, template

if TYPE_CHECKING:
    from pathlib import Path

STORAGE = (ROOT / "docs" / "storage.md").read_text()
README = ROOT / "README.md"


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {anchor(heading) for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_link_of_a_document_leads_to_a_file_and_heading(path: Path) -> None:
    for link in LINK.findall(path.read_text()):
        if link.startswith(("http://", "https://")):
            continue
        file, _, fragment = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert not fragment or fragment in anchors(target), link


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_path_that_is_named_exists(path: Path) -> None:
    for named in re.findall(
        r"`((?:tests|docs|events|examples|functions|bench|shared|webhook_receiver)/[\w./-]*)`", path.read_text()
    ):
        assert (
            any(place.joinpath(named).exists() for place in (ROOT, path.parent))
            or "tailor" in named
            or "hello" in named
            or "shop" in named
        ), named


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_test_that_is_named_exists(path: Path) -> None:
    for file, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)", path.read_text()):
        assert re.search(rf"^ *def {test}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{test}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_command_of_ours_is_one_that_there_is(path: Path) -> None:
    for line in re.findall(r"a2a-serverless ((?:[a-z]+ ?)+)", path.read_text()):
        command: Any = typer.main.get_command(make_app())
        for word in line.split():
            if not hasattr(command, "commands"):
                break
            assert word in command.commands, line
            command = command.commands[word]


def prove(*words: str) -> tuple[int, list[str]]:
    """The exit code of `make prove`, and its lines."""
    command = ["make", "-s", "prove", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    return done.returncode, done.stdout.splitlines()


@cache
def kinds() -> set[str]:
    """The kinds of proofs, as `make prove` lists them."""
    return {line.split()[0] for line in prove()[1]}


def test_a_kind_of_proof_that_there_is_not_is_answered_with_those_that_there_are() -> None:
    code, (first, *listed) = prove("KIND=no")
    assert (code, first, {line.split()[0] for line in listed}) == (2, "There is no kind no.", kinds())
    assert {"faults", "aws", "fuzz"} < kinds()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_make_target_that_is_named_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", path.read_text()))
    assert named <= targets
    assert set(re.findall(r"\bKIND=([a-z]+)", path.read_text())) <= kinds()


@pytest.mark.parametrize("title", DRAWINGS)
def test_each_drawing_of_a_document_is_equal_to_the_code(title: str) -> None:
    path, draw = DRAWINGS[title]
    assert drawn_in(path, title) == draw(), "make drawings writes it anew"


def test_every_setting_that_limits_owners_is_in_the_table_of_limits() -> None:
    settings = {key for key in template()["Metadata"]["Settings"]["Environment"] if "_PER_OWNER" in key}
    settings.add("STREAMS_PER_DEPLOYMENT")
    assert {of for _, _, of, _ in OWNER_LIMITS if isinstance(of, str)} == settings


def test_the_python_of_the_readme_runs() -> None:
    module = ModuleType("readme")
    found = blocks("python", README)
    assert len(found) == 2
    for block in found:
        exec(compile(block.text, str(README), "exec"), module.__dict__)  # noqa: S102 - our own README


def test_the_readme_says_what_an_idle_deployment_costs() -> None:
    path, draw = DRAWINGS["standing cost"]
    (cost,) = re.findall(r"^([0-9.]+) USD a month", draw(), re.MULTILINE)
    assert f"costs {cost} USD a month" in " ".join(README.read_text().split()), path
    assert f"{cost} 美元" in (ROOT / "README.zh.md").read_text()
    assert float(cost) <= idle.N17_USD


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md"])
def test_an_entry_document_stays_short(document: str) -> None:
    assert len((ROOT / document).read_text().splitlines()) < 150


def test_the_page_of_guarantees_has_at_most_140_lines() -> None:
    assert len((ROOT / "docs" / "guarantees.md").read_text().splitlines()) <= 140


@pytest.mark.parametrize(
    ("page", "state"),
    [("openai-agents", "context"), ("pydantic-ai", "ctx.deps"), ("strands", "agent.state"), ("adk", "state")],
)
def test_the_page_of_each_framework_states_in_equal_words_how_tools_change_state(page: str, state: str) -> None:
    text = " ".join((ROOT / f"docs/frameworks/{page}.md").read_text().split())
    assert (
        f"What a tool changes in `{state}` is stored with its step, and is there in each later run ([the rule]("
    ) in text


def test_no_package_index_is_named() -> None:
    tracked = [ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".ci/run", *(ROOT / "requirements").iterdir()]
    assert [path.name for path in tracked if re.search(r"https?://[^\s)]+/simple\b", path.read_text())] == []


def test_every_kind_of_item_is_in_the_table_of_storage() -> None:
    kinds = {value.strip("#") for key, value in vars(keys).items() if key.isupper() and isinstance(value, str)}
    kinds -= {keys.NEWEST, keys.EXHAUSTED, "sha256="}
    table = STORAGE.partition("\n## Items\n")[2].partition("\n## ")[0]
    assert [kind for kind in sorted(kinds) if kind not in table] == []
