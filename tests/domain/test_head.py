"""Decisions about a task's head: whatever is decided, in any order and at any time, these rules hold."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.decisions import (
    AHEAD_MS,
    DELAY_LIMIT_MS,
    GRACE_MS,
    LATE_MS,
    RUN_LEASE_MS,
    SOON_MS,
    SUSPEND_MS,
    AlreadyLeased,
    Change,
    LeaseLost,
    NotRunnable,
    TaskLifetime,
    TooManyLostRuns,
    WakeCounterChanged,
    ask,
    cancel,
    check_fence,
    clear_children,
    end_lease,
    fail_task,
    follow_up,
    hand_over,
    mark_children,
    mark_orphan,
    mark_push,
    note_dead_letter,
    pause,
    periods_at,
    renew_lease,
    report_status,
    reschedule,
    resume_run,
    set_snapshot,
    start_run,
    submit,
    suspend,
    wake,
)
from a2a_serverless.domain.errors import IllegalTransition, TaskNotCancelable, UnsupportedOperation
from a2a_serverless.domain.events import Incoming, StatusEvent
from a2a_serverless.domain.head import LOST_LIMIT, CurrentHead, Head
from a2a_serverless.domain.model import JsonObject, Principal, TaskKey
from a2a_serverless.domain.periods import RUNS
from a2a_serverless.domain.states import INTERRUPTED, NEXT, TERMINAL
from a2a_serverless.domain.waits import OpenWait, WaitKind, dump_waits
from a2a_serverless.protocol.v1 import Message, Part, Role, TaskState

NOW = 1_790_000_000_000
KEY = TaskKey("tenant", "owner", "task")
LIFE = TaskLifetime(max_life_ms=86_400_000, retention_ms=3_600_000)
QUESTION = Message(message_id="q", role=Role.AGENT, parts=(Part(text="Which colour?"),))
ANSWER = Incoming(Message(message_id="a", role=Role.USER, parts=(Part(text="red"),)))


def submitted(*, push: bool = False) -> CurrentHead:
    head, event = submit(KEY, "echo", "context", ANSWER, now=NOW, by="client", life=LIFE, push=push)
    return CurrentHead(head, event.n)


def after(change: Change) -> CurrentHead:
    return CurrentHead(change.after, change.event.n)


def taken(current: CurrentHead | None = None, *, now: int = NOW) -> CurrentHead:
    current = current or submitted()
    return after(start_run(current, now=now, by=f"run {current.head.fence + 1}"))


def reported(state: TaskState, current: CurrentHead | None = None, *, now: int = NOW) -> CurrentHead:
    current = current or taken()
    head = current.head
    if state in INTERRUPTED:
        return after(ask(current, head.fence, state, QUESTION, head.wake, now=now, by="runner"))
    return after(report_status(current, head.fence, state, QUESTION, now=now, by="runner"))


# ---- A new task


def test_a_new_task_is_due_soon_and_expires_after_its_life_and_retention() -> None:
    head, event = submit(KEY, "echo", "context", ANSWER, now=NOW, by="client", life=LIFE, push=True)
    assert head == Head(
        key=KEY,
        agent="echo",
        context_id="context",
        state=TaskState.SUBMITTED,
        n=1,
        created_at=NOW,
        status_at=NOW,
        deadline=NOW + 86_400_000,
        expires=(NOW + 90_000_000) // 1000,
        push=True,
        due_at=NOW + GRACE_MS,
    )
    assert event == StatusEvent(1, NOW, "client", TaskState.SUBMITTED, incoming=ANSWER)


ALICE = Caller(
    Principal(KEY.tenant, KEY.owner), frozenset({"a2a:echo", "a2a:other:read", "openid"}), key="digest of the key"
)


@pytest.mark.parametrize("which", ["the first", "a further"])
def test_a_head_has_the_trace_of_the_last_message_and_its_senders_own_scopes_and_api_key(which: str) -> None:
    if which == "the first":
        head, _ = submit(
            KEY, "echo", "context", ANSWER, now=NOW, by="c", life=LIFE, push=False, trace="trace", caller=ALICE
        )
    else:
        head = follow_up(submitted(), ANSWER, now=NOW, by="c", trace="trace", caller=ALICE).after
    assert (head.trace, head.scopes, head.api_key) == ("trace", "a2a:echo a2a:other:read", "digest of the key")
    assert head.caller == Caller(
        Principal(KEY.tenant, KEY.owner), frozenset({"a2a:echo", "a2a:other:read"}), key="digest of the key"
    )


def test_a_message_without_a_trace_leaves_that_of_the_one_before() -> None:
    current = CurrentHead(submitted().head._replace(trace="before"), 1)
    assert follow_up(current, ANSWER, now=NOW, by="c").after.trace == "before"


def test_the_caller_of_a_head_without_scopes_may_use_its_agent_and_read_the_others() -> None:
    assert submitted().head.caller == Caller(Principal(KEY.tenant, KEY.owner), frozenset({"a2a:echo", "a2a:read"}))


def test_a_head_refers_to_the_snapshot_of_its_log_by_the_number_of_its_last_event() -> None:
    head = taken().head
    assert (head.snapshot_position, head.snapshot_bytes) == (0, 0)
    stored = set_snapshot(head, 1, "512 90 digest 700")
    assert stored == head._replace(snapshot="512 90 digest 700", rev=head.rev + 1)
    assert (stored.snapshot_position, stored.snapshot_bytes) == (512, 700)
    with pytest.raises(LeaseLost):
        set_snapshot(head, 2, "512 90 digest 700")


# ---- Taking


def test_rule_06_taking_is_a_working_event_under_a_new_fence_and_a_lease() -> None:
    current = CurrentHead(submitted().head, 7)
    change = start_run(current, now=NOW + 100, by="runner")
    assert change.event == StatusEvent(8, NOW + 100, "runner", TaskState.WORKING, fence=1)
    assert change.after == current.head._replace(
        state=TaskState.WORKING,
        n=8,
        status_at=NOW + 100,
        periods="q100 r",
        rev=2,
        fence=1,
        lease_until=NOW + 100 + RUN_LEASE_MS,
        holder="runner",
    )


def test_rule_06_a_task_under_a_lease_cannot_be_taken_until_the_lease_is_over() -> None:
    current = taken()
    with pytest.raises(AlreadyLeased):
        start_run(current, now=NOW + RUN_LEASE_MS - 1, by="other")
    assert start_run(current, now=NOW + RUN_LEASE_MS, by="other").after.fence == 2


@pytest.mark.parametrize("late_ms", [1, RUN_LEASE_MS - 1, RUN_LEASE_MS, 10 * RUN_LEASE_MS])
def test_rule_06_a_run_that_was_not_told_that_it_has_the_lease_takes_the_task_again_and_is_not_lost(
    late_ms: int,
) -> None:
    current = taken()
    again = resume_run(current.head, now=NOW + late_ms, by=current.head.holder)
    assert (again.fence, again.lost, again.lease_until) == (2, 0, NOW + late_ms + RUN_LEASE_MS)


@pytest.mark.parametrize("state", sorted(TERMINAL | INTERRUPTED))
def test_a_task_that_waits_or_has_ended_cannot_be_taken(state: TaskState) -> None:
    with pytest.raises(NotRunnable):
        start_run(reported(state), now=NOW + 1, by="runner")


def die(current: CurrentHead) -> CurrentHead:
    """The next runner takes the task once the last one's lease is over."""
    return taken(current, now=current.head.lease_until)


