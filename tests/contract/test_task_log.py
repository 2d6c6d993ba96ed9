"""Rules 1 to 7 of the log, as far as storage keeps them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain import decisions
from a2a_serverless.domain import head as heads
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.events import Incoming, StatusEvent
from a2a_serverless.domain.model import Principal, TaskKey
from a2a_serverless.domain.new_task import IdempotencyRecord, LastTick, TickConflict
from a2a_serverless.domain.replay import replay
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.domain.timeline import StepTime
from a2a_serverless.protocol.v1 import Part, TaskState
from a2a_serverless.store import keys
from a2a_serverless.store.keys import SHARDS
from tests.contract.backends import LIMIT, NOW
from tests.contract.tasks import (
    EXPIRES,
    KEY,
    by,
    chunk,
    created,
    head_of,
    message,
    moved,
    opening,
    progress,
    seen,
    taken,
    talked,
    writer,
)

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import Json
    from a2a_serverless.store.task_log import TaskLog
    from tests.contract.backends import Store

MINUTE_MS = 60_000
STRANGERS = (
    TaskKey("other", "owner", "task-1"),
    TaskKey("tenant", "other", "task-1"),
    TaskKey("tenant", "owner", "task-2"),
    TaskKey("tenant/owner", "", "task-1"),
    TaskKey("", "tenant/owner", "task-1"),
    TaskKey("tenant", "owner/task-1", ""),
    TaskKey("tenant%2Fowner", "owner", "task-1"),
)


# ---- Reading a task


def replayed(store: Store) -> heads.CurrentHead:
    """A task with two chunks whose log has a snapshot up to them."""
    snapshot = taken(store.log)
    store.log.append_chunk(writer(), chunk(3))
    store.log.append_chunk(writer(), chunk(4, append=True))
    assert store.log.update_head(snapshot.head, decisions.set_snapshot(snapshot.head, 1, store.log.store_snapshot(KEY)))
    return seen(store.log)


def test_rule_04_a_task_with_a_snapshot_goes_on_as_its_whole_log_does(store: Store) -> None:
    snapshot = replayed(store)
    store.log.append_chunk(writer(), chunk(5, append=True))
    done = progress(heads.CurrentHead(snapshot.head, 5), TaskState.COMPLETED)
    assert store.log.append(done)
    assert snapshot.head.snapshot_position == done.after.snapshot_position == 4
    assert store.log.read_task(KEY) == (done.after, replay("task-1", "context", store.log.read(KEY, 0)))


def test_a_task_is_shown_as_of_any_event_before_and_behind_its_snapshot(store: Store) -> None:
    snapshot = replayed(store)
    store.log.append_chunk(writer(), chunk(5, append=True))
    log = store.log.read(KEY, 0)
    for n in range(1, 6):
        assert store.log.read_task_at(snapshot.head, n) == replay("task-1", "context", log[:n])


def test_a_fold_that_is_kept_again_has_the_same_name_and_one_place(store: Store) -> None:
    snapshot, places = replayed(store), len(store.blobs.content)
    assert store.log.store_snapshot(KEY) == snapshot.head.snapshot
    assert len(store.blobs.content) == places


def test_a_task_that_is_not_there_is_neither_read_nor_folded(store: Store) -> None:
    replayed(store)
    for stranger in STRANGERS:
        assert (store.log.read_task(stranger), store.log.store_snapshot(stranger)) == (None, "")


# ---- Reading a part of a task


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_a_part_of_a_task_is_what_the_whole_task_shows_of_it(store: Store, *, with_snapshot: bool) -> None:
    talked(store.log, with_snapshot=with_snapshot)
    read = store.log.read_task(KEY)
    assert read
    head, whole = read
    assert (len(whole.history), len(whole.artifacts[0].parts)) == (4, 1)
    for artifacts in (True, False):
        for history in (None, 0, 1, 2, 3, 9):
            part = store.log.read_part(KEY, history, artifacts=artifacts)
            assert part
            assert (part.head, part.task) == (head, whole.limited(history, artifacts=artifacts))


# ---- Opening a task


def test_a_new_task_is_there_as_it_was_written(store: Store) -> None:
    new = opening()
    assert store.log.create(new) is None
    assert store.log.read_head(KEY) == heads.CurrentHead(new.head, 1)
    assert store.log.read_log(KEY) == (new.head, [new.event])
    assert store.log.read(KEY, 0) == [new.event]


def test_a_task_knows_what_the_sender_of_its_message_may_do(store: Store) -> None:
    scopes = frozenset({"a2a:echo", "a2a:read"})
    assert created(store.log).head.caller == Caller(Principal(KEY.tenant, KEY.owner), scopes, key="d" * 64)


def test_a_task_that_was_never_made_does_not_exist(store: Store) -> None:
    assert store.log.read_head(KEY) is None
    assert store.log.read_log(KEY) is None
    assert store.log.read(KEY, 0) == []
    assert store.log.read_steps(KEY) == {}


def test_an_opening_that_is_tried_again_counts_as_written_once(store: Store) -> None:
    new = opening(sent="message")
    assert store.log.create(new) is None
    assert store.log.create(new) is None
    assert store.log.read_log(KEY) == (new.head, [new.event])


def test_an_opening_that_is_tried_again_later_does_not_set_the_task_back(store: Store) -> None:
    new = opening(sent="message")
    store.log.create(new)
    store.log.append(decisions.start_run(seen(store.log), now=NOW, by=by()))
    assert store.log.create(new) is None
    assert seen(store.log).last == 2


def test_a_task_id_that_is_taken_is_an_error_and_changes_nothing(store: Store) -> None:
    first = created(store.log)
    with pytest.raises(RuntimeError, match="this id already"):
        store.log.create(opening(sent="another"))
    assert seen(store.log) == first
    assert store.log.find_idempotency(KEY, "echo", "another") is None


def test_a_message_that_was_sent_before_gives_its_receipt_and_makes_no_task(store: Store) -> None:
    first = opening(sent="message")
    second = opening(KEY._replace(task="task-2"), sent="message", push="hook")
    assert store.log.create(first) is None
    assert store.log.create(second) == first.idempotency
    assert store.log.read_head(second.head.key) is None
    assert store.push.list_configs(second.head.key) == []


def ticked(store: Store, number: int, last: LastTick | None) -> LastTick:
    """A task of the ``number``-th tick of a schedule, after the tick ``last``."""
    tick = LastTick("hourly", 1000 * number, f"task-{number}")
    key = KEY._replace(task=tick.task)
    new = opening(key, sent=f"tick-{number}")._replace(tick=tick, last_tick=last)
    assert store.log.create(new) is None
    assert store.log.create(new) is None, "the answer was lost"
    return tick


def test_a_schedule_has_the_last_tick_that_started_a_task(store: Store) -> None:
    assert store.log.find_last_tick(KEY, "echo", "hourly") is None
    first = ticked(store, 1, None)
    assert store.log.find_last_tick(KEY, "echo", "hourly") == first
    second = ticked(store, 2, first)
    assert store.log.find_last_tick(KEY, "echo", "hourly") == second
    others = [(KEY._replace(owner="other"), "echo", "hourly"), (KEY, "other", "hourly"), (KEY, "echo", "daily")]
    assert [store.log.find_last_tick(*other) for other in others] == [None] * 3
    assert store.log.find_last_tick(KEY._replace(task="any"), "echo", "hourly") == second


@pytest.mark.parametrize("known", [None, LastTick("hourly", 500, "task-0")])
def test_a_tick_starts_no_task_if_another_one_has_started_one_meanwhile(known: LastTick | None, store: Store) -> None:
    if known:
        ticked(store, 0, None)
    other = ticked(store, 1, known and LastTick("hourly", 0, "task-0"))
    late = opening(KEY._replace(task="task-2"), sent="tick-2")._replace(
        tick=LastTick("hourly", 2000, "task-2"), last_tick=known
    )
    with pytest.raises(TickConflict):
        store.log.create(late)
    assert store.log.read_head(late.head.key) is None
    assert store.log.find_idempotency(KEY, "echo", "tick-2") is None
    assert store.log.find_last_tick(KEY, "echo", "hourly") == other


def test_a_receipt_is_for_its_own_tenant_owner_agent_and_message(store: Store) -> None:
    created(store.log, sent="message")
    assert store.log.find_idempotency(KEY, "echo", "message") == IdempotencyRecord(
        "echo", "message", "digest", KEY.task
    )
    strangers = [
        ("other", "owner", "echo", "message"),
        ("tenant", "other", "echo", "message"),
        ("tenant", "owner", "other", "message"),
        ("tenant", "owner", "echo", "other"),
        ("tenant", "owner", "echo/message", ""),
        ("tenant/owner", "echo", "message", ""),
    ]
    for tenant, owner, agent, message_id in strangers:
        assert store.log.find_idempotency(TaskKey(tenant, owner, KEY.task), agent, message_id) is None


def test_a_message_id_of_any_length_is_remembered(store: Store) -> None:
    created(store.log, sent="é" * 5000)
    found = store.log.find_idempotency(KEY, "echo", "é" * 5000)
    assert found is not None
    assert found.message_id == "é" * 5000
    assert store.log.find_idempotency(KEY, "echo", "é" * 4999) is None


def test_the_webhooks_of_an_opening_are_there_with_the_task(store: Store) -> None:
    new = opening(push="hook")
    store.log.create(new)
    ((config, cursor),) = new.pushes
    assert store.push.list_configs(KEY) == [config]
    assert store.push.list_cursors(KEY) == [cursor]


def test_fifty_parallel_duplicates_make_one_task(store: Store) -> None:
    openings = [opening(KEY._replace(task=f"task-{number}"), sent="message") for number in range(50)]
    with ThreadPoolExecutor(10) as threads:
        standing = list(threads.map(store.log.create, openings))
    made = [new for new, receipt in zip(openings, standing, strict=True) if receipt is None]
    assert len(made) == 1
    assert {receipt for receipt in standing if receipt} == {made[0].idempotency}
    assert [new for new in openings if store.log.read_head(new.head.key)] == made


def test_fifty_parallel_tries_of_one_opening_make_one_task(store: Store) -> None:
    new = opening(sent="message", push="hook")
    with ThreadPoolExecutor(10) as threads:
        assert list(threads.map(store.log.create, [new] * 50)) == [None] * 50
    assert store.log.read_log(KEY) == (new.head, [new.event])


def test_a_stranger_reads_and_appends_nothing_in_the_log_of_another_owner(store: Store) -> None:
    snapshot = taken(store.log)
    store.log.store_step(writer(), "step", StepResult("", 1))
    for stranger in STRANGERS:
        assert store.log.read_head(stranger) is None
        assert store.log.read_log(stranger) is None
        assert store.log.read(stranger, 0) == []
        assert store.log.read_steps(stranger) == {}
        assert not store.log.append(progress(heads.CurrentHead(snapshot.head._replace(key=stranger), snapshot.last)))
    assert seen(store.log) == snapshot


def test_any_text_may_name_a_tenant_an_owner_and_a_task(store: Store) -> None:
    keys = [KEY, *STRANGERS, TaskKey("租户", "#me?", "a b\0é\U0001f600"), TaskKey("", "", "~.-_")]
    for key in keys:
        created(store.log, key)
    assert [seen(store.log, key).head.key for key in keys] == keys


# ---- Appending


def test_a_status_event_moves_the_head_and_the_log_together(store: Store) -> None:
    snapshot = created(store.log)
    change = decisions.start_run(snapshot, now=NOW + 1, by=by())
    assert store.log.append(change)
    assert store.log.read_head(KEY) == heads.CurrentHead(change.after, 2)
    assert store.log.read(KEY, 1) == [change.event]


def test_an_append_on_a_stale_head_is_refused_and_changes_nothing(store: Store) -> None:
    stale = taken(store.log)
    store.log.update_head(stale.head, moved(stale.head, lease_until=NOW + 99))
    before = store.log.read_log(KEY)
    assert not store.log.append(progress(stale), IdempotencyRecord("echo", "message", "digest", KEY.task))
    assert store.log.read_log(KEY) == before
    assert store.log.find_idempotency(KEY, "echo", "message") is None


def test_an_append_whose_number_is_taken_is_refused_and_changes_nothing(store: Store) -> None:
    stale = taken(store.log)
    store.log.append_chunk(writer(), chunk(3))
    before = store.log.read_log(KEY)
    assert not store.log.append(progress(stale))
    assert store.log.read_log(KEY) == before


def test_an_append_that_is_tried_again_counts_as_success_and_is_there_once(store: Store) -> None:
    change = progress(taken(store.log))
    assert store.log.append(change)
    assert store.log.append(change)
    assert store.log.read_log(KEY) == (change.after, store.log.read(KEY, 0))
    assert seen(store.log).last == 3


def test_an_append_that_is_tried_again_after_others_went_on_still_counts_as_success(store: Store) -> None:
    change = progress(taken(store.log))
    store.log.append(change, IdempotencyRecord("echo", "message", "digest", KEY.task))
    store.log.append(progress(seen(store.log), TaskState.COMPLETED))
    assert store.log.append(change, IdempotencyRecord("echo", "message", "digest", KEY.task))
    assert head_of(store.log).state is TaskState.COMPLETED
    assert seen(store.log).last == 4


def test_a_follow_up_leaves_a_receipt_in_the_same_transaction(store: Store) -> None:
    follow_up = decisions.follow_up(taken(store.log), Incoming(message(message_id="again")), now=NOW, by=by())
    receipt = IdempotencyRecord("echo", "again", "digest", KEY.task)
    assert store.log.append(follow_up, receipt)
    assert store.log.find_idempotency(KEY, "echo", "again") == receipt


def test_a_follow_up_that_was_sent_before_is_refused_and_changes_nothing(store: Store) -> None:
    snapshot = created(store.log, sent="message")
    follow_up = decisions.follow_up(snapshot, Incoming(message()), now=NOW, by=by())
    assert not store.log.append(follow_up, IdempotencyRecord("echo", "message", "digest", KEY.task))
    assert seen(store.log) == snapshot


def test_a_chunk_takes_a_number_and_leaves_the_head_alone(store: Store) -> None:
    snapshot, event = taken(store.log), chunk(3)
    assert store.log.append_chunk(writer(), event)
    assert store.log.read_head(KEY) == heads.CurrentHead(snapshot.head, 3)
    assert store.log.read(KEY, 2) == [event]


def test_a_chunk_that_is_tried_again_counts_as_success_and_is_there_once(store: Store) -> None:
    taken(store.log)
    event = chunk(3)
    assert store.log.append_chunk(writer(), event)
    assert store.log.append_chunk(writer(), event)
    assert store.log.read(KEY, 2) == [event]


def test_a_chunk_never_overwrites_another(store: Store) -> None:
    taken(store.log)
    first = chunk(3)
    store.log.append_chunk(writer(), first)
    assert not store.log.append_chunk(writer(), chunk(3))
    assert store.log.read(KEY, 2) == [first]


def test_of_many_writers_of_one_number_exactly_one_wins(store: Store) -> None:
    snapshot = taken(store.log)
    changes = [progress(snapshot, said=str(number)) for number in range(20)]
    with ThreadPoolExecutor(10) as threads:
        won = [change for change, done in zip(changes, threads.map(store.log.append, changes), strict=True) if done]
    assert len(won) == 1
    assert store.log.read_log(KEY) == (won[0].after, [*store.log.read(KEY, 0, 2), won[0].event])


def test_writers_that_look_again_all_get_their_turn_and_leave_no_gap(store: Store) -> None:
    taken(store.log)

    def write(said: str) -> None:
        while not store.log.append(progress(seen(store.log), said=said)):
            pass

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, map(str, range(12))))
    events = store.log.read(KEY, 2)
    assert [event.n for event in events] == list(range(3, 15))
    assert sorted(_said(event) for event in events) == sorted(map(str, range(12)))


def test_an_end_that_a_run_decided_before_a_cancel_is_not_appended(store: Store) -> None:
    snapshot = taken(store.log)
    late = progress(snapshot, TaskState.COMPLETED)
    assert store.log.append(decisions.cancel(snapshot, now=NOW, by=by()))
    assert not store.log.append(late)
    assert not store.log.append(late._replace(event=late.event._replace(n=4)))
    assert head_of(store.log).state is TaskState.CANCELED
    assert seen(store.log).last == 3


# ---- Moving the head without an event


def test_a_touch_moves_the_head_and_takes_no_number(store: Store) -> None:
    snapshot = taken(store.log)
    renewed = decisions.renew_lease(snapshot.head, snapshot.head.fence, now=NOW + 10_000)
    assert store.log.update_head(snapshot.head, renewed)
    assert store.log.read_head(KEY) == heads.CurrentHead(renewed, snapshot.last)


def test_a_touch_of_a_stale_head_is_refused(store: Store) -> None:
    snapshot = created(store.log)
    store.log.append(decisions.start_run(snapshot, now=NOW, by=by()))
    taken_over = head_of(store.log)
    assert not store.log.update_head(snapshot.head, moved(snapshot.head, due_at=None))
    assert head_of(store.log) == taken_over


def test_a_touch_that_is_tried_again_counts_as_success(store: Store) -> None:
    head = created(store.log).head
    after = moved(head, due_at=None)
    assert store.log.update_head(head, after)
    assert store.log.update_head(head, after)
    assert head_of(store.log) == after


def test_a_touch_of_a_task_that_is_not_there_makes_none(store: Store) -> None:
    head = opening().head
    assert not store.log.update_head(head, moved(head))
    assert store.log.read_head(KEY) is None


def test_a_runner_whose_lease_was_taken_over_can_neither_renew_nor_report(store: Store) -> None:
    stale = taken(store.log)
    assert store.log.append(decisions.start_run(stale, now=stale.head.lease_until + 1, by=by()))
    assert not store.log.update_head(stale.head, decisions.renew_lease(stale.head, 1, now=NOW + 40_000))
    assert not store.log.append(progress(stale, TaskState.COMPLETED))
    assert head_of(store.log).fence == 2


def _another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + (1 if isinstance(value, int) else "x")


def test_every_field_of_a_head_is_kept(store: Store) -> None:
    head = created(store.log).head
    fixed = {"key", "agent", "context_id", "state", "created_at", "expires", "rev"}
    plain = {name: value for name, value in head._asdict().items() if name not in fixed}
    others = {name: _another(value) for name, value in plain.items()}
    full = moved(head, **others)
    assert store.log.update_head(head, full)
    assert head_of(store.log) == full
    empty = moved(full, **plain | {"due_at": None})
    assert store.log.update_head(full, empty)
    assert head_of(store.log) == empty


# ---- Reading


def test_a_reader_gets_what_follows_its_number_in_order(store: Store) -> None:
    _grow(store.log, 7)
    assert [event.n for event in store.log.read(KEY, 3)] == [4, 5, 6, 7]
    assert [event.n for event in store.log.read(KEY, 3, limit=2)] == [4, 5]
    assert store.log.read(KEY, 7) == []
    assert store.log.read(KEY, 1_000_000) == []


def test_events_stay_in_order_beyond_nine_and_ninety_nine(store: Store) -> None:
    _grow(store.log, 105)
    loaded = store.log.read_log(KEY)
    assert loaded is not None
    assert [event.n for event in loaded[1]] == list(range(1, 106))
    assert [event.n for event in store.log.read(KEY, 98, limit=4)] == [99, 100, 101, 102]
    assert seen(store.log).last == 105


def test_events_behind_a_gap_in_the_log_are_not_read(store: Store) -> None:
    taken(store.log)
    for n in (3, 5, 6):
        store.log.append_chunk(writer(), chunk(n))
    loaded = store.log.read_log(KEY)
    assert loaded is not None
    assert [event.n for event in loaded[1]] == [1, 2, 3]
    assert [event.n for event in store.log.read(KEY, 1)] == [2, 3]
    assert store.log.read(KEY, 3) == []


def test_a_head_and_a_log_that_are_read_together_belong_together(store: Store) -> None:
    taken(store.log)

    def write(said: str) -> None:
        while not store.log.append(progress(seen(store.log), said=said)):
            pass

    def load(_: int) -> bool:
        loaded = store.log.read_log(KEY)
        assert loaded is not None
        head, events = loaded
        return head.n == max(event.n for event in events if isinstance(event, StatusEvent)) == len(events)

    with ThreadPoolExecutor(6) as threads:
        writes = [threads.submit(write, str(number)) for number in range(15)]
        assert all(threads.map(load, range(40)))
        assert all(done.result() is None for done in writes)


# ---- The end of a task's life


@pytest.mark.requirement(123)
def test_an_expired_task_does_not_exist_for_any_reader(store: Store) -> None:
    snapshot = created(store.log, sent="message", push="hook")
    store.log.append(decisions.start_run(snapshot, now=NOW, by=by()))
    store.log.append_chunk(writer(), chunk(3))
    store.log.store_step(writer(), "step", StepResult("", 1))
    store.now.ms = EXPIRES * 1000 - 1
    assert seen(store.log).last == 3
    store.now.ms = EXPIRES * 1000
    assert store.log.read_head(KEY) is None
    assert store.log.read_log(KEY) is None
    assert store.log.read(KEY, 0) == []
    assert store.log.read_steps(KEY) == {}
    assert store.log.find_idempotency(KEY, "echo", "message") is None
    assert (store.push.list_configs(KEY), store.push.list_cursors(KEY)) == ([], [])
    assert (store.push.get_config(KEY, "hook"), store.push.get_cursor(KEY, "hook")) == (None, None)


def test_an_expired_task_cannot_be_changed(store: Store) -> None:
    snapshot = taken(store.log)
    store.now.ms = EXPIRES * 1000
    assert not store.log.append(progress(snapshot))
    assert not store.log.update_head(snapshot.head, moved(snapshot.head))
    store.now.ms = NOW
    assert seen(store.log) == snapshot


def test_a_message_is_new_again_once_its_receipt_has_expired(store: Store) -> None:
    created(store.log, sent="message")
    store.now.ms = EXPIRES * 1000
    later = opening(KEY._replace(task="task-2"), sent="message")
    later = later._replace(head=later.head._replace(expires=EXPIRES + 100))
    assert store.log.create(later) is None
    assert store.log.find_idempotency(KEY, "echo", "message") == later.idempotency


# ---- What is due


def test_a_task_is_due_in_one_shard_once_its_time_has_come(store: Store) -> None:
    due_at = created(store.log).head.due_at or 0
    assert _due(store.log, due_at - 1) == []
    assert _due(store.log, due_at) == [(KEY, None)]


def test_a_due_time_moves_and_ends_with_the_head(store: Store) -> None:
    head = created(store.log).head
    later = moved(head, due_at=NOW + 500_000)
    store.log.update_head(head, later)
    assert _due(store.log, NOW + 499_999) == []
    assert _due(store.log, NOW + 500_000) == [(KEY, None)]
    store.log.update_head(later, moved(later, due_at=None))
    assert _due(store.log, NOW + 10**9) == []


def test_a_cursor_is_due_apart_from_its_task(store: Store) -> None:
    snapshot = created(store.log, push="hook/1#")
    cursor = store.push.get_cursor(KEY, "hook/1#")
    assert cursor is not None
    store.log.update_head(snapshot.head, moved(snapshot.head, due_at=None))
    store.push.move_cursor(KEY, cursor, replace(cursor, due_at=NOW + 5))
    assert _due(store.log, NOW + 5) == [(KEY, "hook/1#")]


def test_tasks_that_are_due_are_listed_oldest_first(store: Store) -> None:
    tasks = [KEY._replace(task=f"task-{number}") for number in range(40)]
    for number, key in enumerate(tasks):
        head = created(store.log, key).head
        store.log.update_head(head, moved(head, due_at=NOW + 1000 - number))
    for shard in range(SHARDS):
        due = [one.key for one in store.log.list_due(shard, NOW + 1000)]
        assert due == [key for key in reversed(tasks) if key in due]
    assert sorted(key.task for key, _ in _due(store.log, NOW + 1000)) == sorted(key.task for key in tasks)


def _lasting(store: Store, push: str | None = None) -> heads.CurrentHead:
    """A task that does not expire on this day."""
    new = opening(push=push)
    assert store.log.create(new._replace(head=new.head._replace(expires=EXPIRES + 86_400))) is None
    return seen(store.log)


def _assert_put_off(store: Store, *minutes: int) -> None:
    """Puts off what is due, as often as there are minutes: so much later it is due again."""
    shard = keys.shard(KEY)
    for wait in minutes:
        (due,) = store.log.list_due(shard, store.now.ms)
        store.log.postpone(due, store.now.ms)
        store.now.ms += wait * MINUTE_MS
        assert list(store.log.list_due(shard, store.now.ms - 1)) == []


def test_a_head_that_is_put_off_is_due_later_each_time_up_to_an_hour_and_else_as_it_was(store: Store) -> None:
    head = _lasting(store).head
    store.now.ms = NOW + 100_000
    _assert_put_off(store, 1, 2, 4, 8, 16, 32, 60, 60, 60)
    after = head_of(store.log)
    assert after == head._replace(due_at=after.due_at)


def test_a_task_that_moved_between_two_sweeps_is_postponed_for_a_minute_only(store: Store) -> None:
    _lasting(store)
    store.now.ms = NOW + 100_000
    _assert_put_off(store, 1, 2, 4)
    head = head_of(store.log)
    assert store.log.update_head(head, moved(head, due_at=store.now.ms - 1))
    _assert_put_off(store, 1, 2)


def test_a_cursor_is_put_off_apart_from_its_task(store: Store) -> None:
    snapshot = _lasting(store, push="hook/1#")
    cursor = store.push.get_cursor(KEY, "hook/1#")
    assert cursor is not None
    assert store.log.update_head(snapshot.head, moved(snapshot.head, due_at=None))
    assert store.push.move_cursor(KEY, cursor, replace(cursor, due_at=NOW))
    _assert_put_off(store, 1, 2, 4)
    after = store.push.get_cursor(KEY, "hook/1#")
    assert after is not None
    assert after == replace(cursor, due_at=after.due_at)


def test_postponing_a_task_that_is_not_due_or_erased_writes_nothing(store: Store) -> None:
    created(store.log)
    head = head_of(store.log)
    due_at = head.due_at or 0
    (due,) = [one for shard in range(SHARDS) for one in store.log.list_due(shard, due_at)]
    store.log.postpone(due, due_at - 1)
    assert head_of(store.log) == head
    store.erasure_store.erase_task(KEY)
    store.log.postpone(due, due_at)
    assert store.log.read_head(KEY) is None
    assert store.erasure_store.count_items(KEY) == 0


def test_a_task_that_has_expired_is_not_due(store: Store) -> None:
    created(store.log)
    store.now.ms = EXPIRES * 1000
    assert _due(store.log, store.now.ms) == []


# ---- Steps


def test_the_first_result_of_a_step_is_the_one_that_stays(store: Store) -> None:
    created(store.log)
    first, second = StepResult("arguments", {"text": "first"}), StepResult("others", {"text": "second"})
    assert store.log.store_step(writer(), "step", first) == first
    assert store.log.store_step(writer(), "step", second) == first
    assert store.log.read_steps(KEY) == {"step": first}


def test_rule_07_a_step_is_read_back_with_what_it_said_and_its_chunks_with_its_name(store: Store) -> None:
    taken(store.log)
    result, quiet = StepResult("arguments", "value", attempt=3, sequence=2), StepResult("arguments", "value")
    store.log.store_step(writer(), "think", result)
    store.log.store_step(writer(), "be quiet", quiet)
    assert store.log.read_steps(KEY) == {"think": result, "be quiet": quiet}
    event = chunk(3)._replace(step="think")
    assert store.log.append_chunk(writer(), event)
    assert store.log.read(KEY, 2) == [event]


def test_the_times_of_steps_are_listed_without_their_results_and_not_read_back_with_them(store: Store) -> None:
    store.log.store_step(writer(), "draw", StepResult("", "x" * (LIMIT + 1), began_at=5, ended_at=9))
    store.log.store_step(writer(), "@call/one", StepResult("", None, ended_at=7))
    store.log.store_step(writer(), "@failed/cut", StepResult("", None, began_at=6, ended_at=8, error="KeyError"))
    assert sorted(store.log.list_step_times(KEY, 10), key=str) == [
        StepTime("@call/one", 0, 7),
        StepTime("@failed/cut", 6, 8, "KeyError"),
        StepTime("draw", 5, 9),
    ]
    assert len(store.log.list_step_times(KEY, 1)) == 1
    store.now.ms = EXPIRES * 1000
    assert store.log.list_step_times(KEY, 10) == []


def test_rule_07_a_result_is_removed_only_if_the_named_run_stored_it_and_only_under_a_lease(store: Store) -> None:
    head = taken(store.log).head
    late = StepResult("", "late", moment=8, fence=1, seen=3)
    store.log.store_step(head, "draw", late)
    (stored,) = store.log.read_steps(KEY).values()
    assert (stored.fence, stored.seen, stored.moment) == (1, 3, 8)
    assert not store.log.remove_step(head, "draw", 2)
    assert not store.log.remove_step(head._replace(fence=9), "draw", 1)
    assert store.log.read_steps(KEY) == {"draw": late}
    assert store.log.remove_step(head, "draw", 1)
    assert store.log.read_steps(KEY) == {}


@pytest.mark.parametrize("limit", [1, 2, 25])
def test_the_results_of_steps_are_read_page_by_page_each_once(store: Store, limit: int) -> None:
    names = ["a", "a b", "a!", "a/1", "a > b", "ab", "@call/a", "@call/a/done", "ü", "long" * 500]
    for name in names:
        store.log.store_step(writer(), name, StepResult("", name))
    found = list[str]()
    while page := store.log.list_steps(KEY, found[-1] if found else "", limit):
        assert len(page) <= limit
        assert all(result.value == name for name, result in page)
        found += [name for name, _ in page]
    assert sorted(found) == sorted(names)
    store.now.ms = EXPIRES * 1000
    assert store.log.list_steps(KEY, "", limit) == []
    assert not store.log.has_any_step(KEY, names)


def test_steps_are_told_apart_by_any_name(store: Store) -> None:
    names = ["step", "step#1", "a/b", "ärger", "", " ", "STEP#", "x" * 2000, "x" * 2001, "\U0001f600"]
    for number, name in enumerate(names):
        store.log.store_step(writer(), name, StepResult("", number))
    assert store.log.read_steps(KEY) == {name: StepResult("", number) for number, name in enumerate(names)}


# ---- Content

VALUES: list[Json] = [
    None,
    True,
    0,
    -1,
    2**80,
    -0.5,
    1.0,
    1e308,
    5e-324,
    0.1 + 0.2,
    "",
    " ",
    "\0\n\r\u2028\x7f",
    "大纲 é \U0001f600",
    [],
    {},
    [[], {}, [None, ""]],
    {"": "", "a": {"b": [1, 2.0, "3", None, False]}, "é": None},
]


def test_content_comes_back_as_it_was(store: Store) -> None:
    parts = [Part(data=value, media_type="application/json", filename="", metadata={"m": value}) for value in VALUES]
    others = [Part(text=""), Part(raw="AA=="), Part(url="https://example.com/é")]
    new = opening(parts=(*parts, *others))
    store.log.create(new)
    for number, value in enumerate(VALUES):
        store.log.store_step(writer(), str(number), StepResult("arguments", value))
    assert repr(store.log.read(KEY, 0)) == repr([new.event])
    steps = store.log.read_steps(KEY)
    assert repr([steps[str(number)].value for number in range(len(VALUES))]) == repr(VALUES)


@pytest.mark.parametrize("alone", ["\ud800", "\udfff text"])
def test_half_a_surrogate_pair_comes_back_as_it_was(store: Store, alone: str) -> None:
    new = opening(parts=(Part(text=alone), Part(data={alone: "é"})))
    store.log.create(new)
    assert store.log.read(KEY, 0) == [new.event]


def test_every_field_of_an_event_is_kept(store: Store) -> None:
    snapshot = taken(store.log)
    full = chunk(3, Part(text="t", media_type="text/plain", filename="f", metadata={}), append=True)
    artifact = full.artifact.model_copy(
        update={"description": "d", "metadata": {}, "extensions": ("https://x.example", "")}
    )
    first = full._replace(artifact=artifact, last_chunk=True, emits=(3, 9), fence=7)
    bare = chunk(4)._replace(artifact=artifact.model_copy(update={"name": None, "parts": ()}), emits=(0, 0), fence=0)
    incoming = Incoming(
        message().model_copy(update={"reference_task_ids": ("t",), "extensions": ("e",)}), ("text/plain", ""), {}
    )
    incoming = replace(
        incoming, message=incoming.message.model_copy(update={"context_id": "c", "task_id": "x", "metadata": {}})
    )
    status = decisions.follow_up(snapshot._replace(last=4), incoming, now=NOW, by=by())
    assert store.log.append_chunk(writer(), first)
    assert store.log.append_chunk(writer(), bare)
    assert store.log.append(status)
    assert store.log.read(KEY, 2) == [first, bare, status.event]


@pytest.mark.parametrize("size", [LIMIT // 2, LIMIT, 20 * LIMIT, 500_000])
def test_content_of_any_size_comes_back_as_it_was(store: Store, size: int) -> None:
    text = "长é1" * (size // 6)
    new = opening(parts=(Part(text=text),))
    assert store.log.create(new) is None
    store.log.append(decisions.start_run(seen(store.log), now=NOW, by=by()))
    event = chunk(3, Part(text=text))
    assert store.log.append_chunk(writer(), event)
    store.log.store_step(writer(), "step", StepResult("", text))
    assert store.log.read(KEY, 2) == [event]
    assert store.log.read(KEY, 0)[0] == new.event
    assert store.log.read_steps(KEY) == {"step": StepResult("", text)}
    assert seen(store.log).last == 3


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_refused_and_changes_nothing(store: Store, value: float) -> None:
    snapshot = taken(store.log)
    with pytest.raises(ValueError, match="JSON"):
        store.log.append_chunk(writer(), chunk(3, Part(data=value)))
    with pytest.raises(ValueError, match="JSON"):
        store.log.store_step(writer(), "step", StepResult("", [value]))
    assert seen(store.log) == snapshot


def test_a_reader_cannot_change_the_log(store: Store) -> None:
    store.log.create(opening(parts=(Part(data={"a": 1}),)))
    first = store.log.read(KEY, 0)
    content = _parts(first[0])[0].value
    assert isinstance(content, dict)
    content["a"] = 2
    assert _parts(store.log.read(KEY, 0)[0])[0].value == {"a": 1}


def _grow(log: TaskLog, last: int) -> None:
    """A task with events up to ``last``."""
    taken(log)
    for n in range(3, last + 1):
        assert log.append_chunk(writer(), chunk(n))


def _due(log: TaskLog, until: int) -> list[tuple[TaskKey, str | None]]:
    return [(due.key, due.config_id) for shard in range(SHARDS) for due in log.list_due(shard, until) if due.key]


def _parts(event: Event) -> tuple[Part, ...]:
    assert isinstance(event, StatusEvent)
    assert event.incoming is not None
    return event.incoming.message.parts


def _said(event: Event) -> str:
    assert isinstance(event, StatusEvent)
    assert event.message is not None
    return str(event.message.parts[0].value)


# ---- Addresses of calls


def test_a_callback_address_stands_for_one_call_of_one_task(store: Store) -> None:
    for _ in range(2):
        store.log.store_callback(writer(), "address-1", "write it/now")
    store.log.store_callback(writer(STRANGERS[0]), "address-2", "write")
    assert store.log.find_callback("address-1") == (KEY, "write it/now")
    assert store.log.find_callback("address-2") == (STRANGERS[0], "write")
    assert store.log.find_callback("address-3") is None


def test_a_callback_address_and_the_record_of_its_task_are_one_write_which_can_be_repeated(store: Store) -> None:
    assert store.log.create(opening()) is None
    one, other = StepResult("", "id"), StepResult("", "another id")
    for _ in range(2):
        assert store.log.store_callback(writer(), "address", "@event/paid", ("@event/paid", one))
    assert store.log.read_step(KEY, "@event/paid") == one
    assert not store.log.store_callback(writer(), "other", "@event/paid", ("@event/paid", other))
    assert store.log.find_callback("other") is None
    assert store.log.read_step(KEY, "@event/unpaid") is None


def test_a_result_is_stored_with_the_change_of_the_head_or_not_at_all(store: Store) -> None:
    assert store.log.create(opening()) is None
    before = store.log.read_head(KEY)
    assert before
    after, event = before.head._replace(wake=1, rev=2), StepResult("", "x" * 400_000)
    assert store.log.update_head(before.head, after, ("event", event))
    assert store.log.update_head(before.head, after, ("event", event)), "a repeat after a lost answer"
    assert not store.log.update_head(before.head, after._replace(wake=2), ("other", event))
    assert not store.log.update_head(before.head, after, ("other", event)), "an equal change of another writer"
    assert (store.log.read_step(KEY, "event"), store.log.read_step(KEY, "other")) == (event, None)


def test_requests_to_a_callback_address_are_counted_each_minute(store: Store) -> None:
    minute = store.now() // 60_000
    first, *_, last = [store.log.count_request("address", minute, 2) for _ in range(3)]
    assert (first, last) == (True, False)  # a repeat after a lost answer counts, too
    assert store.log.count_request("address", minute + 1, 2)
    assert store.log.count_request("another", minute, 2)


def test_a_note_of_a_webhook_from_an_origin_holds_for_that_origin_only(store: Store) -> None:
    for _ in range(2):
        assert not store.log.has_webhook_come("https://other.example.com")
        store.log.note_webhook("https://far.example.com", store.now())
        assert store.log.has_webhook_come("https://far.example.com")


def test_whether_a_result_is_stored_is_known_without_its_content(store: Store) -> None:
    assert store.log.create(opening()) is None
    store.log.store_step(writer(), "long", StepResult("", "x" * 400_000))
    store.blobs.content.clear()
    assert store.log.has_step(KEY, "long")
    assert not store.log.has_step(KEY, "other")
    assert not store.log.has_step(STRANGERS[0], "long")
    assert store.log.has_any_step(KEY, ["other", "long", "third"])
    assert not store.log.has_any_step(KEY, ["other", "third"])
    assert not store.log.has_any_step(STRANGERS[0], ["other", "long"])


def test_a_callback_address_expires_with_its_task(store: Store) -> None:
    store.log.store_callback(writer(), "address", "write")
    store.now.ms = EXPIRES * 1000
    assert store.log.find_callback("address") is None
