"""Starts, calls and deploys a2a-serverless as `dev`, `work` or `up` (docs/commands.md, docs/container.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import lines

from a2a_serverless.client import Client, open_request, text_message
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest
from a2a_serverless_tools.stack.processes import claim_port

HERE = Path(__file__).parent
MODE = os.environ["MODE"]
COMMAND = [str(Path(sys.executable).with_name("a2a-serverless"))]
PROJECT = """[project]
name = "side-by-side"
dependencies = []

[tool.a2a-serverless]
agents = ["ours_agents:order", "ours_agents:items", "ours_agents:loop"]

[tool.a2a-serverless.environment]
EFFECTS = "{effects}"

[tool.a2a-serverless.constants]
WorkerService = "{service}"
"""
SHARED = ("venvs", "bases", "templates", "compiled", "zips")


def store() -> None:
    """Writes the project. `work` and `up` have their store in the stack, which runs until the input ends."""
    service = "ecs-tasks.amazonaws.com" if MODE == "work" else "lambda.amazonaws.com"
    (HERE / "pyproject.toml").write_text(PROJECT.format(effects=os.environ["EFFECTS"], service=service))
    ports = [claim_port(name, 0) for name in ("api", "receiver", "emulator")]
    names = ("A2A_API_PORT", "A2A_RECEIVER_PORT", "A2A_EMULATOR_PORT")
    os.environ |= {name: str(port) for name, port in zip(names, ports, strict=True)}
    (HERE / ".a2a").mkdir(exist_ok=True)
    if MODE != "dev":
        for shared in SHARED:
            (HERE / ".a2a" / shared).symlink_to(Path(os.environ["CHECKOUT"]) / ".a2a" / shared)
        run("up")
    lines.ready(json.dumps(ports))
    lines.serve(deploy=lambda: run("up"), pids=pids)
    if MODE != "dev":
        run("down")


def run(command: str) -> None:
    """Runs a command of ours to its end, with its output among the errors."""
    subprocess.run([*COMMAND, command], check=True, stdout=sys.stderr, cwd=HERE)


def pids() -> list[int]:
    """The store: the emulator's own process, which has DynamoDB, SQS and S3."""
    return [json.loads(path.read_text())["pid"] for path in HERE.glob(".a2a/run/emulator.json")]


def worker(name: str) -> None:
    """Runs `dev`, or `work` beside the stack. `dev` says when it is ready; the other says nothing."""
    api, receiver, _ = json.loads(os.environ["STORE"])
    words = ["dev", "--json", "--port", str(api), "--receiver-port", str(receiver)]
    if MODE == "work":
        words = ["work", "--local", "--json"]
        # docs/container.md: "A process with the same WORKER_NAME continues them at once."
        # With `target` a machine that replaces a lost one has its name, as in a StatefulSet.
        words += ["--name", os.environ.get("LOST", name)] if os.environ["SETTING"] == "target" else []
    command, nothing = [*COMMAND, *words], subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, text=True, cwd=HERE) as process:
        assert process.stdout  # noqa: S101 - it is a pipe
        if MODE == "dev":
            print(process.stdout.readline(), file=sys.stderr)
        lines.ready()
        for line in process.stdout:
            print(line, file=sys.stderr)


def drive() -> None:
    """Calls the agents as any A2A client."""
    api, *_ = json.loads(os.environ["STORE"])
    tasks: dict[str, tuple[Client, str]] = {}
    at_once = SendMessageConfiguration(return_immediately=True)

    def start(workflow: str, run: str, nap: float) -> None:
        client = Client(f"http://127.0.0.1:{api}/{workflow}", open_request)
        task = client.send(SendMessageRequest(message=text_message(f"{run} {nap}"), configuration=at_once))
        tasks[run] = (client, task.id)  # type: ignore[union-attr]

    def signal(run: str, name: str, value: str, address: str) -> None:
        client, task_id = tasks[run]
        if name == "approval":
            message = text_message(value, task_id=task_id)
            client.send(SendMessageRequest(message=message, configuration=at_once))
        else:
            urllib.request.urlopen(address, value.encode(), timeout=20).close()  # noqa: S310 - ours

    def result(run: str) -> str | None:
        client, task_id = tasks[run]
        status = client.get(task_id).status
        if status.state not in ("completed", "failed"):
            return None
        text = status.message.text() if status.message else ""
        return text if status.state == "completed" else f"failed: {text}"

    lines.ready()
    lines.serve(start=start, signal=signal, result=result)


if __name__ == "__main__":
    lines.main(store=store, worker=worker, drive=drive)