def test_a_task_whose_runners_died_in_a_row_as_often_as_the_limit_is_not_run_again() -> None:
    current = taken()
    for _ in range(LOST_LIMIT - 1):
        current = die(current)
    assert (current.head.fence, current.head.lost) == (LOST_LIMIT, LOST_LIMIT - 1)
    with pytest.raises(TooManyLostRuns):
        die(current)


def test_the_death_of_a_run_that_stored_a_result_is_the_first_in_a_row() -> None:
    head = die(die(taken())).head
    assert resume_run(head, now=head.lease_until, by="other", has_progressed=True).lost == 1


@pytest.mark.parametrize("ending", ["handed over", "asked"])
def test_a_runner_that_let_go_in_good_order_clears_the_count_of_the_dead(ending: str) -> None:
    current = die(die(taken()))
    assert current.head.lost == 2
    if ending == "handed over":
        current = CurrentHead(hand_over(current.head, current.head.fence, now=NOW), current.last)
    else:
        current = after(follow_up(reported(TaskState.INPUT_REQUIRED, current), ANSWER, now=NOW, by="client"))
    assert taken(current, now=NOW + 500_000).head.lost == 0


# ---- What a runner says


def test_progress_keeps_the_lease_and_the_due_time() -> None:
    current = taken()
    change = report_status(current, 1, TaskState.WORKING, QUESTION, now=NOW + 50, by="runner")
    assert change.event == StatusEvent(3, NOW + 50, "runner", TaskState.WORKING, message=QUESTION, fence=1)
    assert change.after == current.head._replace(n=3, status_at=NOW + 50, rev=current.head.rev + 1)


