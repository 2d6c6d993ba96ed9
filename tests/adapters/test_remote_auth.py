"""How requests to the remote agents of mirrors are authenticated, and that no secret comes back to a client."""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import json
import logging
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from botocore.credentials import ReadOnlyCredentials

from a2a_serverless import OAuthClientCredentials, SecretHeaders, SigV4, mirror
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.adapters.remote_auth import EARLY_S, LIFE_S, RemoteAuth
from a2a_serverless.client import ClientRequest, ClientResponse, HttpError
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.agent_errors import AgentCallFailed, SecretNotRead
from a2a_serverless.domain.model import Principal
from a2a_serverless.protocol.v1 import Message, Part, Role, Task, TaskState, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from a2a_serverless.domain.remotes import Auth

URL = "https://far.example.com/agent"
TOKEN_URL = "https://login.example.com/token"
OAUTH = OAuthClientCredentials(TOKEN_URL, "me & co", "client", scope="a2a.call", audience="far")
ADA = Caller(Principal("acme", "ada"))
SECRETS = {"weather": "Bearer s3cret-word", "client": "cl1ent/secret"}


def read_secret(name: str) -> str:
    if name not in SECRETS:
        raise SecretNotRead(f"The secret {name!r} is not set.")
    return SECRETS[name]


class Wire:
    """The token endpoint and the remote agent. ``valid`` are the tokens that the agent takes; None is every token."""

    def __init__(self, tokens: list[object], valid: set[str] | None = None) -> None:
        self.tokens, self.valid = tokens, valid
        self.asked: list[ClientRequest] = []
        self.sent: list[ClientRequest] = []

    @contextmanager
    def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
        if call.url == TOKEN_URL:
            self.asked.append(call)
            given = self.tokens.pop(0)
            status, document = given if isinstance(given, tuple) else (200, given)
            yield ClientResponse(status, {}, io.BytesIO(json.dumps(document).encode()))
            return
        self.sent.append(call)
        token = call.headers.get("Authorization", "").removeprefix("Bearer ")
        yield ClientResponse(200 if self.valid is None or token in self.valid else 401, {}, io.BytesIO(b"{}"))

    def statuses(self, auth: RemoteAuth, times: int = 1) -> list[int]:
        send, statuses = auth.wrap(self.transport, URL), []
        for _ in range(times):
            with send(ClientRequest(URL, {"A2A-Version": "1.0"}, b"{}")) as answer:
                statuses.append(answer.status)
        return statuses


def test_headers_have_the_values_of_the_projects_secrets() -> None:
    wire = Wire([])
    wire.statuses(RemoteAuth(SecretHeaders({"Authorization": "weather", "X-Key": "client"}), read_secret))
    (call,) = wire.sent
    assert call.headers == {"A2A-Version": "1.0", "Authorization": SECRETS["weather"], "X-Key": SECRETS["client"]}


def test_a_secret_that_is_not_set_is_said_by_its_name() -> None:
    with pytest.raises(AgentCallFailed, match="'other'"):
        Wire([]).statuses(RemoteAuth(SecretHeaders({"X-Key": "other"}), read_secret))


def test_a_token_is_asked_for_as_the_grant_says() -> None:
    wire = Wire([{"access_token": "t-1", "expires_in": 3600}])
    wire.statuses(RemoteAuth(OAUTH, read_secret))
    (asked,), (sent,) = wire.asked, wire.sent
    assert dict(parse_qsl((asked.body or b"").decode())) == {
        "grant_type": "client_credentials",
        "scope": "a2a.call",
        "audience": "far",
    }
    client = base64.b64encode(f"{quote('me & co')}:{quote('cl1ent/secret')}".encode()).decode()
    assert asked.headers["Authorization"] == f"Basic {client}"
    assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert sent.headers["Authorization"] == "Bearer t-1"


@pytest.mark.parametrize(
    ("answer", "life_s"), [({"expires_in": 3600}, 3600), ({"expires_in": "900"}, 900), ({}, LIFE_S)]
)
def test_a_token_is_used_until_shortly_before_it_expires(answer: dict[str, object], life_s: int) -> None:
    now = 1_000.0
    wire = Wire([{"access_token": "t-1", **answer}, {"access_token": "t-2", **answer}])
    auth = RemoteAuth(OAUTH, read_secret, lambda: now)
    wire.statuses(auth, 3)
    now += life_s - EARLY_S - 1
    wire.statuses(auth)
    assert len(wire.asked) == 1
    now += 1
    wire.statuses(auth)
    assert [call.headers["Authorization"] for call in wire.sent] == ["Bearer t-1"] * 4 + ["Bearer t-2"]


