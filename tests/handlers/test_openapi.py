"""The OpenAPI document of the HTTP+JSON binding names every route, and requests made from it are answered as it says.

schemathesis makes the requests, such as fit the document and such as do not; ``make prove KIND=fuzz`` makes more.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.http.routes import ROUTES
from a2a_serverless.services.publish import CardPublisher, publish_cards
from tests.handlers.hostile import EXAMPLES, LOOK
from tests.handlers.test_hostile import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from schemathesis import Case

    from tests.edge import Edge

NAMES = [f"{route.operation} {route.version} {route.verb}" for route in ROUTES]
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
A_FEW = settings(LOOK, max_examples=max(1, EXAMPLES // 75), suppress_health_check=list(HealthCheck))


def operations() -> dict[str, Any]:
    """The operations of a deployment whose streams end at once, by their names."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", replace(Place().edge, stream_ms=0).app)
    found = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    return {one.definition.raw["operationId"]: one for one in found}


def description(edge: Edge, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The document that a caller with these headers gets."""
    answer = edge.answer(HttpRequest("GET", "/openapi.json", headers or {}))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    document: dict[str, Any] = json.loads(answer.body)
    return document


def test_the_document_has_every_route_and_no_path_under_two_names() -> None:
    paths = description(Place().edge)["paths"]
    described = {said["operationId"] for verbs in paths.values() for said in verbs.values()}
    assert described >= set(NAMES)
    assert not [path for path in paths if "/tasks/{id}/" in path]


def test_a_name_in_a_path_is_one_of_the_agents_or_not_empty() -> None:
    operations = [said for verbs in description(Place().edge)["paths"].values() for said in verbs.values()]
    parameters = [one for said in operations for one in said["parameters"] if one["in"] == "path"]
    assert {"id", "agent"} <= {one["name"] for one in parameters}
    assert all(one["schema"] == {"type": "string", "minLength": 1} for one in parameters if one["name"] != "agent")


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from [value["$ref"]] if "$ref" in value else []
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from references(inner)


def test_the_document_has_the_models_and_examples_that_are_read() -> None:
    place = Place().edge
    document = description(place)
    schemas = document["components"]["schemas"]
    assert {ref.removeprefix("#/components/schemas/") for ref in references(document)} <= schemas.keys()
    send = document["paths"]["/{agent}/message:send"]["post"]
    assert send["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("SendMessageResponse")
    example = send["requestBody"]["content"]["application/json"]["example"]
    headers = {"a2a-version": "1.0", "content-type": "application/json"}
    answer = place.answer(HttpRequest("POST", "/echo/message:send", headers, body=json.dumps(example).encode()))
    assert answer.status == 200


def test_the_document_names_the_published_address_with_its_stage() -> None:
    place = Place()
    assert "servers" not in description(place.edge)
    url = "https://abc123.execute-api.eu-central-1.amazonaws.com/live"
    publisher = CardPublisher(place.world.table, place.world.clock, place.edge.agents, url)
    publish_cards(publisher, "kid-1", lambda _: bytes(64))
    assert description(place.edge)["servers"] == [{"url": url}]


@pytest.mark.parametrize("name", NAMES)
def test_each_operation_of_the_openapi_document_is_answered_as_the_document_says(name: str) -> None:
    operation = operations()[name]
    right = operation.as_strategy()
    wrong = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @given(st.one_of(right, wrong))
    @A_FEW
    def ask(case: Case[Any]) -> None:
        answer = case.call()
        assert answer.status_code not in {500, 502}  # 501 is how 0.3 says "not supported"
        case.validate_response(answer, checks=CHECKS)

    ask()
