"""A notifier's POSTs, challenge and all, to the receivers: the documents' application, Lambda's events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import create_server
from threading import Thread
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.adapters.es256 import Es256Keys, KeyRingSigner
from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.domain.cursors import Verification
from a2a_serverless.domain.key_ring import KeyRing, create_ring
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig
from a2a_webhook_receiver.aws_lambda import make_handler
from a2a_webhook_receiver.settings import read_settings
from a2a_webhook_receiver.wiring import build_receiver
from examples import lambda_function
from tests.docs.documents import ROOT, blocks
from tests.echo import Writer
from tests.webhook_receiver.serving import serving
from tests.world import HOUR_MS, ME, World, configured

if TYPE_CHECKING:
    from a2a_serverless.domain.push_configs import Attempt
    from a2a_serverless.protocol.versions import ProtocolVersion

pytestmark = pytest.mark.enable_socket

OWN = ROOT / "webhook_receiver/README.md"
TOKEN = "client-token-5d41402abc4b2a76"
HERE = EgressPolicy(local_allow=("127.0.0.1:*",))
Answer = Callable[[str, dict[str, str], bytes], tuple[int, bytes]]


@contextmanager
def answering(answer: Answer) -> Iterator[int]:
    """The port of a server on this machine that answers (path, headers, body) so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            status, content = answer(self.path, dict(self.headers.items()), body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - its caller spells it so

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def deliver_a_task(
    ring: KeyRing, issuer: str, url: str, version: ProtocolVersion, token: str = TOKEN
) -> tuple[list[Attempt], int]:
    """Runs a task whose webhook is the URL: its attempts, and its last event."""
    world = World([Writer(seconds=0).agent], policy=HERE)
    world.now = time.time_ns() // 1_000_000
    world.resolver.addresses["127.0.0.1"] = ("127.0.0.1",)
    sender = WebhookSender(HERE)
    world.post = replace(world.post, sender=sender, signer=KeyRingSigner(lambda: ring), issuer=issuer)
    webhook = TaskPushNotificationConfig(url=url, id="c", token=token)
    request = configured(world.request("The sea 海"), task_push_notification_config=webhook)
    key = ME.key(world.sent(request, version=version).id)
    cursor = world.table.get_cursor(key, "c")
    unknown = replace(cursor, verification=Verification.UNVERIFIED)
    assert world.table.move_cursor(key, cursor, unknown), "or it would not be asked"
    world.settle(HOUR_MS)
    sender.close()
    assert world.table.get_cursor(key, "c").verification is Verification.VERIFIED
    assert world.table.get_cursor(key, "c").position == world.events(key.task)[-1].n
    return world.table.list_attempts(key), world.events(key.task)[-1].n


@pytest.fixture
def ring() -> KeyRing:
    keys = Es256Keys()
    return create_ring(keys.make(0), keys.make(0), now=0)


@pytest.fixture
def issuer(ring: KeyRing) -> Iterator[str]:
    """The address of a deployment, as far as its public keys go."""

    def publish(path: str, _headers: dict[str, str], _body: bytes) -> tuple[int, bytes]:
        return (200, json.dumps(ring.jwks(0)).encode()) if path == "/.well-known/jwks.json" else (404, b"")

    with answering(publish) as port:
        yield f"http://127.0.0.1:{port}"


def receiver_blocks(document: Path) -> list[str]:
    """The blocks of a document that use the receiver."""
    return [block.text for block in blocks("python", document) if "from a2a_webhook_receiver." in block.text]


@contextmanager
def documented(document: Path, issuer: str, token: str) -> Iterator[tuple[ModuleType, str]]:
    """The document's application, as it is printed, and the webhook's URL at which it is served.

    Only the receiver's own README shows how a token is registered.
    """
    application, *_ = receiver_blocks(document)
    _, registration, *_ = receiver_blocks(OWN)
    listener = create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/webhook"
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {"ISSUER": issuer, "AUDIENCE": url, "WEBHOOK_TOKEN": token, "REPLAY_DB": ":memory:"}.items():
            environment.setenv(name, value)
        module = ModuleType("documented")
        for block in (application, registration):
            exec(compile(block, str(document), "exec"), module.__dict__)  # noqa: S102 - our own document
    with serving(module.app, listener), closing(module.app.state.receiver.replays):
        yield module, url


@pytest.mark.parametrize("document", [OWN])
@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("token", [TOKEN, ""], ids=["static token", "registered token"])
def test_the_documented_application_accepts_every_post_of_a_task(
    ring: KeyRing, issuer: str, document: Path, version: ProtocolVersion, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with documented(document, issuer, token) as (module, url):
        attempts, last = deliver_a_task(ring, issuer, url, version, token or module.push_config["token"])
    assert {attempt.status for attempt in attempts} == {200}
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len([attempt for attempt in attempts if attempt.n])
    assert attempts[-1].n == last
    assert printed[-1].endswith(" completed")


REFUSED = "refused code=no-signature: no signed token in Authorization or X-A2A-Notification-JWT"


def test_a_refusal_of_the_documented_application_is_logged_with_its_reason(
    issuer: str, caplog: pytest.LogCaptureFixture
) -> None:
    with documented(OWN, issuer, TOKEN) as (_, url):
        assert refused_by(url) == 401
    assert REFUSED in caplog.messages


def refused_by(url: str) -> int:
    """The status of the answer to a POST that nobody has signed."""
    host, _, path = url.removeprefix("http://").partition("/")
    connection = HTTPConnection(host, timeout=60)
    connection.request("POST", f"/{path}", b"{}", {"Content-Type": "application/json"})
    with closing(connection):
        return connection.getresponse().status


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_lambda_s_receiver_accepts_every_post_of_a_task(
    ring: KeyRing, issuer: str, version: ProtocolVersion, capsys: pytest.CaptureFixture[str]
) -> None:
    def invoke(_path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        answer = handler({"headers": headers, "body": body.decode()}, None)
        return answer["statusCode"], answer["body"].encode()

    with answering(invoke) as port:
        url = f"http://127.0.0.1:{port}/webhook"
        described = {"ISSUER": issuer, "AUDIENCE": url, "WEBHOOK_TOKEN": TOKEN, "REPLAY_DB": ":memory:"}
        settings = read_settings(described)
        handler = make_handler(lambda_function.handle, lambda: (build_receiver(settings), settings))
        attempts, last = deliver_a_task(ring, issuer, url, version)
    assert {attempt.status for attempt in attempts} == {200}
    assert attempts[-1].n == last
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len([attempt for attempt in attempts if attempt.n])
    assert printed[-1].endswith(" completed")