@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize("push", [True, False], ids=["with a webhook", "without"])
def test_an_ended_task_is_free_and_stays_due_only_for_its_webhooks(state: TaskState, push: bool) -> None:  # noqa: FBT001
    ended = reported(state, taken(submitted(push=push))).head
    assert (ended.lease_until, ended.due_at, ended.is_terminal) == (0, NOW + GRACE_MS if push else None, True)


@pytest.mark.parametrize("state", sorted(INTERRUPTED))
def test_a_task_that_waits_is_free_and_due_at_the_end_of_its_life_or_for_its_webhooks(state: TaskState) -> None:
    waiting = reported(state).head
    assert (waiting.lease_until, waiting.due_at) == (0, waiting.deadline)
    assert reported(state, taken(submitted(push=True))).head.due_at == NOW + GRACE_MS


@pytest.mark.parametrize("fence", [0, 1, 3])
def test_rule_06_a_runner_with_a_foreign_fence_can_neither_speak_nor_renew_nor_hand_on(fence: int) -> None:
    current = die(taken())
    with pytest.raises(LeaseLost):
        report_status(current, fence, TaskState.COMPLETED, None, now=NOW, by="stale")
    with pytest.raises(LeaseLost):
        renew_lease(current.head, fence, now=NOW)
    with pytest.raises(LeaseLost):
        hand_over(current.head, fence, now=NOW)


@pytest.mark.parametrize("is_canceled", [True, False])
def test_a_runner_of_an_ended_task_has_lost_its_hold_and_learns_whether_by_a_cancel(*, is_canceled: bool) -> None:
    current = taken()
    ended = after(cancel(current, now=NOW, by="client")) if is_canceled else reported(TaskState.FAILED, current)
    assert check_fence(current.head, 1) == current.head
    with pytest.raises(LeaseLost) as lost:
        check_fence(ended.head, 1)
    assert lost.value.canceled is is_canceled
    assert LeaseLost().canceled is False


def test_a_runner_cannot_say_what_the_table_does_not_allow() -> None:
    with pytest.raises(IllegalTransition):
        report_status(taken(), 1, TaskState.SUBMITTED, None, now=NOW, by="runner")


def test_renewing_moves_only_the_lease() -> None:
    head = taken().head
    assert renew_lease(head, 1, now=NOW + 10_000) == head._replace(
        lease_until=NOW + 10_000 + RUN_LEASE_MS, rev=head.rev + 1
    )


def test_handing_on_lets_go_with_the_task_due_at_once() -> None:
    head = taken().head
    assert hand_over(head, 1, now=NOW + 99) == head._replace(
        lease_until=0, due_at=NOW + 99, periods="q0 h99 q", rev=head.rev + 1
    )


# ---- What a client says


def test_a_follow_up_wakes_a_task_that_waited() -> None:
    current = reported(TaskState.INPUT_REQUIRED)
    change = follow_up(current, ANSWER, now=NOW + 5, by="client")
    assert change.event == StatusEvent(4, NOW + 5, "client", TaskState.WORKING, incoming=ANSWER)
    assert change.after == current.head._replace(
        state=TaskState.WORKING,
        n=4,
        status_at=NOW + 5,
        rev=current.head.rev + 1,
        wake=1,
        parked=False,
        due_at=NOW + 5 + GRACE_MS,
        periods="q0 w0 s5 q",
    )


def test_a_follow_up_before_the_first_run_leaves_the_task_submitted() -> None:
    assert follow_up(submitted(), ANSWER, now=NOW, by="client").event.state is TaskState.SUBMITTED


def test_a_follow_up_during_a_run_leaves_the_runner_its_lease() -> None:
    current = taken()
    change = follow_up(current, ANSWER, now=NOW + 5, by="client")
    assert (change.after.fence, change.after.lease_until, change.after.wake) == (1, NOW + RUN_LEASE_MS, 1)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_rule_02_an_ended_task_takes_no_message_no_cancel_and_no_failure(state: TaskState) -> None:
    ended = reported(state)
    with pytest.raises(UnsupportedOperation, match="Send a new message with the same contextId"):
        follow_up(ended, ANSWER, now=NOW, by="client")
    with pytest.raises(TaskNotCancelable):
        cancel(ended, now=NOW, by="client")
    with pytest.raises(NotRunnable):
        fail_task(ended, QUESTION, now=NOW, by="sweeper")


