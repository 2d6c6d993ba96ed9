"""All receivers answer and log alike: FastAPI, Lambda and Node get the same requests in the same order."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from a2a_webhook_receiver.aws_lambda import make_handler
from a2a_webhook_receiver.errors import Refused
from a2a_webhook_receiver.expectations import WithStaticToken
from a2a_webhook_receiver.http import create_app
from a2a_webhook_receiver.jwks import JwksCache
from a2a_webhook_receiver.outbound import Unreachable
from a2a_webhook_receiver.receive import Receiver, WebhookRequest, begin
from tests.webhook_receiver import asgi
from tests.webhook_receiver.sending import JWKS, event, receiving, settings_for, signed
from tests.webhook_receiver.test_readme import refusals
from vectors.cases import AUDIENCE, CHALLENGE, ISSUER, NOW, STATUS_UPDATE, TOKEN, good_claims
from vectors.forge import to_json

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

pytestmark = pytest.mark.enable_socket

NODE = shutil.which("node")
DRIVER = Path(__file__).parent / "node/receivers.mjs"
IN_USE, FAILS = 90, 13
COMPARED = ("content-type", "cache-control", "www-authenticate", "retry-after", "allow")
REASONS = {kind.code: kind.reason for kind in refusals(Refused)}
LINE = re.compile(r"(accepted|late|duplicate|challenge|refused|failed)\b")


@dataclass(frozen=True)
class Sent:
    """A request, the status that it must get, and its line in the log."""

    name: str
    request: WebhookRequest
    status: int
    line: str


def changed(request: WebhookRequest, **headers: str | None) -> WebhookRequest:
    """The request with other headers; None leaves one out."""
    new = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    kept = [(name, value) for name, value in request.headers if name.lower() not in new]
    return WebhookRequest((*kept, *((name, value) for name, value in new.items() if value is not None)), request.body)


def refused(name: str, request: WebhookRequest, code: str, status: int = 401, *, reason: str = "") -> Sent:
    """A refusal before the request is known to be authentic: its line has no ids."""
    return Sent(name, request, status, f"refused code={code}: {reason or REASONS[code]}")


def named(
    name: str, request: WebhookRequest, code: str, status: int = 401, *, reason: str = "", number: int = 6
) -> Sent:
    """A refusal of an authentic request: its line has the ids that the issuer signed."""
    line = f"refused code={code} task=7f9c2d1e-task event={number}: {reason or REASONS[code]}"
    return Sent(name, request, status, line)


def requests() -> list[Sent]:
    good, other = event(1), STATUS_UPDATE["statusUpdate"] | {"taskId": "task-2"}
    return [
        Sent("good", good, 200, "accepted task=7f9c2d1e-task event=1"),
        Sent("the same once more", good, 200, "duplicate task=7f9c2d1e-task event=1"),
        Sent("repeated", event(1, attempt=2), 200, "duplicate task=7f9c2d1e-task event=1"),
        Sent("a later event", event(3), 200, "accepted task=7f9c2d1e-task event=3"),
        Sent("an earlier event", event(2), 200, "late task=7f9c2d1e-task event=2"),
        Sent("version 0.3", changed(event(4, body=OLD), a2a_version="0.3"), 200, "accepted task=7f9c2d1e-task event=4"),
        Sent("a challenge", signed(CHALLENGE, challenge=True), 200, "challenge"),
        Sent("the handler fails", event(FAILS), 500, "failed task=7f9c2d1e-task event=13 error=ValueError"),
        Sent("it fails again", event(FAILS, attempt=2), 500, "failed task=7f9c2d1e-task event=13 error=ValueError"),
        named("handled by another", event(IN_USE, attempt=2, configId="busy"), "still-working", 503, number=IN_USE),
        refused("forged", WebhookRequest(good.headers, to_json({"statusUpdate": other})), "wrong-body"),
        named("a token of another body", event(5, jti="j-1-1"), "replayed", number=5),
        refused("wrong audience", event(6, aud="https://other.example/webhook"), "wrong-audience"),
        refused("wrong issuer", event(6, iss="https://evil.example"), "wrong-issuer"),
        refused("expired", event(6, now=NOW - 3_600_000), "expired"),
        refused("of the future", event(6, now=NOW + 3_600_000), "not-yet-valid"),
        refused("too long valid", event(6, exp=NOW // 1000 + 301), "lives-too-long"),
        refused("a claim is missing", event(6, eventNumber="6"), "malformed-claims"),
        named("another token of the client", changed(event(6), x_a2a_notification_token="x" * 20), "unknown-task"),
        named(
            "no token of the client",
            changed(event(6), x_a2a_notification_token=None),
            "unknown-task",
            reason="it has no token, and its task is not registered",
        ),
        refused("unsigned", changed(event(6), authorization=None), "no-signature"),
        refused("no JWT", changed(event(6), authorization="Bearer x"), "malformed-token"),
        named("a challenge as notification", signed(CHALLENGE), "unreadable-body", 400, number=3),
        refused("a header twice", WebhookRequest((*good.headers, ("Content-Type", "a/b")), b"{}"), "duplicate-header"),
        named("another task's body", event(6, body={"statusUpdate": other}), "wrong-task"),
        named("no notification", event(6, body={}), "unreadable-body", 400),
        named("no JSON", event(6, body=b"{"), "unreadable-body", 400),
        named("version 9", changed(event(6), a2a_version="9"), "unsupported-version", 400),
        refused("a page", changed(event(6), content_type="text/html"), "unsupported-media", 415),
        refused("compressed", changed(event(6), content_encoding="gzip"), "unsupported-media", 415),
        refused("oversized", WebhookRequest(good.headers, b"x" * (1024 * 1024 + 1)), "too-large", 413),
    ]


OLD = {"kind": "task", "id": "7f9c2d1e-task", "contextId": "ctx-1", "status": {"state": "completed"}}
SENT = requests()

Answer = tuple[int, bytes, dict[str, str]]
Send_ = Callable[[WebhookRequest], Answer]


@dataclass(frozen=True)
class Run:
    """What a receiver answered to all requests, to one without the issuer's keys and to a GET; and its log."""

    answers: list[Answer]
    keyless: Answer
    get: Answer
    lines: list[str]


