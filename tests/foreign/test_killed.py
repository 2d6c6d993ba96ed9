"""Agents of each framework in the local stack, in a project of their own, whose workers get a SIGKILL.

A project is made by ``init``. It gets copies of a framework's agents and of the lines that serve them: with all
frameworks in a project, each worker would import all of them. The agents are played one after the other. Each loses
its workers while its model answers for the second time.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

pytest.importorskip("a2a_serverless_tools.stack", reason="the stack's tools are not installed here")

from a2a_serverless_tools.stack import processes
from a2a_serverless_tools.stack.environments import find_uv, package_index
from projects import make_project
from tests.foreign.cases import CASES, PUBLISHED, SERVICES, Case
from tests.foreign.model_server import ModelServer, model_server
from tests.foreign.outside import Outside
from tests.journeys.projects import Folder
from tests.stack.local import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.foreign.model_server import ModelRequest, Said

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

HERE: Final = Path(__file__).parent
ASKS: Final = "TASK_STATE_INPUT_REQUIRED"
RESTS: Final = {ASKS, "TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_REJECTED"}


class Framework(NamedTuple):
    """The agents of a project, the extras that they need, and the other packages."""

    agents: tuple[str, ...]
    extras: str
    packages: tuple[str, ...] = ()


FRAMEWORKS: Final = {
    "adk": Framework(("adk_skills", "dice", "garden_service"), "[a2a-sdk,adk]", ("a2a-sdk==1.3.0", "httpx")),
    "langgraph": Framework(
        ("currency", "deep_research"),
        "[langgraph]",
        ("deepagents>=0.7.32,<0.8", "httpx", "langchain-google-genai", "langchain-openai"),
    ),
    "llama-index": Framework(
        ("file_chat",), "", ("httpx", "llama-index-llms-google-genai>=0.11,<1", "llama-index-workflows>=2.26,<3")
    ),
    "openai-agents": Framework(("airline",), "[openai-agents]"),
    "pydantic-ai": Framework(
        ("bank_support", "weather"), "[pydantic-ai]", ("httpx", "logfire[httpx]", "pydantic-ai-slim[openai]")
    ),
    "strands": Framework(("agents_as_tools",), "[strands]", ("httpx",)),
}


class Killing:
    """The servers of an agent. When its model is asked for the second time, the workers of the stack are killed."""

    def __init__(self, case: Case, made: Folder) -> None:
        self.outside = Outside(case.say, case.serve, case.by_turn)
        self.killed: list[int] = []
        self.interrupted = ""
        self._made = made

    def say(self, request: ModelRequest) -> Said | int:
        said = self.outside.answer(request)
        if len(self.outside.requests) == 2 and not self.killed:
            self.interrupted = [*self.outside.effects][-1]
            self.killed = workers(self._made)
            for worker in self.killed:
                os.kill(worker, signal.SIGKILL)
        return said


@dataclass
class Running:
    """The stack of a framework, and the server of its models and services."""

    folder: Folder
    server: ModelServer = field(repr=False)


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The running project of a framework."""
    with pytest.MonkeyPatch.context() as environment, model_server() as server:
        environment.setenv("FRANKFURTER_URL", server.root)  # the model of the skills says it
        with project(FRAMEWORKS[request.param], server, tmp_path_factory.mktemp("bank") / "bank.db") as folder:
            yield Running(folder, server)