def test_a_cancel_takes_the_task_from_whoever_runs_it() -> None:
    change = cancel(taken(), now=NOW + 5, by="client")
    assert change.event == StatusEvent(3, NOW + 5, "client", TaskState.CANCELED)
    assert (change.after.state, change.after.lease_until) == (TaskState.CANCELED, 0)


def test_a_cancel_leaves_its_trace_on_the_task_and_without_one_the_trace_before() -> None:
    current = taken()
    traced = after(cancel(current, now=NOW, by="client", trace="of the cancel"))
    assert traced.head.trace == "of the cancel"
    before = current._replace(head=current.head._replace(trace="of the message"))
    assert after(cancel(before, now=NOW, by="client")).head.trace == "of the message"
    assert reported(TaskState.COMPLETED, before).head.trace == "of the message"


def test_giving_up_fails_the_task_whoever_holds_it() -> None:
    change = fail_task(taken(), QUESTION, now=NOW + 5, by="sweeper")
    assert change.event == StatusEvent(3, NOW + 5, "sweeper", TaskState.FAILED, message=QUESTION)
    assert (change.after.lost, change.after.is_given_up) == (0, False)


@pytest.mark.parametrize(("lost", "given_up"), [(LOST_LIMIT - 1, False), (LOST_LIMIT, True)])
def test_a_task_that_failed_because_its_runs_died_is_given_up_until_its_dead_letter_is_noted(
    lost: int, *, given_up: bool
) -> None:
    head = fail_task(taken(), QUESTION, now=NOW, by="worker", lost=lost).after
    assert (head.lost, head.is_given_up) == (lost, given_up)
    assert not taken().head._replace(lost=lost).is_given_up, "it has not ended"
    noted = note_dead_letter(head)
    assert noted == head._replace(lost=0, rev=head.rev + 1)
    assert not noted.is_given_up


USED: JsonObject = {"model": {"input_tokens": 1}}


def test_a_question_is_an_event_of_its_run_with_the_usage_until_then() -> None:
    current = taken()
    change = ask(current, 1, TaskState.AUTH_REQUIRED, QUESTION, 0, now=NOW + 5, by="a", usage=USED, wake_at=NOW + 9)
    assert change.before == current.head
    assert change.event == StatusEvent(3, NOW + 5, "a", TaskState.AUTH_REQUIRED, message=QUESTION, fence=1, usage=USED)
    assert (change.after.rev, change.after.parked, change.after.wake_at) == (current.head.rev + 1, True, NOW + 9)


def test_a_status_has_the_usage_until_then_and_the_messages_that_it_joins() -> None:
    change = report_status(
        taken(), 1, TaskState.WORKING, QUESTION, now=NOW, by="a", usage=USED, joined=("earlier", "too")
    )
    assert (change.event.usage, change.event.joined) == (USED, ("earlier", "too"))


# ---- Waiting for other agents


def test_rule_05_a_task_parks_only_while_nothing_has_come_since_the_runner_looked() -> None:
    head = taken().head._replace(wake=3, lost=2)
    with pytest.raises(WakeCounterChanged):
        suspend(head, 1, 2, now=NOW)
    with pytest.raises(LeaseLost):
        suspend(head, 2, 3, now=NOW)
    assert suspend(head, 1, 3, now=NOW + 9) == head._replace(
        lease_until=0, parked=True, lost=0, due_at=head.deadline, periods="q0 w9 s", rev=head.rev + 1
    )


@pytest.mark.parametrize(
    ("wait_ms", "due_ms"),
    [
        (1, 1 + LATE_MS),
        (DELAY_LIMIT_MS, DELAY_LIMIT_MS + LATE_MS),
        (DELAY_LIMIT_MS + 1, DELAY_LIMIT_MS + 1 - AHEAD_MS),
        (SUSPEND_MS, SUSPEND_MS - AHEAD_MS),
    ],
)
def test_a_parked_task_is_due_in_time_for_its_message_or_when_that_is_lost(wait_ms: int, due_ms: int) -> None:
    assert suspend(taken().head, 1, 0, now=NOW, wake_at=NOW + wait_ms).due_at == NOW + due_ms


