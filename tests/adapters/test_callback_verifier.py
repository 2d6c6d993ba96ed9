"""Webhooks of called agents, signed as our notifier signs, believed or not by the receiver's verifier."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.callback_verifier import SignedCallbackVerifier
from a2a_serverless.adapters.es256 import Es256Keys, KeyRingSigner
from a2a_serverless.client import ClientRequest, ClientResponse, Unreachable
from a2a_serverless.domain import notifications
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.key_ring import KeyRing
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.push_configs import PushConfig
from a2a_serverless.ports.agents import ExpectedCallback, IncomingNotification, InvalidCallback
from a2a_serverless.testing.memory import MemoryStores
from a2a_serverless.testing.simulated_loop import START

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE, FAR = "https://api.example.com", "https://far.example.org/agents"
URL = f"{HERE}/callbacks/one"
CHILD = TaskKey("tenant", "owner", "child")
BODY = json.dumps(
    {"statusUpdate": {"taskId": "child", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}}
).encode()
OURS, THEIRS = (KeyRing(Es256Keys().make(START), Es256Keys().make(START)) for _ in range(2))


def key_set(ring: KeyRing) -> bytes:
    return json.dumps({"keys": [ring.current.public]}).encode()


class Elsewhere:
    """Serves the key set of ``FAR`` and counts how often; answers with ``status``."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.status = 200

    @contextmanager
    def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
        self.asked.append(call.url)
        if not self.status:
            raise Unreachable(call.url, "no route")
        yield ClientResponse(self.status, {}, io.BytesIO(key_set(THEIRS)))


def verifier(elsewhere: Elsewhere | None = None) -> SignedCallbackVerifier:
    table = MemoryStores(lambda: START)
    table.publish("jwks", {"body": key_set(OURS).decode()})
    return SignedCallbackVerifier(table, lambda: START, (elsewhere or Elsewhere()).transport)


def expected(base: str = HERE, **changes: Any) -> ExpectedCallback:
    return ExpectedCallback(**{"address": f"{base}/echo", "url": URL, "token": "t-1", "task": None} | changes)


def signed(ring: KeyRing = OURS, issuer: str = HERE, body: bytes = BODY, url: str = URL) -> IncomingNotification:
    config = PushConfig("parent", url, "1.0", "i-1", START)
    claims = notifications.notification_claims(CHILD, config, 3, body, issuer=issuer, now=START, jti="jti-1")
    token = KeyRingSigner(lambda: ring).sign("a2a-notification+jwt", claims).token
    return with_headers(plain(body), authorization=f"Bearer {token}")


def with_headers(incoming: IncomingNotification, **headers: str) -> IncomingNotification:
    return IncomingNotification(
        {**incoming.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}, incoming.body
    )


def plain(body: bytes = BODY) -> IncomingNotification:
    return IncomingNotification(
        {"content-type": "application/a2a+json", "a2a-version": "1.0", "x-a2a-notification-token": "t-1"}, body
    )


def test_a_notification_that_a_sibling_has_signed_is_believed() -> None:
    assert verifier().verify(signed(), expected()) is None
    assert verifier().verify(signed(), expected(task="child")) is None


def test_a_notification_of_an_agent_elsewhere_is_checked_with_the_keys_at_its_address() -> None:
    elsewhere = Elsewhere()
    checks = verifier(elsewhere)
    for _ in range(3):
        assert checks.verify(signed(THEIRS, FAR), expected(FAR)) is None
    assert elsewhere.asked == [f"{FAR}/.well-known/jwks.json"], "once"


ORIGIN = "https://far.example.org"


@pytest.mark.parametrize("address", ["", "/", "/echo", "/echo/", "/echo?qualifier=a/b", "?qualifier=a/b"])
def test_the_issuer_of_an_address_is_without_the_last_part_of_its_path_and_its_query(address: str) -> None:
    elsewhere = Elsewhere()
    assert verifier(elsewhere).verify(signed(THEIRS, ORIGIN), expected(address=ORIGIN + address)) is None
    assert elsewhere.asked == [f"{ORIGIN}/.well-known/jwks.json"]


def test_an_agent_elsewhere_that_does_not_sign_is_known_by_its_token_alone() -> None:
    elsewhere = Elsewhere()
    assert verifier(elsewhere).verify(plain(), expected(FAR)) is None
    theirs = with_headers(plain(), authorization="Bearer opaque")
    assert verifier(elsewhere).verify(theirs, expected(FAR)) is None
    assert elsewhere.asked == []


OTHER = BODY.replace(b"child", b"other")


@pytest.mark.parametrize(
    ("incoming", "call", "why"),
    [
        (plain(), expected(), "no-signature"),
        (signed(THEIRS), expected(), "unknown-key"),
        (signed(issuer=FAR), expected(), "wrong-issuer"),
        (signed(url=f"{HERE}/callbacks/two"), expected(), "wrong-audience"),
        (IncomingNotification(signed().headers, OTHER), expected(), "wrong-body"),
        (signed(body=OTHER), expected(), "wrong-task"),
        (signed(), expected(task="another"), "unknown-task"),
        (signed(), expected(token="t-2"), "unknown-task"),
        (signed(OURS, FAR), expected(FAR), "unknown-key"),
        (signed(THEIRS, HERE), expected(FAR), "wrong-issuer"),
    ],
)
def test_a_notification_that_does_not_fit_the_call_is_refused(
    incoming: IncomingNotification, call: ExpectedCallback, why: str
) -> None:
    with pytest.raises(InvalidCallback, match=why):
        verifier().verify(incoming, call)


@pytest.mark.parametrize("status", [0, 404, 500])
def test_while_keys_cannot_be_had_the_sender_shall_try_again(status: int) -> None:
    elsewhere = Elsewhere()
    elsewhere.status = status
    with pytest.raises(Overloaded):
        verifier(elsewhere).verify(signed(THEIRS, FAR), expected(FAR))


def test_a_signed_question_is_answered_with_its_challenge() -> None:
    body = json.dumps({"type": "a2a.webhook.challenge", "challenge": "echo me"}).encode()
    config = PushConfig("parent", URL, "1.0", "i-1", START)
    claims = notifications.challenge_claims(config, body, issuer=HERE, now=START, jti="jti-2")
    token = KeyRingSigner(lambda: OURS).sign("a2a-challenge+jwt", claims).token
    asked = with_headers(plain(body), authorization=f"Bearer {token}", content_type="application/json")
    assert verifier().verify(asked, expected()) == "echo me"


def test_the_verifier_is_imported_when_the_first_webhook_comes_and_not_before() -> None:
    code = (
        "import sys, a2a_serverless.adapters.callback_verifier, a2a_serverless.http.app; "
        "print('a2a_webhook_receiver' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "False\n"
