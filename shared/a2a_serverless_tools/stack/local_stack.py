"""Starts the whole local stack, and stops it."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console

from a2a_serverless.adapters.logs import ERRORS_IN_LOG
from a2a_serverless.agent_loader import MANIFEST
from a2a_serverless.domain.loopback import LOOPBACK
from a2a_serverless.ports.tracing import OTEL_HEADERS, OTEL_HEADERS_SECRET
from a2a_serverless_tools.operators.deployed import StackName
from a2a_serverless_tools.operators.operations import redrive_receiver
from a2a_serverless_tools.project import local_otel, read_project
from a2a_serverless_tools.stack import environments, library, processes, sam
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.emulator import aws_environment, find_emulator, start_emulator, without_aws
from a2a_serverless_tools.stack.paths import Paths
from a2a_serverless_tools.stack.ports import check_ports
from a2a_serverless_tools.stack.processes import Process
from a2a_serverless_tools.stack.progress import step
from a2a_serverless_tools.stack.settings import VARIABLE, local_place, local_secrets
from a2a_serverless_tools.stack.targets import Build, this_machine

READY_S = 120
API_APP = "a2a_serverless_tools.local.api:make_app"
RECEIVER_APP = "a2a_webhook_receiver.app:app"


@dataclass(frozen=True)
class Options:
    """Options of a local run: ports on 127.0.0.1, and values that override `local_parameters` and `local_switches`.

    `mount` is the path at which the project's application has the agents.
    """

    emulator_port: int = 4566
    api_port: int = 8000
    receiver_port: int = 8010
    parameters: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, str] = field(default_factory=dict)
    mount: str = ""

    @property
    def api_url(self) -> str:
        return f"http://{LOOPBACK}:{self.api_port}{self.mount}"

    @property
    def webhook_url(self) -> str:
        return f"http://{LOOPBACK}:{self.receiver_port}/webhook"


@dataclass(frozen=True)
class RunningStack:
    """A running stack: its build, its deployment, and the servers beside it."""

    build: Build
    deployment: sam.Deployment
    emulator: Process
    api: Process
    receiver: Process


def local_parameters(options: Options) -> dict[str, str]:
    """Return the template parameters of a local run: built for this machine, without response streaming."""
    return {**this_machine().parameters, "ResponseStreaming": "off", **options.parameters}


def local_switches(options: Options) -> dict[str, str]:
    """Return the variables that functions of a local run get besides the template's."""
    switches = {"PUBLIC_BASE_URL": options.api_url, "WEBHOOK_LOCAL_ALLOW": f"{LOOPBACK}:*"}
    shows = {"ANONYMOUS_ACCESS": "on", "CONSOLE": "internals", ERRORS_IN_LOG: "true"}
    return {**switches, **shows, **options.switches}


def up(
    paths: Paths, options: Options, console: Console, before_deploy: Callable[[StackName], object] = lambda _: None
) -> RunningStack:
    """Bring the stack up to date with the checkout: start what is missing, rebuild, deploy, restart the servers.

    A running emulator keeps its data and its port. When a step fails, everything that this call has started is stopped.
    The ports are checked first. ``before_deploy`` is called before a running stack gets new functions.
    Running servers are not touched before the build is complete. Raises `StackError`.
    """
    project = read_project(paths.root)
    secrets, otel = local_secrets(project), local_otel(project)
    check_ports(needed_ports(options, processes.started(paths)))
    environments.ensure(paths, console)
    with _undone_on_failure(paths, console):
        with step(console, "Building the functions") as say:
            built = build(paths, this_machine())
            say(", ".join(built.made) or "nothing changed")
        options = replace(options, mount=built.mount)
        running = find_emulator(paths)
        if running:
            before_deploy(StackName(sam.STACK_NAME, running.url))
        emulator = running or _start_emulator(paths, options, console)
        for process in processes.started(paths):
            if process != emulator:
                processes.stop(paths, process)
        receiver = start_receiver(paths, options)  # it depends on no other server, so it starts while the others do
        with step(console, "Deploying template.yaml into the emulator"):
            places = {VARIABLE: json.dumps({name: local_place(name) for name in secrets})} if secrets else {}
            switches = local_switches(options) | places | otel
            if OTEL_HEADERS in otel:  # a secret, so it is not written into the template
                secrets[OTEL_HEADERS] = switches.pop(OTEL_HEADERS)
                switches[OTEL_HEADERS_SECRET] = local_place(OTEL_HEADERS)
            _store_secrets(emulator, secrets)
            deployment = sam.deploy(paths, built, emulator.url, local_parameters(options), switches)
        if sam.schedules_in(built.template):
            start_scheduler(paths, built, emulator)
        with step(console, f"Starting the api on {options.api_url}"):
            api = start_api(paths, built, deployment, options)
            processes.wait_until_ready(api, "/", seconds=READY_S)
        with step(console, f"Starting the webhook receiver on {options.webhook_url}"):
            processes.wait_until_ready(receiver, "/", seconds=READY_S)
        if running:
            with step(console, "Sending the webhooks that wait for the receiver") as say:
                stack = StackName(sam.STACK_NAME, emulator.url)
                say(str(redrive_receiver(stack, urlsplit(options.webhook_url).netloc)))
    return RunningStack(built, deployment, emulator, api, receiver)


