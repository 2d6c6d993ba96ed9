"""The OpenAPI document of the HTTP+JSON binding names every route, and requests made from it are answered as it says.

schemathesis makes the requests, such as fit the document and such as do not; ``make fuzz`` has it make many more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from a2a_serverless.handlers.asgi import make_asgi_app
from a2a_serverless.wire import rest
from tests.handlers.hostile import EXAMPLES, LOOK
from tests.handlers.test_hostile import Place

if TYPE_CHECKING:
    from schemathesis import Case

NAMES = [f"{route.operation} {route.version} {route.verb}" for route in rest.ROUTES]
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
A_FEW = settings(LOOK, max_examples=max(1, EXAMPLES // 75), suppress_health_check=list(HealthCheck))


def operations() -> dict[str, Any]:
    """The operations of a deployment whose streams end at once, by their names."""
    web = make_asgi_app(replace(Place().edge, stream_ms=0))
    schema = schemathesis.openapi.from_asgi("/openapi.json", web)
    found = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    return {one.definition.raw["operationId"]: one for one in found}


def test_the_document_has_every_route_and_no_path_under_two_names() -> None:
    paths: dict[str, Any] = make_asgi_app(Place().edge).openapi()["paths"]
    described = {said["operationId"] for verbs in paths.values() for said in verbs.values()}
    assert described >= set(NAMES)
    assert not [path for path in paths if "/tasks/{id}/" in path]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_asked_from_the_document_is_answered_as_it_says(name: str) -> None:
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
