"""Rule 8 of the log: deliveries keep order per configuration, and what was deleted stays deleted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.challenges import ChallengeState
from a2a_serverless.domain.cursors import Cursor, CursorState, Verification
from a2a_serverless.domain.decisions import mark_push
from a2a_serverless.domain.push_configs import Attempt, PushConfig
from a2a_serverless.store.keys import SHARDS
from tests.contract.backends import NOW
from tests.contract.tasks import EXPIRES, KEY, attempt, config, created, head_of, moved, seen

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from tests.contract.backends import Store

OTHER = KEY._replace(owner="other")
AT_LIMIT = {4, 2}  # two: where every request is sent twice, it is counted twice
TODAY = NOW // 86_400_000


def _added(store: Store, config_id: str = "hook", incarnation: str = "first") -> Cursor:
    """A task with a webhook; its cursor."""
    head = seen(store.log).head if store.log.read_head(KEY) else created(store.log).head
    made, cursor = config(config_id, incarnation), Cursor(config_id, incarnation)
    assert store.push.add_config(head, moved(head), made, cursor, store.push.get_cursor(KEY, config_id))
    return cursor


def _claimed(cursor: Cursor, holder: str) -> Cursor:
    return replace(cursor, lease_no=cursor.lease_no + 1, lease_until=NOW + 30_000, holder=holder)


@pytest.mark.requirement(16)
def test_a_new_configuration_is_there_with_its_cursor_and_on_the_head(store: Store) -> None:
    head = created(store.log).head
    assert store.push.add_config(head, mark_push(head), config(), Cursor("hook", "first"))
    assert head_of(store.log) == mark_push(head)
    assert store.push.get_config(KEY, "hook") == config()
    assert store.push.get_cursor(KEY, "hook") == Cursor("hook", "first")


def test_a_configuration_on_a_stale_head_is_refused_and_changes_nothing(store: Store) -> None:
    stale = created(store.log).head
    store.log.update_head(stale, moved(stale, due_at=None))
    assert not store.push.add_config(stale, mark_push(stale), config(), Cursor("hook", "first"))
    assert head_of(store.log) == moved(stale, due_at=None)
    assert store.push.get_config(KEY, "hook") is None
    assert store.push.get_cursor(KEY, "hook") is None


def test_of_two_configurations_on_one_head_the_second_is_refused(store: Store) -> None:
    head = created(store.log).head
    assert store.push.add_config(head, mark_push(head), config("a"), Cursor("a", "first"))
    assert not store.push.add_config(head, mark_push(head), config("b"), Cursor("b", "first"))
    assert [found.config_id for found in store.push.list_configs(KEY)] == ["a"]


def test_a_configuration_that_is_added_again_counts_as_success(store: Store) -> None:
    head = created(store.log).head
    new = config(), Cursor("hook", "first")
    assert store.push.add_config(head, mark_push(head), *new)
    claimed = _claimed(new[1], "notifier")
    store.push.move_cursor(KEY, new[1], claimed)
    assert store.push.add_config(head, mark_push(head), *new)
    assert store.push.get_cursor(KEY, "hook") == claimed


def test_a_configuration_that_is_added_again_on_a_newer_head_does_not_set_its_cursor_back(store: Store) -> None:
    cursor = _added(store)
    claimed = _claimed(cursor, "notifier")
    store.push.move_cursor(KEY, cursor, claimed)
    snapshot = seen(store.log)
    assert store.push.add_config(snapshot.head, moved(snapshot.head), config(), cursor)
    assert store.push.get_cursor(KEY, "hook") == claimed
    assert seen(store.log) == snapshot


def test_a_configuration_that_is_replaced_has_the_new_incarnation_only(store: Store) -> None:
    old = _added(store)
    new = _added(store, incarnation="second")
    assert store.push.get_config(KEY, "hook") == config(incarnation="second")
    assert store.push.list_cursors(KEY) == [new]
    assert not store.push.move_cursor(KEY, old, _claimed(old, "late"))
    assert store.push.list_cursors(KEY) == [new]


@pytest.mark.parametrize("meanwhile", [{"position": 5}, {"lease_no": 9, "holder": "another"}, {"attempt": 1}], ids=repr)
def test_a_replacement_is_refused_when_the_cursor_has_moved(store: Store, meanwhile: dict[str, object]) -> None:
    old = _added(store)
    moved_on = replace(old, **meanwhile)  # type: ignore[arg-type]
    assert store.push.move_cursor(KEY, old, moved_on)
    head, new = head_of(store.log), config(incarnation="second")
    for seen_before in (old, None):
        assert not store.push.add_config(head, moved(head), new, Cursor("hook", "second"), seen_before)
    assert (store.push.get_config(KEY, "hook"), store.push.get_cursor(KEY, "hook")) == (config(), moved_on)
    assert head_of(store.log) == head
    assert store.push.add_config(head, moved(head), new, Cursor("hook", "second"), moved_on)
    assert store.push.get_cursor(KEY, "hook") == Cursor("hook", "second")


def test_a_replacement_is_refused_when_what_it_replaces_was_deleted(store: Store) -> None:
    old = _added(store)
    store.push.remove_config(KEY, "hook", "first")
    head, new = head_of(store.log), config(incarnation="second")
    assert not store.push.add_config(head, moved(head), new, Cursor("hook", "second"), old)
    assert store.push.list_configs(KEY) == []


@pytest.mark.requirement(18)
def test_configurations_and_cursors_come_by_id(store: Store) -> None:
    ids = ["b", "a", "B", "a#1", "a/1", "~", "CURSOR#a"]
    for config_id in ids:
        _added(store, config_id)
    assert [found.config_id for found in store.push.list_configs(KEY)] == sorted(ids)
    assert [found.config_id for found in store.push.list_cursors(KEY)] == sorted(ids)
    assert all(store.push.get_config(KEY, config_id) == config(config_id) for config_id in ids)


@pytest.mark.requirement(17)
def test_a_configuration_of_somebody_else_does_not_exist(store: Store) -> None:
    cursor = _added(store)
    store.push.record_attempt(KEY, attempt(), EXPIRES)
    assert (store.push.get_config(OTHER, "hook"), store.push.get_cursor(OTHER, "hook")) == (None, None)
    assert (store.push.list_configs(OTHER), store.push.list_cursors(OTHER), store.push.list_attempts(OTHER)) == (
        [],
        [],
        [],
    )
    assert not store.push.move_cursor(OTHER, cursor, _claimed(cursor, "stranger"))
    store.push.remove_config(OTHER, "hook", "first")
    assert store.push.get_cursor(KEY, "hook") == cursor


def test_every_field_of_a_configuration_and_a_cursor_is_kept(store: Store) -> None:
    head = created(store.log).head
    full = PushConfig("id", "https://x.example", "0.3", "i", NOW, "Basic", "", "")
    cursor = Cursor("id", "i", start=4, position=3, attempt=2, next_at=NOW + 1, lease_until=NOW + 2, lease_no=7)
    cursor = replace(cursor, holder="holder", state=CursorState.PAUSED, due_at=NOW + 3)
    cursor = replace(cursor, verification=Verification.REFUSED)
    assert store.push.add_config(head, moved(head), full, cursor)
    assert store.push.get_config(KEY, "id") == full
    assert store.push.get_cursor(KEY, "id") == cursor
    bare = Cursor("id", "i")
    assert store.push.move_cursor(KEY, cursor, bare)
    assert store.push.get_cursor(KEY, "id") == bare


# ---- Moving a cursor


def test_a_claim_is_given_to_one_notifier(store: Store) -> None:
    cursor = _added(store)
    claims = [_claimed(cursor, f"notifier-{number}") for number in range(10)]
    with ThreadPoolExecutor(10) as threads:
        won = list(threads.map(lambda claim: store.push.move_cursor(KEY, cursor, claim), claims))
    assert won.count(True) == 1
    assert store.push.get_cursor(KEY, "hook") == claims[won.index(True)]


def test_a_move_that_is_tried_again_counts_as_success(store: Store) -> None:
    cursor = _added(store)
    claim = _claimed(cursor, "notifier")
    assert store.push.move_cursor(KEY, cursor, claim)
    assert store.push.move_cursor(KEY, cursor, claim)


def test_a_move_that_changes_nothing_is_done_while_the_cursor_is_there(store: Store) -> None:
    cursor = _added(store)
    assert store.push.move_cursor(KEY, cursor, cursor)
    store.push.remove_config(KEY, "hook", "first")
    assert not store.push.move_cursor(KEY, cursor, cursor)


@pytest.mark.parametrize(
    "meanwhile",
    [
        {"start": 5},
        {"position": 5},
        {"attempt": 1},
        {"next_at": NOW},
        {"lease_until": NOW},
        {"lease_no": 9},
        {"holder": "another"},
        {"state": CursorState.CLOSED},
        {"due_at": NOW},
    ],
    ids=repr,
)
def test_a_move_from_anything_but_what_is_stored_is_refused(store: Store, meanwhile: dict[str, object]) -> None:
    cursor = _claimed(_added(store), "notifier")
    store.push.move_cursor(KEY, replace(cursor, lease_no=0, lease_until=0, holder=""), cursor)
    other = replace(cursor, **meanwhile)  # type: ignore[arg-type]
    assert store.push.move_cursor(KEY, cursor, other)
    assert not store.push.move_cursor(KEY, cursor, replace(cursor, position=7))
    assert store.push.get_cursor(KEY, "hook") == other


def test_a_slow_notifier_cannot_turn_a_position_back(store: Store) -> None:
    start = _added(store)
    slow = _claimed(start, "slow")
    fast = replace(_claimed(slow, "fast"), position=9)
    assert store.push.move_cursor(KEY, start, slow)
    assert store.push.move_cursor(KEY, slow, fast)
    assert not store.push.move_cursor(KEY, slow, replace(slow, position=4))
    assert store.push.get_cursor(KEY, "hook") == fast


def test_a_cursor_that_was_closed_is_not_moved_on(store: Store) -> None:
    claim = _claimed(_added(store), "notifier")
    store.push.move_cursor(KEY, Cursor("hook", "first"), claim)
    closed = replace(claim, state=CursorState.CLOSED)
    assert store.push.move_cursor(KEY, claim, closed)
    assert not store.push.move_cursor(KEY, claim, replace(claim, position=1))
    assert store.push.get_cursor(KEY, "hook") == closed


# ---- Deleting


def test_a_configuration_that_is_closed_is_gone_and_its_cursor_stays_closed(store: Store) -> None:
    cursor = replace(_claimed(_added(store), "notifier"), due_at=NOW)
    store.push.move_cursor(KEY, Cursor("hook", "first"), cursor)
    assert store.push.close_config(KEY, cursor)
    assert store.push.close_config(KEY, cursor)
    assert store.push.list_configs(KEY) == []
    assert store.push.get_cursor(KEY, "hook") == replace(cursor, state=CursorState.CLOSED, due_at=None)
    store.push.remove_config(KEY, "hook", "first")
    assert store.push.list_cursors(KEY) == []


def test_a_configuration_whose_cursor_has_moved_is_not_closed(store: Store) -> None:
    cursor = _added(store)
    claim = _claimed(cursor, "notifier")
    store.push.move_cursor(KEY, cursor, claim)
    assert not store.push.close_config(KEY, cursor)
    assert (store.push.get_config(KEY, "hook"), store.push.get_cursor(KEY, "hook")) == (config(), claim)


def test_a_late_close_leaves_the_replacement_alone(store: Store) -> None:
    old = _added(store)
    new = _added(store, incarnation="second")
    assert not store.push.close_config(KEY, old)
    assert (store.push.get_config(KEY, "hook"), store.push.get_cursor(KEY, "hook")) == (
        config(incarnation="second"),
        new,
    )


def test_a_deleted_configuration_is_never_brought_back(store: Store) -> None:
    cursor = _added(store)
    store.push.remove_config(KEY, "hook", "first")
    assert not store.push.move_cursor(KEY, cursor, _claimed(cursor, "late"))
    assert (store.push.list_configs(KEY), store.push.list_cursors(KEY)) == ([], [])


def test_deleting_what_is_not_there_is_fine(store: Store) -> None:
    _added(store)
    store.push.remove_config(KEY, "hook", "first")
    store.push.remove_config(KEY, "hook", "first")
    store.push.remove_config(KEY, "never", "first")
    assert store.push.list_configs(KEY) == []


def test_a_late_delete_leaves_the_replacement_alone(store: Store) -> None:
    _added(store)
    new = _added(store, incarnation="second")
    store.push.remove_config(KEY, "hook", "first")
    assert store.push.get_config(KEY, "hook") == config(incarnation="second")
    assert store.push.get_cursor(KEY, "hook") == new


# ---- Attempts


def test_attempts_come_oldest_first_within_each_configuration(store: Store) -> None:
    created(store.log)
    made = [attempt("b", n, k) for n in (1, 12) for k in (1, 2, 12)] + [attempt("a#1", 3, 1)]
    for one in reversed(made):
        store.push.record_attempt(KEY, one, EXPIRES)
    assert store.push.list_attempts(KEY) == [made[-1], *made[:-1]]


def test_an_attempt_after_a_redrive_is_kept_beside_the_one_with_its_number(store: Store) -> None:
    created(store.log)
    first = attempt("hook", 1, 1)
    again = replace(first, at=first.at + 86_400_000)
    store.push.record_attempt(KEY, again, EXPIRES)
    store.push.record_attempt(KEY, first, EXPIRES)
    assert store.push.list_attempts(KEY) == [first, again]


def test_an_attempt_that_is_recorded_twice_is_there_once(store: Store) -> None:
    created(store.log)
    bare = Attempt("hook", 1, 1, NOW, 5)
    store.push.record_attempt(KEY, bare, EXPIRES)
    store.push.record_attempt(KEY, bare, EXPIRES)
    assert store.push.list_attempts(KEY) == [bare]


# ---- How many an owner registers


def test_an_owner_is_counted_up_to_the_limit_each_day_for_itself(store: Store) -> None:
    admitted = [store.push.count_webhook(KEY._replace(task=f"task-{number}"), TODAY, 4) for number in range(6)]
    assert sorted(admitted, reverse=True) == admitted
    assert admitted.count(True) in AT_LIMIT
    assert store.push.count_webhook(OTHER, TODAY, 2)
    assert store.push.count_webhook(KEY, TODAY + 1, 2)


def test_webhooks_that_are_counted_at_once_stay_within_the_limit(store: Store) -> None:
    with ThreadPoolExecutor(4) as threads:
        admitted = list(threads.map(lambda _: store.push.count_webhook(KEY, TODAY, 4), range(12)))
    assert admitted.count(True) in AT_LIMIT


# ---- What was asked of a host

HOST = "hooks.example.com:8443"
ASKED = [
    ChallengeState(webhooks=1),
    ChallengeState(webhooks=20, sent=21, next_at=NOW + 1),
    ChallengeState(answered=True),
]


def test_the_store_has_a_challenge_state_for_each_owner_and_host(store: Store) -> None:
    assert store.push.get_challenge_state(KEY, HOST) == ChallengeState()
    before = ChallengeState()
    for after in ASKED:
        assert store.push.store_challenge_state(KEY, HOST, before, after, EXPIRES)
        assert store.push.get_challenge_state(KEY._replace(task="another"), HOST) == after
        before = after
    assert (store.push.get_challenge_state(OTHER, HOST), store.push.get_challenge_state(KEY, "hooks.example.com")) == (
        ChallengeState(),
        ChallengeState(),
    )


@pytest.mark.parametrize("before", [ChallengeState(), *ASKED[1:]], ids=repr)
def test_a_challenge_state_is_replaced_only_while_it_is_as_read(store: Store, before: ChallengeState) -> None:
    assert store.push.store_challenge_state(KEY, HOST, ChallengeState(), ASKED[0], EXPIRES)
    assert not store.push.store_challenge_state(KEY, HOST, before, ChallengeState(sent=7), EXPIRES)
    assert store.push.get_challenge_state(KEY, HOST) == ASKED[0]
    assert store.push.store_challenge_state(KEY, HOST, before, ASKED[0], EXPIRES), "it is done already"


def test_of_many_who_ask_a_host_at_once_one_is_counted(store: Store) -> None:
    for before in (ChallengeState(), ChallengeState(sent=100)):
        afters = [
            ChallengeState(sent=100) if not before.sent else ChallengeState(sent=200 + number) for number in range(8)
        ]
        with ThreadPoolExecutor(4) as threads:
            kept = [*threads.map(lambda one: store.push.store_challenge_state(KEY, HOST, before, one, EXPIRES), afters)]  # noqa: B023
        assert kept.count(True) == (1 if before.sent else 8)


def test_a_challenge_state_expires_and_a_new_answer_makes_it_last_longer(store: Store) -> None:
    store.push.store_challenge_state(KEY, HOST, ChallengeState(), ASKED[0], EXPIRES)
    store.push.store_challenge_state(KEY, HOST, ASKED[0], ASKED[2], EXPIRES + 60)
    store.now.ms = EXPIRES * 1000
    assert store.push.get_challenge_state(KEY, HOST) == ASKED[2]
    store.now.ms = (EXPIRES + 60) * 1000
    assert store.push.get_challenge_state(KEY, HOST) == ChallengeState()
    assert store.push.store_challenge_state(KEY, HOST, ChallengeState(), ASKED[0], EXPIRES + 120)


# ---- What was given up


def _given_up(store: Store, task: str, at: int) -> tuple[TaskKey, str]:
    key = KEY._replace(task=task)
    cursor = Cursor("hook", "first")
    created(store.log, key, push="hook")
    assert store.push.move_cursor(key, cursor, replace(cursor, state=CursorState.EXHAUSTED, due_at=at))
    return key, "hook"


def test_exhausted_deliveries_are_listed_oldest_first_within_a_limit(store: Store) -> None:
    rows = [_given_up(store, f"task-{number}", NOW - number) for number in range(5)]
    assert list(store.push.list_exhausted()) == rows[::-1]
    assert list(store.push.list_exhausted(2)) == rows[:-3:-1]
    assert list(store.push.list_exhausted(since=NOW - 1)) == rows[1::-1]


def test_an_exhausted_delivery_is_not_due_and_a_due_delivery_is_not_exhausted(store: Store) -> None:
    row = _given_up(store, "task", NOW)
    _added(store)
    due = [(one.key, one.config_id) for shard in range(SHARDS) for one in store.log.list_due(shard, NOW + 10**9)]
    assert row not in due
    assert list(store.push.list_exhausted()) == [row]


def test_a_delivery_that_is_redriven_or_deleted_is_no_longer_exhausted(store: Store) -> None:
    for key, config_id in (_given_up(store, "one", NOW), _given_up(store, "two", NOW)):
        cursor = store.push.get_cursor(key, config_id)
        assert cursor is not None
        if key.task == "one":
            assert store.push.move_cursor(key, cursor, replace(cursor, state=CursorState.ACTIVE))
        else:
            store.push.remove_config(key, config_id, cursor.incarnation)
    assert list(store.push.list_exhausted()) == []


def test_an_exhausted_delivery_expires_with_its_task(store: Store) -> None:
    _given_up(store, "task", NOW)
    store.now.ms = EXPIRES * 1000
    assert list(store.push.list_exhausted()) == []