def test_a_parked_task_with_a_time_is_run_then_and_not_before() -> None:
    waiting = CurrentHead(suspend(taken().head, 1, 0, now=NOW, wake_at=NOW + 5), 2)
    with pytest.raises(NotRunnable):
        start_run(waiting, now=NOW + 4, by="runner")
    after = start_run(waiting, now=NOW + 5, by="runner").after
    assert (after.fence, after.parked, after.wake_at) == (2, False, 0)


@pytest.mark.parametrize("push", [False, True])
def test_a_paused_task_is_run_at_its_time_and_its_webhooks_are_looked_after(push: bool) -> None:  # noqa: FBT001
    head = submitted(push=push).head._replace(sweeps_in_a_row=3)
    paused = pause(head, now=NOW + 9, wake_at=NOW + SUSPEND_MS, waits="[0]")
    due_at = head.due_at if push else NOW + SUSPEND_MS - AHEAD_MS
    assert paused == head._replace(
        parked=True,
        wake_at=NOW + SUSPEND_MS,
        waits="[0]",
        sweeps_in_a_row=0,
        due_at=due_at,
        periods="q9 s",
        rev=head.rev + 1,
    )
    with pytest.raises(NotRunnable):
        resume_run(paused, now=NOW + SUSPEND_MS - 1, by="runner")
    assert resume_run(paused, now=NOW + SUSPEND_MS, by="runner").fence == 1


def test_a_pause_forgets_no_run_that_died() -> None:
    died = taken().head
    paused = pause(died, now=died.lease_until, wake_at=died.lease_until + 5, waits="[0]")
    assert (paused.lease_until, paused.holder) == (died.lease_until, died.holder)
    assert resume_run(paused, now=paused.wake_at, by="other").lost == 1


@pytest.mark.parametrize("ending", ["run", "cancel", "follow-up", "wake"])
def test_only_a_suspended_task_says_why_it_waits(ending: str) -> None:
    waits = dump_waits([OpenWait(WaitKind.SLEEP, "nap", NOW, NOW + 5)])
    waiting = CurrentHead(suspend(taken().head, 1, 0, now=NOW, wake_at=NOW + 5, waits=waits), 2)
    assert waiting.head.open_waits == (((WaitKind.SLEEP, "nap", NOW, NOW + 5),), 0)
    decided = {
        "run": resume_run(waiting.head, now=NOW + 5, by="runner"),
        "cancel": cancel(waiting, now=NOW, by="client").after,
        "follow-up": follow_up(waiting, ANSWER, now=NOW, by="client").after,
        "wake": wake(waiting.head, now=NOW),
    }
    assert decided[ending].open_waits == ((), 0)


def test_a_question_that_is_open_stays_open_when_a_run_is_woken_beside_it() -> None:
    asked = ask(taken(), 1, TaskState.INPUT_REQUIRED, QUESTION, 0, now=NOW + 1, by="run", wake_at=NOW + 9)
    with pytest.raises(NotRunnable):
        resume_run(asked.after, now=NOW + 8, by="other")
    taken_again = resume_run(asked.after, now=NOW + 9, by="other")
    assert (taken_again.state, taken_again.n) == (TaskState.INPUT_REQUIRED, asked.event.n)
    assert (taken_again.fence, taken_again.rev) == (2, asked.after.rev + 1)


def test_a_parked_task_is_not_run_until_somebody_has_news() -> None:
    waiting = CurrentHead(suspend(taken().head, 1, 0, now=NOW), 2)
    with pytest.raises(NotRunnable):
        start_run(waiting, now=NOW + 1, by="runner")
    awake = CurrentHead(wake(waiting.head._replace(sweeps_in_a_row=3), now=NOW + 1), 2)
    assert awake.head == waiting.head._replace(
        wake=1,
        parked=False,
        due_at=NOW + 1 + GRACE_MS,
        sweeps_in_a_row=0,
        periods="q0 w0 s1 q",
        rev=waiting.head.rev + 1,
    )
    assert start_run(awake, now=NOW + 2, by="runner").after.fence == 2


def test_news_for_a_task_that_runs_only_raises_its_wake_counter() -> None:
    head = taken().head._replace(sweeps_in_a_row=2)
    assert wake(head, now=NOW + 5) == head._replace(wake=1, sweeps_in_a_row=0, rev=head.rev + 1)


