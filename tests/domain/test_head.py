"""Decisions about a task's head: whatever is decided, in any order and at any time, these rules hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from a2a_serverless.domain.errors import IllegalTransition, TaskNotCancelable, UnsupportedOperation
from a2a_serverless.domain.events import Incoming, StatusEvent
from a2a_serverless.domain.head import (
    GRACE_MS,
    LEASE_MS,
    LOST_LIMIT,
    PARK_MS,
    SOON_MS,
    Change,
    Fenced,
    Head,
    Leased,
    Life,
    Look,
    LostTooOften,
    NotRunnable,
    Woken,
    cancel,
    childless,
    due_again,
    follow_up,
    give_up,
    handed_on,
    held,
    parked,
    renewed,
    report,
    submit,
    take,
    with_children,
    with_push,
    woken,
)
from a2a_serverless.domain.model import Message, Part, Role, TaskKey, TaskState
from a2a_serverless.domain.states import INTERRUPTED, NEXT, RUNNABLE, TERMINAL

NOW = 1_790_000_000_000
KEY = TaskKey("tenant", "owner", "task")
LIFE = Life(max_life_ms=86_400_000, retention_ms=3_600_000)
QUESTION = Message("q", Role.AGENT, (Part("text", "Which colour?"),))
ANSWER = Incoming(Message("a", Role.USER, (Part("text", "red"),)))


def submitted(*, push: bool = False) -> Look:
    head, event = submit(KEY, "echo", "context", ANSWER, now=NOW, by="client", life=LIFE, push=push)
    return Look(head, event.n)


def after(change: Change) -> Look:
    return Look(change.after, change.event.n)


def taken(look: Look | None = None, *, now: int = NOW) -> Look:
    return after(take(look or submitted(), now=now, by="runner"))


def reported(state: TaskState, look: Look | None = None, *, now: int = NOW) -> Look:
    look = look or taken()
    return after(report(look, look.head.fence, state, QUESTION, now=now, by="runner"))


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


# ---- Taking


def test_rule_06_taking_is_a_working_event_under_a_new_fence_and_a_lease() -> None:
    look = Look(submitted().head, 7)
    change = take(look, now=NOW + 100, by="runner")
    assert change.event == StatusEvent(8, NOW + 100, "runner", TaskState.WORKING, fence=1)
    assert change.after == replace(
        look.head,
        state=TaskState.WORKING,
        n=8,
        status_at=NOW + 100,
        rev=2,
        fence=1,
        lease_until=NOW + 100 + LEASE_MS,
    )


def test_rule_06_a_task_under_a_lease_cannot_be_taken_until_the_lease_is_over() -> None:
    look = taken()
    with pytest.raises(Leased) as refusal:
        take(look, now=NOW + LEASE_MS - 1, by="other")
    assert refusal.value.until == NOW + LEASE_MS
    assert take(look, now=NOW + LEASE_MS, by="other").after.fence == 2


@pytest.mark.parametrize("state", sorted(TERMINAL | INTERRUPTED))
def test_a_task_that_waits_or_has_ended_cannot_be_taken(state: TaskState) -> None:
    with pytest.raises(NotRunnable):
        take(reported(state), now=NOW + 1, by="runner")


def die(look: Look) -> Look:
    """The next runner takes the task once the last one's lease is over."""
    return taken(look, now=look.head.lease_until)


def test_a_task_whose_runners_died_five_times_in_a_row_is_not_run_again() -> None:
    look = taken()
    for _ in range(LOST_LIMIT - 1):
        look = die(look)
    assert (LOST_LIMIT, look.head.fence, look.head.lost) == (5, 5, 4)
    with pytest.raises(LostTooOften):
        die(look)


@pytest.mark.parametrize("ending", ["handed on", "asked"])
def test_a_runner_that_let_go_in_good_order_clears_the_count_of_the_dead(ending: str) -> None:
    look = die(die(taken()))
    assert look.head.lost == 2
    if ending == "handed on":
        look = Look(handed_on(look.head, look.head.fence, now=NOW), look.last)
    else:
        look = after(follow_up(reported(TaskState.INPUT_REQUIRED, look), ANSWER, now=NOW, by="client"))
    assert taken(look, now=NOW + 500_000).head.lost == 0


