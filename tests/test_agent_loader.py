"""Loading agents by import path: at once, or from a manifest, with the import when the agent works."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.agent_loader import (
    MANIFEST,
    VERSION,
    AgentImportError,
    ImportedWork,
    by_id,
    describe,
    import_agents,
    load_agents,
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

paths = ["sample_agents.image:image", "sample_agents.orchestrator:orchestrator", "sample_agents.travel:travel"]
*_, travel = load_agents(paths, Path(sys.argv[1]))
show_imported()
print(asyncio.run(travel.work(SimpleNamespace(text=lambda: "help")))[:19])
show_imported()
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    file = tmp_path / MANIFEST
    file.write_text(json.dumps({"version": VERSION, "agents": {path: describe(path) for path in (*PATHS, KIT)}}))
    return file


def without_work(agent: Agent) -> dict[str, Any]:
    return {field.name: getattr(agent, field.name) for field in fields(agent) if field.name != "work"}


def test_an_import_path_leads_to_an_agent_or_to_several(tmp_path: Path) -> None:
    assert import_agents("sample_agents.travel:travel") == (travel,)
    assert import_agents(KIT) == conformance.AGENTS
    assert load_agents([KIT, *PATHS], tmp_path / "none") == (*conformance.AGENTS, *SHIPPED)


def test_a_manifest_says_all_of_an_agent_but_its_work(manifest: Path) -> None:
    loaded = load_agents([KIT, *PATHS], manifest)
    assert [without_work(agent) for agent in loaded] == [
        without_work(agent) for agent in (*conformance.AGENTS, *SHIPPED)
    ]
    assert all(isinstance(agent.work, ImportedWork) for agent in loaded)


def test_with_a_manifest_a_module_is_imported_when_its_agent_works(manifest: Path) -> None:
    command = [sys.executable, "-c", IMPORTS, str(manifest)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.splitlines() == ["imported: []", "I can book a flight", "imported: ['sample_agents.travel']"]


def test_what_the_manifest_does_not_have_is_imported(manifest: Path) -> None:
    described = json.loads(manifest.read_text())
    del described["agents"]["sample_agents.travel:travel"]
    manifest.write_text(json.dumps(described))
    assert load_agents(["sample_agents.travel:travel"], manifest) == (travel,)
    manifest.write_text(json.dumps(described | {"version": VERSION + 1}))
    assert load_agents(["sample_agents.image:image"], manifest) == import_agents("sample_agents.image:image")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("sample_agents.travel", "is not an import path such as"),
        (":travel", "is not an import path such as"),
        ("sample_agents.travel:nothing", "has no Agent named nothing"),
        ("sample_agents.travel:QUESTIONS", "has no Agent named QUESTIONS"),
        ("sample_agents.conformance:OLD_MODES", "has no Agent named OLD_MODES"),
    ],
)
def test_a_path_that_leads_to_no_agent_is_refused_by_its_name(path: str, reason: str) -> None:
    with pytest.raises(AgentImportError, match=reason):
        import_agents(path)


@pytest.mark.parametrize("taken", ["agents", "operator", ".well-known"])
def test_an_agent_cannot_have_a_path_that_is_the_deployments(taken: str) -> None:
    with pytest.raises(ValueError, match=f"an agent cannot be called {taken}"):
        by_id((replace(travel, id=taken),))
    with pytest.raises(ValueError, match="two agents have the same id"):
        by_id((travel, travel))
