"""The official SDKs, as their users have them from PyPI, npm, Go's proxy and Maven Central, talk to us over real HTTP.

In four places: the server of a laptop, ``a2a-serverless dev``, the streaming loop, and the deployed function behind the
emulator's API Gateway, whose answers are buffered. Each client runs once in each place for each binding, and says what
it saw. ``operation`` names the columns of docs/clients.md that a test fills.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.client import agents_of
from a2a_webhook_receiver.receive import WebhookRequest, check
from a2a_webhook_receiver.settings import read_settings
from a2a_webhook_receiver.verifier import VerifiedNotification
from a2a_webhook_receiver.wiring import build_receiver
from sample_agents import conformance
from tests.conformance.live import serving
from tests.conformance.loop import looping
from tests.conformance.official import OFFICIAL, program_of
from tests.dev.terminal import make_project, running
from tests.observed import observed
from tests.protocol.schema import assert_v0_3, assert_v1

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.stack.local import LocalStack

pytestmark = pytest.mark.enable_socket

TIMEOUT_S: Final = 120
AT_ONCE: Final = 3
BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
LAPTOP, DEV, LOOP, DEPLOYED = "laptop", "dev", "streaming loop", "deployed"
HERE: Final = pytest.mark.xdist_group("official clients")
PLACES: Final = [
    *[pytest.param(place, marks=HERE) for place in (LAPTOP, DEV, LOOP)],
    pytest.param(DEPLOYED, marks=[pytest.mark.integration, pytest.mark.xdist_group("stack")]),
]


def those_of(version: str) -> list[tuple[str, str]]:
    """Every client of a version, with each binding."""
    return [(name, binding) for name, one in OFFICIAL.items() if version in one.versions for binding in BINDINGS]


REFUSED: Final = [one for one in those_of("1.0") if "webhooks" in OFFICIAL[one[0]].cannot]


@dataclass
class Post:
    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes
    received_ms: int


class Hook(ThreadingHTTPServer):
    """A webhook that keeps what it gets."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posts: list[Post] = []

    def got(self, path: str) -> list[Post]:
        """What has come for a path, as soon as something has."""
        give_up = time.monotonic() + TIMEOUT_S
        while not (found := [post for post in self.posts if post.path == path]):
            assert time.monotonic() < give_up, "no notification came"
            time.sleep(0.01)
        return found


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        headers = {name.lower(): value for name, value in self.headers.items()}
        challenge = body.get("challenge")
        if challenge is None:
            self.server.posts.append(Post(self.path, headers, body, raw, time.time_ns() // 1_000_000))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"challenge": challenge}).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        pass


@dataclass(frozen=True)
class Seen:
    """What a client saw, and where its webhook is."""

    name: str
    binding: str
    place: str
    deeds: dict[str, Any]
    hook: Hook
    url: str

    @property
    def issuer_and_jwks(self) -> tuple[str, str]:
        """The issuer, which is the address that the deployment's users have, and where its keys are."""
        (first, *_) = agents_of(self.url, observed())
        return str(first["url"]).rpartition("/")[0], f"{self.url}/.well-known/jwks.json"

    @property
    def posts(self) -> list[Post]:
        """What its webhook got."""
        return self.hook.got(_path(self.name, self.binding))

    def cannot(self, deed: str) -> str | None:
        """Why the client cannot do it by itself; None when it can."""
        reasons = OFFICIAL[self.name].cannot
        return reasons.get(deed) or reasons.get(f"{self.binding} {deed}")

    @property
    def final(self) -> str:
        """What a client of 0.3 says of an event that is the final one."""
        return "" if self.cannot("final") else ", final"

    def needs(self, deed: str) -> None:
        """Skips the test for a client that cannot do it by itself."""
        if reason := self.cannot(deed):
            pytest.skip(f"{self.name} over {self.binding} cannot do it itself: {reason}")


class Clients:
    """The clients at work on one deployment. Each runs once, whatever comes of it; a few at a time."""

    def __init__(self, url: str, place: str, hook: Hook, pool: ThreadPoolExecutor) -> None:
        self._url = url
        self._place = place
        self._hook = hook
        self._pool = pool
        self._started: dict[tuple[str, str], Future[subprocess.CompletedProcess[str]]] = {}

    def saw(self, name: str, binding: str) -> Seen:
        ran = self._run(name, binding).result()
        assert ran.returncode == 0, ran.stderr
        deeds = json.loads(ran.stdout.splitlines()[-1])
        return Seen(name, binding, self._place, deeds, self._hook, self._url)

    def _run(self, name: str, binding: str) -> Future[subprocess.CompletedProcess[str]]:
        program = program_of(name)
        if isinstance(program, str):
            pytest.skip(program)
        for one in BINDINGS if (name, binding) not in self._started else ():
            webhook = f"http://127.0.0.1:{self._hook.server_port}{_path(name, one)}"
            pace = "buffered" if self._place == DEPLOYED else "streamed"
            command = [*program, f"{self._url}/conformance", one, webhook, pace]
            self._started[name, one] = self._pool.submit(_ran, command)
        return self._started[name, binding]


def _ran(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)  # noqa: S603


def _path(name: str, binding: str) -> str:
    return f"/{name}/{binding}".replace(" ", "-").replace("+", "-")


@pytest.fixture(scope="module", params=PLACES)
def clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    hook = Hook()
    listening = threading.Thread(target=hook.serve_forever)
    listening.start()
    try:
        with _deployment(request) as url, ThreadPoolExecutor(AT_ONCE) as pool:
            yield Clients(url, request.param, hook, pool)
    finally:
        hook.shutdown()
        listening.join()
        hook.server_close()


def _deployment(request: pytest.FixtureRequest) -> AbstractContextManager[str]:
    paths: dict[str, Callable[[], AbstractContextManager[str]]] = {
        LAPTOP: lambda: serving(conformance.AGENTS),
        DEV: lambda: _dev(request.getfixturevalue("tmp_path_factory").mktemp("project")),
        LOOP: lambda: looping(conformance.AGENTS),
        DEPLOYED: lambda: _deployed(request.getfixturevalue("stack")),
    }
    return paths[request.param]()


@contextmanager
def _dev(folder: Path) -> Iterator[str]:
    project = make_project(folder)
    (folder / "workshop/agents.py").write_text("from sample_agents.conformance import full\n")
    (folder / "pyproject.toml").write_text('[tool.a2a-serverless]\nagents = ["workshop.agents:full"]\n')
    with running(project) as dev:
        yield dev.url


@contextmanager
def _deployed(stack: LocalStack) -> Iterator[str]:
    yield stack.deployment.rest_url


@pytest.fixture(params=those_of("1.0"), ids=" ".join)
def seen(request: pytest.FixtureRequest, clients: Clients) -> Seen:
    """What a client of 1.0 saw."""
    return clients.saw(*request.param)


@pytest.fixture(params=those_of("0.3"), ids=" ".join)
def seen_by_old(request: pytest.FixtureRequest, clients: Clients) -> Seen:
    """What a client of 0.3 saw."""
    return clients.saw(*request.param)


def ended_before(seen: Seen) -> bool:
    """Whether the task that works for eight seconds had ended, on a slow machine, when the subscription began."""
    return seen.place == DEPLOYED and len(seen.deeds["subscription"]) == 1


def snake(kind: str) -> str:
    """The JavaScript SDK's name of an event, as the Python SDK has it."""
    return {"statusUpdate": "status_update", "artifactUpdate": "artifact_update"}.get(kind, kind)


def assert_verified(seen: Seen) -> None:
    """Everything that the webhook got is what the deployment signed for it, by the rules of the receiver."""
    audience = f"http://127.0.0.1:{seen.hook.server_port}{_path(seen.name, seen.binding)}"
    with tempfile.TemporaryDirectory() as folder:
        issuer, jwks = seen.issuer_and_jwks
        told = {"ISSUER": issuer, "JWKS_URL": jwks, "AUDIENCE": audience, "REPLAY_DB": f"{folder}/receiver.db"}
        receiver = build_receiver(read_settings(told | {"WEBHOOK_TOKEN": "a-token-of-the-client"}))
        for post in seen.posts:
            checked = check(receiver, WebhookRequest(tuple(post.headers.items()), post.raw), post.received_ms)
            assert isinstance(checked, VerifiedNotification)
            assert checked.subject.task_id == seen.deeds["task with a webhook"]


@pytest.mark.operation("signature")
@pytest.mark.requirement(101)
def test_a_1_0_client_verifies_the_cards_signature_and_refuses_an_altered_card(seen: Seen) -> None:
    seen.needs("signature")
    assert seen.deeds["card"] == {"name": "Conformance agent", "altered": "refused"}


@pytest.mark.operation("card")
def test_a_1_0_client_reads_the_card(seen: Seen) -> None:
    card = seen.deeds["card"]
    name = card["name"] if isinstance(card, dict) else card
    assert name == ("InvalidParamsJsonMappingException" if seen.cannot("card") else "Conformance agent")
    seen.needs("card")


@pytest.mark.operation("send")
@pytest.mark.requirement(4, 6)
def test_a_1_0_client_gets_a_task_and_a_message(seen: Seen) -> None:
    assert seen.deeds["send"][-2:] == ["TASK_STATE_COMPLETED", "Hello from TCK"]
    assert seen.deeds["message"] == "Direct message response"
    assert len(seen.deeds["stream of a message"]) == 1


@pytest.mark.operation("at once")
@pytest.mark.requirement(27)
def test_a_1_0_client_that_does_not_want_to_wait_gets_its_task_at_once(seen: Seen) -> None:
    seen.needs("at once")
    assert seen.deeds["at once"] == "TASK_STATE_SUBMITTED"


@pytest.mark.operation("stream")
@pytest.mark.requirement(5, 7)
def test_a_1_0_client_sees_the_task_first_and_then_every_event(seen: Seen) -> None:
    assert [(snake(kind), what) for kind, what in seen.deeds["stream"]] == [
        ("task", "TASK_STATE_SUBMITTED"),
        ("status_update", "TASK_STATE_WORKING"),
        ("artifact_update", "chunk-1 "),
        ("artifact_update", "chunk-2"),
        ("status_update", "TASK_STATE_COMPLETED"),
    ]


@pytest.mark.operation("get")
def test_a_1_0_client_gets_its_task_with_as_much_history_as_it_asks_for(seen: Seen) -> None:
    assert seen.deeds["history"] in (True, 1)


@pytest.mark.operation("subscribe")
@pytest.mark.requirement(14, 15)
def test_a_1_0_client_sees_its_answer_work_in_a_subscription_that_stayed_open(seen: Seen) -> None:
    if seen.place == DEPLOYED:
        pytest.skip(
            "the emulator's API Gateway sends a subscription only after its end, so the client cannot answer in it"
        )
    assert [(snake(kind), what) for kind, what in seen.deeds["subscription"]] == [
        ("task", "TASK_STATE_INPUT_REQUIRED"),
        ("status_update", "TASK_STATE_WORKING"),
        ("status_update", "TASK_STATE_WORKING"),
        ("status_update", "TASK_STATE_COMPLETED"),
    ]


@pytest.mark.operation("subscribe")
@pytest.mark.requirement(14, 15)
def test_a_1_0_client_reads_a_subscription_from_the_task_as_it_is_to_its_end(seen: Seen) -> None:
    if seen.place == DEPLOYED:
        seen.needs("at once")  # a task that works for long enough to be subscribed to
    told = seen.deeds["subscription"]
    assert (snake(told[0][0]), told[-1][1]) == ("task", "TASK_STATE_COMPLETED")
    if not ended_before(seen):
        assert snake(told[-1][0]) == "status_update"


@pytest.mark.operation("list", "cancel")
@pytest.mark.requirement(12, 13)
def test_a_1_0_client_lists_page_by_page_and_cancels(seen: Seen) -> None:
    assert seen.deeds["list"] == ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_REJECTED", "TASK_STATE_COMPLETED"]
    assert (seen.deeds["total"], seen.deeds["waiting"]) == (3, 1)
    assert seen.deeds["cancel"] == "TASK_STATE_CANCELED"


@pytest.mark.operation("webhooks")
@pytest.mark.requirement(17, 18, 19)
def test_a_1_0_client_registers_reads_lists_and_deletes_webhooks_and_sees_no_secret(seen: Seen) -> None:
    seen.needs("webhooks")
    webhook = seen.deeds["webhook"]
    assert {"id": "mine", "taskId": seen.deeds["task with a webhook"]}.items() <= webhook.items()
    assert "a-token-of-the-client" not in json.dumps(webhook)
    assert "a-secret" not in json.dumps(webhook)
    assert (seen.deeds["webhooks"], seen.deeds["left"]) == (2, ["mine"])


@pytest.mark.operation("delivery")
def test_a_1_0_webhook_gets_stream_responses_with_its_token(seen: Seen) -> None:
    seen.needs("webhooks")
    for post in seen.posts:
        assert_v1("StreamResponse", post.body)
        assert post.headers["a2a-version"] == "1.0"
        assert post.headers["x-a2a-notification-token"] == "a-token-of-the-client"
        assert post.headers["content-type"] == "application/a2a+json"
    assert seen.posts[0].body["task"]["id"] == seen.deeds["task with a webhook"]


@pytest.mark.operation("delivery")
def test_a_1_0_webhook_is_verified_by_the_receiver(seen: Seen) -> None:
    seen.needs("webhooks")
    assert_verified(seen)


@pytest.mark.requirement(29, 36, 40)
@pytest.mark.parametrize("seen", REFUSED, indirect=True, ids=" ".join)
def test_a_client_whose_webhook_is_refused_reads_why_and_may_delete_what_there_is_not(seen: Seen) -> None:
    assert seen.deeds["webhooks"]["deleted"] == "served"
    seen.needs("refusals")
    assert seen.deeds["webhooks"]["created"].startswith("url is required.")
    assert seen.deeds["webhooks"]["got"] == "TaskNotFoundError"


@pytest.mark.operation("errors")
@pytest.mark.requirement(83)
def test_a_1_0_client_knows_each_refusal_by_its_class(seen: Seen) -> None:
    refusals = dict(seen.deeds["refusals"])
    assert "served" not in [refusals[name] for name in refusals if name != "extended card"]
    seen.needs("refusals")
    assert {
        name: refusals[name] for name in ("unknown task", "cancel of an ended task", "message to an ended task")
    } == {
        "unknown task": "TaskNotFoundError",
        "cancel of an ended task": "TaskNotCancelableError",
        "message to an ended task": "UnsupportedOperationError",
    }


@pytest.mark.operation("errors")
@pytest.mark.requirement(83)
def test_a_1_0_client_knows_a_refused_stream_by_its_class(seen: Seen) -> None:
    seen.needs("refusals")
    refused = dict(seen.deeds["refusals"])["subscription to an ended task"]
    if seen.cannot("refused stream"):
        assert refused == "Error caused by UnsupportedOperationError"
        seen.needs("refused stream")
    assert refused == "UnsupportedOperationError"


@pytest.mark.requirement(70)
def test_a_clients_own_credentials_own_the_authorization_header(clients: Clients) -> None:
    (post, *_) = clients.saw("Python 1.3.0", "JSONRPC").posts
    assert post.headers["authorization"] == "Bearer a-secret"
    assert post.headers["x-a2a-notification-jwt"].count(".") == 2


@pytest.mark.operation("card", "send")
def test_a_0_3_client_reads_the_same_card_and_gets_a_task_and_a_message(seen_by_old: Seen) -> None:
    assert seen_by_old.deeds["card"] == "Conformance agent"
    assert seen_by_old.deeds["send"] == ["completed", "Hello from TCK"]
    assert seen_by_old.deeds["message"] == ["message", "Direct message response"]


@pytest.mark.operation("stream")
def test_a_0_3_client_sees_the_task_first_then_every_event_and_a_final_one(seen_by_old: Seen) -> None:
    assert seen_by_old.deeds["stream"] == [
        ["task", "submitted"],
        ["status", "working"],
        ["artifact", "chunk-1 "],
        ["artifact", "chunk-2"],
        ["status", f"completed{seen_by_old.final}"],
    ]
    assert seen_by_old.deeds["stream of a question"] == ["status", f"input-required{seen_by_old.final}"]


@pytest.mark.operation("at once")
def test_a_0_3_client_that_does_not_want_to_wait_gets_its_task_at_once(seen_by_old: Seen) -> None:
    assert seen_by_old.deeds["at once"] == "submitted"


@pytest.mark.operation("get")
def test_a_0_3_client_gets_its_task_with_as_much_history_as_it_asks_for(seen_by_old: Seen) -> None:
    assert seen_by_old.deeds["history"] == ["user"]


@pytest.mark.operation("cancel")
def test_a_0_3_client_cancels(seen_by_old: Seen) -> None:
    assert seen_by_old.deeds["cancel"] == "canceled"


@pytest.mark.operation("subscribe")
def test_a_0_3_client_sees_its_answer_work_after_it_has_come_back(seen_by_old: Seen) -> None:
    told = seen_by_old.deeds["subscription"]
    assert told[0][0] == "task"
    if not ended_before(seen_by_old):
        assert told[-1] == ["status", f"completed{seen_by_old.final}"]
    if seen_by_old.place != DEPLOYED:  # where a subscription is told when it has ended
        assert told[:-1] == [["task", "input-required"], ["status", "working"], ["status", "working"]]


@pytest.mark.operation("webhooks")
def test_a_0_3_client_registers_and_reads_webhooks(seen_by_old: Seen) -> None:
    assert (seen_by_old.deeds["set"], seen_by_old.deeds["webhook"]["id"]) == ("other", "mine")


@pytest.mark.operation("delivery")
def test_a_0_3_webhook_gets_whole_tasks(seen_by_old: Seen) -> None:
    for post in seen_by_old.posts:
        assert_v0_3("Task", post.body)
        assert post.body["id"] == seen_by_old.deeds["task with a webhook"]
        assert post.headers["a2a-version"] == "0.3"


@pytest.mark.operation("delivery")
def test_a_0_3_webhook_is_verified_by_the_receiver(seen_by_old: Seen) -> None:
    assert_verified(seen_by_old)


REFUSALS: Final = ("unknown task", "cancel of an ended task", "message to an ended task")
WORDS: Final = {
    "Python 0.3.26 JSONRPC": ("-32001", "-32002", "-32004"),
    "Python 0.3.26 HTTP+JSON": ("404", "409", "501"),
    "JavaScript 0.3.14 JSONRPC": ("TaskNotFoundError", "TaskNotCancelableError", "UnsupportedOperationError"),
    "JavaScript 0.3.14 HTTP+JSON": ("TaskNotFoundError", "TaskNotCancelableError", "UnsupportedOperationError"),
    "Java 0.3.3.Final JSONRPC": ("TaskNotFoundError", "TaskNotCancelableError", "UnsupportedOperationError"),
    "Go 2.4.0 for 0.3 JSONRPC": ("TaskNotFoundError", "TaskNotCancelableError", "UnsupportedOperationError"),
    "Go 2.4.0 for 0.3 HTTP+JSON": ("TaskNotFoundError", "TaskNotCancelableError", "UnsupportedOperationError"),
    # Over REST this SDK knows classes by names of Java's packages only, and shows the text.
    "Java 0.3.3.Final HTTP+JSON": ("was not found", "cannot be canceled", "Send a new message"),
}


@pytest.mark.operation("errors")
def test_a_0_3_client_knows_each_refusal_by_its_type(seen_by_old: Seen) -> None:
    seen_by_old.needs("types")
    test_a_0_3_client_is_refused_in_its_own_words(seen_by_old)


def test_a_0_3_client_is_refused_in_its_own_words(seen_by_old: Seen) -> None:
    refusals = seen_by_old.deeds["refusals"]
    words = WORDS[f"{seen_by_old.name} {seen_by_old.binding}"]
    assert [word in refusals[name] for name, word in zip(REFUSALS, words, strict=True)] == [True] * 3
    assert "served" not in [refusals[name] for name in refusals if name != "extended card"]
    assert refusals.get("extended card", "served") == "served"
