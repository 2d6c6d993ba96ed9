"""The command line talks to the deployed stack as it would on AWS: signed in, through a gateway that answers as API
Gateway does, to the api function from its own zip, in whose loop answers stream.

The rest (table, queues, worker, relay, notifier, keys) is what runs in the emulator.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
import zipfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.adapters.aws import emulated
from a2a_serverless.store.keys import HEAD
from a2a_serverless_tools.stack import paths, processes, sam
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.emulator import aws_environment
from a2a_serverless_tools.stack.targets import this_machine
from tests.gateway import Behind, Gateway, gateway
from tests.journeys.shell import Shell, shell
from tests.stack.local import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_serverless_tools.stack.paths import Paths

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("test_behind_a_gateway")]
__all__ = ["shell"]

INSTANCES = 5
LONG = "Ships. " * 40


@dataclass(frozen=True)
class Place:
    """What runs. ``alice`` and ``bob`` have a key each; ``throttled`` is whether the gateway refuses everything."""

    behind: Behind
    throttled: threading.Event
    stranger: Shell
    alice: Shell
    bob: Shell
    inbox: str
    paths: Paths

    @property
    def url(self) -> str:
        return self.behind.gateway.url


@pytest.fixture(scope="module")
def place(shell: Shell) -> Iterator[Place]:
    """A stack that is up, whose api is not the laptop's server but the function behind a gateway at its address."""
    inbox = shell.json("up")["inbox"]
    here = paths.find(state=shell.folder / "state")
    throttled = threading.Event()
    try:
        (api,) = [one for one in processes.started(here) if one.name == "api"]
        processes.stop(here, api)
        with gateway(INSTANCES, port=api.port, throttles=throttled.is_set) as behind:
            with deployed_function(here, behind, shell.folder / "task"):
                alice, bob = (signed_in(shell, name) for name in ("alice", "bob"))
                yield Place(behind, throttled, shell, alice, bob, inbox, here)
            assert behind.refused == [], "its loop has asked its Runtime API for what may not be"
    finally:
        shell.run("down")


def signed_in(shell: Shell, owner: str) -> Shell:
    """A shell with an API key of its own."""
    key = shell.json("callers", "add", owner, "--local")["key"]
    return replace(shell, environment=shell.environment | {"A2A_AUTHORIZATION": f"Bearer {key}"})


@contextmanager
def deployed_function(here: Paths, behind: Behind, code: Path) -> Iterator[None]:
    """The api function from its zip, started as on AWS by its wrapper, an instance for each Runtime API.

    Its environment is what the deployed template gives it, but that nobody is let in without credentials.
    """
    (emulator,) = [one for one in processes.started(here) if one.name == "emulator"]
    with zipfile.ZipFile(build(here, this_machine()).path / "ApiFunction.zip") as archive:
        archive.extractall(code)
    env = sam.function_environment(sam.outputs(emulator.url), "api") | aws_environment(emulator.url)
    env |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(code), "LAMBDA_TASK_ROOT": str(code)}
    del env["ANONYMOUS_ACCESS"]
    with ExitStack() as running:
        for number, runtime in enumerate(behind.runtimes):
            command: list[str | Path] = ["/bin/sh", code / "stream", sys.executable]
            own = env | {"AWS_LAMBDA_RUNTIME_API": runtime.address}
            instance = processes.start(here, f"function-{number}", command, own, port=runtime.server_port)
            running.callback(processes.stop, here, instance)
        yield


def test_a_check_from_outside_passes_with_two_callers_whose_tasks_do_not_exist_for_each_other(place: Place) -> None:
    both = place.alice.environment | {"A2A_OTHER_AUTHORIZATION": place.bob.environment["A2A_AUTHORIZATION"]}
    done = replace(place.alice, environment=both).run(
        "check", place.url, "--agent", "orchestrator", "--receiver", place.inbox, "--local", "--json"
    )
    lines = {line["name"]: line for line in json.loads(done.stdout)["checks"]}
    passed = {name for name, line in lines.items() if line["verdict"] == "PASS"}
    assert (done.returncode, lines.keys() - passed) == (0, {"rotation"}), lines