def needed_ports(options: Options, running: Iterable[Process]) -> dict[str, int]:
    """Return the ports that must be free, by part: none that this stack uses itself."""
    ports = {"emulator": options.emulator_port, "api": options.api_port, "receiver": options.receiver_port}
    if any(process.name == "emulator" for process in running):
        del ports["emulator"]
    own = {process.port for process in running if process.name != "emulator"}
    return {part: port for part, port in ports.items() if port not in own}


def _store_secrets(emulator: Process, secrets: Mapping[str, str]) -> None:
    client = sam.client("secretsmanager", emulator.url)
    for name, value in secrets.items():
        try:
            client.create_secret(Name=local_place(name), SecretString=value)
        except client.exceptions.ResourceExistsException:
            client.put_secret_value(SecretId=local_place(name), SecretString=value)


def down(paths: Paths, console: Console) -> None:
    """Stop the servers and the emulator."""
    _stop(paths, processes.started(paths), console)


def _start_emulator(paths: Paths, options: Options, console: Console) -> Process:
    with step(console, f"Starting the AWS emulator on http://{LOOPBACK}:{options.emulator_port}"):
        return start_emulator(paths, port=options.emulator_port)


def start_api(paths: Paths, built: Build, deployment: sam.Deployment, options: Options, app: str = API_APP) -> Process:
    """Serve the api function's app against the deployed resources, because the emulator buffers streams."""
    env = {"AGENTS_FILE": str(built.path / MANIFEST)} | sam.function_environment(deployment, "api")
    project = read_project(paths.root)
    env |= aws_environment(deployment.endpoint) | {"PROJECT": project.name}
    env |= {"INBOX": options.webhook_url.removesuffix("webhook")}
    return _serve(paths, "api", project.source, app, env, options.api_port, options.mount)


def start_receiver(paths: Paths, options: Options) -> Process:
    """Start the webhook receiver, which trusts the api of these options."""
    env = {"ISSUER": options.api_url, "AUDIENCE": options.webhook_url, "OPEN_REGISTRATION": "true"}
    env |= {"REPLAY_DB": str(paths.state / "receiver.db")}
    return _serve(paths, "receiver", library.FILES / "webhook_receiver", RECEIVER_APP, env, options.receiver_port)


def start_scheduler(paths: Paths, built: Build, emulator: Process) -> Process:
    """Start what plays the schedules of the deployed agents."""
    command = [sys.executable, "-P", "-m", "a2a_serverless_tools.stack.scheduler", emulator.url]
    template = built.path / "template.yaml"
    return processes.start(paths, "scheduler", [*command, template], without_aws(os.environ), port=0)


def _serve(  # noqa: PLR0913 - what a server needs
    paths: Paths, name: str, folder: Path, app: str, env: Mapping[str, str], port: int, mount: str = ""
) -> Process:
    port = processes.claim_port(name, port)
    command = [sys.executable, "-P", "-m", "a2a_serverless_tools.stack.serve", app, str(folder), str(port)]
    return processes.start(paths, name, command, without_aws(os.environ) | dict(env), port=port, mount=mount)


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
