"""``/operator/deliveries``: what operators do from the command line, over HTTP, and for nobody else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.dynamodb.erasure import DynamoErasureStore
from a2a_serverless.adapters.memory import MemoryBlobStore, MemoryCallbackVerifier
from a2a_serverless.domain.access import ApiKey, digest_of
from a2a_serverless.domain.deployed import CommandFailed
from a2a_serverless.domain.outbound import Outcome
from a2a_serverless.handlers.eraser import make_eraser_handler
from a2a_serverless.http.api import AllowAnonymous, OidcOrApiKey
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.protojson import timestamp_text
from a2a_serverless.services.erasure import ErasureService
from a2a_serverless.testing import START
from tests.contexts import Context
from tests.doubles import MemoryApiKeyStore
from tests.echo import Writer
from tests.edge import Edge, HttpResponse
from tests.world import HOUR_MS, ME, World, accepting

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject

OPERATOR, CALLER = "a2a_operator", "a2a_caller"
HOST = "hooks.example.com"


def made_world() -> World:
    """A task whose webhook was given up."""
    world = World([Writer().agent])
    world.receiver.answers = lambda _: Outcome(status=404)
    world.send("hello")
    world.settle(10 * HOUR_MS)
    world.receiver.answers = accepting
    return world


def erasure_of(world: World) -> ErasureService:
    table, clock = world.table, world.clock
    erasure_store = DynamoErasureStore(table.items.as_table())
    api_keys = MemoryApiKeyStore()
    return ErasureService(
        table, table, erasure_store, MemoryBlobStore(), api_keys, clock, world.ids, lambda *names: "/".join(names) + "/"
    )


@dataclass
class Office:
    """An operator at the edge of a world."""

    world: World = field(default_factory=made_world)
    key: str | None = OPERATOR
    orders: list[Any] = field(default_factory=list)
    error: Exception | None = None

    def ask(self, verb: str, path: str, body: object = None, **query: str) -> HttpResponse:
        keys = MemoryApiKeyStore()
        keys.add(ApiKey(digest_of(OPERATOR), ME, "", 0, operator=True))
        keys.add(ApiKey(digest_of(CALLER), ME, "", 0))
        world = self.world
        authenticator = OidcOrApiKey(keys.find)
        edge = Edge(
            world.service,
            world.table,
            world.engine.agents,
            authenticator,
            MemoryCallbackVerifier(),
            60,
            eraser=self.erase,
        )
        headers = {"x-api-key": self.key} if self.key else {}
        sent = b"" if body is None else json.dumps(body).encode()
        return edge.answer(HttpRequest(verb, f"/operator/{path}", headers, tuple(query.items()), sent))

    def json(self, verb: str, path: str, body: object = None, **query: str) -> Any:
        answer = self.ask(verb, path, body, **query)
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store"), answer.body
        return json.loads(answer.body)

    def erase(self, order: JsonObject) -> JsonObject:
        """The eraser function; it goes on, or fails, with ``error`` once it is done."""
        self.orders.append(order)
        handler = make_eraser_handler(erasure_of(self.world))
        done = handler(json.loads(json.dumps(order)), Context())
        if self.error:
            raise self.error
        return dict(done)

    def given_up(self) -> str:
        """The path of the one webhook that was given up."""
        (one,) = self.json("GET", "deliveries")["deliveries"]
        return f"deliveries/{one['task']}/{one['id']}"


def test_what_was_given_up_is_listed_and_shown_with_its_attempts() -> None:
    office = Office()
    (one,) = office.json("GET", "deliveries")["deliveries"]
    assert (one["state"], one["failuresInARow"]) == ("exhausted", 5)
    assert office.json("GET", f"deliveries/{one['task']}") == {"deliveries": [one]}
    assert office.json("GET", f"deliveries/{one['task']}/{one['id']}") == one
    assert [attempt["status"] for attempt in one["attempts"]] == [200] + 5 * [404]


def test_a_redriven_webhook_hears_the_rest() -> None:
    office = Office()
    where = office.given_up()
    assert office.json("POST", f"{where}/redrive")["state"] == "active"
    office.world.settle()
    shown = office.json("GET", where)
    assert shown["deliveredUpTo"] == shown["lastEvent"]
    assert office.json("GET", "deliveries") == {"deliveries": []}


def test_a_webhook_is_paused_and_resumed() -> None:
    office = Office()
    where = office.given_up()
    office.json("POST", f"{where}/redrive")
    assert office.json("POST", f"{where}/pause")["state"] == "paused"
    assert office.json("POST", f"{where}/resume")["state"] == "active"
    assert office.ask("POST", f"{where}/resume").status == 400


@pytest.mark.parametrize(
    ("meant", "hits"),
    [
        ({"all": True}, 1),
        ({"host": HOST}, 1),
        ({"host": HOST.upper()}, 1),
        ({"host": "example.com"}, 0),
        ({"since": timestamp_text(START)}, 1),
        ({"since": timestamp_text(START + 9 * HOUR_MS)}, 0),
        ({"host": HOST, "since": timestamp_text(START + 9 * HOUR_MS)}, 0),
    ],
)
def test_many_are_redriven_by_host_and_time(meant: dict[str, object], hits: int) -> None:
    office = Office()
    name = office.given_up().removeprefix("deliveries/").rpartition("/")
    done = office.json("POST", "deliveries/redrive", meant)["redriven"]
    assert done == [{"task": name[0], "id": name[2]}] * hits
    listed = {key: str(value) for key, value in meant.items() if key != "all"}
    assert len(office.json("GET", "deliveries", **listed)["deliveries"]) == (1 - hits if "all" in meant else 0)


@pytest.mark.parametrize("meant", [None, {}, [], {"all": False}, {"host": ""}, {"host": 1}, {"since": "yesterday"}])
def test_a_redrive_of_many_says_what_it_means(meant: object) -> None:
    office = Office()
    assert office.ask("POST", "deliveries/redrive", meant).status == 400
    assert office.given_up()


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "9" * 5000, "x", "1" + chr(0x0661)])
def test_a_limit_that_is_none_is_refused(limit: str) -> None:
    assert Office().ask("GET", "deliveries", limit=limit).status == 400


def test_whoever_is_no_operator_finds_no_such_path_and_changes_nothing() -> None:
    office = Office()
    where = office.given_up()
    for key, status in ((CALLER, 404), ("a2a_unknown", 401), (None, 401)):
        office.key = key
        for verb, path in (("GET", "deliveries"), ("GET", where), ("POST", f"{where}/redrive")):
            assert office.ask(verb, path).status == status
        assert office.ask("POST", "deliveries/redrive", {"all": True}).status == status
    office.key = OPERATOR
    assert office.given_up() == where


@pytest.mark.parametrize(
    ("verb", "path", "status"),
    [
        ("GET", "", 404),
        ("GET", "keys", 404),
        ("POST", "deliveries", 405),
        ("GET", "deliveries/redrive", 405),
        ("GET", "deliveries/tenant/me/none", 404),
        ("GET", "deliveries/tenant/me/none/c", 404),
        ("POST", "deliveries/tenant/me/none/c/redrive", 404),
        ("POST", "deliveries/tenant/me/none/c/delete", 404),
        ("DELETE", "deliveries/tenant/me/none/c", 405),
    ],
)
def test_there_is_nothing_else(verb: str, path: str, status: int) -> None:
    assert Office().ask(verb, path).status == status


def test_on_a_laptop_without_sign_in_everybody_is_an_operator() -> None:
    assert AllowAnonymous().is_operator({})


# ---- Erasing


def test_an_operator_erases_an_owner_after_a_count() -> None:
    office = Office()
    counted = office.json("POST", "erase", {"tenant": ME.tenant, "owner": ME.owner, "dryRun": True})
    assert (counted["tasks"], counted["later"]) == (1, 0)
    assert office.json("GET", "deliveries")["deliveries"]
    office.world.wait(60_000)
    erased = office.json("POST", "erase", {"tenant": ME.tenant, "owner": ME.owner})
    assert (erased["tasks"], erased["later"]) == (1, 0)
    assert office.json("GET", "deliveries")["deliveries"] == []


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        [],
        {"tenant": "t"},
        {"owner": "o"},
        {"tenant": "t", "owner": "o", "taks": "x"},
        {"tenant": "t", "owner": "o", "task": ""},
        {"tenant": "t", "owner": "o", "task": 7},
        {"tenant": "t", "owner": "o", "task": "x", "context": "y"},
        {"tenant": "t", "owner": "o", "dryRun": "true"},
        {"tenant": "t", "owner": "o", "dryRun": None},
    ],
)
def test_a_request_that_may_mean_less_than_it_says_erases_nothing(wanted: object) -> None:
    office = Office()
    assert office.ask("POST", "erase", wanted).status == 400
    assert office.orders == []


def test_an_eraser_that_goes_on_leaves_something_for_the_next_request() -> None:
    office = Office(error=TimeoutError("goes on"))
    office.world.wait(60_000)
    principal = {"tenant": ME.tenant, "owner": ME.owner}
    assert office.json("POST", "erase", principal) == {"tasks": 0, "items": 0, "blobs": 0, "apiKeys": 0, "later": 1}
    office.error = None
    assert office.json("POST", "erase", principal) == {"tasks": 0, "items": 0, "blobs": 0, "apiKeys": 0, "later": 0}


def test_a_count_that_takes_longer_than_a_request_says_what_waits_for_it() -> None:
    office = Office(error=TimeoutError("goes on"))
    answer = office.ask("POST", "erase", {"tenant": ME.tenant, "owner": ME.owner, "dryRun": True})
    assert (answer.status, "retry-after" in answer.headers) == (503, True)
    assert b"a2a-serverless erase" in answer.body
    assert len(office.orders) == 1


def test_an_eraser_that_fails_is_our_fault_and_is_asked_once() -> None:
    office = Office(error=CommandFailed("eraser failed: a secret"))
    answer = office.ask("POST", "erase", {"tenant": ME.tenant, "owner": ME.owner})
    assert (answer.status, b"secret" in answer.body, len(office.orders)) == (500, False, 1)


def test_whoever_is_no_operator_cannot_erase() -> None:
    office = Office(key=CALLER)
    assert office.ask("POST", "erase", {"tenant": ME.tenant, "owner": ME.owner}).status == 404
    assert office.orders == []
