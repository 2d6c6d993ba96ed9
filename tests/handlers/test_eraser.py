"""The eraser's orders: what it takes, what it answers, and that an order may come twice."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.model import Principal
from a2a_serverless.handlers.eraser import make_eraser_handler
from a2a_serverless.services.erasure import ErasureRequest, ErasureResult, ErasureScope, parse_request, parse_result
from tests.contexts import Context
from tests.handlers.test_operator_api import erasure_of, made_world
from tests.world import ME

WHO = Principal("t", "o")
OWNER = {"tenant": ME.tenant, "owner": ME.owner}


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("scope", [ErasureScope(WHO), ErasureScope(WHO, context_id="c"), ErasureScope(WHO, task="x")])
def test_an_order_is_read_as_it_was_told(scope: ErasureScope, *, dry_run: bool) -> None:
    assert parse_request(ErasureRequest(scope, dry_run).to_json()) == ErasureRequest(scope, dry_run)


def test_what_was_erased_is_read_as_it_was_told() -> None:
    assert parse_result(ErasureResult(1, 2, 3, 4, 5).to_json()) == ErasureResult(1, 2, 3, 4, 5)


def test_an_order_that_comes_twice_erases_once() -> None:
    world = made_world()
    world.wait(60_000)
    handler = make_eraser_handler(erasure_of(world))
    assert handler(OWNER | {"dryRun": True}, Context())["tasks"] == 1
    assert handler(OWNER, Context())["tasks"] == 1
    assert handler(OWNER, Context()) == ErasureResult().to_json()


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({}, "Name tenant and owner"),
        ([], "Name tenant and owner"),
        (OWNER | {"taks": "x"}, "Name tenant and owner"),
        (OWNER | {"task": "x", "context": "y"}, "not both"),
        (OWNER | {"dryRun": "yes"}, "dryRun is true or false"),
    ],
)
def test_an_event_that_is_no_order_erases_nothing_and_is_told_what_is_wrong(event: Any, said: str) -> None:
    world = made_world()
    world.wait(60_000)
    handler = make_eraser_handler(erasure_of(world))
    with pytest.raises(InvalidParams, match=said):
        handler(event, Context())
    assert handler(OWNER | {"dryRun": True}, Context())["tasks"] == 1
