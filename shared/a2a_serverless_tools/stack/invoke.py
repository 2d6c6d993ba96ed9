"""`sam local invoke` of one function against the running stack: ``python -m a2a_serverless_tools.stack.invoke``.

The function runs in Docker, in Lambda's image, with its code, the environment of the deployed template, and the
emulator. The emulator listens on 127.0.0.1 only, which a container cannot reach. So during the call the same port of
Docker's bridge forwards to it, and `localhost` in the container is the address of the bridge.
"""

import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

from a2a_serverless.domain.loopback import LOOPBACK
from a2a_serverless_tools.stack import library, sam
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.emulator import aws_environment, running_emulator, without_aws
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.packaging import functions_of
from a2a_serverless_tools.stack.paths import Paths, find, state_folder
from a2a_serverless_tools.stack.targets import Build, this_machine

BLOCK = 64 * 1024
RIE = "without Docker, tests/functions runs every event under the Runtime Interface Emulator that SAM brings along"


@dataclass(frozen=True)
class FunctionCall:
    """A call: the short name of a function, and a file with its event."""

    function: str
    event: Path

    @property
    def logical_id(self) -> str:
        return f"{self.function.title()}Function"


def call_of(function: str, event: str, sources: Path) -> FunctionCall:
    """Return the call of a function with an event: a file, whose path may begin in the folder of the library's events.

    Raises `StackError`, which lists the possible names.
    """
    name = function.lower().removesuffix("function")
    events = sorted(path.relative_to(sources).as_posix() for path in (sources / "events").glob(f"{name}-*.json"))
    if name not in sam.FUNCTIONS:
        names = ", ".join(map(str.title, sam.FUNCTIONS))
        raise StackError("invoke", f"there is no function {function!r}", remedy=f"FUNCTION is one of {names}")
    if not (sources / event).is_file():
        raise StackError("invoke", f"there is no event {event!r}", remedy=f"EVENT is one of {', '.join(events)}")
    return FunctionCall(name, sources / event)


def write_inputs(folder: Path, built: Build, call: FunctionCall, environment: Mapping[str, str]) -> tuple[Path, Path]:
    """Write the template, beside the rest of the build, and the environment file for SAM.

    SAM sets only variables that the template names.
    """
    document = built.template
    functions_of(document)[call.logical_id]["Environment"] = {"Variables": dict.fromkeys(environment, "")}
    template, values = sam.write_variant(built, document, folder), folder / "env.json"
    values.write_text(json.dumps({call.logical_id: dict(environment)}, indent=1))
    return template, values


def bridge(run: Callable[[Sequence[str]], str]) -> str:
    """Return the address at which containers reach this machine; ``run`` returns the output of a docker command."""
    output = run(["network", "inspect", "bridge", "--format", "{{json (index .IPAM.Config 0)}}"])
    network = json.loads(output)
    return str(network.get("Gateway") or next(ipaddress.ip_network(network["Subnet"]).hosts()))


def docker(arguments: Sequence[str]) -> str:
    """Return the output of a docker command. Raises `StackError`, which says what is missing."""
    program = shutil.which("docker")
    if program is None:
        raise StackError("docker", "it is not installed", remedy=f"install Docker Engine; {RIE}")
    process = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)  # noqa: S603 - by path
    if process.returncode:
        why = (process.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise StackError("docker", why, remedy=f"start its daemon, and check DOCKER_HOST and your permissions; {RIE}")
    return process.stdout


@contextmanager
def relayed(address: str, port: int) -> Iterator[None]:
    """Forward `port` at `address` to the same port of 127.0.0.1 while the block runs. Raises `StackError`."""
    try:
        server = _Relay((address, port), _Pipe)
    except OSError as error:
        why = f"{address}:{port} cannot be used ({error.strerror})"
        remedy = "its bridge has to be on this machine: no remote or rootless daemon"
        raise StackError("docker", why, remedy=remedy) from error
    with server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


class _Relay(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class _Pipe(BaseRequestHandler):
    """Copies the bytes of one connection in both directions."""

    def handle(self) -> None:
        with socket.create_connection((LOOPBACK, self.request.getsockname()[1])) as there:
            back = Thread(target=_copy, args=(there, self.request), daemon=True)
            back.start()
            _copy(self.request, there)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while block := source.recv(BLOCK):
            target.sendall(block)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def invoke(paths: Paths, call: FunctionCall, arguments: Sequence[str]) -> int:
    """Run SAM; return its exit code. The function's answer goes to stdout, its log to stderr. Raises `StackError`."""
    emulator, target = running_emulator(paths), this_machine()
    address = bridge(docker)
    deployment, built = sam.outputs(emulator.url), build(paths, target)
    environment = sam.function_environment(deployment, call.function)
    environment |= aws_environment(f"http://localhost:{emulator.port}")
    environment |= {"NO_PROXY": "localhost", "no_proxy": "localhost"}
    template, values = write_inputs(paths.state / "invoke", built, call, environment)
    command: list[str | Path] = [paths.sam, "local", "invoke", call.logical_id, "--template", template]
    command += ["--config-file", library.FILES / sam.CONFIGURATION, "--event", call.event, "--env-vars", values]
    command += ["--add-host", f"localhost:{address}", *sam.overrides(target.parameters), *arguments]
    ours = without_aws(os.environ) | aws_environment(emulator.url) | {"SAM_CLI_TELEMETRY": "0"}
    with relayed(address, emulator.port):
        return subprocess.run(command, cwd=paths.root, env=ours, check=False).returncode  # noqa: S603 - SAM, by path


def main(words: Sequence[str]) -> None:
    """Run with the arguments FUNCTION EVENT [options of `sam local invoke`]."""
    function, event, *arguments = words
    try:
        paths = find(state=state_folder(os.environ))
        sys.exit(invoke(paths, call_of(function, event, paths.sources), arguments))
    except StackError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