def test_waking_a_task_that_has_ended_is_refused() -> None:
    with pytest.raises(NotRunnable):
        wake(reported(TaskState.COMPLETED).head, now=NOW)


@pytest.mark.parametrize("ending", ["cancel", "follow-up"])
def test_a_cancel_and_a_message_unpark_a_task(ending: str) -> None:
    waiting = CurrentHead(suspend(taken().head, 1, 0, now=NOW), 2)
    decided = {
        "cancel": cancel(waiting, now=NOW, by="client"),
        "follow-up": follow_up(waiting, ANSWER, now=NOW, by="client"),
    }
    assert not decided[ending].after.parked


@pytest.mark.parametrize("ending", ["cancel", "follow-up", "wake"])
def test_a_task_that_is_not_suspended_any_more_has_no_time_to_go_on_at(ending: str) -> None:
    waiting = CurrentHead(suspend(taken().head, 1, 0, now=NOW, wake_at=NOW + 5), 2)
    decided = {
        "cancel": cancel(waiting, now=NOW, by="client").after,
        "follow-up": follow_up(waiting, ANSWER, now=NOW, by="client").after,
        "wake": wake(waiting.head, now=NOW),
    }
    assert (waiting.head.wake_at, decided[ending].wake_at) == (NOW + 5, 0)


def test_an_ended_task_stays_due_while_agents_that_it_called_have_to_be_told() -> None:
    head = taken().head
    parent = mark_children(head, 1)
    assert parent == head._replace(children=True, rev=head.rev + 1)
    with pytest.raises(LeaseLost):
        mark_children(head, 2)
    ended = reported(TaskState.COMPLETED, CurrentHead(parent, 2)).head
    assert ended.due_at == NOW + GRACE_MS
    assert clear_children(ended, now=NOW) == ended._replace(children=False, due_at=None, rev=ended.rev + 1)
    hooked = ended._replace(push=True, due_at=NOW - 1)
    assert clear_children(hooked, now=NOW).due_at == NOW + GRACE_MS


def test_a_task_that_a_call_outlives_is_due_again_although_it_has_ended() -> None:
    ended = after(cancel(submitted(), now=NOW, by="client")).head
    assert ended.due_at is None
    assert mark_orphan(ended, now=NOW) == ended._replace(children=True, due_at=NOW + GRACE_MS, rev=ended.rev + 1)


# ---- Due


def test_a_due_time_that_lies_just_ahead_is_not_moved() -> None:
    current = submitted(push=True)
    assert current.head.due_at == NOW + GRACE_MS
    later = NOW + GRACE_MS - 1
    ran = taken(current, now=later)
    ended = reported(TaskState.COMPLETED, ran, now=later)
    answered = after(follow_up(current, ANSWER, now=later, by="client"))
    assert {ran.head.due_at, ended.head.due_at, answered.head.due_at} == {NOW + GRACE_MS}


def test_rule_06_the_lease_of_a_worker_s_lost_run_ends_for_its_own_name_only() -> None:
    current = start_run(submitted(), now=NOW, by="event", run="one/1").after
    ended = end_lease(current, "one", now=NOW + 5_000)
    assert (ended.lease_until, ended.due_at, ended.rev) == (NOW + 3_000, NOW + 5_000, current.rev + 1)
    assert resume_run(ended, now=NOW + 3_000, by="one/2").lost == 1
    for other in ("two", "on", "one/1"):
        with pytest.raises(NotRunnable):
            end_lease(current, other, now=NOW + 5_000)
    for free in (current._replace(lease_until=0), reported(TaskState.COMPLETED, CurrentHead(current, 2)).head):
        with pytest.raises(NotRunnable):
            end_lease(free, "one", now=NOW + 5_000)


def test_a_due_time_that_would_pass_moves() -> None:
    later = NOW + GRACE_MS
    assert taken(now=later).head.due_at == later + GRACE_MS


def test_a_due_time_that_has_drifted_far_away_is_brought_back() -> None:
    """The sweeper doubles its waits while a task stays silent; once somebody takes it, it is not silent any more."""
    waited = submitted(push=True)
    drifted = CurrentHead(reschedule(waited.head, at=NOW + 3_600_000, enqueued=True), 1)
    ran = taken(drifted)
    assert ran.head.due_at == NOW + GRACE_MS
    far = CurrentHead(ran.head._replace(due_at=NOW + 3_600_000), ran.last)
    assert reported(TaskState.COMPLETED, far).head.due_at == NOW + GRACE_MS
    assert reported(TaskState.INPUT_REQUIRED, far).head.due_at == NOW + GRACE_MS


