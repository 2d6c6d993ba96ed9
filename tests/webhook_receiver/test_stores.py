"""One contract for both stores: expectations and replay memory."""

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from a2a_webhook_receiver.errors import Replayed, StillWorking
from a2a_webhook_receiver.expectations import Expectation
from a2a_webhook_receiver.replay import CLAIM, REMEMBER, Admitted, Duplicate, Sighting
from a2a_webhook_receiver.store_dynamodb import DynamoStore
from a2a_webhook_receiver.store_sqlite import SqliteStore
from vectors.cases import NOW

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Store = SqliteStore | DynamoStore

FIRST = Sighting("j-1", NOW + 420_000, "body-1", "task", "config", "n-1", 1)
BOUND = Expectation("e-1", NOW + 1000, task_id="task", token_digest="t" * 64)
UNBOUND = Expectation("e-2", NOW + 1000, token_digest="u" * 64, agent_url="https://agents.example.com/a")
BY_TASK = Expectation("e-3", NOW + 1000, task_id="task", authorization_digest="a" * 64)


@pytest.fixture(params=["sqlite", "dynamodb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        sqlite = SqliteStore(str(tmp_path / "receiver.db"))
        yield sqlite
        sqlite.close()
        return
    with mock_aws():
        yield DynamoStore(make_table(), "receiver")


@pytest.fixture
def threads(store: Store) -> Iterator[ThreadPoolExecutor]:
    """Several at once; one for DynamoDB, because its stand-in in memory cannot take more."""
    with ThreadPoolExecutor(1 if isinstance(store, DynamoStore) else 8) as pool:
        yield pool


def make_table() -> "DynamoDBClient":
    client = boto3.client("dynamodb", region_name="us-east-1")
    client.create_table(
        TableName="receiver",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )
    return client


def attempt(number: int, *, event: int = 1, **changes: Any) -> Sighting:
    """Another attempt of the notification about ``event``."""
    sighting = replace(FIRST, jti=f"j-{event}-{number}", notification_id=f"n-{event}", event_number=event)
    return replace(sighting, **changes)


def handle(store: Store, sighting: Sighting, now: int = NOW) -> Admitted | Duplicate:
    admitted = store.admit(sighting, now)
    if isinstance(admitted, Admitted):
        store.settle(sighting, admitted)
    return admitted


def test_a_notification_is_admitted_once_and_a_duplicate_ever_after(store: Store) -> None:
    assert handle(store, attempt(1)) == Admitted(late=False, claim=NOW + CLAIM)
    assert handle(store, attempt(2)) == Duplicate()
    assert handle(store, attempt(3), NOW + REMEMBER - 1) == Duplicate()


def test_the_same_attempt_again_is_a_duplicate(store: Store) -> None:
    handle(store, attempt(1))
    assert handle(store, attempt(1)) == Duplicate()


def test_a_token_that_comes_with_something_else_is_a_replay(store: Store) -> None:
    handle(store, attempt(1))
    for changed in (attempt(1, fingerprint="body-2"), attempt(1, fingerprint="body-2", notification_id="n-9")):
        with pytest.raises(Replayed):
            store.admit(changed, NOW)
    assert handle(store, attempt(2)) == Duplicate()


def test_a_replay_leaves_no_trace(store: Store) -> None:
    handle(store, attempt(1))
    with pytest.raises(Replayed):
        store.admit(attempt(1, fingerprint="x", notification_id="n-9"), NOW)
    assert isinstance(handle(store, attempt(5, notification_id="n-9")), Admitted)


def test_an_attempt_that_is_being_worked_on_makes_the_next_one_wait(store: Store) -> None:
    store.admit(attempt(1), NOW)
    with pytest.raises(StillWorking) as refusal:
        store.admit(attempt(2), NOW + 1000)
    assert refusal.value.retry_after == (CLAIM - 1000) // 1000 + 1


def test_an_attempt_that_died_is_followed_by_the_next(store: Store) -> None:
    store.admit(attempt(1), NOW)
    assert store.admit(attempt(2), NOW + CLAIM) == Admitted(late=False, claim=NOW + 2 * CLAIM)


def test_an_attempt_that_failed_is_followed_by_the_next_at_once(store: Store) -> None:
    failed = store.admit(attempt(1), NOW)
    assert isinstance(failed, Admitted)
    store.release(attempt(1), failed)
    assert isinstance(handle(store, attempt(2), NOW + 1), Admitted)
    assert handle(store, attempt(3), NOW + 2) == Duplicate()


def test_an_attempt_whose_claim_lapsed_decides_nothing_any_more(store: Store) -> None:
    slow = store.admit(attempt(1), NOW)
    second = store.admit(attempt(2), NOW + CLAIM)
    assert isinstance(slow, Admitted)
    assert isinstance(second, Admitted)
    store.release(attempt(1), slow)
    with pytest.raises(StillWorking):
        store.admit(attempt(3), NOW + CLAIM + 1)
    store.settle(attempt(1), slow)
    with pytest.raises(StillWorking):
        store.admit(attempt(3), NOW + CLAIM + 1)
    store.settle(attempt(2), second)
    assert store.admit(attempt(3), NOW + CLAIM + 1) == Duplicate()


def test_an_event_after_a_later_one_is_late(store: Store) -> None:
    late = [handle(store, attempt(1, event=number)) for number in (2, 5, 3, 5, 6)]
    assert [each.late if isinstance(each, Admitted) else None for each in late] == [False, False, True, None, False]


def test_the_order_is_per_task_and_configuration(store: Store) -> None:
    handle(store, attempt(1, event=5))
    other_config = attempt(2, event=3, config_id="config-2")
    other_task = attempt(3, event=3, task_id="task-2")
    assert handle(store, other_config) == Admitted(late=False, claim=NOW + CLAIM)
    assert handle(store, other_task) == Admitted(late=False, claim=NOW + CLAIM)


def test_notifications_of_two_configurations_are_two(store: Store) -> None:
    handle(store, attempt(1))
    assert isinstance(handle(store, attempt(2, config_id="config-2")), Admitted)


def test_identifiers_never_run_into_each_other(store: Store) -> None:
    handle(store, attempt(1, config_id="a", notification_id="b#c"))
    assert isinstance(handle(store, attempt(2, config_id="a#b", notification_id="c")), Admitted)


def test_of_many_attempts_at_once_one_is_admitted(store: Store, threads: ThreadPoolExecutor) -> None:
    def admit(number: int) -> str:
        try:
            return type(store.admit(attempt(number), NOW)).__name__
        except StillWorking:
            return "StillWorking"

    outcomes = sorted(threads.map(admit, range(16)))
    assert outcomes == ["Admitted"] + ["StillWorking"] * 15


def test_expectations_are_found_by_task_and_by_token(store: Store) -> None:
    for expectation in (BOUND, UNBOUND, BY_TASK):
        store.add(expectation)
    assert set(store.find("task", None, NOW)) == {BOUND, BY_TASK}
    assert set(store.find("another", "u" * 64, NOW)) == {UNBOUND}
    assert set(store.find("task", "u" * 64, NOW)) == {BOUND, UNBOUND, BY_TASK}
    assert store.find("another", None, NOW) == ()


def test_an_expectation_ends_when_it_expires(store: Store) -> None:
    store.add(BOUND)
    assert store.any_open(NOW + 999)
    assert store.find("task", None, NOW + 999) == (BOUND,)
    assert not store.any_open(NOW + 1000)
    assert store.find("task", None, NOW + 1000) == ()


def test_open_expectations_that_have_not_expired_are_listed_with_their_tasks(store: Store) -> None:
    later = replace(BOUND, id="e-9", expires=NOW + 5000)
    for expectation in (UNBOUND, later):
        store.add(expectation)
    store.bind(UNBOUND, "task-1")
    assert store.list_open(NOW, 9) == (later, replace(UNBOUND, task_id="task-1"))
    assert store.list_open(NOW, 1) == (later,)
    assert store.list_open(NOW + 1000, 9) == (later,)
    assert store.list_open(NOW + 5000, 9) == ()


def test_an_empty_store_has_no_open_expectation(store: Store) -> None:
    assert not store.any_open(NOW)


def test_an_expectation_binds_to_one_task_for_good(store: Store) -> None:
    store.add(UNBOUND)
    assert store.bind(UNBOUND, "task-1")
    assert store.bind(UNBOUND, "task-1")
    assert not store.bind(UNBOUND, "task-2")
    bound = replace(UNBOUND, task_id="task-1")
    assert store.find("task-2", "u" * 64, NOW) == (bound,)
    assert store.find("task-1", None, NOW) == (bound,)


def test_a_bound_expectation_keeps_its_task(store: Store) -> None:
    store.add(BOUND)
    assert store.bind(BOUND, "task")
    assert not store.bind(BOUND, "another")


def test_of_many_tasks_at_once_one_is_bound(store: Store, threads: ThreadPoolExecutor) -> None:
    store.add(UNBOUND)
    bound = list(threads.map(lambda number: store.bind(UNBOUND, f"task-{number}"), range(16)))
    assert bound.count(True) == 1


def test_the_memory_of_one_server_survives_its_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "receiver.db")
    first = SqliteStore(path)
    first.add(BOUND)
    handle(first, attempt(1))
    first.close()
    second = SqliteStore(path)
    assert second.find("task", None, NOW) == (BOUND,)
    assert handle(second, attempt(2)) == Duplicate()
    second.close()


def test_a_handled_event_is_deleted_from_the_file_after_its_time(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "receiver.db"))
    store.add(BOUND)
    handle(store, attempt(1))
    assert isinstance(handle(store, attempt(1, fingerprint="body-2"), NOW + REMEMBER), Admitted)
    store.close()


def test_a_file_whose_store_nobody_has_any_more_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "receiver.db"
    SqliteStore(str(file)).add(BOUND)
    gc.collect()
    assert not (tmp_path / "receiver.db-wal").exists()  # SQLite removes it with the last connection that is closed
