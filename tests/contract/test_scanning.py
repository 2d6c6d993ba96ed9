"""The scan of a whole table, over every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.store import keys
from tests.contract.tasks import EXPIRES, KEY, taken

if TYPE_CHECKING:
    from tests.contract.backends import Store


def test_a_scan_reads_all_items_that_have_not_expired_or_those_of_a_sort_key(store: Store) -> None:
    taken(store.log)
    for number in range(40):
        store.pauses.add_pause(f"AGENT#{number}", number)
    places = {(item["pk"]["S"], item["sk"]["S"]) for item in store.table.scan()}
    assert len(places) == store.left()
    assert {(keys.PAUSES, f"AGENT#{number}") for number in range(40)} < places
    assert [item["pk"]["S"] for item in store.table.scan(keys.HEAD)] == [keys.task(KEY)]
    store.now.ms = (EXPIRES + 1) * 1000
    assert {item["pk"]["S"] for item in store.table.scan()} == {keys.PAUSES}