def failing(claimed: Any) -> None:
    if claimed.notification.subject.event_number == FAILS:
        raise ValueError("the application's own")


def no_keys() -> bytes:
    raise Unreachable("down")


@contextmanager
def python_receiver(**changes: Any) -> Iterator[Receiver]:
    with receiving() as inner:
        changes = {"expectations": WithStaticToken(inner.expectations, TOKEN), "replays": inner.replays} | changes
        with receiving(**changes) as receiver:
            yield receiver


@contextmanager
def two_receivers(**changes: Any) -> Iterator[tuple[Receiver, Receiver]]:
    """A receiver that is busy with one notification, and one that cannot get keys."""
    keyless = JwksCache(no_keys, lambda _: None)
    with python_receiver(**changes) as good, python_receiver(**changes, keys=keyless) as without:
        begin(good, event(IN_USE, configId="busy"))
        yield good, without


@contextmanager
def collecting(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    lines: list[str] = []
    with caplog.at_level(logging.INFO, "a2a_webhook_receiver"):
        yield lines
    lines += [record.getMessage() for record in caplog.records if record.name == "a2a_webhook_receiver"]


@pytest.fixture
def fastapi(caplog: pytest.LogCaptureFixture) -> Run:
    settings = settings_for()
    with collecting(caplog) as lines, two_receivers(relays=(failing,)) as pair:
        good, keyless = (guarded(create_app(receiver, settings)) for receiver in pair)
        answers = [seen(asgi.post(good, sent.request)) for sent in SENT]
        last = seen(asgi.post(keyless, event(1)))
        get = seen(asgi.call(good, asgi.Call("GET", "/webhook")))
    return Run(answers, last, get, lines)


def guarded(app: Any) -> Any:
    """The server around an application: it goes on when the application raises, after the answer."""

    async def server(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except ValueError as error:
            assert error.args == ("the application's own",)  # noqa: PT017 - it must be this one

    return server


def seen(answer: asgi.Answer) -> Answer:
    return answer.status, answer.body, {name: answer.headers[name] for name in COMPARED if name in answer.headers}


@pytest.fixture
def aws_lambda(caplog: pytest.LogCaptureFixture) -> Run:
    settings = settings_for()
    with collecting(caplog) as lines, two_receivers() as pair:
        good, keyless = (make_handler(failing, lambda it=each: (it, settings)) for each in pair)  # type: ignore[misc]
        answers = [invoke(good, sent.request) for sent in SENT]
        last = invoke(keyless, event(1))
        get = invoke(good, WebhookRequest((), b""), httpMethod="GET")
    return Run(answers, last, get, lines)


def invoke(handler: Any, request: WebhookRequest, **changes: Any) -> Answer:
    several: dict[str, list[str]] = {}
    for name, value in request.headers:
        several.setdefault(name, []).append(value)
    answer = handler(
        {"httpMethod": "POST", "multiValueHeaders": several, "body": request.body.decode()} | changes, None
    )
    headers = {name.lower(): value for name, value in answer["headers"].items()}
    assert headers.keys() <= {*COMPARED}
    return answer["statusCode"], answer["body"].encode(), headers


@pytest.fixture
def node() -> Run:
    if NODE is None:
        pytest.skip("JAVASCRIPT RECEIVER NOT TESTED: no node")
    claims = good_claims(**event_claims(IN_USE))
    described = {"issuer": ISSUER, "audience": AUDIENCE, "token": TOKEN, "now": NOW, "keys": JWKS.decode()}
    described |= {"claimed": claims, "fails": FAILS, "bodyMs": 60_000}
    command = [NODE, str(DRIVER)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, **pipes) as process, ExitStack() as end:  # noqa: S603
        end.callback(process.terminate)
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(described))
        process.stdin.close()
        good, keyless = json.loads(process.stdout.readline())
        answers = [post(good, sent.request) for sent in SENT]
        last, get = post(keyless, event(1)), post(good, WebhookRequest((), b""), "GET")
        process.terminate()
        lines = [line for line in process.stdout.read().splitlines() if LINE.match(line)]
    return Run(answers, last, get, lines)


def event_claims(number: int) -> dict[str, Any]:
    return {"eventNumber": number, "notificationId": f"n-{number}", "jti": f"j-{number}-1", "configId": "busy"}


def post(port: int, request: WebhookRequest, method: str = "POST") -> Answer:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    with closing(connection):
        connection.putrequest(method, "/webhook")
        for name, value in (*request.headers, ("Content-Length", str(len(request.body)))):
            connection.putheader(name, value)
        connection.endheaders()
        if len(request.body) <= 1024 * 1024:  # or it is refused before it is sent
            connection.send(request.body)
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders() if name.lower() in COMPARED}
        return answer.status, answer.read(), headers


