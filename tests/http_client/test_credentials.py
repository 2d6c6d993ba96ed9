"""Credentials are attached to the requests of their own origin, over https or on this machine, and to no others."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from a2a_serverless.client import ClientRequest, discover, open_request, with_credentials
from a2a_serverless.http_client.credentials import CredentialsKept
from tests.client.deployment import BASE, Deployment, answering, documents
from tests.echo import Writer

HOME = "https://agents.example.com"
KEY = {"Authorization": "Bearer secret"}
OTHERS = [
    "https://other.example.com/",
    "https://agents.example.com.evil.example/",
    "https://sub.agents.example.com/",
    "https://agents.example.com@evil.example/",
    "https://evil.example\\@agents.example.com/",
    f"{HOME}:8443/",
    "http://agents.example.com/",
    "http://agents.example.com:443/",
    "/relative",
]


def sent(url: str, home: str = HOME) -> list[str | None]:
    transport, calls = answering((200, {}, b"{}"))
    with with_credentials(transport, home, KEY)(ClientRequest(url)):
        return [call.headers.get("Authorization") for call in calls]


@pytest.mark.parametrize("url", OTHERS)
def test_credentials_are_sent_to_no_other_origin(url: str) -> None:
    assert sent(url) == [None]


@pytest.mark.parametrize("home", ["", "agents.example.com", "https://", "https://[::1"])
def test_a_url_without_an_origin_gets_no_credentials(home: str) -> None:
    assert sent(HOME, home) == sent(home, home) == [None]


@pytest.mark.parametrize(
    ("home", "url"),
    [
        (HOME, f"{HOME}/echo"),
        ("https://AGENTS.example.com:443/live", HOME),
        ("https://bücher.example", "https://xn--bcher-kva.example/echo"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/echo"),
    ],
)
def test_credentials_are_sent_to_their_own_origin(home: str, url: str) -> None:
    assert sent(url, home) == ["Bearer secret"]


def test_credentials_are_not_sent_over_plain_http() -> None:
    transport, calls = answering((200, {}, b"{}"))
    send = with_credentials(transport, "http://agents.example.com", KEY)
    with pytest.raises(CredentialsKept, match=r"over https only, not to http://agents\.example\.com"):
        send(ClientRequest("http://agents.example.com/echo"))
    assert calls == []


def test_an_interface_elsewhere_in_a_card_does_not_get_them() -> None:
    interface = {"url": "https://evil.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    card = {"name": "echo", "version": "1", "supportedInterfaces": [interface]}
    serve, keys = documents({f"{HOME}/.well-known/agent-card.json": card}), dict[str, str | None]()

    def transport(call: ClientRequest):  # type: ignore[no-untyped-def] # noqa: ANN202 - a transport
        keys[call.url] = call.headers.get("Authorization")
        return serve(call)

    client = discover(HOME, with_credentials(transport, HOME, KEY)).client
    with client.transport(ClientRequest(client.url)):
        assert keys == {f"{HOME}/.well-known/agent-card.json": "Bearer secret", "https://evil.example/rpc": None}


def test_an_agent_at_home_gets_them_with_every_request() -> None:
    deployment = Deployment(Writer().agent)
    client = discover(f"{BASE}/echo", with_credentials(deployment.transport, BASE, KEY)).client
    assert list(client.task_ids("context")) == []
    assert {call.headers.get("Authorization") for call in deployment.calls} == {"Bearer secret"}


@pytest.mark.enable_socket
def test_a_redirect_is_not_followed_with_credentials() -> None:
    keys: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append((self.headers["Host"], self.headers["Authorization"]))
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/stolen")  # type: ignore[attr-defined]
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        home = f"http://127.0.0.1:{server.server_port}"
        with with_credentials(open_request, home, KEY)(ClientRequest(home)) as answer:
            assert answer.status == 302
        server.shutdown()
    assert keys == [(home.removeprefix("http://"), "Bearer secret")]
