"""Programs that outlive the command that started them: start, wait until ready, find again, stop.

A process is identified by its pid and its start time, so a pid that the system has reused is never signalled. Each one
runs in its own session: a signal goes to it and its children, and to nothing else.
"""

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from random import SystemRandom

from a2a_serverless.domain.loopback import LOOPBACK
from a2a_serverless.http_client import open_request
from a2a_serverless.http_client.transport import ClientRequest, Unreachable
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths

# Port 0 is picked from these. A higher one could be given to a connection before a program listens on it.
FREE_PORTS = range(20_000, 32_768)
HIGHEST_PORT = 65_535
TRIES = 50
PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class Process:
    """A program that was started. `born` is its start time as /proc or `ps` gives it; `port` is where it listens.

    `mount` is the path below which it answers.
    """

    name: str
    pid: int
    born: str
    port: int
    log: str
    mount: str = ""

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}{self.mount}"


def claim_port(part: str, port: int) -> int:
    """Return the port, which is free now; 0 picks one of `FREE_PORTS`. Raises `StackError` when the port is in use."""
    refusals = []
    for one in [port] if port else SystemRandom().sample(FREE_PORTS, TRIES):
        try:
            _bind(one)
        except OSError as error:
            refusals.append(error)
        else:
            return one
    why = f"port {port} on {LOOPBACK} cannot be used ({refusals[0].strerror})"
    remedy = "`a2a-serverless down` if it is an earlier run, or give another port"
    raise StackError(part, why, remedy=remedy) from refusals[0]


def is_free(port: int) -> bool:
    """Return whether nothing listens on the port. One that the system refuses for another reason counts as free."""
    try:
        _bind(port)
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True


def _bind(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((LOOPBACK, port))


def start(
    paths: Paths, name: str, command: Sequence[str | Path], env: Mapping[str, str], *, port: int, mount: str = ""
) -> Process:
    """Start a program in the background with its output in its log; record it in `<state>/run/<name>.json`."""
    log = paths.log(name)
    with log.open("wb") as out:
        child = subprocess.Popen(  # noqa: S603 (our own programs, by path)
            [str(word) for word in command],
            cwd=paths.root,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    child.returncode = 0  # it outlives this command on purpose; set, so that Popen gives no ResourceWarning
    process = Process(name, child.pid, _start_time(child.pid) or "", port, str(log), mount)
    _save(paths, process)
    return process


def run_logged(command: Sequence[str | Path], env: Mapping[str, str], log: Path, cwd: Path) -> list[str]:
    """Run a program to its end, with its output in a log. Return nothing, or if it fails the lines of its log."""
    with log.open("wb") as out:
        process = subprocess.run(  # noqa: S603 (our own programs, by path)
            command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False
        )
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return (lines or ["it said nothing"]) if process.returncode else []


def announce(paths: Paths, name: str, port: int, mount: str) -> None:
    """Record this process as one that answers at ``port`` below ``mount``: other commands find it while it runs."""
    _save(paths, Process(name, os.getpid(), _start_time(os.getpid()) or "", port, "", mount))


def wait_until_ready(process: Process, path: str, *, seconds: float) -> None:
    """Return when GET `path` is answered with a status below 500. Raises `StackError` if it ends or takes too long."""
    give_up = time.monotonic() + seconds
    while not _answers(process.url + path):
        log = Path(process.log)
        if not is_alive(process):
            *_, last = ["it said nothing", *log.read_text(errors="replace").strip().splitlines()]
            raise StackError(process.name, f"ended before it was ready: {last}", log=log)
        if time.monotonic() > give_up:
            raise StackError(process.name, f"not ready after {seconds:.0f} s", log=log)
        time.sleep(PAUSE_SECONDS)


def started(paths: Paths) -> list[Process]:
    """Return the stack's processes that still run; remove the records of the others."""
    processes = []
    for record in sorted((paths.state / "run").glob("*.json")):
        if is_alive(process := Process(**json.loads(record.read_text()))):
            processes.append(process)
        else:
            record.unlink()
    return processes


def is_alive(process: Process) -> bool:
    """Return whether this process still runs. A zombie does not; a new process with the same pid does not count."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    return _start_time(process.pid) == process.born


def stop(paths: Paths, process: Process, *, seconds: float = 10) -> None:
    """Stop a process and its children: SIGTERM, after `seconds` SIGKILL. Return when it has ended."""
    give_up = time.monotonic() + seconds
    _signal(process, signal.SIGTERM)
    while is_alive(process):
        if time.monotonic() > give_up:
            _signal(process, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)
    _record(paths, process.name).unlink(missing_ok=True)


def _save(paths: Paths, process: Process) -> None:
    record = _record(paths, process.name)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(asdict(process)))


def _record(paths: Paths, name: str) -> Path:
    return paths.state / "run" / f"{name}.json"


def _signal(process: Process, number: signal.Signals) -> None:
    if is_alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _start_time(pid: int) -> str | None:
    """Return the start time of a process as a string, None when there is no such process or it is a zombie."""
    if Path("/proc/self/stat").exists():
        try:
            state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        born = fields[18]
    else:
        command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
        state, _, born = output.partition(" ")
    return None if state.startswith("Z") else born.strip() or None


def _answers(url: str) -> bool:
    try:
        with open_request(ClientRequest(url, seconds=2)) as answer:
            return answer.status < HTTPStatus.INTERNAL_SERVER_ERROR  # below that the server works
    except Unreachable:
        return False
