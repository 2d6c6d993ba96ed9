"""News of called agents over HTTP: what is read, and what is refused."""

from __future__ import annotations

import pytest

from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.edge import Edge
from tests.services.test_callbacks import Waiting


def told(waiting: Waiting, media_type: str | None, token: str | None = None, encoding: str = "") -> tuple[int, bytes]:
    """Status and body of the answer to news of a type."""
    world = waiting.world
    edge = Edge(world.service, world.engine.agents, AllowAnonymous(), MemoryCallbackVerifier(), 60)
    headers = {"x-a2a-notification-token": token or waiting.callback.token or ""}
    headers |= {} if media_type is None else {"content-type": media_type}
    headers |= {"content-encoding": encoding} if encoding else {}
    path = "/callbacks/" + waiting.callback.url.rpartition("/")[2]
    answer = edge.answer(HttpRequest("POST", path, headers, body=b"{}"))
    return answer.status, answer.body


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/a2a+json", "application/json; charset=utf-8", None]
)
def test_news_in_json_wakes_the_task_under_both_its_names(media_type: str | None) -> None:
    waiting = Waiting()
    before = waiting.woken
    assert told(waiting, media_type) == (200, b"{}")
    assert waiting.woken == before + 1


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "text/html; a=json", ""])
def test_news_of_another_type_wakes_nobody_and_is_told_what_to_send(media_type: str) -> None:
    waiting = Waiting()
    before = waiting.woken
    status, body = told(waiting, media_type)
    assert (status, b"Send application/json or application/a2a+json." in body) == (400, True)
    assert waiting.woken == before


def test_coded_news_wakes_nobody_and_is_told_what_is_not_supported() -> None:
    waiting = Waiting()
    before = waiting.woken
    status, body = told(waiting, "application/json", encoding="gzip")
    assert (status, b"Content-Encoding" in body) == (415, True)
    assert waiting.woken == before


def test_a_caller_with_a_wrong_token_reads_nothing_of_content_types() -> None:
    status, body = told(Waiting(), "text/plain", token="guessed")
    assert (status, b"application" in body) == (404, False)
