"""Pauses, and what owners have spent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from a2a_serverless.domain.model import DAY_MS, Principal
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.store.stores import agent_pause, owner_pause
from tests.contract.backends import NOW
from tests.contract.tasks import KEY, writer

if TYPE_CHECKING:
    from tests.contract.backends import Store

OWNER = owner_pause(Principal("acme", "alice/bob"))


def test_pauses_are_listed_by_name_with_their_first_time_until_they_are_removed(store: Store) -> None:
    assert store.pauses.list_pauses() == {}
    for name, at in ((agent_pause("image"), NOW), (OWNER, NOW + 1), (agent_pause("image"), NOW + 2)):
        store.pauses.add_pause(name, at)
    assert store.pauses.list_pauses() == {"AGENT#image": NOW, "OWNER#acme/alice%2Fbob": NOW + 1}
    for _ in range(2):
        store.pauses.remove_pause("AGENT#image")
    assert store.pauses.list_pauses() == {OWNER: NOW + 1}
    store.now.ms = NOW + 400 * DAY_MS
    assert store.pauses.list_pauses() == {OWNER: NOW + 1}


def test_erasing_an_owner_erases_its_pause_and_no_other(store: Store) -> None:
    other = owner_pause(Principal("acme", "carol"))
    for name in (OWNER, other):
        store.pauses.add_pause(name, NOW)
    store.erasure_store.erase_owner(Principal("acme", "alice/bob"))
    assert store.pauses.list_pauses() == {other: NOW}


def test_the_cost_of_a_step_counts_once_for_its_owner_and_day(store: Store) -> None:
    head = writer()
    result = StepResult("", 1, ended_at=NOW)
    for _ in range(2):
        assert store.log.store_step(head, "one", result, spent=5) == result
    store.log.store_step(head, "two", StepResult("", 2, ended_at=NOW), spent=7)
    store.log.store_step(head, "free", StepResult("", 3, ended_at=NOW))
    store.log.store_step(head, "late", StepResult("", 4, ended_at=NOW + DAY_MS), spent=11)
    assert [store.log.read_spent(KEY, NOW + days * DAY_MS) for days in (-1, 0, 1)] == [0, 12, 11]
    for other in (KEY._replace(tenant="another"), KEY._replace(owner="somebody")):
        assert store.log.read_spent(other, NOW) == 0


def test_steps_that_are_stored_at_once_are_all_counted(store: Store) -> None:
    head = writer()

    def spend(number: int) -> None:
        store.log.store_step(head, f"step {number}", StepResult("", number, ended_at=NOW), spent=3)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(spend, range(16)))
    assert store.log.read_spent(KEY, NOW) == 48
