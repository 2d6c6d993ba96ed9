"""The route of events from outside: what is taken, and what is refused."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.services.callbacks import TOKEN_HEADER
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import agent_of
from tests.edge import Edge
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless import TaskContext

SECRET = "It's a Secret to Everybody"


class Waiting:
    """A task that waits for an event, and the api that takes it."""

    def __init__(self, signed_with: str | None = None) -> None:
        async def work(task: TaskContext) -> str:
            paid = await task.callback("paid", signed_with=signed_with)
            self.url = paid.url
            return (await paid.received()).body.decode()

        self.world = World([agent_of(work)])
        self.world.engine = replace(self.world.engine, read_secret=lambda _: SECRET)
        self.task = self.world.send("go", push=False)
        self.world.wait(10_000)
        service, agents = self.world.service, self.world.engine.agents
        self.edge = Edge(service, agents, AllowAnonymous(), MemoryCallbackVerifier(), 60)

    @property
    def path(self) -> str:
        return self.url.removeprefix("https://api.example.com")

    def ask(self, path: str, body: bytes = b"1", verb: str = "POST", **headers: str) -> int:
        return self.edge.answer(HttpRequest(verb, path, headers, body=body)).status

    @property
    def said(self) -> str:
        message = self.world.get(self.task.id).status.message
        return message.text() if message else ""


@pytest.mark.parametrize("media_type", ["application/json", "application/x-www-form-urlencoded", "image/png", ""])
def test_an_event_of_any_media_type_resumes_the_task(media_type: str) -> None:
    waiting = Waiting()
    assert waiting.ask(waiting.path, b"not { json", **{"content-type": media_type}) == 200
    waiting.world.settle()
    assert waiting.said == "not { json"


def test_an_unknown_address_and_one_of_a_task_that_has_ended_are_not_found_alike() -> None:
    waiting = Waiting()
    assert waiting.ask("/events/unknown") == 404
    assert waiting.ask(waiting.path) == 200
    waiting.world.settle()
    unknown, ended = (waiting.edge.answer(HttpRequest("POST", path)) for path in ("/events/unknown", waiting.path))
    assert (ended.status, ended.body) == (404, unknown.body)


def test_an_address_of_a_task_that_has_ended_is_not_found_whatever_is_sent_and_how_often() -> None:
    waiting = Waiting()
    assert waiting.ask(waiting.path) == 200
    waiting.world.settle()
    assert waiting.ask(waiting.path, bytes(256 * 1024 + 1)) == 404
    assert [waiting.ask(waiting.path) for _ in range(12)] == [404] * 12


def test_only_post_is_taken_and_a_body_that_is_too_long_is_refused() -> None:
    waiting = Waiting()
    assert [waiting.ask(waiting.path, verb=verb) for verb in ("GET", "PUT", "DELETE")] == [404, 404, 404]
    assert waiting.ask(waiting.path, bytes(256 * 1024 + 1)) == 413
    assert [waiting.ask(waiting.path, body) for body in (b"1", b"1", b"2")] == [200, 200, 409]


def test_too_many_requests_are_refused_with_a_time() -> None:
    waiting = Waiting()
    assert [waiting.ask(waiting.path) for _ in range(12)] == [200] * 11 + [429]
    refused = waiting.edge.answer(HttpRequest("POST", waiting.path))
    assert (refused.status, refused.headers["retry-after"]) == (429, "60")


def test_an_address_of_an_event_is_none_of_a_call() -> None:
    waiting = Waiting()
    digest = next(pk for pk in waiting.world.table.items.partitions if pk.startswith("CALLBACK#")).removeprefix(
        "CALLBACK#"
    )
    assert waiting.ask(f"/callbacks/{digest}", b"{}", **{TOKEN_HEADER: "guessed"}) == 404
    assert waiting.ask(f"/events/{digest}") == 404


def test_a_signature_that_is_wrong_or_missing_is_401_and_leaves_the_address_free(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waiting, body = Waiting("github:hook"), b'{"action": "opened"}'
    header = "x-hub-signature-256"
    forged = HttpRequest("POST", waiting.path, {header: f"sha256={'0' * 64}"}, body=body)
    refused = waiting.edge.answer(forged)
    assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Bearer realm="a2a"')
    assert json.loads(refused.body)["error"]["message"].startswith(f"The signature in {header} is not one of this body")
    assert waiting.ask(waiting.path, body) == 401
    right = f"sha256={hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}"
    assert waiting.ask(waiting.path, body, **{header: right}) == 200
    waiting.world.settle()
    assert waiting.said == body.decode()
    written = capsys.readouterr()
    assert SECRET not in f"{refused.body!r} {written.out} {written.err}"


def test_requests_without_the_right_signature_are_counted_and_keep_no_genuine_request_away() -> None:
    waiting, body = Waiting("github:hook"), b"1"
    right = f"sha256={hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}"
    forged = {"x-hub-signature-256": f"sha256={'0' * 64}"}
    assert [waiting.ask(waiting.path, body, **forged) for _ in range(12)] == [401] * 10 + [429] * 2
    genuine = {"x-hub-signature-256": right}
    assert waiting.ask(waiting.path, body, **genuine) == 200
    assert [waiting.ask(waiting.path, body, **forged) for _ in range(2)] == [429, 429]
    assert [waiting.ask(waiting.path, body, **genuine) for _ in range(12)] == [200] * 12, (
        "a repeated event is no failure"
    )
    waiting.world.settle()
    assert [waiting.ask(waiting.path, body, **headers) for headers in (forged, genuine)] == [404, 404]