def test_rescheduling_counts_the_messages_that_were_enqueued() -> None:
    head = submitted().head
    assert reschedule(head, at=NOW + 9, enqueued=True) == head._replace(due_at=NOW + 9, sweeps_in_a_row=1, rev=2)
    assert reschedule(head, at=None, enqueued=False) == head._replace(due_at=None, sweeps_in_a_row=0, rev=2)


def test_a_run_and_a_follow_up_reset_the_count_of_messages() -> None:
    enqueued = CurrentHead(submitted().head._replace(sweeps_in_a_row=4), 1)
    assert taken(enqueued).head.sweeps_in_a_row == 0
    assert after(follow_up(enqueued, ANSWER, now=NOW, by="client")).head.sweeps_in_a_row == 0


def test_the_first_webhook_is_noted() -> None:
    head = submitted().head
    assert mark_push(head) == head._replace(push=True, rev=2)


# ---- Everything together


@dataclass
class Before:
    """The head before the last decision, and when that was."""

    head: Head
    now: int


class Heads(RuleBasedStateMachine):
    """Anybody may decide anything at any time; a decision that is refused changes nothing."""

    @initialize(push=st.booleans())
    def begin(self, push: bool) -> None:  # noqa: FBT001
        self.now = NOW
        self.current = submitted(push=push)
        self.before = Before(self.current.head, NOW)
        self.allowed = True

    def decided(self, head: Head, last: int) -> None:
        self.before = Before(self.current.head, self.now)
        self.current = CurrentHead(head, last)

    def changed(self, change: Change) -> None:
        assert change.before == self.current.head
        assert change.event.n == self.current.last + 1 == change.after.n
        assert change.event.at == change.after.status_at == self.now
        assert change.event.state is change.after.state
        assert change.after.state in NEXT[change.before.state]
        self.decided(change.after, change.event.n)

    @rule(ms=st.sampled_from([0, 1, 5_000, 29_999, 30_000, 45_000, 600_000]))
    def wait(self, ms: int) -> None:
        self.now += ms

    @rule()
    def chunk(self) -> None:
        self.current = self.current._replace(last=self.current.last + 1)

    @rule()
    def take(self) -> None:
        head = self.current.head
        may = head.is_runnable(self.now) and not head.is_leased(self.now)
        try:
            self.changed(start_run(self.current, now=self.now, by=f"run {head.fence + 1}"))
        except (NotRunnable, AlreadyLeased):
            assert not may
        except TooManyLostRuns:
            assert head.lost == LOST_LIMIT - 1
        else:
            assert may
            assert self.current.head.fence == head.fence + 1
            assert self.current.head.lease_until == self.now + RUN_LEASE_MS

    @rule(state=st.sampled_from(TaskState), stale=st.sampled_from([0, 0, 0, 1]))
    def report(self, state: TaskState, stale: int) -> None:
        head = self.current.head
        try:
            if state in INTERRUPTED:
                self.changed(ask(self.current, head.fence - stale, state, QUESTION, head.wake, now=self.now, by="run"))
            else:
                fence = head.fence - stale
                self.changed(report_status(self.current, fence, state, QUESTION, now=self.now, by="runner"))
        except LeaseLost:
            assert stale or head.is_terminal
        except IllegalTransition:
            assert state not in NEXT[head.state]
        else:
            assert not stale

    @rule()
    def follow_up(self) -> None:
        head = self.current.head
        try:
            self.changed(follow_up(self.current, ANSWER, now=self.now, by="client"))
        except UnsupportedOperation:
            assert head.is_terminal
        else:
            assert self.current.head.wake == head.wake + 1
            assert self.current.head.fence == head.fence

    @rule()
    def cancel(self) -> None:
        ended = self.current.head.is_terminal
        try:
            self.changed(cancel(self.current, now=self.now, by="client"))
        except TaskNotCancelable:
            assert ended

    @rule()
    def give_up(self) -> None:
        ended = self.current.head.is_terminal
        try:
            self.changed(fail_task(self.current, QUESTION, now=self.now, by="sweeper"))
        except NotRunnable:
            assert ended

    @precondition(lambda self: self.current.head.fence and not self.current.head.is_terminal)
    @rule()
    def renew(self) -> None:
        self.decided(renew_lease(self.current.head, self.current.head.fence, now=self.now), self.current.last)

    @precondition(lambda self: self.current.head.is_leased(self.now) and not self.current.head.is_terminal)
    @rule()
    def hand_on(self) -> None:
        self.decided(hand_over(self.current.head, self.current.head.fence, now=self.now), self.current.last)

    @precondition(lambda self: self.current.head.fence and not self.current.head.is_terminal)
    @rule(missed=st.sampled_from([0, 0, 1]), wake_in=st.just(0) | st.integers(1, 2_000_000))
    def park(self, missed: int, wake_in: int) -> None:
        head = self.current.head
        wake_at = wake_in and self.now + wake_in
        try:
            self.decided(
                suspend(head, head.fence, head.wake - missed, now=self.now, wake_at=wake_at), self.current.last
            )
        except WakeCounterChanged:
            assert missed

    @rule()
    def wake(self) -> None:
        ended = self.current.head.is_terminal
        try:
            self.decided(wake(self.current.head, now=self.now), self.current.last)
        except NotRunnable:
            assert ended

    @rule(ms=st.integers(1, 3_600_000))
    def reload(self, ms: int) -> None:
        self.decided(reschedule(self.current.head, at=self.now + ms, enqueued=True), self.current.last)

    @rule()
    def add_webhook(self) -> None:
        self.decided(mark_push(self.current.head), self.current.last)

    @precondition(lambda self: self.current.head.is_runnable(self.now) and not self.current.head.is_leased(self.now))
    @rule()
    def pause(self) -> None:
        self.decided(pause(self.current.head, now=self.now, wake_at=self.now + 90_000, waits="[0]"), self.current.last)

    @invariant()
    def the_periods_account_for_every_millisecond_of_the_tasks_life(self) -> None:
        head = self.current.head
        for at in (self.now, self.now + RUN_LEASE_MS):
            earlier, periods = periods_at(head, at)
            ends = [period.ended_at for period in periods]
            assert [period.began_at for period in periods[1:]] == ends[:-1]
            assert periods[0].began_at == head.created_at + (earlier.total_ms if earlier else 0)
            assert all(period.ended_at is None or period.began_at <= period.ended_at for period in periods)
            assert ends[-1] == (head.status_at if head.is_terminal else None)
            runs = [period.run for period in periods if period.run]
            assert runs == [*range((earlier.runs if earlier else 0) + 1, head.fence + 1)][-len(runs) :]
            assert len(runs) <= RUNS

    @invariant()
    def every_change_is_one_revision(self) -> None:
        assert self.current.head.rev - self.before.head.rev in {0, 1}
        assert (self.current.head.rev == self.before.head.rev) is (self.current.head == self.before.head)

    @invariant()
    def fences_and_wakes_only_rise(self) -> None:
        head, before = self.current.head, self.before.head
        assert head.fence - before.fence in {0, 1}
        assert head.wake - before.wake in {0, 1}

    @invariant()
    def what_a_task_is_never_changes(self) -> None:
        fixed = ("key", "agent", "context_id", "created_at", "deadline", "expires")
        first = submitted().head
        assert [getattr(self.current.head, name) for name in fixed] == [getattr(first, name) for name in fixed]

    @invariant()
    def the_end_is_final_and_free(self) -> None:
        if self.before.head.is_terminal:
            assert (self.current.head.state, self.current.head.n) == (self.before.head.state, self.before.head.n)
        if self.current.head.is_terminal:
            assert (self.current.head.lease_until, self.current.head.parked) == (0, False)

    @invariant()
    def whoever_can_run_is_due(self) -> None:
        if not self.current.head.is_terminal:
            assert self.current.head.due_at is not None

    @invariant()
    def a_new_due_time_is_not_a_lost_one(self) -> None:
        """A status moves the due time only to a moment that is still to come, and soon enough to matter."""
        head, before = self.current.head, self.before.head
        if head.n != before.n and head.due_at != before.due_at and head.due_at is not None:
            assert self.before.now < head.due_at <= max(self.before.now + SOON_MS, head.deadline)


Heads.TestCase.settings = settings(deadline=None, max_examples=40, stateful_step_count=25)
test_rule_01_any_decision_is_one_revision_and_follows_the_rules = Heads.TestCase
