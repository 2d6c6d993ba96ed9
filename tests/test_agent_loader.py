"""Loading agents by import path: at once, or from a manifest, with the import when the agent works."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Budget
from a2a_serverless.agent_loader import (
    MANIFEST,
    AgentImportError,
    ImportedWork,
    NotBuilt,
    by_id,
    describe,
    import_agents,
    load_agents,
    read_code,
    write_manifest,
)
from sample_agents import conformance
from sample_agents.travel import travel
from tests.sample_agents.sketches import SHIPPED

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_serverless.domain.agent import Agent

PATHS = [f"sample_agents.{agent.id}:{agent.id}" for agent in SHIPPED]
KIT = "sample_agents.conformance:AGENTS"
IMPORTS = """
import asyncio, sys
from pathlib import Path
from types import SimpleNamespace
from a2a_serverless.agent_loader import load_agents

def show_imported():
    agents = ("image", "orchestrator", "travel")
    print("imported:", [f"sample_agents.{name}" for name in agents if f"sample_agents.{name}" in sys.modules])

*_, travel = load_agents(Path(sys.argv[1]))
show_imported()
print(asyncio.run(travel.work(SimpleNamespace(text=lambda: "help")))[:19])
show_imported()
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / MANIFEST
    write_manifest(file, {path: describe(path) for path in (KIT, *PATHS)})
    return file


def without_work(agent: Agent) -> dict[str, Any]:
    return {field.name: getattr(agent, field.name) for field in fields(agent) if field.name != "work"}


def test_an_import_path_leads_to_an_agent_or_to_several() -> None:
    assert import_agents("sample_agents.travel:travel") == (travel,)
    assert import_agents(KIT) == conformance.AGENTS


def test_a_manifest_says_all_of_an_agent_but_its_work(manifest: Path) -> None:
    loaded = load_agents(manifest)
    assert [without_work(agent) for agent in loaded] == [
        without_work(agent) for agent in (*conformance.AGENTS, *SHIPPED)
    ]
    assert all(isinstance(agent.work, ImportedWork) for agent in loaded)


def test_an_agent_of_a_manifest_has_its_budget(tmp_path: Path) -> None:
    described = describe(PATHS[0])[0] | {"budget": {"usd": 0.5, "tokens": None, "steps": 9}}
    write_manifest(tmp_path / MANIFEST, {PATHS[0]: [described]})
    assert load_agents(tmp_path / MANIFEST)[0].budget == Budget(usd=0.5, steps=9)


def test_a_manifest_has_the_digest_of_the_code(tmp_path: Path) -> None:
    write_manifest(tmp_path / MANIFEST, {PATHS[0]: describe(PATHS[0])}, "digest")
    assert read_code(tmp_path / MANIFEST) == "digest"


def test_with_a_manifest_a_module_is_imported_when_its_agent_works(manifest: Path) -> None:
    command = [sys.executable, "-c", IMPORTS, str(manifest)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.splitlines() == ["imported: []", "I can book a flight", "imported: ['sample_agents.travel']"]


def test_without_a_manifest_the_error_says_how_to_build(tmp_path: Path) -> None:
    with pytest.raises(NotBuilt, match=r"^agents\.json is missing: build with `a2a-serverless build`$"):
        load_agents(tmp_path / MANIFEST)


@pytest.mark.parametrize("kind", ["Lock()", "Semaphore(2)", "BoundedSemaphore(2)", "Event()", "Condition()", "Queue()"])
def test_a_lock_of_a_module_is_refused_because_the_loop_of_the_first_task_keeps_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = f"locking_{kind[:4].lower()}_{len(kind)}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / package / "shared.py").write_text(f"import asyncio\n\ngate = asyncio.{kind}\n")
    agent = f"from sample_agents.travel import travel\nfrom {package} import shared\n"
    (tmp_path / package / "agents.py").write_text(agent)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AgentImportError) as refused:
        describe(f"{package}.agents:travel")
    name = kind.partition("(")[0]
    assert str(refused.value) == (
        f"{package}.shared.gate is a {name} of asyncio, which only one event loop can use, and each run of a task has a"
        " loop of its own: make it in the agent's function"
    )


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("sample_agents.travel", "is not an import path such as"),
        (":travel", "is not an import path such as"),
        ("sample_agents.travel:nothing", "has no nothing"),
        ("sample_agents.travel:QUESTIONS", "is not an agent but a builtins.int"),
        ("sample_agents.conformance:OLD_MODES", "is not an agent but a builtins.tuple"),
    ],
)
def test_a_path_that_leads_to_no_agent_is_refused_by_its_name(path: str, reason: str) -> None:
    with pytest.raises(AgentImportError, match=reason):
        import_agents(path)


@pytest.mark.parametrize("taken", ["agents", "callbacks", "events", ".well-known"])
def test_an_agent_cannot_have_a_path_that_is_the_deployments(taken: str) -> None:
    with pytest.raises(ValueError, match=f"an agent cannot be called {taken}"):
        by_id((replace(travel, id=taken),))
    with pytest.raises(ValueError, match="two agents have the same id"):
        by_id((travel, travel))
