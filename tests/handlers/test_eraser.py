"""The eraser's orders: what it takes, what it answers, and that an order may come twice."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.model import Principal
from a2a_serverless.handlers.eraser import make_eraser_handler
from a2a_serverless.services.erase import Erased, Order, Scope, erased_of, order_of
from tests.handlers.test_operator_api import Context, made_world, rubber_of
from tests.world import ME

WHO = Principal("t", "o")
OWNER = {"tenant": ME.tenant, "owner": ME.owner}


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("scope", [Scope(WHO), Scope(WHO, context_id="c"), Scope(WHO, task="x")])
def test_an_order_is_read_as_it_was_told(scope: Scope, *, dry_run: bool) -> None:
    assert order_of(Order(scope, dry_run).told()) == Order(scope, dry_run)


def test_what_was_erased_is_read_as_it_was_told() -> None:
    assert erased_of(Erased(1, 2, 3, 4, 5).told()) == Erased(1, 2, 3, 4, 5)


def test_an_order_that_comes_twice_erases_once() -> None:
    world = made_world()
    world.wait(60_000)
    handler = make_eraser_handler(rubber_of(world))
    assert handler(OWNER | {"dryRun": True}, Context())["tasks"] == 1
    assert handler(OWNER, Context())["tasks"] == 1
    assert handler(OWNER, Context()) == Erased().told()


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
    handler = make_eraser_handler(rubber_of(world))
    with pytest.raises(InvalidParams, match=said):
        handler(event, Context())
    assert handler(OWNER | {"dryRun": True}, Context())["tasks"] == 1