def test_a_token_that_is_refused_before_its_time_is_replaced_once() -> None:
    wire = Wire([{"access_token": "t-1", "expires_in": 9999}, {"access_token": "t-2", "expires_in": 9999}])
    auth = RemoteAuth(OAUTH, read_secret)
    assert wire.statuses(auth) == [200]
    wire.valid = {"t-2"}
    assert wire.statuses(auth) == [200]
    assert [call.headers["Authorization"] for call in wire.sent] == ["Bearer t-1", "Bearer t-1", "Bearer t-2"]


def test_a_fresh_token_that_is_refused_is_a_refusal() -> None:
    wire = Wire([{"access_token": "t-1"}], valid=set())
    assert wire.statuses(RemoteAuth(OAUTH, read_secret)) == [401]


def test_a_token_endpoint_that_refuses_is_said_without_its_words() -> None:
    with pytest.raises(HttpError, match=r"HTTP 400: no token from the token endpoint$"):
        Wire([(400, {"error": "invalid_client", "message": "cl1ent/secret"})]).statuses(RemoteAuth(OAUTH, read_secret))


@pytest.mark.parametrize("document", [[], {}, {"access_token": ""}, {"access_token": 1}])
def test_an_answer_of_the_token_endpoint_without_a_token_fails_the_call(document: object) -> None:
    with pytest.raises(AgentCallFailed, match="without a token"):
        Wire([document]).statuses(RemoteAuth(OAUTH, read_secret))


# AWS's published suite for Signature Version 4: its credentials, and the signatures of two of its requests.
EXAMPLE = ReadOnlyCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None)
VANILLA = {
    "GET": "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    "POST": "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
}


def signature(verb: str, url: str, signed: Mapping[str, str], body: bytes, region: str, service: str) -> str:
    """The signature by the letter of AWS's documentation, with the example's key."""
    parts, names = urlsplit(url), sorted(signed)
    path = quote(parts.path or "/", safe="/~")
    headers = "".join(f"{name}:{signed[name].strip()}\n" for name in names)
    query = "&".join(sorted(f"{quote(k, safe='~')}={quote(v, safe='~')}" for k, v in parse_qsl(parts.query)))
    request = "\n".join((verb, path, query, headers, ";".join(names), hashlib.sha256(body).hexdigest()))
    at = signed["x-amz-date"]
    scope = f"{at[:8]}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{EXAMPLE.secret_key}".encode()
    for word in (*scope.split("/"), text):
        key = hmac.digest(key, word.encode(), "sha256")
    return key.hex()


@pytest.mark.parametrize("verb", VANILLA)
def test_the_reference_of_the_next_test_makes_the_signatures_that_aws_has_published(verb: str) -> None:
    signed = {"host": "example.amazonaws.com", "x-amz-date": "20150830T123600Z"}
    made = signature(verb, "https://example.amazonaws.com/", signed, b"", "us-east-1", "service")
    assert made == VANILLA[verb]


@pytest.mark.parametrize("session", [None, "session/token=="])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aus-west-2%3A1%3Aruntime%2Fa-b/invocations/", b'{"a": "\xc3\xa4"}'),
        ("/agent/tasks/1:cancel?historyLength=0&a=b%20c", None),
    ],
)
def test_a_request_is_signed_as_aws_says(path: str, body: bytes | None, session: str | None) -> None:
    credentials = ReadOnlyCredentials(EXAMPLE.access_key, EXAMPLE.secret_key, session)
    auth = RemoteAuth(SigV4("bedrock-agentcore", "us-west-2"), read_secret, credentials=lambda: credentials)
    wire, url = Wire([]), f"https://bedrock-agentcore.us-west-2.amazonaws.com{path}"
    with auth.wrap(wire.transport, url)(
        ClientRequest(url, {"A2A-Version": "1.0", "Content-Type": "application/json"}, body)
    ):
        pass
    (call,) = wire.sent
    given = {name.lower(): value for name, value in call.headers.items()}
    authorization = dict(part.strip().split("=", 1) for part in given["authorization"].split(" ", 1)[1].split(","))
    names = authorization["SignedHeaders"].split(";")
    assert {"host", "x-amz-date", "a2a-version", "content-type"} <= set(names)
    assert ("x-amz-security-token" in names) == (session is not None)
    signed = {name: urlsplit(url).netloc if name == "host" else given[name] for name in names}
    assert authorization["Signature"] == signature(
        call.verb, url, signed, body or b"", "us-west-2", "bedrock-agentcore"
    )
    assert authorization["Credential"].endswith("/us-west-2/bedrock-agentcore/aws4_request")


