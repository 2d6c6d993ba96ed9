"""Starts the whole local stack, and stops it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console

from a2a_serverless.stack import processes, sam, servers
from a2a_serverless.stack.emulator import start_emulator
from a2a_serverless.stack.imports import check_agents_here
from a2a_serverless.stack.paths import Paths
from a2a_serverless.stack.processes import LOOPBACK, Process
from a2a_serverless.stack.progress import step


@dataclass(frozen=True)
class Options:
    """Options of a local run: ports on 127.0.0.1, and values that override `local_parameters` and `local_switches`."""

    emulator_port: int = 4566
    api_port: int = 8000
    receiver_port: int = 8010
    parameters: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, str] = field(default_factory=dict)

    @property
    def api_url(self) -> str:
        return f"http://{LOOPBACK}:{self.api_port}"

    @property
    def webhook_url(self) -> str:
        return f"http://{LOOPBACK}:{self.receiver_port}/webhook"


@dataclass(frozen=True)
class RunningStack:
    """A running stack: its build, its deployment, and the servers beside it."""

    build: sam.Build
    deployment: sam.Deployment
    emulator: Process
    api: Process
    receiver: Process


def local_parameters(options: Options) -> dict[str, str]:
    """Return the template parameters of a local run: built for this machine, without response streaming."""
    return {**sam.this_machine().parameters, "ResponseStreaming": "off", **options.parameters}


def local_switches(options: Options) -> dict[str, str]:
    """Return the variables that functions of a local run get besides the template's."""
    return {
        "PUBLIC_BASE_URL": options.api_url,
        "WEBHOOK_LOCAL_ALLOW": f"{LOOPBACK}:*",
        "ANONYMOUS_ACCESS": "on",
        **options.switches,
    }


def receiver_environment(paths: Paths, options: Options) -> dict[str, str]:
    """Return the webhook receiver's configuration for a local run."""
    return {
        "ISSUER": options.api_url,
        "AUDIENCE": options.webhook_url,
        "REPLAY_DB": str(paths.state / "receiver.db"),
        "OPEN_REGISTRATION": "true",
    }


def up(paths: Paths, options: Options, console: Console) -> RunningStack:
    """Bring the stack up to date with the checkout: start what is missing, rebuild, deploy, restart the servers.

    A running emulator keeps its data and its port. When a step fails, everything that this call has started is stopped.
    Running servers are not touched before the build is complete. Raises `StackError`.
    """
    with _undone_on_failure(paths, console):
        emulator = _emulator(paths, options, console)
        with step(console, "Building the functions") as say:
            built = sam.build(paths, sam.this_machine())
            say("" if built.fresh else "nothing changed")
            check_agents_here(paths.root, built.agents)
        stop_servers(paths)
        environment = receiver_environment(paths, options)
        receiver = servers.start_receiver(paths, environment, port=options.receiver_port)
        with step(console, "Deploying template.yaml into the emulator"):
            deployment = sam.deploy(paths, built, emulator.url, local_parameters(options), local_switches(options))
        with step(console, f"Starting the api on {options.api_url}"):
            api = servers.start_api(paths, deployment, port=options.api_port)
        with step(console, f"Starting the webhook receiver on {options.webhook_url}"):
            servers.wait_for(receiver)
    return RunningStack(built, deployment, emulator, api, receiver)


def down(paths: Paths, console: Console) -> None:
    """Stop the servers and the emulator."""
    _stop(paths, processes.started(paths), console)


def stop_servers(paths: Paths) -> None:
    """Stop the api and the receiver, but not the emulator."""
    for process in processes.started(paths):
        if process.name != "emulator":
            processes.stop(paths, process)


def _emulator(paths: Paths, options: Options, console: Console) -> Process:
    for process in processes.started(paths):
        if process.name == "emulator":
            return process
    with step(console, f"Starting the AWS emulator on http://{LOOPBACK}:{options.emulator_port}"):
        return start_emulator(paths, port=options.emulator_port)


def _stop(paths: Paths, running: Iterable[Process], console: Console) -> None:
    """Stop the servers first, then the emulator that they use."""
    for process in sorted(running, key=lambda process: process.name == "emulator"):
        with step(console, f"Stopping the {process.name}"):
            processes.stop(paths, process)


@contextmanager
def _undone_on_failure(paths: Paths, console: Console) -> Iterator[None]:
    before = processes.started(paths)
    try:
        yield
    except BaseException:
        _stop(paths, [process for process in processes.started(paths) if process not in before], console)
        raise
