"""Credentials for agents elsewhere: to exactly their origin, over TLS, and in nothing that anybody reads."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from aws_lambda_powertools.utilities.parameters import clear_caches

from a2a_serverless.adapters.agent_credentials import AgentCredentials, credentials_of
from a2a_serverless.adapters.agent_secrets import secret_at
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.model import Principal
from a2a_serverless.http_client.transport import ClientRequest, ClientResponse
from a2a_serverless.ports.agents import AgentUnavailable
from tests.adapters.clouds import cloud
from tests.echo import agent_of
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.task_context import TaskContext

SECRET = "Bearer s3cret-token"
ME = Principal("acme", "alice")
FAR = "https://agents.example.com"
TASK = {"id": "far", "contextId": "context", "status": {"state": "TASK_STATE_WORKING"}}


def card_at(url: str) -> dict[str, Any]:
    about = {"name": "Far", "description": "d", "version": "1", "capabilities": {}, "skills": []}
    modes = {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
    return (
        about | modes | {"supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}
    )


class Wire:
    """A transport that notes what leaves and answers from a script: a document, or what makes one of a request."""

    def __init__(self, *answers: Any, status: int = 200) -> None:
        self.answers = list(answers)
        self.status = status
        self.calls: list[ClientRequest] = []

    @contextmanager
    def __call__(self, call: ClientRequest) -> Iterator[ClientResponse]:
        self.calls.append(call)
        yield ClientResponse(self.status, {}, BytesIO(json.dumps(self.answers.pop(0)).encode()))

    @property
    def carried(self) -> list[str | None]:
        return [call.headers.get("Authorization") for call in self.calls]


def credentials(origin: str = FAR, *, local: bool = False) -> AgentCredentials:
    return AgentCredentials(lambda: json.dumps({origin: {"Authorization": SECRET}}), local=local)


def test_an_agent_elsewhere_gets_its_headers_with_its_card_and_with_every_call() -> None:
    wire = Wire(card_at(f"{FAR}/rpc"), {"jsonrpc": "2.0", "id": 1, "result": TASK})
    A2ARemoteAgents({}, {"far": f"{FAR}/far"}, transport=wire, credentials=credentials()).get(Caller(ME), "far", "far")
    assert wire.carried == [SECRET, SECRET]


@pytest.mark.parametrize(
    "url",
    [
        "https://agents.example.com.evil.example/far",
        "https://evil.example/agents.example.com",
        "https://sub.agents.example.com/far",
        "https://agents.example.com:8443/far",
        "https://agents.example.com@evil.example/far",
        "http://agents.example.com/far",
        "http://agents.example.com:443/far",
        "https://agents.example.com:99999/far",
    ],
)
def test_credentials_are_sent_to_no_other_origin(url: str) -> None:
    wire = Wire({})
    with credentials().wrap(wire)(ClientRequest(url)):
        assert wire.carried == [None]


@pytest.mark.parametrize("url", ["https://AGENTS.example.com/far", "https://agents.example.com:443/far?x=1"])
def test_an_origin_is_the_same_however_it_is_spelt(url: str) -> None:
    wire = Wire({})
    with credentials().wrap(wire)(ClientRequest(url)):
        assert wire.carried == [SECRET]


def test_a_card_that_points_elsewhere_takes_nothing_there() -> None:
    wire = Wire(card_at("https://evil.example/rpc"))
    with pytest.raises(AgentCallFailed, match=r"another origin, https://evil\.example"):
        A2ARemoteAgents({}, {"far": FAR}, transport=wire, credentials=credentials()).get(Caller(ME), "far", "far")
    assert len(wire.calls) == 1


def test_the_deployment_s_own_agents_are_not_given_them() -> None:
    wire = Wire({"jsonrpc": "2.0", "id": 1, "result": TASK})
    A2ARemoteAgents({"near": f"{FAR}/near"}, transport=wire, credentials=credentials()).get(Caller(ME), "near", "far")
    assert wire.carried == [None]


@pytest.mark.enable_socket
def test_a_redirect_is_not_followed_with_credentials() -> None:
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.headers["Host"], self.headers["Authorization"]))
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/stolen")  # type: ignore[attr-defined]
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        remote_agents = A2ARemoteAgents({}, {"far": origin}, credentials=credentials(origin, local=True))
        with pytest.raises(AgentCallFailed, match="HTTP 302"):
            remote_agents.card("far")
        server.shutdown()
    assert asked == [(origin.removeprefix("http://"), SECRET)]


# ---- Not seen


@pytest.mark.parametrize(("code", "said"), [(-32602, "refused"), (-32603, "cannot answer now")])
def test_credentials_in_the_refusal_of_an_agent_are_struck_out(code: int, said: str) -> None:
    problem = {"code": code, "message": f"'{SECRET}' is unknown, s3cret-token has expired"}
    wire = Wire(card_at(f"{FAR}/rpc"), {"jsonrpc": "2.0", "id": 1, "error": problem})
    remote_agents = A2ARemoteAgents({}, {"far": FAR}, transport=wire, credentials=credentials())
    with pytest.raises(AgentCallFailed, match=rf"{said}: '\*\*\*' is unknown, \*\*\* has expired") as refused:
        remote_agents.get(Caller(ME), "far", "far")
    assert "s3cret" not in str(refused.value)


def test_printing_a_request_or_its_client_shows_no_credentials() -> None:
    wire, known = Wire(card_at(f"{FAR}/rpc")), credentials()
    remote_agents = A2ARemoteAgents({}, {"far": FAR}, transport=wire, credentials=known)
    remote_agents.card("far")
    assert "s3cret" not in f"{wire.calls!r} {remote_agents!r} {known!r}"


def test_a_call_leaves_credentials_in_no_store_message_or_log_line(caplog: pytest.LogCaptureFixture) -> None:
    async def work(task: TaskContext) -> None:
        await task.call("first", "far", "hello")

    caplog.set_level(logging.DEBUG)
    problem = {"code": -32603, "message": f"{SECRET} is not known here"}
    wire = Wire(card_at(f"{FAR}/rpc"), {"jsonrpc": "2.0", "id": 1, "error": problem})
    world = World([agent_of(work)])
    remote_agents = A2ARemoteAgents({}, {"far": FAR}, transport=wire, credentials=credentials())
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=remote_agents))
    task_id = world.send("go").id
    world.settle()
    told = world.get(task_id).status.message
    assert told is not None
    assert told.text() == "The agent 'far' refused: *** is not known here"
    assert wire.carried == [SECRET] * 2
    left = [vars(stored) if hasattr(stored, "__dict__") else stored for stored in vars(world.table).values()]
    records = [vars(record) for record in caplog.records]
    assert "is not known here" in f"{left}"
    assert "s3cret" not in f"{left} {vars(world.queue)} {records} {caplog.text}"


# ---- The secret


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with cloud("secretsmanager") as client:
        clear_caches()  # type: ignore[no-untyped-call]
        yield client
        clear_caches()  # type: ignore[no-untyped-call]


def test_credentials_are_read_again_when_the_cache_of_powertools_is_empty(secrets: Any) -> None:
    wire = Wire({}, {}, {})
    sending = AgentCredentials(lambda: secret_at("far")).wrap(wire)
    secrets.create_secret(Name="far", SecretString=json.dumps({FAR: {"Authorization": "Bearer one-two"}}))
    with sending(ClientRequest(FAR)):
        secrets.put_secret_value(SecretId="far", SecretString=json.dumps({FAR: {"Authorization": SECRET}}))
    with sending(ClientRequest(FAR)):
        clear_caches()  # type: ignore[no-untyped-call]
    with sending(ClientRequest(FAR)):
        assert wire.carried == ["Bearer one-two", "Bearer one-two", SECRET]


def test_a_secret_that_cannot_be_read_fails_the_call_and_nothing_is_sent(secrets: Any) -> None:  # noqa: ARG001
    wire = Wire()
    credentials = AgentCredentials(lambda: secret_at("nowhere"))
    with pytest.raises(AgentUnavailable, match="could not be read"):
        A2ARemoteAgents({}, {"far": FAR}, transport=wire, credentials=credentials).card("far")
    assert wire.calls == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ('{"https://a.example": {"X-Key": "s3cret-token"', "not JSON"),
        ('["s3cret-token"]', "not an object"),
        ('{"s3cret-token": {}}', "not an origin"),
        ('{"https://a.example/path": {}}', "not an origin"),
        ('{"https://s3cret-token@a.example": {}}', "not an origin"),
        ('{"https://a.example:port": {}}', "not an origin"),
        ('{"http://a.example": {"X-Key": "s3cret-token"}}', "over https only"),
        ('{"http://127.0.0.1:8000": {"X-Key": "s3cret-token"}}', "over https only"),
        ('{"https://a.example": "s3cret-token"}', "header names and values"),
        ('{"https://a.example": {"X Key": "s3cret-token"}}', "header names and values"),
        ('{"https://a.example": {"X-Key": "s3cret-token\\r\\nX-Other: 1"}}', "header names and values"),
        ('{"https://a.example": {"X-Key": ["s3cret-token"]}}', "header names and values"),
    ],
)
def test_a_secret_of_another_form_is_refused_without_a_word_of_it(text: str, why: str) -> None:
    known = AgentCredentials(lambda: text)
    with pytest.raises(AgentCallFailed, match=why) as refused, known.wrap(Wire({}))(ClientRequest(FAR)):
        pass
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://agents.example.com", "http://10.0.0.1:8000"])
def test_a_local_run_needs_tls_but_to_this_machine(url: str) -> None:
    with pytest.raises(ValueError, match="over https only"):
        credentials_of(json.dumps({url: {}}), local=True)
    assert credentials_of('{"http://127.0.0.1:8000": {"X-Key": "k"}}', local=True)
