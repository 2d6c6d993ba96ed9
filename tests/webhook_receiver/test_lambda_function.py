"""The one-file receiver as Lambda calls it."""

import base64
import json
import logging
import urllib.error
from collections.abc import Callable
from http.client import BadStatusLine
from typing import Any

import pytest

from a2a_webhook_receiver.receive import WebhookRequest
from examples import lambda_function
from examples.lambda_function import KeyCache, KeysUnavailable, fetch_keys
from tests.adapters.strangers import DRIPS, ENOUGH, serve
from tests.webhook_receiver.sending import JWKS, signed
from vectors.cases import AUDIENCE, CHALLENGE, ISSUER, KID, NOW, TASK, TOKEN
from vectors.forge import to_json

DAY = 86_400_000


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Callable[[WebhookRequest], dict[str, Any]]:
    for name, value in {"ISSUER": ISSUER, "AUDIENCE": AUDIENCE, "WEBHOOK_TOKEN": TOKEN}.items():
        monkeypatch.setenv(name, value)

    def call(request: WebhookRequest, **changes: Any) -> dict[str, Any]:
        keys = KeyCache(lambda: JWKS)
        return lambda_function.answer_event(event_of(request) | changes, keys, NOW)

    return call


def event_of(request: WebhookRequest) -> dict[str, Any]:
    values = {name: [value] for name, value in request.headers}
    return {"headers": dict(request.headers), "multiValueHeaders": values, "body": request.body.decode()}


def test_a_genuine_notification_is_handled(
    handle: Callable[..., dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert handle(signed())["body"] == '{"received": true}'
    assert caplog.messages == [f"task {TASK}, event 3"]


def test_a_body_in_base64_is_the_same_body(handle: Callable[..., dict[str, Any]]) -> None:
    request = signed()
    encoded = base64.b64encode(request.body).decode()
    assert handle(request, body=encoded, isBase64Encoded=True)["statusCode"] == 200


def test_the_events_of_function_urls_are_understood(handle: Callable[..., dict[str, Any]]) -> None:
    assert handle(signed(), multiValueHeaders=None)["statusCode"] == 200
    assert handle(signed(), multiValueHeaders=None, headers=None, body=None)["statusCode"] == 415


def test_a_challenge_is_echoed(handle: Callable[..., dict[str, Any]]) -> None:
    assert json.loads(handle(signed(CHALLENGE, challenge=True))["body"]) == {"challenge": CHALLENGE["challenge"]}


def test_everything_unauthentic_gets_one_answer(handle: Callable[..., dict[str, Any]]) -> None:
    answers = [handle(signed(iss="https://evil.example")), handle(signed(), body="{}"), handle(signed(exp=1, iat=0))]
    assert [answer["statusCode"] for answer in answers] == [401] * 3
    assert {answer["body"] for answer in answers} == {'{"error": "unauthenticated"}'}
    assert answers[0]["headers"]["WWW-Authenticate"] == "Bearer"


def test_an_authentic_body_that_is_no_notification_is_told_so(handle: Callable[..., dict[str, Any]]) -> None:
    assert handle(signed({}))["statusCode"] == 400


def test_two_headers_of_one_name_are_seen(handle: Callable[..., dict[str, Any]]) -> None:
    values = {name: [value] for name, value in signed().headers} | {"X-A2A-Notification-Token": [TOKEN, "x"]}
    assert handle(signed(), multiValueHeaders=values)["statusCode"] == 401


class Issuer:
    """Answers as it is told, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: bytes | None = JWKS

    def fetch(self) -> bytes:
        self.asked += 1
        if self.answer is None:
            raise urllib.error.URLError("down")
        return self.answer


@pytest.mark.enable_socket
@pytest.mark.parametrize("where", DRIPS)
def test_an_issuer_that_drips_is_left_after_the_deadline(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(DRIPS[where]) as peer:
        monkeypatch.setenv("ISSUER", f"http://127.0.0.1:{peer.port}")
        with pytest.raises(TimeoutError):
            fetch_keys(0.2)
        assert peer.written < ENOUGH


def test_a_flood_of_unknown_keys_makes_one_fetch_in_thirty_seconds() -> None:
    issuer = Issuer()
    cache = KeyCache(issuer.fetch)
    for at in range(0, 300_000, 100):
        assert "unknown" not in cache.keys_for("unknown", NOW + at)
        assert KID in cache.keys_for(KID, NOW + at)
    assert issuer.asked == 10


def test_an_issuer_that_fails_is_asked_once_in_thirty_seconds_and_its_keys_hold_for_a_day() -> None:
    issuer = Issuer()
    cache = KeyCache(issuer.fetch)
    cache.keys_for(KID, NOW)
    issuer.answer = None
    for at in range(DAY - 60_000, DAY, 100):
        assert KID in cache.keys_for(KID, NOW + at)
    assert issuer.asked == 3
    with pytest.raises(KeysUnavailable):
        cache.keys_for(KID, NOW + DAY)


def test_an_issuer_that_does_not_speak_http_is_an_issuer_that_fails() -> None:
    def fetch() -> bytes:
        raise BadStatusLine("nonsense")

    with pytest.raises(KeysUnavailable):
        KeyCache(fetch).keys_for(KID, NOW)


def test_without_keys_the_sender_is_asked_to_come_back(handle: Callable[..., dict[str, Any]]) -> None:
    del handle
    answer = lambda_function.answer_event(event_of(signed()), KeyCache(lambda: b"{}"), NOW)
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "30")


@pytest.mark.parametrize(
    "key_set",
    [b"", b"[]", b'{"keys":[]}', b'{"keys":{}}', b'{"keys":[{"kid":7}]}', to_json({"keys": [{}] * 17}), b" " * 70_000],
)
def test_what_is_no_key_set_is_refused(key_set: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        lambda_function.parse_keys(key_set)