@pytest.mark.parametrize("platform", ["fastapi", "aws_lambda", "node"])
def test_every_receiver_answers_and_logs_alike(platform: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(platform)
    assert [(sent.name, status) for sent, (status, _, _) in zip(SENT, run.answers, strict=True)] == [
        (sent.name, sent.status) for sent in SENT
    ]
    for sent, (_, body, headers) in zip(SENT, run.answers, strict=True):
        if sent.status != 500 or platform != "fastapi":  # there it is the application's own answer
            assert (json.loads(body), headers) == expected(sent), sent.name
            assert b" " not in body
    assert run.keyless == (503, b'{"error":"keys-unavailable"}', {**ALWAYS, "retry-after": "30"})
    assert (run.get[0], run.get[2]["allow"]) == (405, "POST")
    assert run.lines == [sent.line for sent in [*SENT, refused("", event(1), "keys-unavailable")]]


ALWAYS = {"content-type": "application/json", "cache-control": "no-store"}


def expected(sent: Sent) -> tuple[dict[str, Any], dict[str, str]]:
    """The body and the headers that the table in ``answers.py`` says."""
    kind, code = sent.line.split()[0], re.split("[ :]", sent.line.partition("code=")[2])[0]
    bodies: dict[str, dict[str, Any]] = {
        "accepted": {"received": True, "duplicate": False, "late": False},
        "late": {"received": True, "duplicate": False, "late": True},
        "duplicate": {"received": True, "duplicate": True},
        "challenge": {"challenge": CHALLENGE["challenge"]},
        "failed": {"error": "internal"},
        "refused": {"error": "unauthenticated" if sent.status == 401 else code},
    }
    more = {"www-authenticate": "Bearer"} if sent.status == 401 else {"retry-after": "61"} if sent.status == 503 else {}
    return bodies[kind], {**ALWAYS, **more}


def test_no_line_holds_a_secret_or_what_a_stranger_sent() -> None:
    secrets = {TOKEN, *(value for sent in SENT for name, value in sent.request.headers if name == "Authorization")}
    lines = "\n".join(sent.line for sent in SENT)
    assert not [secret for secret in secrets if secret in lines]
    assert "evil" not in lines
