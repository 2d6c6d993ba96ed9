"""``a2a-serverless dev`` as a developer starts it, in a project of its own, on ports that the system picks."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from a2a_serverless.client import Client, text_message
from a2a_serverless.protocol.v1 import Message, SendMessageConfiguration, SendMessageRequest, Task
from tests.observed import observed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROGRAM = str(Path(sys.executable).with_name("a2a-serverless"))
DEADLINE_S = 60.0
HEAD = """\
import asyncio
import time

from a2a_serverless import Skill, TaskContext, agent


"""


def source_of(name: str, work: str, runs: str = "queued") -> str:
    """A module with an agent ``name`` whose function is ``work``, the body of ``async def``, as text."""
    card = f'id="{name}", name="{name}", description="{name}", runs="{runs}", skills=[Skill("a", "a", "a", ("a",))]'
    body = textwrap.indent(textwrap.dedent(work).strip(), "    ")
    return f"{HEAD}@agent({card})\nasync def {name}(task: TaskContext) -> str:\n{body}\n"


@dataclass(frozen=True)
class Project:
    """A project with a package ``workshop``, one module for each agent."""

    root: Path

    def write(self, name: str, work: str, runs: str = "queued") -> None:
        """Saves the module of an agent."""
        (self.root / "workshop" / f"{name}.py").write_text(source_of(name, work, runs))

    def list(self, *names: str) -> None:
        """Saves ``pyproject.toml`` with these agents."""
        paths = json.dumps([f"workshop.{name}:{name}" for name in names])
        text = f'[project]\nname = "workshop"\n\n[tool.a2a-serverless]\nagents = {paths}\n'
        (self.root / "pyproject.toml").write_text(text)


def make_project(root: Path, **works: str) -> Project:
    """A project with an agent for each of ``works``."""
    (root / "workshop").mkdir(parents=True)
    (root / "workshop" / "__init__.py").touch()
    project = Project(root)
    project.list(*works)
    for name, work in works.items():
        project.write(name, work)
    return project


class Terminal:
    """A running ``dev``: its lines are parsed, or ``{"line": ...}`` for what agents print."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.seen: list[dict[str, Any]] = []
        self._new: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._new.put(json.loads(line) if line.startswith('{"event"') else {"line": line.rstrip()})
        self._new.put({"event": "over"})

    def wait_for(self, event: str, **fields: object) -> dict[str, Any]:
        """The next line with this event and these fields."""
        return self.wait_until(lambda said: said.get("event") == event and fields.items() <= said.items())

    def wait_until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next line that is wanted."""
        give_up = time.monotonic() + DEADLINE_S
        while True:
            try:
                said = self._new.get(timeout=max(0.0, give_up - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"not said in time; said: {self.seen}") from None
            self.seen.append(said)
            if wanted(said):
                return said
            assert said != {"event": "over"}, f"dev has ended; it said: {self.seen}"

    def wait_for_reload_and(self, text: str) -> str:
        """The next line with this text in it, after or before the line that says that the agents are reloaded.

        The new code runs while ``dev`` says so: nobody promises an order.
        """
        lines: dict[str, str] = {}

        def is_last(said: dict[str, Any]) -> bool:
            if said.get("event") == "reloaded":
                lines.setdefault("reloaded", "")
            elif text in str(said.get("line", said.get("text", ""))):
                lines.setdefault("wanted", str(said.get("line", said.get("text"))))
            return len(lines) == 2

        self.wait_until(is_last)
        return lines["wanted"]

    def wait_for_line(self, text: str) -> str:
        """The next printed line with this text in it."""
        return str(self.wait_until(lambda said: text in said.get("line", ""))["line"])


class Dev(Terminal):
    """A running ``dev --json``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(process)
        self.start = self.wait_for("started")
        self.url, self.inbox = str(self.start["url"]), str(self.start["inbox"])

    def client(self, agent: str) -> Client:
        return Client(f"{self.url}/{agent}", observed(self.url))

    def send(self, agent: str, text: str = "hello", task_id: str | None = None, **options: Any) -> Task | Message:
        """Sends a message and returns the immediate answer."""
        configuration = SendMessageConfiguration(return_immediately=True, **options)
        request = SendMessageRequest(message=text_message(text, task_id=task_id), configuration=configuration)
        return self.client(agent).send(request)

    def task(self, agent: str, text: str = "hello", **options: Any) -> Task:
        """Sends a message and returns the new task."""
        task = self.send(agent, text, **options)
        assert isinstance(task, Task)
        return task

    def ended(self, agent: str, text: str = "hello") -> dict[str, Any]:
        """Sends a message and returns the last line about its task."""
        task = self.task(agent, text)
        return self.wait_until(lambda said: said.get("task") == task.id and said.get("state") in ENDS)


ENDS = {"completed", "failed", "canceled", "rejected", "input-required"}


def start(project: Project, *options: str) -> subprocess.Popen[str]:
    """Starts ``dev``."""
    ports = [] if "--port" in options else ["--port", "0", "--receiver-port", "0"]
    return subprocess.Popen(  # noqa: S603 - our own program
        [PROGRAM, "dev", *ports, *options],
        cwd=project.root,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@contextmanager
def running(project: Project, *options: str) -> Iterator[Dev]:
    """A running ``dev --json``, which is killed in the end."""
    with start(project, "--json", *options) as process:
        try:
            yield Dev(process)
        finally:
            process.kill()
