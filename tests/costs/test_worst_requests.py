"""No single request costs more than its bound, and none that is refused costs much."""

from __future__ import annotations

from operator import le

import pytest

from tests.costs.worst_requests import WORST, Row, Scene, Worst, count_requests

LOOSE = 1.1  # a bound that is more than a tenth above what is counted says nothing


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


@pytest.fixture(scope="module")
def rows(scene: Scene) -> dict[Worst, Row]:
    return {row.worst: row for row in count_requests(scene)}


@pytest.mark.parametrize("worst", WORST, ids=lambda worst: worst.what)
def test_the_worst_request_of_each_kind_is_within_its_bound(worst: Worst, rows: dict[Worst, Row]) -> None:
    row = rows[worst]
    assert row.status == worst.status
    assert all(map(le, row.used, worst.most)), row.used
    assert worst.is_refused or worst.most.calls <= row.used.calls * LOOSE, "less than its bound, which should be lower"


@pytest.mark.parametrize("what", ["GetTask", "ListTasks", "SubscribeToTask"])
def test_a_request_that_reads_writes_no_item(what: str, rows: dict[Worst, Row]) -> None:
    assert {row.used.written for worst, row in rows.items() if worst.what.startswith(what)} == {0}


def test_a_retry_copies_page_by_page(scene: Scene, rows: dict[Worst, Row]) -> None:
    assert rows
    assert scene.copy() == 25
