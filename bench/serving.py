"""Requests of a local server: a second of one core, for a send, a get and a stream of 20 events (N15).

Every server is a process of uvicorn (h11, asyncio) with an echo agent and stores in memory. One client on a kept
connection asks all of them in turns. The measure is processor time of the server's process, all threads, so neither the
client nor another program changes it: requests a second of one core are its inverse.

- A *send* is answered at once (`returnImmediately`). Ours is the api of `dev` alone, which stores the task and enqueues
  it; the others have only one process, which also runs the agent.
- A *finished send* waits for the task, in a process that also runs the agent: inline, or by `dev`'s worker.
- A *get* is of a finished task, a *stream* has the task, its artifacts and its states.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless_tools.stack import processes
from measuring import ROOT, Report, figure, goal, main, ratios

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = ROOT / "bench/candidates"
PEER, FASTA2A = "a2a-sdk 1.3.0", "fasta2a 2.1.1"
OURS, QUEUED, API = "a2a-serverless", "a2a-serverless, queued agent", "a2a-serverless, api"
# Python, module, path, and how many artifacts make a stream of EVENTS events.
SERVERS: Final = {
    API: (sys.executable, "ours_api", "/queued", 17),
    OURS: (sys.executable, "ours_local", "/inline", 17),
    QUEUED: (sys.executable, "ours_local", "/queued", 17),
    PEER: (str(ROOT / ".a2a/venvs/bench-sdk-1/bin/python"), "sdk_1", "/echo", 18),
    FASTA2A: (str(ROOT / ".a2a/venvs/bench-fasta2a/bin/python"), "fast_a2a", "/", 18),
}
EVENTS: Final = 20
# Of each kind of request: which servers get it, and how many in a round. fasta2a never waits for a task.
ASKED: Final = {
    "send": ((API, PEER, FASTA2A), 300),
    "finished send": ((OURS, QUEUED, PEER), 100),
    "get": ((OURS, PEER, FASTA2A), 300),
    "stream": ((OURS, PEER, FASTA2A), 30),
}
GOALS: Final = {"send": (API, 3.5), "get": (OURS, 1.0), "stream": (OURS, 1.5)}
WAIT_S: Final = 30
HEADERS: Final = {"Content-Type": "application/json", "A2A-Version": "1.0"}


@dataclass
class Served:
    """A running server, and a client's connection to it."""

    pid: int
    connection: http.client.HTTPConnection
    path: str
    artifacts: int
    tasks: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def measure(self, kind: str, times: int) -> float:
        """Returns the requests of a kind that a second of one core answers."""
        call = {"send": self.send, "finished send": self.finish, "get": self.get, "stream": self.stream}[kind]
        before = self.cpu_s()
        for _ in range(times):
            call()
        return times / (self.cpu_s() - before)

    def cpu_s(self) -> float:
        """Returns the processor time of the server's process, all threads: Linux's clock of another process."""
        return time.clock_gettime(~self.pid << 3 | 2)

    def send(self) -> None:
        """Sends a message that is answered at once."""
        self._keep(self._ask("SendMessage", self._message("Say it again.", returnImmediately=True)))

    def finish(self) -> None:
        """Sends a message and waits for its task."""
        self._keep(self._ask("SendMessage", self._message("Say it again.")))

    def get(self) -> None:
        """Gets the newest task, which has to be finished."""
        answer = json.loads(self._ask("GetTask", {"id": self.tasks[-1]}))
        if answer["result"]["status"]["state"] != "TASK_STATE_COMPLETED":
            raise SystemExit(f"a task has not completed: {answer}")

    def stream(self) -> None:
        """Sends a message and reads the stream to its end."""
        words = ",".join(f"word {number}" for number in range(self.artifacts))
        body = self._ask("SendStreamingMessage", self._message(words))
        if (events := body.count(b"data:")) != EVENTS or b"TASK_STATE_COMPLETED" not in body:
            raise SystemExit(f"a stream of {events} events: {body.decode()}")

    def _keep(self, answer: bytes) -> None:
        self.tasks.append(json.loads(answer)["result"]["task"]["id"])

    def _message(self, text: str, **configuration: bool) -> dict[str, Any]:
        message = {"messageId": f"m-{next(self._numbers)}", "role": "ROLE_USER", "parts": [{"text": text}]}
        return {"message": message, "configuration": configuration}

    def _ask(self, method: str, params: dict[str, Any]) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self.connection.request("POST", self.path, body, HEADERS)
        return self.connection.getresponse().read()


@contextmanager
def served(python: str, module: str, path: str, artifacts: int) -> Iterator[Served]:
    """Runs a server on a free port."""
    port = processes.claim_port("server", 0)
    command = [python, "-W", "ignore", str(HERE / "serve.py"), module, str(port)]
    with subprocess.Popen(command, cwd=HERE, stdout=subprocess.DEVNULL) as process:
        try:
            yield Served(process.pid, _connect(process, port), path, artifacts)
        finally:
            process.terminate()


def _connect(process: subprocess.Popen[bytes], port: int) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    give_up = time.monotonic() + WAIT_S
    while process.poll() is None and time.monotonic() < give_up:
        try:
            connection.connect()
        except ConnectionRefusedError:
            time.sleep(0.1)
        else:
            return connection
    raise SystemExit(f"a server does not answer: {process.args!r}")


def measure(rounds: int) -> Report:
    """Measures all servers in each round, after one round that does not count."""
    found: dict[str, dict[str, list[float]]] = {
        kind: {name: [] for name in asked} for kind, (asked, _) in ASKED.items()
    }
    with ExitStack() as stack:
        running = {name: stack.enter_context(served(*server)) for name, server in SERVERS.items()}
        for turn in range(rounds + 1):
            for kind, (asked, times) in ASKED.items():
                for name in asked:
                    rate = running[name].measure(kind, times)
                    found[kind][name] += [rate] if turn else []
    return Report(
        "Local server",
        __doc__ or "",
        [
            figure(f"{kind}: {name}", "a second of one core", rates, ours=name.startswith(OURS))
            for kind, of in found.items()
            for name, rates in of.items()
        ],
        [
            goal("N15", f"{kind}, by {PEER}'s", ">=", limit, ratios(found[kind][ours], found[kind][PEER]))
            for kind, (ours, limit) in GOALS.items()
        ],
    )


if __name__ == "__main__":
    main(measure, rounds=4)
