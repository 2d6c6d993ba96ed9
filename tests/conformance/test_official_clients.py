"""The official SDKs, as their users have them from PyPI and npm, talk to a deployment over real HTTP.

Each client runs once for each binding, in an environment of its own, and says what it saw.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from a2a_serverless.agents import conformance
from tests.conformance.live import serving
from tests.wire.schema import assert_v0_3, assert_v1

pytestmark = [pytest.mark.enable_socket, pytest.mark.xdist_group("official clients")]

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "clients"
NODE = shutil.which("node") or ""
PATIENCE_S = 60
BINDINGS = ("JSONRPC", "HTTP+JSON")

COMMANDS = {
    "Python 1.3.0": [ROOT / ".a2a/venvs/sdk-1/bin/python", HERE / "sdk_1.py"],
    "Python 0.3.26": [ROOT / ".a2a/venvs/sdk-0.3/bin/python", HERE / "sdk_0_3.py"],
    "JavaScript 1.3.0": [Path(NODE), HERE / "js/client.mjs"],
}
NEEDS = {
    "Python 1.3.0": (ROOT / ".a2a/venvs/sdk-1/bin/python", "make setup"),
    "Python 0.3.26": (ROOT / ".a2a/venvs/sdk-0.3/bin/python", "make setup"),
    "JavaScript 1.3.0": (HERE / "js/node_modules", "node, and npm ci --prefix tests/conformance/clients/js"),
}


@dataclass
class Post:
    path: str
    headers: dict[str, str]
    body: Any


class Hook(ThreadingHTTPServer):
    """A webhook that keeps what it gets."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posts: list[Post] = []

    def got(self, path: str) -> list[Post]:
        """What has come for a path, as soon as something has."""
        give_up = time.monotonic() + PATIENCE_S
        while not (found := [post for post in self.posts if post.path == path]):
            assert time.monotonic() < give_up, "no notification came"
            time.sleep(0.01)
        return found


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.posts.append(Post(self.path, headers, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        pass


@dataclass(frozen=True)
class Seen:
    """What a client saw, and what its webhook got."""

    deeds: dict[str, Any]
    posts: list[Post]


class Clients:
    """The clients at work on one deployment. Each runs once, whatever comes of it."""

    def __init__(self, url: str, hook: Hook) -> None:
        self._url = url
        self._hook = hook
        self._ran = cache(self._run)

    def saw(self, name: str, binding: str) -> Seen:
        there, how = NEEDS[name]
        if not there.exists() or (name.startswith("Java") and not NODE):
            pytest.skip(f"OFFICIAL CLIENT NOT RUN: {name} needs {how}")
        ran = self._ran(name, binding)
        assert ran.returncode == 0, ran.stderr
        return Seen(json.loads(ran.stdout.splitlines()[-1]), self._hook.got(_path(name, binding)))

    def _run(self, name: str, binding: str) -> subprocess.CompletedProcess[str]:
        webhook = f"http://127.0.0.1:{self._hook.server_port}{_path(name, binding)}"
        command = [*map(str, COMMANDS[name]), f"{self._url}/conformance", binding, webhook]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)  # noqa: S603


def _path(name: str, binding: str) -> str:
    return f"/{name}/{binding}".replace(" ", "-").replace("+", "-")


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    hook = Hook()
    listening = threading.Thread(target=hook.serve_forever)
    listening.start()
    try:
        with serving(conformance.AGENTS) as url:
            yield Clients(url, hook)
    finally:
        hook.shutdown()
        listening.join()
        hook.server_close()


@pytest.fixture(params=[(name, binding) for name in ("Python 1.3.0", "JavaScript 1.3.0") for binding in BINDINGS])
def seen(request: pytest.FixtureRequest, clients: Clients) -> Seen:
    """What a client of 1.0 saw."""
    return clients.saw(*request.param)


@pytest.fixture(params=BINDINGS)
def seen_by_old(request: pytest.FixtureRequest, clients: Clients) -> Seen:
    """What a client of 0.3 saw."""
    return clients.saw("Python 0.3.26", request.param)


def snake(kind: str) -> str:
    """The JavaScript SDK's name of an event, as the Python SDK has it."""
    return {"statusUpdate": "status_update", "artifactUpdate": "artifact_update"}.get(kind, kind)


@pytest.mark.requirement(101)
def test_a_1_0_client_verifies_the_cards_signature_and_refuses_an_altered_card(seen: Seen) -> None:
    assert seen.deeds["card"] == {"name": "Conformance agent", "altered": "refused"}


@pytest.mark.requirement(4, 6)
def test_a_1_0_client_gets_a_task_and_a_message(seen: Seen) -> None:
    assert seen.deeds["send"][-2:] == ["TASK_STATE_COMPLETED", "Hello from TCK"]
    assert seen.deeds["message"] == "Direct message response"
    assert len(seen.deeds["stream of a message"]) == 1


@pytest.mark.requirement(5, 7)
def test_a_1_0_client_sees_the_task_first_and_then_every_event(seen: Seen) -> None:
    assert [(snake(kind), what) for kind, what in seen.deeds["stream"]] == [
        ("task", "TASK_STATE_SUBMITTED"),
        ("status_update", "TASK_STATE_WORKING"),
        ("artifact_update", "chunk-1 "),
        ("artifact_update", "chunk-2"),
        ("status_update", "TASK_STATE_COMPLETED"),
    ]


@pytest.mark.requirement(14, 15)
def test_a_1_0_client_sees_its_answer_work_in_a_subscription_that_stayed_open(seen: Seen) -> None:
    assert [(snake(kind), what) for kind, what in seen.deeds["subscription"]] == [
        ("task", "TASK_STATE_INPUT_REQUIRED"),
        ("status_update", "TASK_STATE_WORKING"),
        ("status_update", "TASK_STATE_WORKING"),
        ("status_update", "TASK_STATE_COMPLETED"),
    ]
    assert seen.deeds["history"] in (True, 1)


@pytest.mark.requirement(12, 13)
def test_a_1_0_client_lists_page_by_page_and_cancels(seen: Seen) -> None:
    assert seen.deeds["list"] == ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_REJECTED", "TASK_STATE_COMPLETED"]
    assert (seen.deeds["total"], seen.deeds["waiting"]) == (3, 1)
    assert seen.deeds["cancel"] == "TASK_STATE_CANCELED"


@pytest.mark.requirement(17, 18, 19)
def test_a_1_0_client_registers_reads_lists_and_deletes_webhooks_and_sees_no_secret(seen: Seen) -> None:
    webhook = seen.deeds["webhook"]
    assert {"id": "mine", "taskId": seen.deeds["task with a webhook"]}.items() <= webhook.items()
    assert "a-token" not in json.dumps(webhook)
    assert "a-secret" not in json.dumps(webhook)
    assert (seen.deeds["webhooks"], seen.deeds["left"]) == (2, ["mine"])


def test_a_1_0_webhook_gets_stream_responses_with_its_token(seen: Seen) -> None:
    for post in seen.posts:
        assert_v1("StreamResponse", post.body)
        assert post.headers["a2a-version"] == "1.0"
        assert post.headers["x-a2a-notification-token"] == "a-token"
        assert post.headers["content-type"] == "application/a2a+json"
    assert seen.posts[0].body["task"]["id"] == seen.deeds["task with a webhook"]


@pytest.mark.requirement(83)
def test_a_1_0_client_knows_each_refusal_by_its_class(seen: Seen) -> None:
    in_a_stream = {
        "UnsupportedOperationError",
        "Error Code: -32004",
    }  # the latter is all that JavaScript's SDK makes of it
    refusals = dict(seen.deeds["refusals"])
    assert refusals.pop("subscription to an ended task") in in_a_stream
    assert {name: kind for name, kind in refusals.items() if name != "extended card"} == {
        "unknown task": "TaskNotFoundError",
        "cancel of an ended task": "TaskNotCancelableError",
        "message to an ended task": "UnsupportedOperationError",
    }


@pytest.mark.requirement(70)
def test_a_clients_own_credentials_own_the_authorization_header(clients: Clients) -> None:
    (post, *_) = clients.saw("Python 1.3.0", "JSONRPC").posts
    assert post.headers["authorization"] == "Bearer a-secret"
    assert post.headers["x-a2a-notification-jwt"].count(".") == 2


def test_a_0_3_client_reads_the_same_card_and_gets_a_task_and_a_message(seen_by_old: Seen) -> None:
    assert seen_by_old.deeds["card"] == "Conformance agent"
    assert seen_by_old.deeds["send"] == ["completed", "Hello from TCK"]
    assert seen_by_old.deeds["message"] == ["message", "Direct message response"]


def test_a_0_3_client_sees_the_task_first_then_every_event_and_a_final_one(seen_by_old: Seen) -> None:
    assert seen_by_old.deeds["stream"] == [
        ["task", "submitted"],
        ["status", "working"],
        ["artifact", "chunk-1 "],
        ["artifact", "chunk-2"],
        ["status", "completed, final"],
    ]
    assert seen_by_old.deeds["stream of a question"] == ["status", "input-required, final"]


def test_a_0_3_client_sees_its_answer_work_after_it_has_come_back(seen_by_old: Seen) -> None:
    assert seen_by_old.deeds["subscription"] == [
        ["task", "input-required"],
        ["status", "working"],
        ["status", "working"],
        ["status", "completed, final"],
    ]
    assert seen_by_old.deeds["history"] == ["user"]
    assert seen_by_old.deeds["cancel"] == "canceled"


def test_a_0_3_webhook_gets_whole_tasks_signed_by_us(seen_by_old: Seen) -> None:
    assert (seen_by_old.deeds["set"], seen_by_old.deeds["webhook"]["id"]) == ("other", "mine")
    for post in seen_by_old.posts:
        assert_v0_3("Task", post.body)
        assert post.body["id"] == seen_by_old.deeds["task with a webhook"]
        assert post.headers["a2a-version"] == "0.3"
        assert post.headers["authorization"].startswith("Bearer ey")


def test_a_0_3_client_is_refused_in_its_own_words(seen_by_old: Seen, clients: Clients) -> None:
    over_json_rpc = clients.saw("Python 0.3.26", "JSONRPC").deeds["refusals"]
    codes = {"unknown task": "-32001", "cancel of an ended task": "-32002", "message to an ended task": "-32004"}
    assert all(code in over_json_rpc[name] for name, code in codes.items())
    over_rest = clients.saw("Python 0.3.26", "HTTP+JSON").deeds["refusals"]
    statuses = {"unknown task": "404", "cancel of an ended task": "409", "message to an ended task": "501"}
    assert all(status in over_rest[name] for name, status in statuses.items())
    assert "served" not in seen_by_old.deeds["refusals"].values()