# ---- What a runner says


def test_progress_keeps_the_lease_and_the_due_time() -> None:
    look = taken()
    change = report(look, 1, TaskState.WORKING, QUESTION, now=NOW + 50, by="runner")
    assert change.event == StatusEvent(3, NOW + 50, "runner", TaskState.WORKING, message=QUESTION, fence=1)
    assert change.after == replace(look.head, n=3, status_at=NOW + 50, rev=look.head.rev + 1)


@pytest.mark.parametrize("state", sorted(TERMINAL))
@pytest.mark.parametrize("push", [True, False], ids=["with a webhook", "without"])
def test_an_ended_task_is_free_and_stays_due_only_for_its_webhooks(state: TaskState, push: bool) -> None:  # noqa: FBT001
    ended = reported(state, taken(submitted(push=push))).head
    assert (ended.lease_until, ended.due_at, ended.ended) == (0, NOW + GRACE_MS if push else None, True)


@pytest.mark.parametrize("state", sorted(INTERRUPTED))
def test_a_task_that_waits_is_free_and_due_at_the_end_of_its_life_or_for_its_webhooks(state: TaskState) -> None:
    waiting = reported(state).head
    assert (waiting.lease_until, waiting.due_at) == (0, waiting.deadline)
    assert reported(state, taken(submitted(push=True))).head.due_at == NOW + GRACE_MS


@pytest.mark.parametrize("fence", [0, 1, 3])
def test_rule_06_a_runner_with_a_foreign_fence_can_neither_speak_nor_renew_nor_hand_on(fence: int) -> None:
    look = die(taken())
    with pytest.raises(Fenced):
        report(look, fence, TaskState.COMPLETED, None, now=NOW, by="stale")
    with pytest.raises(Fenced):
        renewed(look.head, fence, now=NOW)
    with pytest.raises(Fenced):
        handed_on(look.head, fence, now=NOW)


def test_a_runner_of_an_ended_task_has_lost_its_hold() -> None:
    look = taken()
    ended = after(cancel(look, now=NOW, by="client"))
    assert held(look.head, 1) == look.head
    with pytest.raises(Fenced):
        held(ended.head, 1)


def test_a_runner_cannot_say_what_the_table_does_not_allow() -> None:
    with pytest.raises(IllegalTransition):
        report(taken(), 1, TaskState.SUBMITTED, None, now=NOW, by="runner")


def test_renewing_moves_only_the_lease() -> None:
    head = taken().head
    assert renewed(head, 1, now=NOW + 10_000) == replace(head, lease_until=NOW + 10_000 + LEASE_MS, rev=head.rev + 1)


def test_handing_on_lets_go_with_the_task_due_at_once() -> None:
    head = taken().head
    assert handed_on(head, 1, now=NOW + 99) == replace(head, lease_until=0, due_at=NOW + 99, rev=head.rev + 1)


# ---- What a client says


def test_a_follow_up_wakes_a_task_that_waited() -> None:
    look = reported(TaskState.INPUT_REQUIRED)
    change = follow_up(look, ANSWER, now=NOW + 5, by="client")
    assert change.event == StatusEvent(4, NOW + 5, "client", TaskState.WORKING, incoming=ANSWER)
    assert change.after == replace(
        look.head,
        state=TaskState.WORKING,
        n=4,
        status_at=NOW + 5,
        rev=look.head.rev + 1,
        wake=1,
        due_at=NOW + 5 + GRACE_MS,
    )


def test_a_follow_up_before_the_first_run_leaves_the_task_submitted() -> None:
    assert follow_up(submitted(), ANSWER, now=NOW, by="client").event.state is TaskState.SUBMITTED


