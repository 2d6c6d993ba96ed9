"""How soon a task runs: after a sleep, after an event from outside, after the kill of its worker (N22, N23, N24).

In the local stack, by the clock. The agent notes the time of each act in a file: the end of a sleep of five seconds
beside its due time, the begin of the code behind an event beside the POST, and each run of a long step, whose worker
gets a SIGKILL: at once, and after three and seven seconds. The functions are warm, but for the worker that takes the
place of the killed one.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Final

from rich.console import Console

from a2a_serverless.client import Client, ClientRequest, open_request, text_message
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task
from a2a_serverless_tools.stack import local_stack, paths, processes
from chaos import function_processes
from measuring import Report, figure, goal, main
from projects import AGENT, agent_file, make_project

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S: Final = 180
MOMENTS: Final = (0.0, 3.0, 7.0)  # of the kill, in seconds since the step began
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
    """Measures all three in one stack."""
    agent = agent_file(make_project("waking"))
    notes = agent.parent.parent / "notes.txt"
    agent.write_text(SOURCE.format(notes=str(notes)))
    emulator, api, receiver = (processes.claim_port(part, 0) for part in ("emulator", "api", "receiver"))
    here, console = paths.find(notes.parent), Console(stderr=True)
    try:
        stack = local_stack.up(here, local_stack.Options(emulator, api, receiver), console)
        sleeps = [_sleep_late_s(stack, notes) for _ in range(10)]
        events = [_event_s(stack, notes) for _ in range(11)][1:]
        kills = [_recovered_s(stack, notes, MOMENTS[number % len(MOMENTS)]) for number in range(rounds)]
    finally:
        local_stack.down(here, console)
    return Report(
        "A task that is woken",
        __doc__ or "",
        [
            figure("from the due time of a sleep to the code behind it", "s", sleeps, ours=True),
            figure("from an event to the code behind it", "s", events, ours=True),
            figure("from the kill of a worker to the task running again", "s", kills, ours=True),
        ],
        [
            goal("N22", "the latest end of a sleep, s", "<=", 2, [max(sleeps)]),
            goal("N23", "an event to running code, p50, s", "<=", 0.3, events),
            goal("N24", "from the kill of a worker to its task running again, at most, s", "<=", 20, [max(kills)]),
        ],
    )


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
    main(measure, rounds=3)
