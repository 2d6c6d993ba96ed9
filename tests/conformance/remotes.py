"""The official servers: how each is started, over which bindings and with which options.

Each is a program in ``tests/conformance/servers`` that prints its base URL and does what the first word of a message
asks for. ``GET /ran`` at it lists the texts that it has executed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.request import urlopen

from tests.conformance.official import GO, MADE, UNOPTIMIZED_GO, NotToBeHad, rust_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.protocol.versions import ProtocolVersion

ROOT: Final = Path(__file__).parents[2]
HERE: Final = Path(__file__).parent / "servers"
TIMEOUT_S: Final = 60


@dataclass(frozen=True)
class Remote:
    """An official server over a binding. ``command`` is None where it is not to be had."""

    name: str
    version: ProtocolVersion
    binding: str
    command: Callable[[], list[str]]

    def __str__(self) -> str:
        return f"{self.name} {self.version} {self.binding}"


class NoServer(Exception):
    """A package or a toolchain is missing on this machine; the text says which."""


def _python(environment: str, program: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        python = ROOT / ".a2a/venvs" / environment / "bin/python"
        if not python.exists():
            raise NoServer(f"it needs `make .a2a/venvs/{environment}/.installed`")
        return [str(python), str(HERE / program)]

    return command


def _go(version: ProtocolVersion) -> list[str]:
    go = shutil.which("go") or shutil.which(GO)
    if go is None:
        raise NoServer("it needs Go 1.25 or newer")
    program = MADE / "go-server"
    MADE.mkdir(parents=True, exist_ok=True)
    command = [go, "build", UNOPTIMIZED_GO, "-o", str(program), "."]
    built = subprocess.run(command, cwd=HERE / "go", capture_output=True, text=True, check=False)  # noqa: S603 - Go
    if built.returncode:
        raise NoServer(f"`go build` says: {built.stderr[:200]}")
    return [str(program), version]


def _rust() -> list[str]:
    try:
        return [str(rust_program("server"))]
    except NotToBeHad as why:
        raise NoServer(str(why)) from None


def _javascript() -> list[str]:
    node = shutil.which("node")
    if node is None or not (HERE / "js/node_modules").exists():
        raise NoServer("it needs Node.js, and `npm ci --prefix tests/conformance/servers/js`")
    return [node, str(HERE / "js/server.mjs")]


REMOTES: Final = [
    Remote("Python 1.3.0", "1.0", "JSONRPC", _python("bench-sdk-1", "sdk_1.py")),
    Remote("Python 1.3.0", "1.0", "HTTP+JSON", _python("bench-sdk-1", "sdk_1.py")),
    Remote("Python 0.3.26", "0.3", "JSONRPC", _python("bench-sdk-0.3", "sdk_0_3.py")),
    Remote("Python 0.3.26", "0.3", "HTTP+JSON", _python("bench-sdk-0.3", "sdk_0_3.py")),
    Remote("Go 2.4.0", "1.0", "JSONRPC", partial(_go, "1.0")),
    Remote("Go 2.4.0", "1.0", "HTTP+JSON", partial(_go, "1.0")),
    Remote("Go 2.4.0", "0.3", "JSONRPC", partial(_go, "0.3")),
    Remote("Go 2.4.0", "0.3", "HTTP+JSON", partial(_go, "0.3")),
    Remote("Rust 0.15.0", "1.0", "JSONRPC", _rust),
    Remote("Rust 0.15.0", "1.0", "HTTP+JSON", _rust),
    Remote("JavaScript 1.3.0", "1.0", "JSONRPC", _javascript),
    Remote("JavaScript 1.3.0", "1.0", "HTTP+JSON", _javascript),
]
ADK: Final = Remote("ADK 2.13.0", "1.0", "JSONRPC", _python("framework-a2a-sdk", "adk_server.py"))
STRANDS: Final = Remote("Strands 1.62.0", "0.3", "JSONRPC", _python("framework-a2a-sdk-0.3", "strands_server.py"))


@contextmanager
def serving_remote(remote: Remote, *options: str) -> Iterator[str]:
    """Serves the agent; gives its base URL. Raises NoServer."""
    command = [*remote.command(), remote.binding, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # noqa: S603 - our own programs
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            assert url, f"{remote.name} has ended with {process.wait(TIMEOUT_S)}"
            yield url
        finally:
            process.kill()


def executions(url: str) -> list[str]:
    """The texts that the server has executed, and "cancel" for each cancel."""
    with urlopen(f"{url}/ran", timeout=TIMEOUT_S) as answer:
        ran: list[str] = json.load(answer)
    return ran
