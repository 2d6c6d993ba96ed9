"""How soon a task runs: after a sleep, after an event from outside, after the kill of its worker (N22, N23, N24).

In the local stack, by the clock. The agent notes the time of each act in a file: the end of a sleep of five seconds
beside its due time, the begin of the code behind an event beside the POST, and each run of a long step, whose worker
gets a SIGKILL at several moments of the step. The functions are warm, but for the worker that takes the place of the
killed one. In a second stack `a2a-serverless work` runs the tasks: it is killed at the same moments, and started again
under the same name.

A run renews its lease of 15 s every 5 s, and two clocks may differ by 2 s: so a killed worker's task is free 12 to 18 s
after the kill. What is measured beyond that are the queue and the start of a new worker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console

from a2a_serverless.client import Client, ClientRequest, open_request, text_message
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task
from a2a_serverless_tools.stack import local_stack, paths, processes
from chaos import function_processes
from measuring import Report, figure, goal, main
from projects import AGENT, agent_file, make_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TIMEOUT_S: Final = 180
MOMENTS: Final = (0.0, 0.9, 5.5, 8.0)  # of the kill, in seconds since the step began
NAMED: Final = '\n[tool.a2a-serverless.constants]\nWorkerService = "ecs-tasks.amazonaws.com"\n'
SOURCE: Final = '''"""An agent that notes when it does what."""

import asyncio
import time
from pathlib import Path

from a2a_serverless import Skill, TaskContext, agent

SKILL = Skill("wait", "Wait", "Waits.", ("bench",))


def note(words: object) -> None:
    with Path({notes!r}).open("a") as notes:
        notes.write(f"{{time.time()}} {{words}}\\n")


@agent(id="tailor", name="Tailor", description="Waits.", skills=[SKILL])
async def tailor(task: TaskContext) -> str:
    if task.text() == "sleep":
        began = await task.now("began")
        await task.sleep("short", 5)
        note(began.timestamp() + 5)
    elif task.text() == "event":
        callback = await task.callback("event")
        note(callback.url)
        await callback.received()
        note("")
    else:
        await task.step("work", work)
    return "done"


async def work() -> None:
    note("")
    await asyncio.sleep(300)
'''


def measure(rounds: int) -> Report:
    """Measures all in two stacks, kills in each round."""
    with _up("waking") as (stack, notes, _):
        sleeps = [_sleep_late_s(stack, notes) for _ in range(10)]
        events = [_event_s(stack, notes) for _ in range(11)][1:]
        kills = _by_moment(lambda moment: _recovered_s(stack, notes, moment), rounds)
    with _up("waking-work", NAMED) as (stack, notes, environment):
        restarts = _by_moment(lambda moment: _restarted_s(stack, notes, environment, moment), rounds)
    return Report(
        "A task that is woken",
        __doc__ or "",
        [
            figure("from the due time of a sleep to the code behind it", "s", sleeps, ours=True),
            figure("from an event to the code behind it", "s", events, ours=True),
            *(
                figure(f"killed {moment:g} s into the step: runs again", "s", kills[moment], ours=True)
                for moment in kills
            ),
            *(
                figure(f"`work` killed {moment:g} s into it, and started again", "s", restarts[moment], ours=True)
                for moment in restarts
            ),
        ],
        [
            goal("N22", "the latest end of a sleep, s", "<=", 2, [max(sleeps)]),
            goal("N23", "an event to running code, p50, s", "<=", 0.3, events),
            goal("N24", "a killed worker to its task running again, at most, s", "<=", 20, [_worst(kills)]),
            goal("N24", "`work` started again to its task running, at most, s", "<=", 5, [_worst(restarts)]),
        ],
    )


@contextmanager
def _up(name: str, settings: str = "") -> Iterator[tuple[local_stack.RunningStack, Path, dict[str, str]]]:
    """A stack of a new project, the file of its agent's notes, and the environment of commands for it."""
    agent = agent_file(make_project(name))
    project = agent.parent.parent
    notes = project / "notes.txt"
    agent.write_text(SOURCE.format(notes=str(notes)))
    with (project / "pyproject.toml").open("a") as file:
        file.write(settings)
    ports = {part: processes.claim_port(part, 0) for part in ("emulator", "api", "receiver")}
    here, console = paths.find(project), Console(stderr=True)
    environment = {f"A2A_{part.upper()}_PORT": str(port) for part, port in ports.items()}
    try:
        yield (
            local_stack.up(here, local_stack.Options(ports["emulator"], ports["api"], ports["receiver"]), console),
            notes,
            {**os.environ, **environment},
        )
    finally:
        local_stack.down(here, console)


def _by_moment(measure_s: Callable[[float], float], rounds: int) -> dict[float, list[float]]:
    return {moment: [measure_s(moment) for _ in range(rounds)] for moment in MOMENTS}


def _worst(seconds: dict[float, list[float]]) -> float:
    return max(max(values) for values in seconds.values())


def _send(stack: local_stack.RunningStack, notes: Path, text: str) -> str:
    notes.write_text("")
    client = Client(f"{stack.api.url}/{AGENT}", open_request)
    configuration = SendMessageConfiguration(return_immediately=True)
    task = client.send(SendMessageRequest(message=text_message(text), configuration=configuration))
    return task.id if isinstance(task, Task) else ""


def _sleep_late_s(stack: local_stack.RunningStack, notes: Path) -> float:
    _send(stack, notes, "sleep")
    at, due = _note(notes, 1)
    return at - float(due)


def _event_s(stack: local_stack.RunningStack, notes: Path) -> float:
    _send(stack, notes, "event")
    _, url = _note(notes, 1)
    time.sleep(1)  # the task is suspended then
    posted = time.time()
    with open_request(ClientRequest(url, body=b"{}")):
        return _note(notes, 2)[0] - posted


def _recovered_s(stack: local_stack.RunningStack, notes: Path, moment: float) -> float:
    task_id = _send(stack, notes, "work")
    _note(notes, 1)
    time.sleep(moment)
    for worker in function_processes(stack, "worker"):
        os.kill(worker, signal.SIGKILL)
    killed = time.time()
    again, _ = _note(notes, 2)
    Client(f"{stack.api.url}/{AGENT}", open_request).cancel(task_id)
    return again - killed


def _restarted_s(stack: local_stack.RunningStack, notes: Path, environment: dict[str, str], moment: float) -> float:
    """Seconds from the start of the second process to its run of the task of the first, which was killed."""
    command = [str(Path(sys.executable).with_name("a2a-serverless")), "work", "--local", "--name", "one"]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=notes.parent, env=environment, stdout=subprocess.DEVNULL)

    with start() as first:
        task_id = _send(stack, notes, "work")
        _note(notes, 1)
        time.sleep(moment)
        first.kill()
    began = time.time()
    with start() as second:
        try:
            again, _ = _note(notes, 2)
            Client(f"{stack.api.url}/{AGENT}", open_request).cancel(task_id)
        finally:
            second.terminate()
    return again - began


def _note(notes: Path, number: int) -> tuple[float, str]:
    """Waits for the note of this number; returns its time and its words."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        if len(lines := notes.read_text().splitlines()) >= number:
            at, _, words = lines[number - 1].partition(" ")
            return float(at), words
        time.sleep(0.02)
    raise SystemExit(f"note {number} has not come within {TIMEOUT_S} s")


if __name__ == "__main__":
    main(measure, rounds=1)