def test_a_follow_up_during_a_run_leaves_the_runner_its_lease() -> None:
    look = taken()
    change = follow_up(look, ANSWER, now=NOW + 5, by="client")
    assert (change.after.fence, change.after.lease_until, change.after.wake) == (1, NOW + LEASE_MS, 1)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_rule_02_an_ended_task_takes_no_message_no_cancel_and_no_failure(state: TaskState) -> None:
    ended = reported(state)
    with pytest.raises(UnsupportedOperation, match="Send a new message with the same contextId"):
        follow_up(ended, ANSWER, now=NOW, by="client")
    with pytest.raises(TaskNotCancelable):
        cancel(ended, now=NOW, by="client")
    with pytest.raises(NotRunnable):
        give_up(ended, QUESTION, now=NOW, by="sweeper")


def test_a_cancel_takes_the_task_from_whoever_runs_it() -> None:
    change = cancel(taken(), now=NOW + 5, by="client")
    assert change.event == StatusEvent(3, NOW + 5, "client", TaskState.CANCELED)
    assert (change.after.state, change.after.lease_until) == (TaskState.CANCELED, 0)


def test_giving_up_fails_the_task_whoever_holds_it() -> None:
    change = give_up(taken(), QUESTION, now=NOW + 5, by="sweeper")
    assert change.event == StatusEvent(3, NOW + 5, "sweeper", TaskState.FAILED, message=QUESTION)


# ---- Waiting for other agents


def test_rule_05_a_task_parks_only_while_nothing_has_come_since_the_runner_looked() -> None:
    head = replace(taken().head, wake=3, lost=2)
    with pytest.raises(Woken):
        parked(head, 1, 2, now=NOW)
    with pytest.raises(Fenced):
        parked(head, 2, 3, now=NOW)
    assert parked(head, 1, 3, now=NOW + 9) == replace(
        head, lease_until=0, parked=True, lost=0, due_at=NOW + 9 + PARK_MS, rev=head.rev + 1
    )


@pytest.mark.parametrize(("until_ms", "due_ms"), [(1, 1), (PARK_MS, PARK_MS), (PARK_MS + 1, PARK_MS)])
def test_a_parked_task_is_due_when_its_time_is_over_and_within_minutes(until_ms: int, due_ms: int) -> None:
    assert parked(taken().head, 1, 0, now=NOW, until=NOW + until_ms).due_at == NOW + due_ms


def test_a_parked_task_is_not_run_until_somebody_has_news() -> None:
    waiting = Look(parked(taken().head, 1, 0, now=NOW), 2)
    with pytest.raises(NotRunnable):
        take(waiting, now=NOW + 1, by="runner")
    awake = Look(woken(replace(waiting.head, rings=3), now=NOW + 1), 2)
    assert awake.head == replace(
        waiting.head, wake=1, parked=False, due_at=NOW + 1 + GRACE_MS, rings=0, rev=waiting.head.rev + 1
    )
    assert take(awake, now=NOW + 2, by="runner").after.fence == 2


def test_news_for_a_task_that_runs_only_raises_its_wake_counter() -> None:
    head = replace(taken().head, rings=2)
    assert woken(head, now=NOW + 5) == replace(head, wake=1, rings=0, rev=head.rev + 1)


def test_there_is_no_news_for_a_task_that_has_ended() -> None:
    with pytest.raises(NotRunnable):
        woken(reported(TaskState.COMPLETED).head, now=NOW)


@pytest.mark.parametrize("ending", ["cancel", "follow-up"])
def test_a_cancel_and_a_message_unpark_a_task(ending: str) -> None:
    waiting = Look(parked(taken().head, 1, 0, now=NOW), 2)
    decided = {
        "cancel": cancel(waiting, now=NOW, by="client"),
        "follow-up": follow_up(waiting, ANSWER, now=NOW, by="client"),
    }
    assert not decided[ending].after.parked


def test_an_ended_task_stays_due_while_agents_that_it_called_have_to_be_told() -> None:
    head = taken().head
    parent = with_children(head, 1)
    assert parent == replace(head, children=True, rev=head.rev + 1)
    with pytest.raises(Fenced):
        with_children(head, 2)
    ended = reported(TaskState.COMPLETED, Look(parent, 2)).head
    assert ended.due_at == NOW + GRACE_MS
    assert childless(ended, now=NOW) == replace(ended, children=False, due_at=None, rev=ended.rev + 1)
    hooked = replace(ended, push=True, due_at=NOW - 1)
    assert childless(hooked, now=NOW).due_at == NOW + GRACE_MS


