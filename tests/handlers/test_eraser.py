"""The eraser's orders: what it takes, what it answers, and that an order may come twice."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.handlers.eraser import make_eraser_handler
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.services.erasure import make_response
from tests.contexts import Context
from tests.handlers.test_operator_api import erasure_of, made_world
from tests.world import ME

OWNER = {"tenant": ME.tenant, "owner": ME.owner}


def test_an_order_that_comes_twice_erases_once() -> None:
    world = made_world()
    world.wait(60_000)
    handler = make_eraser_handler(erasure_of(world))
    assert handler(OWNER | {"dryRun": True}, Context())["tasks"] == 1
    assert handler(OWNER, Context())["tasks"] == 1
    assert handler(OWNER, Context()) == as_json(make_response())


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({}, "tenant is required. owner is required"),
        ([], "must be an object"),
        (OWNER | {"owner": ""}, "owner must"),
        (OWNER | {"taks": "x"}, "taks is not known"),
        (OWNER | {"task": "x", "context": "y"}, "not both"),
        (OWNER | {"dryRun": "yes"}, "dryRun must be true or false"),
    ],
)
def test_an_event_that_is_no_order_erases_nothing_and_is_told_what_is_wrong(event: Any, said: str) -> None:
    world = made_world()
    world.wait(60_000)
    handler = make_eraser_handler(erasure_of(world))
    with pytest.raises(InvalidParams, match=said):
        handler(event, Context())
    assert handler(OWNER | {"dryRun": True}, Context())["tasks"] == 1
