"""A redeployment while tasks run: it deploys new code while one-minute tasks work, and checks their results.

The stack is made from a copy of the checkout with one more agent, which works slowly and asks a question halfway. Its
code is changed and built again, tasks are started, and the new build is deployed: the first half of each task runs on
the old release, the half after the answer on the new one. One task waits for its answer when the deployment begins, one
was sent and registered its webhook in A2A 0.3, one is followed by a stream. Each task must end once, with every step
run once and every event delivered to its webhook, in order and verified by the receiver; clients of both versions must
read the same, the list must have all tasks, and the stream every event once.

With ``--from REVISION`` (a commit of this repository) the old release is that revision: its own tools deploy it, this
checkout is deployed over it, and the webhook receiver stays the old one.

    make prove KIND=redeploy
    make prove KIND=redeploy ARGS="--from 02975a7"
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from a2a_serverless.client import Client, HttpError, Unreachable, open_request, text_message
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import (
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a_serverless_tools.stack import local_stack, paths, processes, sam
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.paths import CHECKOUT, Paths
from a2a_serverless_tools.stack.targets import Build, this_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from a2a_serverless.protocol.v1 import Message
    from a2a_serverless.protocol.versions import ProtocolVersion

COPIED: Final = ("template.yaml", "observability.yaml", "functions")
PROJECT: Final = '[project]\nname = "{name}"\n\n[tool.a2a-serverless]\nagents = {agents}\n'
TASKS: Final = 3
CONTEXT: Final = "redeploy"
GOOD: Final = frozenset({"accepted", "duplicate", "challenge"})
STEPS: Final = 60
TIMEOUT_S: Final = 300
SLOW: Final = '''"""Works slowly, so that something happens meanwhile."""

import asyncio

from a2a_serverless import Skill, TaskContext, agent

SKILL = Skill("slow", "Slow", "Takes its time.", ("slow",))
RELEASE = 1


@agent(id="slow", name="Slow", description="Takes its time.", skills=[SKILL])
async def slow(task: TaskContext) -> None:
    """As many steps of a second as the message says, and a question in the middle."""
    steps = int(task.text())
    for number in range(steps):
        if number == steps // 2:
            await task.ask("Shall I go on?")
        line = await task.step(f"step {number}", wait, number)
        await task.emit("steps.txt", line, append=True, last=number == steps - 1)


async def wait(number: int) -> str:
    """One step."""
    await asyncio.sleep(1)
    return f"{number} by release {RELEASE}\\n"
'''


def checkout(
    folder: Path, name: str = "slow", source: str = SLOW, agents: Sequence[str] = ("slow:slow",), *more: str
) -> Paths:
    """Makes a project with a module of agents, by default the slow one, and with ``more`` files of this checkout."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for copied in (*COPIED, *more):
        original, target = CHECKOUT / copied, folder / copied.removeprefix("shared/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if original.is_dir():
            shutil.copytree(original, target, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy(original, target)
    (folder / ".a2a").mkdir()
    (folder / ".a2a/venvs").symlink_to(CHECKOUT / ".a2a/venvs")
    (folder / f"{name}.py").write_text(source)
    (folder / "pyproject.toml").write_text(PROJECT.format(name=name, agents=json.dumps([*agents])))
    return paths.find(folder)


def changed(here: Paths) -> None:
    """Changes the code of every function, as a new release does."""
    slow = here.root / "slow.py"
    slow.write_text(slow.read_text().replace("RELEASE = 1", "RELEASE = 2"))
    for function in here.root.glob("functions/*/app.py"):
        function.write_text(function.read_text() + "# the next release\n")


@dataclass
class Watch:
    """What a stream and the webhook receiver got meanwhile."""

    stack: local_stack.RunningStack
    task: str = ""
    numbers: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    received: int = 0

    def follow(self) -> None:
        """Follows the stream of a new task to its end; when it breaks, comes back with the last number."""
        agent = Client(f"{self.stack.api.url}/slow", open_request)
        first, until = SendMessageRequest(message=message()), time.monotonic() + 2 * TIMEOUT_S
        while time.monotonic() < until:
            with suppress(Unreachable, HttpError, OSError):
                for event in agent.subscribe(self.task, self.numbers[-1]) if self.numbers else agent.stream(first):
                    self.task = self.task or event.task_id or ""
                    self.numbers += [event.n] if event.n else []
                    if event.state in TERMINAL:
                        return
            time.sleep(0.5)

    def read_inbox(self) -> None:
        """Notes what the receiver did not take as the next notification of its task."""
        last = 0
        while True:
            with suppress(OSError):
                for entry in fetched(f"{self.stack.receiver.url}/api/notifications?after={last}")["entries"]:
                    last, self.received = entry["number"], self.received + 1
                    if entry["outcome"] not in GOOD:
                        self.refused.append(f"the receiver got a notification that is {entry['outcome']}: {entry}")
            time.sleep(1)

    def wrong(self) -> Iterator[str]:
        """Yields what is wrong with the stream and the notifications."""
        yield from self.refused
        if self.numbers != list(range(self.numbers[0], self.numbers[0] + len(self.numbers))):
            yield f"the stream of {self.task} does not have every event once: {self.numbers}"


def message() -> Message:
    """Makes a first message of the one conversation."""
    return text_message(str(STEPS), context_id=CONTEXT)


def begin(stack: local_stack.RunningStack, version: ProtocolVersion = "1.0") -> str:
    """Starts a task with a webhook."""
    config = fetched(f"{stack.receiver.url}/expectations", {})["pushNotificationConfig"]
    push = TaskPushNotificationConfig(url=config["url"], token=config["token"])
    configuration = SendMessageConfiguration(return_immediately=True, task_push_notification_config=push)
    task = slow_agent(stack, version).send(SendMessageRequest(message=message(), configuration=configuration))
    assert isinstance(task, Task)  # noqa: S101 - this agent answers with tasks
    return task.id


def begin_all(stack: local_stack.RunningStack, watch: Watch) -> list[str]:
    """Starts every kind of task; returns when one waits for its answer and the others work."""
    agent, waiting = slow_agent(stack), begin(stack)
    wait_for(lambda: agent.get(waiting).status.state is TaskState.INPUT_REQUIRED)
    for work in (watch.read_inbox, watch.follow):
        Thread(target=work, daemon=True).start()
    found = [waiting, *(begin(stack) for _ in range(TASKS)), begin(stack, "0.3")]
    wait_for(lambda: bool(watch.numbers) and all(agent.get(task).artifacts for task in (*found, watch.task)))
    return [*found, watch.task]


def wait_for(reached: Callable[[], bool]) -> None:
    """Returns when it is so, or after ``TIMEOUT_S``."""
    until = time.monotonic() + TIMEOUT_S
    while not reached() and time.monotonic() < until:
        time.sleep(0.5)


def slow_agent(stack: local_stack.RunningStack, version: ProtocolVersion = "1.0") -> Client:
    """Makes a client of the agent through the emulator's REST API, so that the deployed function answers."""
    return Client(f"{stack.deployment.rest_url}/slow", open_request, version=version)


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
    """Returns the tasks when they have ended and their webhooks know it, or after ``TIMEOUT_S``."""
    agent = slow_agent(stack)
    wait_for(lambda: all(agent.get(task).status.state in TERMINAL and delivered(stack, task) for task in tasks))
    return [agent.get(task) for task in tasks]


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
    old = slow_agent(stack, "0.3").get(task.id)
    if (old.status.state, [one.text() for one in old.artifacts]) != (task.status.state, ["\n".join([*lines, ""])]):
        yield f"{task.id} is another task in A2A 0.3"


@contextmanager
def running(here: Paths) -> Iterator[local_stack.RunningStack]:
    """Runs the stack while the block lasts."""
    emulator, api, receiver = (processes.claim_port(part, 0) for part in ("emulator", "api", "receiver"))
    console = Console(stderr=True)
    try:
        yield local_stack.up(here, local_stack.Options(emulator, api, receiver), console)
    finally:
        local_stack.down(here, console)


STARTER: Final = """import os, pathlib, sys
sys.path.insert(0, "bench")
import redeploy
held = redeploy.running(redeploy.checkout(pathlib.Path(sys.argv[1])))
held.__enter__()
os._exit(0)  # the stack goes on
"""


@contextmanager
def running_revision(here: Paths, revision: str) -> Iterator[local_stack.RunningStack]:
    """Runs the stack of an earlier revision, started by its own tools, while the block lasts."""
    source, folder = CHECKOUT / ".a2a/revisions" / revision, here.state.parent
    if not source.exists():
        source.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", revision], cwd=CHECKOUT, stdout=subprocess.PIPE, check=True)  # noqa: S607
        subprocess.run(["tar", "x"], cwd=source, input=archive.stdout, check=True)  # noqa: S607
    subprocess.run(["make", "--silent", "setup"], cwd=source, check=True)  # noqa: S607
    try:
        shutil.rmtree(folder, ignore_errors=True)
        env = os.environ | {"PYTHONPATH": str(folder / "shared")}  # for its api, which has to know the slow agent
        subprocess.run([source / ".venv/bin/python", "-c", STARTER, folder], cwd=source, env=env, check=True)
        parts = {process.name: process for process in processes.started(here)}
        deployment = sam.outputs(parts["emulator"].url)
        yield local_stack.RunningStack(Build(here.builds, ()), deployment, **parts)
    finally:
        local_stack.down(here, Console(stderr=True))


def redeploy(here: Paths, stack: local_stack.RunningStack, release: Build) -> local_stack.RunningStack:
    """Deploys a build over a running stack and restarts the api, as ``make up`` does; the receiver goes on.

    The emulator makes a new REST API when its binary media types change; AWS changes the API that there is.
    """
    options = local_stack.Options(stack.emulator.port, stack.api.port, stack.receiver.port)
    parameters, switches = local_stack.local_parameters(options), local_stack.local_switches(options)
    deployment = sam.deploy(here, release, stack.emulator.url, parameters, switches)
    processes.stop(here, stack.api)
    return replace(stack, deployment=deployment, api=local_stack.start_api(here, release, deployment, options))


def check(here: Paths, stack: local_stack.RunningStack) -> list[str]:
    """Runs the check and prints what happened; returns what went wrong."""
    changed(here)
    release = build(here, this_machine())
    watch = Watch(stack)
    tasks = begin_all(stack, watch)
    before = steps_done(stack, tasks)
    stack = redeploy(here, stack, release)
    meanwhile = steps_done(stack, tasks)
    answered(stack, tasks)
    found = ended(stack, tasks)
    lines = [line for task in found for line in task.artifacts[0].text().splitlines()]
    old, new = (sum(line.endswith(f"release {number}") for line in lines) for number in (1, 2))
    print(f"{len(found)} tasks of {STEPS} steps; {before} were done when the deployment began, {meanwhile} at its end;")
    print(f"{old} steps ran on the old release and {new} on the new one; {watch.received} notifications were received.")
    wrong = [*(line for task in found for line in wrong_with(stack, task)), *watch.wrong()]
    if set(slow_agent(stack).task_ids(CONTEXT)) != set(tasks):
        wrong.append("the list of the conversation does not have every task")
    return wrong


def steps_done(stack: local_stack.RunningStack, tasks: list[str]) -> list[int]:
    """Returns how many steps each task has done."""
    agent = slow_agent(stack)
    return [len(agent.get(task).artifacts[0].text().splitlines()) for task in tasks]


def main() -> int:
    """Runs the check and prints its result; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--from", dest="revision", metavar="REVISION", help="the release that runs first; default: this"
    )
    revision = parser.parse_args().revision
    here = checkout(CHECKOUT / ".a2a/redeploy")
    if revision:
        here = replace(here, state=CHECKOUT / ".a2a/redeploy-from/.a2a")
    with running_revision(here, revision) if revision else running(here) as stack:
        wrong = check(here, stack)
    print("\n".join(wrong) or "Every task ended once, each step ran once, and every reader got every event in order.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