# ---- Due


def test_a_due_time_that_lies_just_ahead_is_not_moved() -> None:
    look = submitted(push=True)
    assert look.head.due_at == NOW + GRACE_MS
    later = NOW + GRACE_MS - 1
    ran = taken(look, now=later)
    ended = reported(TaskState.COMPLETED, ran, now=later)
    answered = after(follow_up(look, ANSWER, now=later, by="client"))
    assert {ran.head.due_at, ended.head.due_at, answered.head.due_at} == {NOW + GRACE_MS}


def test_a_due_time_that_would_pass_moves() -> None:
    later = NOW + GRACE_MS
    assert taken(now=later).head.due_at == later + GRACE_MS


def test_a_due_time_that_has_drifted_far_away_is_brought_back() -> None:
    """The sweeper doubles its waits while a task stays silent; once somebody takes it, it is not silent any more."""
    waited = submitted(push=True)
    drifted = Look(due_again(waited.head, at=NOW + 3_600_000, rang=True), 1)
    ran = taken(drifted)
    assert ran.head.due_at == NOW + GRACE_MS
    far = Look(replace(ran.head, due_at=NOW + 3_600_000), ran.last)
    assert reported(TaskState.COMPLETED, far).head.due_at == NOW + GRACE_MS
    assert reported(TaskState.INPUT_REQUIRED, far).head.due_at == NOW + GRACE_MS


def test_looking_again_counts_the_bells_that_rang() -> None:
    head = submitted().head
    assert due_again(head, at=NOW + 9, rang=True) == replace(head, due_at=NOW + 9, rings=1, rev=2)
    assert due_again(head, at=None, rang=False) == replace(head, due_at=None, rings=0, rev=2)


def test_a_run_and_a_message_set_the_count_of_bells_back() -> None:
    rung = Look(replace(submitted().head, rings=4), 1)
    assert taken(rung).head.rings == 0
    assert after(follow_up(rung, ANSWER, now=NOW, by="client")).head.rings == 0


