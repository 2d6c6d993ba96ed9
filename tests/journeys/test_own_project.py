"""A project of one's own, from the wheel, in an empty folder: init, test, up, send, an edit, build."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from a2a_serverless_tools.stack.environments import find_uv
from tests.collector import NO_EXPORTER, collecting, has_exporter
from tests.journeys.projects import WAITS, Folder, install_program
from tests.stack.indexes import TAKEN, Index, serving
from tests.stack.local import eventually
from tests.stack.wheels import dist

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["dist"]
pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]


@pytest.fixture(scope="module")
def taken() -> Iterator[Index]:
    """An index that is asked before the usual one, on which somebody else has the library's names."""
    with serving(TAKEN) as index:
        yield index
    assert index.asked == []


@pytest.fixture(scope="module")
def project(dist: Path, taken: Index, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    """A new project, made by the program in an environment that has the wheels only."""
    made = install_program(tmp_path_factory.mktemp("empty"), dist, UV_INDEX=taken.url)
    said = json.loads(made.run("tool/bin/a2a-serverless", "init", "my-agents", "--json"))
    assert said["next"] == [
        "cd my-agents",
        "uv run pytest",
        "uv run a2a-serverless dev",
        'uv run a2a-serverless send tailor "A coat, please."',
        "uv run a2a-serverless up",
        "uv run a2a-serverless build",
    ]
    there = Folder(made.path / "my-agents", made.environment)
    yield there
    there.cli("down")


def test_an_author_tests_runs_changes_and_builds_a_new_project(project: Folder) -> None:
    assert "2 passed" in project.run(find_uv(), "run", "--quiet", "pytest", "-q")
    with project.dev() as url:
        asked = project.cli("send", "tailor", "A coat, please.", "--url", url, code=WAITS)
        assert asked["task"]["status"]["message"]["parts"][0]["text"] == "Which colour?"
    assert "agents" in project.cli("up")
    asked = project.cli("send", "tailor", "A coat, please.", code=WAITS)
    assert asked["task"]["status"]["message"]["parts"][0]["text"] == "Which colour?"

    agent = project.path / "my_agents/tailor.py"
    agent.write_text(agent.read_text().replace("Which colour?", "Which colour, please?"))
    project.cli("up")
    asked = project.cli("send", "tailor", "A coat, please.", code=WAITS)
    assert asked["task"]["status"]["message"]["parts"][0]["text"] == "Which colour, please?"
    done = project.cli("send", "tailor", "red", "--task", asked["task"]["id"])
    parts = done["task"]["artifacts"][0]["parts"]
    assert "".join(part["text"] for part in parts) == "red sleeves\nred back\nred collar\n"

    here = f"python{sys.version_info.major}.{sys.version_info.minor}"
    sizes = project.cli("build", "--runtime", here, "--architecture", "x86_64")
    assert sizes["WorkerFunction.zip"] > 0
    assert (project.path / ".aws-sam/build/template.yaml").is_file()


OTEL = '[tool.a2a-serverless.otel]\nendpoint = "http://127.0.0.1:9"\n\n[tool.pytest'
SPANS = {"SendStreamingMessage tailor", "invoke_agent Tailor"}


@pytest.mark.skipif(not has_exporter(), reason=NO_EXPORTER)
def test_a_secret_is_given_by_a_variable_and_spans_arrive_at_a_collector(project: Folder) -> None:
    table, agent = project.path / "pyproject.toml", project.path / "my_agents/tailor.py"
    before = table.read_text(), agent.read_text()
    traced = before[0].replace("[cli]", "[cli,otel]").replace("[tool.pytest", OTEL)
    table.write_text(traced.replace("# secrets =", "secrets ="))
    agent.write_text(before[1].replace('ask("', 'ask(await task.secret("weather") + "? '))
    said = project.cli("up", code=1)
    assert "give them in A2A_SECRET_WEATHER" in said["error"]["text"]
    project.environment["A2A_SECRET_WEATHER"] = "sunny"
    with collecting() as collector:
        project.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        project.environment["OTEL_EXPORTER_OTLP_HEADERS"] = "x-key=confidential"
        project.cli("up")
        asked = project.cli("send", "tailor", "A coat, please.", code=WAITS)
        assert asked["task"]["status"]["message"]["parts"][0]["text"].startswith("sunny? ")
        eventually(lambda: collector.tree().keys() >= SPANS)
        del project.environment["OTEL_EXPORTER_OTLP_ENDPOINT"], project.environment["OTEL_EXPORTER_OTLP_HEADERS"]
    tree = collector.tree()
    assert tree["invoke_agent Tailor"] == "SendStreamingMessage tailor"
    assert collector.services == {"my-agents"}
    assert {headers.get("x-key") for headers in collector.headers} == {"confidential"}
    written = [path for path in (project.path / ".a2a").rglob("template.yaml") if "confidential" in path.read_text()]
    assert written == []
    table.write_text(before[0])
    agent.write_text(before[1])


def test_up_names_a_missing_module_and_the_running_stack_goes_on(project: Folder) -> None:
    project.cli("up")
    agent = project.path / "my_agents/tailor.py"
    before = agent.read_text()
    agent.write_text(f"import no_such_module\n{before}")
    said = project.cli("up", code=1)
    agent.write_text(before)
    assert "my_agents.tailor:tailor needs the module 'no_such_module'" in said["error"]["text"]
    assert project.cli("send", "tailor", "A coat, please.", code=WAITS)
