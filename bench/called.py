"""From the end of a called agent that sends no webhook to the caller's next line, seconds by the clock (N25).

The called agent is a2a-sdk's in a process of its own, with its default card, which has no webhooks, or with a handler
that accepts webhooks and has no sender; its task takes 10 seconds. The caller is an agent of `dev`'s deployment. Both
talk HTTP.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.error import URLError
from urllib.request import urlopen

from a2a_serverless import Skill, Task, agent
from a2a_serverless.client import Client, open_request, text_message
from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest
from a2a_serverless_tools.local.deployment import LocalDeployment
from a2a_serverless_tools.local.server import Server, listen
from measuring import ROOT, Report, figure, goal, main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless import TaskContext

SECONDS: Final = 10
N25_S: Final = 6
PEERS: Final = {
    "a2a-sdk 1.3.0": ("bench-sdk-1", "slow_sdk_1", ""),
    "a2a-sdk 1.3.0, whose webhooks never arrive": ("bench-sdk-1", "slow_sdk_1", "yes"),
    "a2a-sdk 0.3.26": ("bench-sdk-0.3", "slow_sdk_0_3", ""),
}
TIMEOUT_S: Final = 120


def measure(rounds: int) -> Report:
    """Calls each agent once a round."""
    late = {name: [_late_s(*where) for _ in range(rounds)] for name, where in PEERS.items()}
    return Report(
        "A called agent that sends no webhook",
        __doc__ or "",
        [figure(f"{name}: seen after", "s", values, ours=True) for name, values in late.items()],
        [goal("N25", f"{name}, from its end to the caller's next line, s", "<=", N25_S, late[name]) for name in late],
    )


def _late_s(environment: str, module: str, accepts_webhooks: str) -> float:
    seen: list[float] = []
    done = threading.Event()

    @agent(
        id="caller", name="Caller", description="Calls", skills=[Skill(id="s", name="S", description="D", tags=("s",))]
    )
    async def caller(task: TaskContext) -> None:
        answer = await task.call("write", "far", "hello")
        if isinstance(answer, Task) and not seen:
            seen.append(time.time() - float(answer.artifacts[0].text()))
        done.set()

    with _served(environment, module, accepts_webhooks) as url, _deployed(caller, url) as here:
        configuration = SendMessageConfiguration(return_immediately=True)
        request = SendMessageRequest(message=text_message("go"), configuration=configuration)
        Client(f"{here}/caller", open_request).send(request)
        if not done.wait(TIMEOUT_S) or not seen:
            raise SystemExit("the caller has seen no end")
    return seen[0]


@contextmanager
def _served(environment: str, module: str, accepts_webhooks: str) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url, folder = f"http://127.0.0.1:{port}/", Path(__file__).parent / "candidates"
    python = ROOT / f".a2a/venvs/{environment}/bin/python"
    env = {**os.environ, "URL": url, "SECONDS": str(SECONDS), "PYTHONPATH": str(folder)}
    env["ACCEPTS_WEBHOOKS"] = accepts_webhooks
    server = subprocess.Popen([python, folder / "serve.py", module, str(port)], env=env)
    try:
        _wait_for(f"{url}.well-known/agent-card.json")
        yield url
    finally:
        server.terminate()
        server.wait()


def _wait_for(url: str) -> None:
    until = time.monotonic() + TIMEOUT_S
    while True:
        try:
            with urlopen(url):  # noqa: S310 - our own server
                return
        except URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@contextmanager
def _deployed(caller: object, far: str) -> Iterator[str]:
    listener = listen(0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    deployment = LocalDeployment([caller], url, others={"far": far})  # type: ignore[list-item]
    server = Server(deployment.app)
    threads = [
        threading.Thread(target=deployment.dispatch),
        threading.Thread(target=server.run, args=([listener],)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield url
    finally:
        server.should_exit = True
        deployment.close()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main(measure, rounds=2)