def test_the_first_webhook_is_noted() -> None:
    head = submitted().head
    assert with_push(head) == replace(head, push=True, rev=2)


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
        self.look = submitted(push=push)
        self.before = Before(self.look.head, NOW)
        self.allowed = True

    def decided(self, head: Head, last: int) -> None:
        self.before = Before(self.look.head, self.now)
        self.look = Look(head, last)

    def changed(self, change: Change) -> None:
        assert change.before == self.look.head
        assert change.event.n == self.look.last + 1 == change.after.n
        assert change.event.at == change.after.status_at == self.now
        assert change.event.state is change.after.state
        assert change.after.state in NEXT[change.before.state]
        self.decided(change.after, change.event.n)

    @rule(ms=st.sampled_from([0, 1, 5_000, 29_999, 30_000, 45_000, 600_000]))
    def wait(self, ms: int) -> None:
        self.now += ms

    @rule()
    def chunk(self) -> None:
        self.look = replace(self.look, last=self.look.last + 1)

    @rule()
    def take(self) -> None:
        head = self.look.head
        may = head.state in RUNNABLE and not head.parked and not head.leased(self.now)
        try:
            self.changed(take(self.look, now=self.now, by="runner"))
        except (NotRunnable, Leased):
            assert not may
        except LostTooOften:
            assert head.lost == LOST_LIMIT - 1
        else:
            assert may
            assert self.look.head.fence == head.fence + 1
            assert self.look.head.lease_until == self.now + LEASE_MS

    @rule(state=st.sampled_from(TaskState), stale=st.sampled_from([0, 0, 0, 1]))
    def report(self, state: TaskState, stale: int) -> None:
        head = self.look.head
        try:
            self.changed(report(self.look, head.fence - stale, state, QUESTION, now=self.now, by="runner"))
        except Fenced:
            assert stale or head.ended
        except IllegalTransition:
            assert state not in NEXT[head.state]
        else:
            assert not stale

    @rule()
    def follow_up(self) -> None:
        head = self.look.head
        try:
            self.changed(follow_up(self.look, ANSWER, now=self.now, by="client"))
        except UnsupportedOperation:
            assert head.ended
        else:
            assert self.look.head.wake == head.wake + 1
            assert self.look.head.fence == head.fence

    @rule()
    def cancel(self) -> None:
        ended = self.look.head.ended
        try:
            self.changed(cancel(self.look, now=self.now, by="client"))
        except TaskNotCancelable:
            assert ended

    @rule()
    def give_up(self) -> None:
        ended = self.look.head.ended
        try:
            self.changed(give_up(self.look, QUESTION, now=self.now, by="sweeper"))
        except NotRunnable:
            assert ended

    @precondition(lambda self: self.look.head.fence and not self.look.head.ended)
    @rule()
    def renew(self) -> None:
        self.decided(renewed(self.look.head, self.look.head.fence, now=self.now), self.look.last)

    @precondition(lambda self: self.look.head.fence and not self.look.head.ended)
    @rule()
    def hand_on(self) -> None:
        self.decided(handed_on(self.look.head, self.look.head.fence, now=self.now), self.look.last)

    @precondition(lambda self: self.look.head.fence and not self.look.head.ended)
    @rule(missed=st.sampled_from([0, 0, 1]), until=st.none() | st.integers(1, 600_000))
    def park(self, missed: int, until: int | None) -> None:
        head = self.look.head
        time = None if until is None else self.now + until
        try:
            self.decided(parked(head, head.fence, head.wake - missed, now=self.now, until=time), self.look.last)
        except Woken:
            assert missed

    @rule()
    def wake(self) -> None:
        ended = self.look.head.ended
        try:
            self.decided(woken(self.look.head, now=self.now), self.look.last)
        except NotRunnable:
            assert ended

    @rule(ms=st.integers(1, 3_600_000))
    def look_again(self, ms: int) -> None:
        self.decided(due_again(self.look.head, at=self.now + ms, rang=True), self.look.last)

    @rule()
    def add_webhook(self) -> None:
        self.decided(with_push(self.look.head), self.look.last)

    @invariant()
    def every_change_is_one_revision(self) -> None:
        assert self.look.head.rev - self.before.head.rev in {0, 1}
        assert (self.look.head.rev == self.before.head.rev) is (self.look.head == self.before.head)

    @invariant()
    def fences_and_wakes_only_rise(self) -> None:
        head, before = self.look.head, self.before.head
        assert head.fence - before.fence in {0, 1}
        assert head.wake - before.wake in {0, 1}

    @invariant()
    def what_a_task_is_never_changes(self) -> None:
        fixed = ("key", "agent", "context_id", "created_at", "deadline", "expires")
        first = submitted().head
        assert [getattr(self.look.head, name) for name in fixed] == [getattr(first, name) for name in fixed]

    @invariant()
    def the_end_is_final_and_free(self) -> None:
        if self.before.head.ended:
            assert (self.look.head.state, self.look.head.n) == (self.before.head.state, self.before.head.n)
        if self.look.head.ended:
            assert (self.look.head.lease_until, self.look.head.parked) == (0, False)

    @invariant()
    def whoever_can_run_is_due(self) -> None:
        if not self.look.head.ended:
            assert self.look.head.due_at is not None

    @invariant()
    def a_new_due_time_is_not_a_lost_one(self) -> None:
        """A status moves the due time only to a moment that is still to come, and soon enough to matter."""
        head, before = self.look.head, self.before.head
        if head.n != before.n and head.due_at != before.due_at and head.due_at is not None:
            assert self.before.now < head.due_at <= max(self.before.now + SOON_MS, head.deadline)


Heads.TestCase.settings = settings(deadline=None, max_examples=40, stateful_step_count=25)
test_rule_01_any_decision_is_one_revision_and_follows_the_rules = Heads.TestCase
