"""What is not yours does not exist: every request of every binding, with everything that it can name."""

from __future__ import annotations

import pytest

from a2a_serverless.http import routes as rest
from a2a_serverless.protocol.operations import Operation
from tests.docs.documents import ROOT
from tests.docs.drawn import drawn_in
from tests.handlers.requests import BINDINGS
from tests.isolation.matrix import KINDS, ROUTES, SECRET, STRANGERS, Scene, table, tried

pytestmark = pytest.mark.xdist_group("isolation")  # what was tried is kept in the process
EVERY = [(route, stranger) for route in ROUTES for stranger in STRANGERS]


@pytest.mark.requirement(11, 34, 37, 38, 97, 115, 116, 124)
@pytest.mark.parametrize(("route", "stranger"), EVERY)
def test_rule_03_a_stranger_gets_for_an_existing_task_the_answer_for_a_missing_task(
    route: tuple[str, str], stranger: str
) -> None:
    for kind in KINDS:
        pair = tried(route, kind, stranger)
        if pair:
            assert pair.foreign == pair.never, kind
            assert SECRET not in pair.foreign.body + pair.foreign.later, kind


def test_the_owner_of_the_scene_sees_the_secret() -> None:
    scene = Scene()
    assert SECRET in repr(scene.of_the_owner())
    assert scene.page


@pytest.mark.requirement(80)
def test_every_operation_of_every_binding_is_tried() -> None:
    everything = set(Operation)
    assert set(BINDINGS["1.0 JSON-RPC"]) == everything
    assert set(BINDINGS["0.3 JSON-RPC"]) == everything - {Operation.LIST}
    for version in ("1.0", "0.3"):
        routed = {route.operation for route in rest.ROUTES if route.version == version}
        assert set(BINDINGS[f"{version} REST"]) == routed
    assert set(BINDINGS["legacy"]) == {route.operation for route in rest.LEGACY_ROUTES}


def test_every_kind_of_name_is_tried_somewhere_and_every_task_everywhere() -> None:
    for kind in KINDS:
        assert any(tried(route, kind, stranger) for route, stranger in EVERY), kind
    for binding, operation in ROUTES:
        if operation not in {Operation.LIST, Operation.CARD}:
            assert tried((binding, operation), "task", "another tenant"), operation


@pytest.mark.requirement(116)
def test_the_table_in_the_documents_is_as_the_matrix_is() -> None:
    assert drawn_in(ROOT / "docs" / "isolation.md", "isolation") == table(), "make drawings writes it anew"
