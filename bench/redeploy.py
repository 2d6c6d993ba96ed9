"""A redeployment while tasks run: it deploys new code while one-minute tasks work, and checks their results.

The stack is made from a copy of the checkout with one more agent, which works slowly and asks a question halfway. Its
code is changed and built again, tasks are started, and the new build is deployed: the first half of each task runs on
the old release, the half after the answer on the new one. Each task must end once, with every step run once and every
event delivered to its webhook.

    make redeploy
"""

from __future__ import annotations

import json
import shutil
import sys
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from a2a_serverless.client import Client, over_urllib, text_message
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import (
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a_serverless.stack import local_stack, paths, processes, sam
from a2a_serverless.stack.paths import CHECKOUT, Paths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COPIED: Final = (*sam.INPUTS, "README.md", "LICENSE", "functions", "shared", "webhook_receiver", "examples")
TASKS: Final = 4
STEPS: Final = 60
TIMEOUT_S: Final = 300
SLOW: Final = f'''"""Works slowly, so that something happens meanwhile."""

import asyncio

from a2a_serverless import Skill, TaskContext, agent

SKILL = Skill("slow", "Slow", "Takes its time.", ("slow",))
RELEASE = 1


@agent(id="slow", name="Slow", description="Takes its time.", skills=[SKILL])
async def slow(task: TaskContext) -> None:
    """{STEPS} steps of a second, and a question."""
    for number in range({STEPS}):
        if number == {STEPS // 2}:
            await task.ask("Shall I go on?")
        said = await task.step(f"step {{number}}", wait, number)
        await task.emit("steps.txt", said, append=True, last=number == {STEPS - 1})


async def wait(number: int) -> str:
    """One step."""
    await asyncio.sleep(1)
    return f"{{number}} by release {{RELEASE}}\\n"
'''


def checkout(folder: Path) -> Paths:
    """Copies the checkout and adds the slow agent."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in COPIED:
        source, target = CHECKOUT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy(source, target)
    (folder / ".a2a").mkdir()
    (folder / ".a2a/venvs").symlink_to(CHECKOUT / ".a2a/venvs")
    (folder / "shared/my_agents/slow.py").write_text(SLOW)
    template = folder / "template.yaml"
    template.write_text(template.read_text().replace(" AGENTS: ", " AGENTS: my_agents.slow:slow,", 1))
    return paths.find(folder)


def changed(here: Paths) -> None:
    """Changes the code of every function, as a new release does."""
    slow = here.root / "shared/my_agents/slow.py"
    slow.write_text(slow.read_text().replace("RELEASE = 1", "RELEASE = 2"))
    library = here.root / "shared/a2a_serverless/__init__.py"
    library.write_text('"""A2A on AWS Lambda, the next release."""\n')


def begin(stack: local_stack.RunningStack) -> list[str]:
    """Starts tasks with webhooks; returns when all of them work."""
    agent, found = slow_agent(stack), []
    for _ in range(TASKS):
        config = fetched(f"{stack.receiver.url}/expectations", {})["pushNotificationConfig"]
        push = TaskPushNotificationConfig(url=config["url"], token=config["token"])
        task = agent.send(
            SendMessageRequest(
                message=text_message("go"),
                configuration=SendMessageConfiguration(return_immediately=True, task_push_notification_config=push),
            )
        )
        assert isinstance(task, Task)  # noqa: S101 - this agent answers with tasks
        found.append(task.id)
    until = time.monotonic() + TIMEOUT_S
    while not all(agent.get(task).artifacts for task in found) and time.monotonic() < until:
        time.sleep(0.5)
    return found


def slow_agent(stack: local_stack.RunningStack) -> Client:
    """Makes a client of the agent through the emulator's REST API, so that the deployed function answers."""
    return Client(f"{stack.deployment.rest_url}/slow", over_urllib)


def fetched(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Fetches JSON from a local server; a body is POSTed."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - on this machine
        return dict(json.loads(answer.read()))


def answered(stack: local_stack.RunningStack, tasks: list[str]) -> None:
    """Answers every task's question as soon as it is asked."""
    agent, until, open_ = slow_agent(stack), time.monotonic() + TIMEOUT_S, set(tasks)
    while open_ and time.monotonic() < until:
        for task in [one for one in open_ if agent.get(one).status.state is TaskState.INPUT_REQUIRED]:
            agent.send(
                SendMessageRequest(
                    message=text_message("yes", task_id=task),
                    configuration=SendMessageConfiguration(return_immediately=True),
                )
            )
            open_.discard(task)
        time.sleep(1)


def ended(stack: local_stack.RunningStack, tasks: list[str]) -> list[Task]:
    """Returns the tasks when they have ended, or after ``TIMEOUT_S``."""
    agent, until = slow_agent(stack), time.monotonic() + TIMEOUT_S
    while True:
        found = [agent.get(task) for task in tasks]
        told = all(delivered(stack, task) for task in tasks)
        if (told and all(task.status.state in TERMINAL for task in found)) or time.monotonic() > until:
            return found
        time.sleep(1)


def delivered(stack: local_stack.RunningStack, task: str) -> bool:
    """Returns whether all events were delivered to the task's webhook."""
    log = fetched(f"{stack.deployment.rest_url}/slow/tasks/{task}/deliveries")["deliveries"]
    return all(one["deliveredUpTo"] == one["lastEvent"] for one in log)


def wrong_with(stack: local_stack.RunningStack, task: Task) -> Iterator[str]:
    """Yields what is wrong with a task."""
    lines = task.artifacts[0].text().splitlines() if task.artifacts else []
    if task.status.state.value != "completed":
        yield f"{task.id} is {task.status.state.value}"
    if [int(line.partition(" ")[0]) for line in lines] != list(range(STEPS)):
        yield f"{task.id} has other steps than {STEPS}, each once: {lines}"
    if not delivered(stack, task.id):
        yield f"{task.id} has a webhook that lacks events"


@contextmanager
def running(here: Paths) -> Iterator[local_stack.RunningStack]:
    """Runs the stack while the block lasts."""
    emulator, api, receiver = (processes.claim_port(part, 0) for part in ("emulator", "api", "receiver"))
    console = Console(stderr=True)
    try:
        yield local_stack.up(here, local_stack.Options(emulator, api, receiver), console)
    finally:
        local_stack.down(here, console)


def redeploy(here: Paths, stack: local_stack.RunningStack, release: sam.Build) -> None:
    """Deploys a build over a running stack, as ``make up`` does."""
    options = local_stack.Options(stack.emulator.port, stack.api.port, stack.receiver.port)
    parameters, switches = local_stack.local_parameters(options), local_stack.local_switches(options)
    sam.deploy(here, release, stack.emulator.url, parameters, switches)


def main() -> int:
    """Runs the check and prints its result; returns the exit code."""
    here = checkout(CHECKOUT / ".a2a/redeploy")
    with running(here) as stack:
        changed(here)
        release = sam.build(here, sam.this_machine())
        tasks = begin(stack)
        before = [len(slow_agent(stack).get(task).artifacts[0].text().splitlines()) for task in tasks]
        redeploy(here, stack, release)
        meanwhile = [len(slow_agent(stack).get(task).artifacts[0].text().splitlines()) for task in tasks]
        answered(stack, tasks)
        found = ended(stack, tasks)
        wrong = [line for task in found for line in wrong_with(stack, task)]
        lines = [line for task in found for line in task.artifacts[0].text().splitlines()]
    old, new = (sum(line.endswith(f"release {number}") for line in lines) for number in (1, 2))
    print(f"{len(found)} tasks of {STEPS} steps; {before} were done when the deployment began, {meanwhile} at its end;")
    print(f"{old} steps ran on the old release and {new} on the new one.")
    print("\n".join(wrong) or "Every task ended once, each step ran once, and every webhook got every event.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
