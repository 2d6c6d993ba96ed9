"""``POST /{agent}/uploads``."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from a2a_serverless.domain.access import Quota
from a2a_serverless.domain.model import DAY_MS
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.services.rate_limiter import RateLimiter
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.doubles import MemoryOwnerStore
from tests.echo import Writer
from tests.edge import Edge, HttpResponse
from tests.world import World

SHA256 = sha256(b"content").hexdigest()


def asked(body: Any, verb: str = "POST", query: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
    world = World([Writer().agent])
    edge = Edge(world.service, world.engine.agents, AllowAnonymous(), MemoryCallbackVerifier(), 60)
    return edge.answer(HttpRequest(verb, "/echo/uploads", query=query, body=json.dumps(body).encode()))


def test_a_slot_says_where_to_put_what_and_how_the_message_names_it() -> None:
    answer = asked({"sha256": SHA256, "size": 7})
    body = json.loads(answer.body)
    assert answer.status == 200
    assert f"/local/anybody/uploads/{SHA256}" in body["upload"]["url"]
    assert body["upload"]["headers"]["content-length"] == "7"
    assert body["part"] == {"url": f"a2a-file:uploads/{SHA256}/7"}


def test_a_slot_is_in_the_tenant_that_is_asked_for() -> None:
    body = json.loads(asked({"sha256": SHA256, "size": 7}, query=(("tenant", "acme"),)).body)
    assert "/acme/anybody/uploads/" in body["upload"]["url"]


WRONG: list[Any] = [
    None,
    [],
    {},
    {"sha256": SHA256},
    {"sha256": SHA256, "size": 0},
    {"sha256": SHA256, "size": True},
    {"sha256": SHA256, "size": 100 * 1024 * 1024 + 1},
    {"sha256": SHA256.upper(), "size": 1},
    {"sha256": "../x", "size": 1},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_request_that_is_no_upload_is_refused(wrong: Any) -> None:
    assert asked(wrong).status == 400


# ---- How much an owner may upload


class Uploads:
    """An edge at which each owner may ask for ``most`` bytes a day."""

    def __init__(self, most: int) -> None:
        world = World([Writer().agent])
        self.clock = world.clock
        self.owners = MemoryOwnerStore(world.clock.now)
        limiter = RateLimiter(self.owners, world.clock, world.ids, Quota(uploads=most))
        self.edge = replace(
            Edge(world.service, world.engine.agents, AllowAnonymous(), MemoryCallbackVerifier(), 60),
            limiter=limiter,
        )

    def ask(self, size: int, tenant: str = "acme") -> HttpResponse:
        body = json.dumps({"sha256": SHA256, "size": size}).encode()
        return self.edge.answer(HttpRequest("POST", "/echo/uploads", query=(("tenant", tenant),), body=body))


def test_an_owner_may_ask_for_so_many_bytes_a_day_and_is_told_how_many() -> None:
    place = Uploads(1_000)
    assert [place.ask(size).status for size in (600, 400, 1)] == [200, 200, 429]
    refused = place.ask(1)
    assert b"At most 1000 bytes of uploads a day" in refused.body
    place.clock.sleep((-place.clock.now() % DAY_MS - 3_600_600) / 1000)
    assert place.ask(1).headers["retry-after"] == "3601", "the day ends in a little more than an hour"
    assert place.ask(1_000, "another").status == 200


def test_a_refused_upload_does_not_count_and_each_day_has_its_own_limit() -> None:
    place = Uploads(1_000)
    assert [place.ask(size).status for size in (1_001, 900, 101, 100)] == [429, 200, 429, 200]
    place.clock.sleep(86_400)
    assert place.ask(1_000).status == 200


def test_a_slot_is_asked_for_by_post() -> None:
    answer = asked({}, "GET")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