@contextmanager
def project(framework: Framework, server: ModelServer, bank: Path) -> Iterator[Folder]:
    """The project, with its stack running."""
    path = make_project("foreign")
    copy_agents(framework, path)
    # A Lambda function has variables of these names from its platform.
    variables = {name: value for name, value in server.environment().items() if name != "AWS_REGION"}
    variables = {name: value for name, value in variables.items() if "KEY" not in name or "API" in name}
    variables |= {f"{service}_URL": server.root for service in SERVICES} | {"BANK_DB": str(bank)}
    requirements = (f"a2a-serverless{framework.extras}>=0.1,<0.2", *framework.packages)
    paths = ", ".join(f'"foreign.lines.{name}:{attribute_of(name)}"' for name in framework.agents)
    settings = path / "pyproject.toml"
    text = settings.read_text().replace('"a2a-serverless>=0.1,<0.2"', json.dumps(requirements)[1:-1])
    text = text.replace('"foreign.tailor:tailor"', paths)
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in variables.items())
    settings.write_text(
        text.replace("[tool.a2a-serverless.environment]\n", f"[tool.a2a-serverless.environment]\n{lines}")
    )
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "VIRTUAL_ENV", "PYTHON"))}
    ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER")}
    url = {"A2A_URL": f"http://127.0.0.1:{ports['A2A_API_PORT']}", "NO_COLOR": "1"}
    python = {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never", "UV_COMPILE_BYTECODE": "1"}
    made = Folder(path, {**ours, **ports, **url, **python, **package_index()})
    try:
        try:
            made.run(find_uv(), "sync", "--quiet")
        except AssertionError as error:
            if "CI" in os.environ:
                raise
            pytest.skip(f"packages cannot be installed here: {str(error)[-300:]}")
        made.cli("up")
        yield made
    finally:
        with suppress(AssertionError, json.JSONDecodeError):
            made.cli("down")


def copy_agents(framework: Framework, path: Path) -> None:
    """Copies the agents, their lines, and what both import, into a project."""
    for name in framework.agents:
        published = case_of(name).published
        for place in ("redirected.py", f"lines/{name}.py", *([] if published else [f"agents/{name}.py"])):
            file = path / "foreign" / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text((HERE / place).read_text().replace("tests.foreign.", "foreign."))
        if published:
            shutil.copytree(PUBLISHED / published, path / published)
    shutil.copytree(HERE / "agents/skills", path / "foreign/agents/skills", dirs_exist_ok=True)


def attribute_of(name: str) -> str:
    """The name of the agent in the module of its lines."""
    return name if f"async def {name}(" in (HERE / f"lines/{name}.py").read_text() else "agent"


def case_of(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def workers(made: Folder) -> list[int]:
    """The processes of this stack that run the worker."""
    port, found = f"GATEWAY_PORT={made.environment['A2A_EMULATOR_PORT']}".encode(), list[int]()
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            variables = place.read_bytes().split(b"\0")
            names = [one for one in variables if one.startswith(b"AWS_LAMBDA_FUNCTION_NAME=")]
            if port in variables and names and b"worker" in names[0].lower():
                found.append(int(place.parent.name))
    return found


PLAYED: Final = [
    pytest.param(framework, *case.values, id=case.id, marks=case.marks)
    for framework, named in FRAMEWORKS.items()
    for case in (case_of(name).param for name in named.agents)
]


@pytest.mark.parametrize(("running", "case"), PLAYED, indirect=["running"], scope="module")
def test_a_worker_that_is_killed_loses_and_repeats_nothing(running: Running, case: Case, tmp_path: Path) -> None:
    killing = Killing(case, running.folder)
    running.server.say, running.server.serve = killing.say, killing.outside.serve_path
    done = play(running.folder, case, tmp_path / "report.txt", killing)
    seen = killing.outside
    assert done["status"]["state"] == "TASK_STATE_COMPLETED", done
    assert case.final in read(done)
    assert killing.killed
    assert seen.wrong == []
    assert seen.count(case.effect) == bool(case.effect), seen.effects
    twice = {effect for effect, times in seen.effects.items() if times > 1}
    assert twice == {killing.interrupted}, "only the request that was interrupted comes again"
    assert seen.effects[killing.interrupted] == 2


def play(made: Folder, case: Case, file: Path, killing: Killing) -> Any:
    """Sends the message, and answers the questions; returns the task, once it has ended."""
    file.write_text(case.file)
    content = ["--file", str(file)] if case.file else [case.text]
    task_id = str(made.cli("send", case.name, *content, "--no-wait")["task"]["id"])

    answered = list[Any]()

    def rests() -> Any:
        answer = made.cli("get", case.name, task_id)
        task = answer.get("task", answer)
        return task if task["status"]["state"] in RESTS and task["status"] not in answered else None

    for answer in case.answers:
        task = eventually(rests)
        assert task["status"]["state"] == ASKS, task
        answered.append(task["status"])
        made.cli("send", case.name, answer, "--task", task_id, "--no-wait")
    assert eventually(lambda: killing.killed or rests())
    return eventually(rests)


def read(task: Any) -> str:
    """What a task says at its end: its artifacts, and its last message."""
    parts = [part for artifact in task.get("artifacts", ()) for part in artifact["parts"]]
    parts += task["status"].get("message", {}).get("parts", ())
    return "".join(part["text"] if "text" in part else json.dumps(part["data"]) for part in parts)
