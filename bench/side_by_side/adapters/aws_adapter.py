"""The three workflows on AWS's durable execution SDK, in its local runner: their READMEs and docstrings."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import lines
from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.config import Duration, MapConfig
from effect import effect


def have(context: DurableContext, run: str, name: str, address: str = "") -> str:
    """A step with an effect."""
    return str(context.step(lambda _: effect(run, name, address), name=name))


@durable_execution
def order(given: Any, context: DurableContext) -> str:  # noqa: ANN401 - JSON
    """Reserves, pays, ships three parcels, sleeps, waits for approval, confirms."""
    run = given["run"]
    done = [have(context, run, "reserve")]
    # behind: have(context, run, "check")
    done.append(have(context, run, "pay"))
    names = [f"ship-{number}" for number in (1, 2, 3)]
    done += context.parallel([lambda child, name=name: have(child, run, name) for name in names]).get_results()
    context.wait(Duration.from_seconds(int(given["nap"])))
    have(context, run, "rested")
    done.append(
        context.wait_for_callback(lambda callback_id, _: void(effect(run, "ask", callback_id)), name="approval")
    )
    done.append(have(context, run, "confirm"))
    # ahead: have(context, run, "thank")
    return " ".join(done)


@durable_execution
def items(given: Any, context: DurableContext) -> str:  # noqa: ANN401 - JSON
    """Has an effect for each of fifty items, and adds up their numbers."""
    run = given["run"]

    def item(child: DurableContext, number: int, *_: Any) -> int:  # noqa: ANN401 - the SDK's own
        return int(have(child, run, f"item-{number}").removeprefix("item-"))

    total = sum(context.map(range(50), item, config=MapConfig(max_concurrency=10)).get_results())
    have(context, run, "total")
    # ahead: have(context, run, "thank")
    return str(total)


@durable_execution
def loop(given: Any, context: DurableContext) -> str:  # noqa: ANN401 - JSON
    """Three times: makes a callback, sleeps, waits for the callback, and takes it."""
    run, got = given["run"], []
    for number in (1, 2, 3):
        callback = context.create_callback(name=f"event-{number}")
        have(context, run, f"round-{number}", callback.callback_id)
        context.wait(Duration.from_seconds(int(given["nap"])))
        have(context, run, f"tick-{number}")
        got.append(callback.result())
        have(context, run, f"took-{number}")
    # ahead: have(context, run, "thank")
    return " ".join(got)


def void(_: object) -> None:
    """A submitter returns nothing."""


HANDLERS = {"order": order, "map": items, "loop": loop}


class Invoke(BaseHTTPRequestHandler):
    """Lambda's Invoke, as the local runner calls it: it runs the handler and answers with what it returns."""

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name = unquote(self.path).split("/")[3]
        answer = json.dumps(HANDLERS[name](event, Context())).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class Context:
    """What the SDK reads of Lambda's context."""

    aws_request_id, tenant_id, function_name, function_version = "request", None, "side", "$LATEST"
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:side"

    def get_remaining_time_in_millis(self) -> int:
        """Lambda's longest time."""
        return 900_000


def store() -> None:
    """Starts the local runner; its address has the ports of the runner and of the function."""
    ports = []
    for _ in range(2):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            ports.append(probe.getsockname()[1])
    command = [str(Path(sys.executable).with_name("dex-local-runner")), "start-server", "--host", "127.0.0.1"]
    command += ["--port", str(ports[0]), "--lambda-endpoint", f"http://127.0.0.1:{ports[1]}"]
    command += ["--execution-timeout", "3600"]
    os.environ |= {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
    with subprocess.Popen(command, stdout=sys.stderr) as runner:
        while runner.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", ports[0]), 1).close()
                break
            except OSError:
                pass
        lines.ready(json.dumps(ports))
        lines.serve()
        runner.kill()


def worker(_: str) -> None:
    """Serves the function."""
    runner, port = json.loads(os.environ["STORE"])
    os.environ |= {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
    os.environ["AWS_ENDPOINT_URL_LAMBDA"] = f"http://127.0.0.1:{runner}"
    server = ThreadingHTTPServer(("127.0.0.1", port), Invoke)
    lines.ready()
    server.serve_forever()


def drive() -> None:
    """Starts, calls back and looks, over the runner's HTTP."""
    runner, _ = json.loads(os.environ["STORE"])
    executions: dict[str, str] = {}

    def call(path: str, body: bytes | None = None) -> Any:  # noqa: ANN401 - JSON
        request = urllib.request.Request(f"http://127.0.0.1:{runner}{path}", body)
        request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - on this machine
            return json.loads(answer.read() or b"{}")

    def start(workflow: str, run: str, nap: float) -> None:
        execution = {
            "AccountId": "123456789012",
            "FunctionName": workflow,
            "FunctionQualifier": "$LATEST",
            "ExecutionName": run,
            "ExecutionTimeoutSeconds": 3600,
            "ExecutionRetentionPeriodDays": 1,
            "Input": json.dumps({"run": run, "nap": nap}),
        }
        executions[run] = call("/start-durable-execution", json.dumps(execution).encode())["ExecutionArn"]

    def signal(_: str, name: str, value: str, address: str) -> None:
        if not address:
            raise RuntimeError(f"no callback of {name} yet")
        path = f"/2025-12-01/durable-execution-callbacks/{quote(address, safe='')}/succeed"
        call(path, value.encode())

    def result(run: str) -> str | None:
        state = call(f"/2025-12-01/durable-executions/{quote(executions[run], safe='')}")
        if state["Status"] == "RUNNING":
            return None
        return str(json.loads(state["Result"])) if state["Status"] == "SUCCEEDED" else f"failed: {state.get('Error')}"

    lines.ready()
    lines.serve(start=start, signal=signal, result=result)


if __name__ == "__main__":
    lines.main(store=store, worker=worker, drive=drive)
