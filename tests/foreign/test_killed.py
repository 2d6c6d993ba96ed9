"""One agent of each framework in the local stack, in a project of its own, whose workers get a SIGKILL.

The project is made by ``init``. It gets copies of the agents and of the lines that serve them. All five tasks are in
the middle of their work when their workers die: each waits for the second answer of its model.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

pytest.importorskip("a2a_serverless_tools.stack", reason="the stack's tools are not installed here")

from a2a_serverless_tools.stack import processes
from a2a_serverless_tools.stack.environments import find_uv, package_index
from projects import make_project
from tests.foreign.cases import CASES, Case
from tests.foreign.model_server import ModelServer, model_server
from tests.foreign.outside import Outside
from tests.journeys.projects import Folder
from tests.stack.local import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.foreign.model_server import ModelRequest, Said

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

HERE: Final = Path(__file__).parent
KILLED: Final = ("adk_skills", "dice", "currency", "bank_support", "agents_as_tools")
PLACES: Final = {
    "adk_skills": ("You convert currencies by", "/v1/latest"),
    "dice": ("You roll dice", ""),
    "currency": ("You convert currencies. Use", "/latest"),
    "bank_support": ("You support", ""),
    "agents_as_tools": ("You send questions", "/notes"),
}
"""How the instructions of an agent begin, and the path of the service that it calls."""
PACKAGES: Final = (
    "a2a-serverless[a2a-sdk,adk,langgraph,pydantic-ai,strands]>=0.1,<0.2",
    *("a2a-sdk==1.3.0", "httpx", "langchain-google-genai", "langchain-openai", "pydantic-ai-slim[openai]"),
)
WAITS, HELD_S = 4, 120.0


class Held:
    """The servers of all agents. The answer to the second request of each conversation waits for ``killed``."""

    def __init__(self) -> None:
        self.cases = {case.name: case for case in CASES if case.name in KILLED}
        self.outsides = {name: Outside(case.say, case.serve, case.by_turn) for name, case in self.cases.items()}
        self.held: set[str] = set()
        self.killed = threading.Event()
        self._lock = threading.Lock()

    def say(self, request: ModelRequest) -> Said | int:
        name = self._name_of(request)
        with self._lock:
            said = self.outsides[name].answer(request)
        if request.number == 1 and not self.killed.is_set() and request.system.startswith(PLACES[name][0]):
            self.held.add(name)
            assert self.killed.wait(HELD_S)
        return said

    def serve(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        name = next(name for name, (_, place) in PLACES.items() if place and path.startswith(place))
        with self._lock:
            return self.outsides[name].serve_path(method, path, body)

    def _name_of(self, request: ModelRequest) -> str:
        if request.api == "bedrock":
            return "agents_as_tools"
        if request.system.startswith("The status is"):
            return "currency"
        return next(name for name, (start, _) in PLACES.items() if request.system.startswith(start))


@contextmanager
def project(server: ModelServer, bank: Path) -> Iterator[Folder]:
    """The project, with its stack running."""
    path = make_project("foreign")
    for name in ("agents", "lines"):
        (path / "foreign" / name).mkdir(parents=True)
    for name in KILLED:
        for place in (f"agents/{name}.py", f"lines/{name}.py"):
            text = (HERE / place).read_text().replace("tests.foreign.", "foreign.")
            (path / "foreign" / place).write_text(text)
    skill = "agents/skills/frankfurter/SKILL.md"
    (path / "foreign" / skill).parent.mkdir(parents=True)
    (path / "foreign" / skill).write_text((HERE / skill).read_text())
    variables = {name: value for name, value in server.environment().items() if name != "AWS_REGION"}
    variables = {name: value for name, value in variables.items() if "KEY" not in name or "API" in name}
    variables |= {"FRANKFURTER_URL": server.root, "NOTES_URL": server.root, "BANK_DB": str(bank)}
    settings = path / "pyproject.toml"
    text = settings.read_text().replace('"a2a-serverless>=0.1,<0.2"', json.dumps(PACKAGES)[1:-1])
    text = text.replace('"my_agents.tailor:tailor"', ", ".join(f'"foreign.lines.{name}:agent"' for name in KILLED))
    text = text.replace('"foreign.tailor:tailor"', ", ".join(f'"foreign.lines.{name}:agent"' for name in KILLED))
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


def test_workers_that_are_killed_lose_and_repeat_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held()
    with model_server(held.say) as server, project(server, tmp_path / "bank.db") as made:
        monkeypatch.setenv("FRANKFURTER_URL", server.root)  # the model of the skills says it
        server.serve = held.serve
        tasks = {name: begin(made, case) for name, case in held.cases.items()}
        eventually(lambda: held.held == {*KILLED})
        killed = workers(made)
        for worker in killed:
            os.kill(worker, signal.SIGKILL)
        held.killed.set()
        assert killed
        for name, task_id in tasks.items():
            done = eventually(partial(ended, made, name, task_id))
            assert done["status"]["state"] == "TASK_STATE_COMPLETED", done
            assert held.cases[name].final in read(done)
    for name, seen in held.outsides.items():
        assert seen.wrong == [], name
        assert seen.count(held.cases[name].effect) == bool(held.cases[name].effect), (name, seen.effects)
        assert max(seen.effects.values()) == 2, (name, "the request that was held came again")


def ended(made: Folder, name: str, task_id: str) -> Any:
    """The task, once it has ended."""
    answer = made.cli("get", name, task_id)
    task = answer.get("task", answer)
    return task if task["status"]["state"] in {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED"} else None


def read(task: Any) -> str:
    """What the artifacts of a task say."""
    parts = [part for artifact in task.get("artifacts", ()) for part in artifact["parts"]]
    return "".join(part["text"] if "text" in part else json.dumps(part["data"]) for part in parts)


def begin(made: Folder, case: Case) -> str:
    """Sends the message, and answers the question; returns the task's id."""
    sent = made.cli(
        "send", case.name, case.text, *([] if case.answers else ["--no-wait"]), code=WAITS if case.answers else 0
    )
    for answer in case.answers:
        made.cli("send", case.name, answer, "--task", sent["task"]["id"], "--no-wait")
    return str(sent["task"]["id"])