def test_secrets_that_the_remote_agent_repeats_are_removed_from_its_status(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    text = "KeyError: Bearer s3cret-word, s3cret-word"
    message = Message(message_id="m", role=Role.AGENT, parts=(Part(text=text), Part(data={"n": 1})))
    agents, sent = mirrored(message, auth=SecretHeaders({"Authorization": "weather"}))
    status = agents.get(ADA, "far/remote", "t").status
    assert sent[0].headers["Authorization"] == SECRETS["weather"]
    assert status.message
    assert status.message.parts[0].text == "KeyError: ***, ***"
    assert "s3cret-word" not in status.message.text() + caplog.text
    assert status.message.parts[1] == Part(data={"n": 1})


def test_a_session_is_named_for_its_owner_and_the_same_for_all_its_requests() -> None:
    agents, sent = mirrored(None, session_header="X-Session")
    for caller in (ADA, ADA, Caller(Principal("acme", "bob"))):
        agents.get(caller, "far/remote", "t")
    ada, again, bob = (call.headers["X-Session"] for call in sent)
    assert ada == again != bob
    assert len(ada) >= 33, "AgentCore wants 33 characters"


def test_an_agent_without_a_session_gets_no_such_header() -> None:
    agents, sent = mirrored(None)
    agents.get(ADA, "far/remote", "t")
    assert sent[0].headers.keys() == {"A2A-Version", "Accept", "Content-Type"}


def mirrored(message: Message | None, **options: Any) -> tuple[A2ARemoteAgents, list[ClientRequest]]:
    """A client of the remote agent of a mirror, whose task has failed with the message, and the requests it gets."""
    task = Task(id="t", status=TaskStatus(state=TaskState.FAILED, message=message))
    sent: list[ClientRequest] = []

    @contextmanager
    def transport(call: ClientRequest) -> Iterator[ClientResponse]:
        sent.append(call)
        yield ClientResponse(200, {}, io.BytesIO(b'{"jsonrpc":"2.0","id":1,"result":%b}' % task.json_bytes()))

    interface = {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    far = mirror(URL, card={"name": "Far", "supportedInterfaces": [interface]}, **options)
    return A2ARemoteAgents({}, transport=transport, agents={"far": far}, read_secret=read_secret), sent


@pytest.mark.parametrize("url", ["https://elsewhere.example.com/agent", "https://far.example.com:8443/agent"])
@pytest.mark.parametrize(
    "auth", [SecretHeaders({"Authorization": "weather"}), OAUTH, SigV4("bedrock-agentcore", "us-west-2")]
)
def test_another_origin_than_the_mirrors_gets_no_credentials(auth: Auth, url: str) -> None:
    wire = Wire([])
    with RemoteAuth(auth, read_secret).wrap(wire.transport, URL)(ClientRequest(url, {"A2A-Version": "1.0"})):
        assert [dict(call.headers) for call in wire.sent] == [{"A2A-Version": "1.0"}]
    assert wire.asked == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\nX-Other: value", "…"])
@pytest.mark.parametrize("auth", [SecretHeaders({"Authorization": "weather"}), replace(OAUTH, secret="weather")])
def test_a_secret_with_a_line_end_is_refused_by_its_name_and_not_shown(auth: Auth, end: str) -> None:
    wire = Wire([])
    with pytest.raises(AgentCallFailed, match="The secret 'weather' has a line end") as refused:
        wire.statuses(RemoteAuth(auth, lambda _: f"Bearer s3cret-word{end}"))
    assert "s3cret" not in f"{refused.value!r}{refused.value.__context__!r}"
    assert wire.sent == wire.asked == []


def test_a_token_with_a_line_end_is_refused_and_not_shown() -> None:
    wire = Wire([{"access_token": "t0ken-word\r\nX-Other: value"}])
    with pytest.raises(AgentCallFailed, match="The token of the token endpoint has a line end") as refused:
        wire.statuses(RemoteAuth(OAUTH, read_secret))
    assert "t0ken" not in f"{refused.value!r}{refused.value.__context__!r}"
    assert wire.sent == []
