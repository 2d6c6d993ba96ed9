"""``make invoke``: what SAM is given, what reaches the emulator, and what is said where something is missing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless_tools.stack import processes, sam
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.invoke import bridge, call_of, docker, relayed, write_inputs
from a2a_serverless_tools.stack.targets import Build
from tests.stack.docker_daemon import docker_daemon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.stack.local import LocalStack

ROOT = Path(__file__).parents[2]


def saying(network: Mapping[str, str]) -> Any:
    """A docker that describes its bridge so."""

    def run(arguments: Sequence[str]) -> str:
        assert arguments[:3] == ["network", "inspect", "bridge"]
        return json.dumps(network)

    return run


@pytest.mark.parametrize("name", ["Worker", "worker", "WorkerFunction"])
def test_a_function_goes_by_its_short_name_or_its_name_in_the_template(name: str) -> None:
    call = call_of(name, "events/worker-message.json", ROOT)
    assert (call.function, call.logical_id) == ("worker", "WorkerFunction")


def test_every_event_has_its_function() -> None:
    for event in (ROOT / "events").glob("*.json"):
        call_of(event.name.partition("-")[0], f"events/{event.name}", ROOT)


@pytest.mark.parametrize(
    ("function", "event", "remedy"),
    [
        ("Painter", "events/worker-message.json", "FUNCTION is one of Api, Worker"),
        (
            "Worker",
            "events/worker-mesage.json",
            "EVENT is one of events/worker-invalid-message.json, events/worker-message.json",
        ),
    ],
)
def test_invoke_names_the_choices_for_an_unknown_function_or_event(function: str, event: str, remedy: str) -> None:
    with pytest.raises(StackError) as refused:
        call_of(function, event, ROOT)
    assert remedy in refused.value.remedy


def test_without_docker_it_is_said_what_is_needed_and_what_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match="it is not installed") as missing:
        docker(["version"])
    assert "Runtime Interface Emulator" in missing.value.remedy


def test_a_daemon_that_does_not_run_is_said_in_dockers_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon.' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match="Cannot connect to the Docker daemon") as dead:
        docker(["version"])
    assert "start its daemon" in dead.value.remedy


def test_the_bridge_is_its_gateway_or_else_the_first_address_of_its_network() -> None:
    assert bridge(saying({"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.9"})) == "172.17.0.9"
    assert bridge(saying({"Subnet": "172.17.0.0/16", "Gateway": ""})) == "172.17.0.1"


def test_sam_gets_the_zips_and_every_variable_that_the_function_has(tmp_path: Path) -> None:
    function = {"Type": "AWS::Serverless::Function", "Properties": {"CodeUri": "WorkerFunction.zip", "Timeout": 9}}
    table = {"Type": "AWS::DynamoDB::Table", "Properties": {}}
    built = tmp_path / "build"
    built.mkdir()
    (built / "WorkerFunction.zip").touch()
    (built / "template.yaml").write_text(json.dumps({"Resources": {"WorkerFunction": function, "Table": table}}))
    environment = {"TABLE_NAME": "tasks", "AWS_ENDPOINT_URL": "http://localhost:4566"}
    call = call_of("Worker", "events/worker-message.json", ROOT)
    template, values = write_inputs(tmp_path / "invoke", Build(built, ()), call, environment)
    properties = json.loads(template.read_text())["Resources"]["WorkerFunction"]["Properties"]
    assert (template.parent / properties["CodeUri"]).resolve() == built / "WorkerFunction.zip"
    assert properties["Timeout"] == 9
    # SAM drops what its template does not declare.
    assert set(properties["Environment"]["Variables"]) == set(environment)
    assert json.loads(values.read_text()) == {"WorkerFunction": environment}


@pytest.mark.enable_socket
@pytest.mark.integration
def test_the_command_asks_docker_for_the_function_of_the_running_stack(stack: LocalStack) -> None:
    """The real SAM; a stand-in plays Docker. ``A2A_STATE`` names the stack."""
    with docker_daemon(gateway="127.0.0.2") as docker:
        done = subprocess.run(
            [sys.executable, "-m", "a2a_serverless_tools.stack.invoke", "Worker", "events/worker-message.json"],
            cwd=ROOT,
            env=os.environ | docker.environment | {"A2A_STATE": str(stack.paths.state)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode, "there is no container that could answer"
    assert docker.asked, done.stderr
    asked = docker.asked[0]
    variables = dict(one.split("=", 1) for one in asked["Env"])
    assert variables.items() >= sam.function_environment(stack.deployment, "worker").items()
    assert variables["AWS_ENDPOINT_URL"] == stack.deployment.endpoint.replace("127.0.0.1", "localhost")
    assert asked["HostConfig"]["ExtraHosts"] == ["localhost:127.0.0.2"]
    assert {"app.py", "agents.json"} <= docker.mounted[0]


@pytest.mark.enable_socket
def test_the_emulators_port_at_the_bridge_leads_to_the_emulator_only_while_a_call_lasts() -> None:
    port = processes.claim_port("emulator", 0)
    with socket.create_server(("127.0.0.1", port)) as emulator:
        Thread(target=answer_once, args=(emulator,), daemon=True).start()
        with relayed("127.0.0.2", port), socket.create_connection(("127.0.0.2", port)) as there:
            there.sendall(b"ping")
            there.shutdown(socket.SHUT_WR)
            assert there.makefile("rb").read() == b"ping, heard"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))


@pytest.mark.enable_socket
def test_a_bridge_that_is_not_on_this_machine_is_said() -> None:
    with pytest.raises(StackError, match="cannot be used") as refused, relayed("192.0.2.1", 4566):
        pass
    assert "no remote or rootless daemon" in refused.value.remedy


def answer_once(server: socket.socket) -> None:
    """Says back what one connection has said."""
    connection, _ = server.accept()
    with connection:
        connection.sendall(connection.makefile("rb").read() + b", heard")
