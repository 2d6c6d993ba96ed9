"""From the kill of a worker to its task running again, seconds by the clock, in the local stack (N24).

The agent is in a step of five minutes and notes each run of it in a file. The worker's process gets a SIGKILL 5 seconds
after the step has begun. The emulator delivers the killed worker's message again after its visibility timeout, as SQS
does; the message that looks whether a run lives comes sooner.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Final

from rich.console import Console

from a2a_serverless.client import Client, over_urllib, text_message
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest, Task
from a2a_serverless_tools.stack import local_stack, paths, processes
from chaos import function_processes
from measuring import Report, figure, goal, main
from projects import AGENT, agent_file, make_project

if TYPE_CHECKING:
    from pathlib import Path

N24_S: Final = 45
AT_WORK_S: Final = 5
TIMEOUT_S: Final = 180
SLOW: Final = '''"""An agent in one long step."""

import asyncio
import time
from pathlib import Path

from a2a_serverless import Skill, TaskContext, agent

SKILL = Skill("wait", "Wait", "Waits.", ("bench",))


@agent(id="tailor", name="Tailor", description="Waits.", skills=[SKILL])
async def tailor(task: TaskContext) -> str:
    async def work() -> str:
        with Path({notes!r}).open("a") as notes:
            notes.write(f"{{time.time()}}\\n")
        await asyncio.sleep(300)
        return "done"

    return await task.step("work", work)
'''


def measure(rounds: int) -> Report:
    """Kills a worker once a round."""
    agent = agent_file(make_project("killed"))
    notes = agent.parent.parent / "runs.txt"
    agent.write_text(SLOW.format(notes=str(notes)))
    emulator, api, receiver = (processes.claim_port(part, 0) for part in ("emulator", "api", "receiver"))
    here, console = paths.find(notes.parent), Console(stderr=True)
    try:
        stack = local_stack.up(here, local_stack.Options(emulator, api, receiver), console)
        seconds = [_recovered_s(stack, notes) for _ in range(rounds)]
    finally:
        local_stack.down(here, console)
    return Report(
        "A killed worker",
        __doc__ or "",
        [figure("from the kill to the task running again", "s", seconds, ours=True)],
        [goal("N24", "from the kill of a worker to its task running again, s", "<=", N24_S, seconds)],
    )


def _recovered_s(stack: local_stack.RunningStack, notes: Path) -> float:
    notes.write_text("")
    client = Client(f"{stack.api.url}/{AGENT}", over_urllib)
    configuration = SendMessageConfiguration(return_immediately=True)
    task = client.send(SendMessageRequest(message=text_message("go"), configuration=configuration))
    _run_number(notes, 1)
    time.sleep(AT_WORK_S)
    for worker in function_processes(stack, "worker"):
        os.kill(worker, signal.SIGKILL)
    killed = time.time()
    again = _run_number(notes, 2)
    if isinstance(task, Task):
        client.cancel(task.id)
    return again - killed


def _run_number(notes: Path, number: int) -> float:
    """Waits for the begin of the step's run of this number; returns its time."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        if len(begun := notes.read_text().split()) >= number:
            return float(begun[number - 1])
        time.sleep(0.1)
    raise SystemExit(f"run {number} of the step has not begun within {TIMEOUT_S} s")


if __name__ == "__main__":
    main(measure, rounds=3)
