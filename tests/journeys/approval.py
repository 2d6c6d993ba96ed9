"""An approval of two days with a reminder after one, in the local stack, so many times faster: ``--factor 60``.

The agent's own times are divided by the factor; the stack's clocks go on as they do. Prints when the reminder's webhook
was sent and when the task ended, beside their due times. With ``--factor 60`` it takes 48 minutes:
``PYTHONPATH=bench python -m tests.journeys.approval``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from a2a_serverless.protocol.protojson import read_timestamp
from a2a_serverless_tools.stack import local_stack, paths, processes
from projects import AGENT, agent_file, make_project

if TYPE_CHECKING:
    from collections.abc import Callable

DAY_S: Final = 86_400
PROGRAM: Final = Path(sys.executable).with_name("a2a-serverless")
SOURCE: Final = '''"""An agent that asks for an approval."""

from a2a_serverless import Skill, TaskContext, agent

SKILL = Skill("order", "Order", "Orders.", ("bench",))


@agent(id="tailor", name="Tailor", description="Orders.", skills=[SKILL])
async def tailor(task: TaskContext) -> str:
    try:
        answer = await task.ask("May I order?", timeout_s={timeout_s}, remind_s={remind_s})
    except TimeoutError:
        return "Not ordered: nobody has answered."
    return answer.text()
'''


def measure(factor: float) -> dict[str, Any]:
    """Plays one approval that nobody gives; returns seconds after its question."""
    agent = agent_file(make_project("approval"))
    agent.write_text(SOURCE.format(timeout_s=2 * DAY_S / factor, remind_s=DAY_S / factor))
    emulator, api, receiver = (processes.claim_port(part, 0) for part in ("emulator", "api", "receiver"))
    here, console = paths.find(agent.parent.parent), Console(stderr=True)
    try:
        stack = local_stack.up(here, local_stack.Options(emulator, api, receiver), console)

        def typed(*words: str) -> Any:
            command = [str(PROGRAM), *words, "--url", stack.api.url, "--json"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own program
            return json.loads(done.stdout)

        task = typed("send", AGENT, "a lamp", "--no-wait", "--inbox", stack.receiver.url)["task"]["id"]
        timeline = _ended(lambda: typed("trace", AGENT, task), 2 * DAY_S / factor + 300)
    finally:
        local_stack.down(here, console)
    return report(timeline, factor)


def report(timeline: Any, factor: float) -> dict[str, Any]:
    """The times of an approval, from its timeline, in seconds after the question."""
    asked, reminded, ended = (
        [event for event in timeline["events"] if event.get("state") == state]
        for state in ("input-required", "input-required", timeline["state"])
    )
    began = read_timestamp(asked[0]["at"])
    (webhook,) = timeline["deliveries"]
    told = {one["eventNumber"]: one["at"] for one in webhook["attempts"] if one.get("eventNumber")}

    def after_s(at: str) -> float:
        return (read_timestamp(at) - began) / 1000

    return {
        "factor": factor,
        "questions": len(asked),
        "reminder due": DAY_S / factor,
        "reminder": after_s(reminded[1]["at"]),
        "webhook of the reminder": after_s(told[reminded[1]["eventNumber"]]),
        "end due": 2 * DAY_S / factor,
        "end": after_s(ended[-1]["at"]),
        "state": timeline["state"],
    }


def _ended(trace: Callable[[], Any], limit_s: float) -> Any:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        timeline = trace()
        if timeline["state"] == "completed":
            return timeline
        time.sleep(20)
    raise SystemExit(f"the task has not ended within {limit_s:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--factor", type=float, default=60, help="how many times faster (%(default)s)")
    sys.stdout.write(json.dumps(measure(parser.parse_args().factor), indent=1) + "\n")
