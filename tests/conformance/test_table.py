"""What a cell of the table in docs/clients.md says of the outcomes of its tests."""

from __future__ import annotations

import pytest

from tests.conformance.table import PLACES, draw_cell

LACKS = "Some 1.0 over JSONRPC cannot do it itself: it has no class"


@pytest.mark.parametrize(
    ("outcomes", "cell"),
    [
        ({place: ["", ""] for place in PLACES}, "✓"),
        ({place: ["", LACKS] for place in PLACES}, "✓ (1)"),
        ({place: [LACKS] for place in PLACES}, "(1)"),
        ({place: [""] for place in PLACES} | {"deployed": ["a buffered answer"]}, "✓, not deployed (1)"),
        ({place: ["", LACKS] for place in PLACES} | {"deployed": ["FAILED", ""]}, "✓, not deployed (1, 2)"),
        ({place: ["", "said of a place"] for place in PLACES}, "✓"),
        ({}, "(1)"),
    ],
)
def test_a_tick_names_what_a_client_cannot_do_of_it(outcomes: dict[str, list[str]], cell: str) -> None:
    assert draw_cell(outcomes, "errors", "1.0", {}) == cell


def test_the_reason_of_a_tick_is_without_the_clients_name() -> None:
    notes: dict[str, int] = {}
    draw_cell({place: ["", LACKS] for place in PLACES}, "errors", "1.0", notes)
    assert notes == {"it has no class": 1}