def test_a_task_is_streamed_to_its_end_and_told_by_webhooks(place: Place) -> None:
    done = place.alice.run("send", "document", "Ships have sails.", "--inbox", place.inbox, "--out", "made")
    assert done.returncode == 0, done.stderr
    assert "Ships have sails" in (place.alice.folder / "made/document.md").read_text()


def test_a_user_without_a_key_reads_a_remedy_and_gets_the_remapped_challenge(place: Place) -> None:
    done = place.stranger.run("get", "document", "any")
    assert (done.returncode, "A2A_AUTHORIZATION" in done.stderr) == (1, True), done.stderr
    status, headers, _ = raw(place.behind.gateway, b"{}")
    assert (status, headers["x-amzn-remapped-www-authenticate"]) == (401, 'Bearer realm="a2a"')
    assert "www-authenticate" not in headers


def test_a_user_reads_the_refusal_of_the_gateway_and_the_function_gets_no_request(place: Place) -> None:
    before = len(place.behind.seen)
    place.throttled.set()
    try:
        done = place.alice.run("get", "document", "any")
    finally:
        place.throttled.clear()
    assert done.returncode == 1
    assert "HTTP 429" in done.stderr
    assert "Too Many Requests" in done.stderr
    status, headers, body = raw(place.behind.gateway, b"x" * (place.behind.gateway.limits.body + 1))
    assert (status, json.loads(body)) == (413, {"message": "Request Too Long"})
    assert headers["access-control-allow-origin"] == "*"
    assert len(place.behind.seen) == before


def test_a_client_that_is_killed_in_mid_stream_stops_nothing_and_another_takes_the_task_up(place: Place) -> None:
    task = place.alice.run("send", "document", LONG, "--no-wait").stdout.strip()
    with place.alice.start("watch", "document", task, "--json") as client:
        assert client.stdout
        assert client.stdout.readline()
        client.kill()
    assert place.alice.run("watch", "document", task).returncode == 0
    assert place.alice.json("get", "document", task)["status"]["state"] == "TASK_STATE_COMPLETED"
    eventually(lambda: not place.behind.busy)
    streams = [one for one in place.behind.seen if task.encode() in one.event and one.streamed]
    assert [(one.cut, one.trailers) for one in streams] == [(False, {})] * len(streams)


def test_an_operator_erases_an_owner_and_nobody_else(place: Place) -> None:
    carol = signed_in(place.stranger, "carol")
    gone, kept = (
        principal.run("send", "document", "Ships.", "--no-wait").stdout.strip() for principal in (carol, place.alice)
    )
    for principal, task in ((carol, gone), (place.alice, kept)):
        assert principal.run("watch", "document", task).returncode == 0
    long_ago(place.paths, f"default/carol/{gone}")
    erased = place.stranger.json("erase", "owner", "default/carol", "--yes", "--local")
    assert (erased["tasks"], erased["apiKeys"]) == (1, 1)
    assert "carol" not in place.stranger.run("callers", "list", "--local").stdout
    assert place.alice.json("get", "document", kept)["status"]["state"] == "TASK_STATE_COMPLETED"
    counted = place.stranger.json("erase", "owner", "default/carol", "--dry-run", "--local")
    assert set(counted.values()) == {0}


def long_ago(here: Paths, task: str) -> None:
    """The task's end, moved to the past, so that nobody can still be at it."""
    (emulator,) = [one for one in processes.started(here) if one.name == "emulator"]
    emulated(emulator.url).dynamodb.update_item(
        TableName=sam.outputs(emulator.url).outputs["TableName"],
        Key={"pk": {"S": f"TASK#{task}"}, "sk": {"S": HEAD}},
        UpdateExpression="SET status_at = :past",
        ExpressionAttributeValues={":past": {"N": "1"}},
    )


def raw(front: Gateway, body: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a POST without credentials."""
    connection = http.client.HTTPConnection("127.0.0.1", front.server_port, timeout=60)
    try:
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        connection.request("POST", "/document", body, headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()
    finally:
        connection.close()
