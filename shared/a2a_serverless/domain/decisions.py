"""Every decision that may change the head of a task.

Each decision takes a head from a consistent read and returns the ``Change`` to append or the new head, or raises. The
store writes it only if the stored head's ``rev`` is unchanged; otherwise the decision is made again on a new read.
Fences, wake counters, leases and due times therefore need no conditions of their own.

A head has a due time while the task needs another check: while it can run, while a webhook may be behind, and at the
end of its life. The sweeper enqueues due tasks. A due time is changed only when it would otherwise pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from a2a_serverless.domain.access import Caller, own_scopes
from a2a_serverless.domain.cursors import CLOCK_SKEW_MS
from a2a_serverless.domain.errors import TaskNotCancelable, UnsupportedOperation
from a2a_serverless.domain.events import Incoming, StatusEvent
from a2a_serverless.domain.head import LOST_LIMIT, CurrentHead, Head
from a2a_serverless.domain.periods import (
    Periods,
    RunEnd,
    begin_run,
    end_run,
    end_suspension,
    end_task,
    is_in_run,
    pause_queued,
    read_periods,
)
from a2a_serverless.domain.states import TERMINAL, check
from a2a_serverless.protocol.v1 import Message, TaskState

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject, TaskKey

RUN_LEASE_MS: Final = 15_000
RUN_RENEWAL_MS: Final = 5_000
SUSPEND_MS: Final = 3_600_000
GRACE_MS: Final = 15_000
SOON_MS: Final = 60_000
DELAY_LIMIT_MS: Final = 900_000
"""The longest delay of a queue message."""
AHEAD_MS: Final = 120_000
"""How long before a wait beyond ``DELAY_LIMIT_MS`` ends the sweeper enqueues its message."""
LATE_MS: Final = 2_000
"""How long after the end of a wait its message may arrive before the sweeper enqueues another."""


class TaskLifetime(NamedTuple):
    """How long tasks live. A task that has not ended after ``max_life_ms`` fails; ``retention_ms`` is added to that."""

    max_life_ms: int
    retention_ms: int


class Change(NamedTuple):
    """One status event and the head that it leads to. Valid only while the stored head is ``before``."""

    before: Head
    after: Head
    event: StatusEvent


class _Sender(TypedDict, total=False):
    """The fields of a head that name the sender of its last message: scopes, separated by spaces, and API key."""

    scopes: str
    api_key: str


class NotRunnable(Exception):
    """The task cannot run: it has ended, is suspended or waits for its client."""


class AlreadyLeased(Exception):
    """Another run has the lease."""


class TooManyLostRuns(Exception):
    """``LOST_LIMIT`` runs of the task in a row died and stored no result: it is not run again."""


class LeaseLost(BaseException):
    """The task has ended or another run has taken it: this run stops at once and writes nothing more.

    Not an ``Exception``, so that an ``except Exception`` in an agent does not catch it.
    """

    def __init__(self, *, canceled: bool = False) -> None:
        super().__init__()
        self.canceled = canceled


def submit(  # noqa: PLR0913 - the facts of a new task
    key: TaskKey,
    agent: str,
    context_id: str,
    incoming: Incoming,
    *,
    now: int,
    by: str,
    life: TaskLifetime,
    push: bool,
    trace: str = "",
    caller: Caller | None = None,
) -> tuple[Head, StatusEvent]:
    """The head and the first event of a new task."""
    deadline = now + life.max_life_ms
    head = Head(
        key=key,
        agent=agent,
        context_id=context_id,
        state=TaskState.SUBMITTED,
        n=1,
        created_at=now,
        status_at=now,
        deadline=deadline,
        expires=(deadline + life.retention_ms) // 1000,
        push=push,
        due_at=now + GRACE_MS,
        trace=trace,
        **_sender(caller),
    )
    return head, StatusEvent(1, now, by, TaskState.SUBMITTED, incoming=incoming)


def follow_up(
    current: CurrentHead, incoming: Incoming, *, now: int, by: str, trace: str = "", caller: Caller | None = None
) -> Change:
    """Adds a further message of the client. A task that waited for it can run again; one that has ended refuses it."""
    head = current.head
    if head.is_terminal:
        raise UnsupportedOperation("The task has ended. Send a new message with the same contextId to go on.")
    state = TaskState.SUBMITTED if head.state is TaskState.SUBMITTED else TaskState.WORKING
    event = StatusEvent(current.last + 1, now, by, state, incoming=incoming)
    due_at = _due_soon(head, now)
    trace, sender = trace or head.trace, _sender(caller)
    wake_fields = {"wake": head.wake + 1, "parked": False, "wake_at": 0}
    periods = _resume(head, now)
    return _change(head, event, due_at=due_at, sweeps_in_a_row=0, trace=trace, periods=periods, **wake_fields, **sender)


def cancel(current: CurrentHead, *, now: int, by: str, trace: str = "") -> Change:
    """Cancels a task for its client. A running worker reads the event and stops."""
    if current.head.is_terminal:
        raise TaskNotCancelable
    event = StatusEvent(current.last + 1, now, by, TaskState.CANCELED)
    return _ended(current.head, event, trace)


def start_run(
    current: CurrentHead, *, now: int, by: str, run: str = "", code: str = "", has_progressed: bool = False
) -> Change:
    """Takes a task for ``run`` (or ``by``): ``working`` with a new fence and a lease. Raises as ``resume_run``."""
    leased_head = resume_run(current.head, now=now, by=run or by, code=code, has_progressed=has_progressed)
    event = StatusEvent(current.last + 1, now, by, TaskState.WORKING, fence=leased_head.fence)
    # Lease and event are one write, so together they raise ``rev`` by one: the store compares it with the stored one.
    # tests/domain/test_head.py: test_rule_06_taking_is_a_working_event_under_a_new_fence_and_a_lease
    return _change(leased_head._replace(rev=current.head.rev), event)._replace(before=current.head)


def resume_run(head: Head, *, now: int, by: str, code: str = "", has_progressed: bool = False) -> Head:
    """The head of a task that the run ``by`` of ``code`` takes, with a new fence and a lease; its state stays.

    Raises NotRunnable, AlreadyLeased or TooManyLostRuns. A lease that expired without a release means a run died.
    ``has_progressed`` says that it stored a result before: then its death is the first in a row. A run whose first
    write succeeded without an answer takes the task again.
    """
    if not head.is_runnable(now):
        raise NotRunnable
    # The answer to the run's own write may have been lost. If its lease kept it out, the task would stand for 15 s.
    # tests/domain/test_head.py:
    # test_rule_06_a_run_that_was_not_told_that_it_has_the_lease_takes_the_task_again_and_is_not_lost
    if head.is_leased(now) and head.holder != by:
        raise AlreadyLeased
    # A message that kills each worker would be run for ever.
    # tests/domain/test_head.py: test_a_task_whose_runners_died_in_a_row_as_often_as_the_limit_is_not_run_again
    lost = (0 if has_progressed else head.lost) + 1 if head.is_held_by_another(by) else head.lost
    if lost >= LOST_LIMIT:
        raise TooManyLostRuns
    until = now + RUN_LEASE_MS
    return head._replace(
        fence=head.fence + 1,
        lease_until=until,
        holder=by,
        code=code,
        # The first sweep after the lease finds a run that died: a due time after the lease would cost a minute more.
        # tests/services/test_sweep.py:
        # test_rule_06_a_task_that_was_just_enqueued_is_enqueued_again_within_a_minute_of_its_lease
        due_at=min(_due_soon(head, now), until),
        sweeps_in_a_row=0,
        lost=lost,
        parked=False,
        wake_at=0,
        periods=begin_run(_resume(head, now, _end_lost_run(head, now)), head.created_at, now),
        rev=head.rev + 1,
    )


def ask(  # noqa: PLR0913 - the facts of a question
    current: CurrentHead,
    fence: int,
    state: TaskState,
    question: Message,
    seen: int,
    *,
    now: int,
    by: str,
    usage: JsonObject | None = None,
    wake_at: int = 0,
    waits: str = "",
) -> Change:
    """A question that suspends the task, as ``suspend``. Raises LeaseLost for a stale fence, WakeCounterChanged."""
    head = suspend(current.head, fence, seen, now=now, wake_at=wake_at, waits=waits)
    event = StatusEvent(current.last + 1, now, by, state, message=question, fence=fence, usage=usage)
    return _change(head._replace(rev=current.head.rev), event)._replace(before=current.head)


def report_status(  # noqa: PLR0913 - the facts of a status
    current: CurrentHead,
    fence: int,
    state: TaskState,
    message: Message | None,
    *,
    now: int,
    by: str,
    usage: JsonObject | None = None,
    joined: tuple[str, ...] = (),
) -> Change:
    """A status of a run: progress (``working``), or the end. Raises LeaseLost for a stale fence."""
    head = check_fence(current.head, fence)
    event = StatusEvent(current.last + 1, now, by, state, message=message, fence=fence, usage=usage, joined=joined)
    if state in TERMINAL:
        return _ended(head, event, periods=end_run(head.periods, head.created_at, now, RunEnd.ENDED), waits="")
    return _change(head, event)


def fail_task(current: CurrentHead, message: Message, *, now: int, by: str, lost: int = 0) -> Change:
    """Fails a task at the end of its life, or when ``lost`` runs died. Raises NotRunnable if it has ended."""
    if current.head.is_terminal:
        raise NotRunnable
    event = StatusEvent(current.last + 1, now, by, TaskState.FAILED, message=message)
    change = _ended(current.head, event)
    return change._replace(after=change.after._replace(lost=lost))


def note_dead_letter(head: Head) -> Head:
    """The head of a task that was given up, once its queue message is among the dead letters."""
    return head._replace(lost=0, rev=head.rev + 1)


def check_fence(head: Head, fence: int) -> Head:
    """Returns the head if the run with ``fence`` may still write; raises LeaseLost otherwise."""
    if head.fence != fence or head.is_terminal:
        raise LeaseLost(canceled=head.state is TaskState.CANCELED)
    return head


def renew_lease(head: Head, fence: int, *, now: int) -> Head:
    """The head with the lease extended."""
    return check_fence(head, fence)._replace(lease_until=now + RUN_LEASE_MS, rev=head.rev + 1)


def hand_over(head: Head, fence: int, *, now: int, end: RunEnd = RunEnd.HANDED_OVER) -> Head:
    """The head with the lease released and the task due at once, for the next run. ``end`` says why."""
    periods = end_run(check_fence(head, fence).periods, head.created_at, now, end)
    return head._replace(lease_until=0, due_at=now, lost=0, periods=periods, rev=head.rev + 1)


def end_lease(head: Head, worker: str, *, now: int) -> Head:
    """The head of a task whose run was lost with the process of ``worker``: its lease is over on any clock.

    Raises NotRunnable if no run of that worker has the lease.
    """
    if head.is_terminal or not head.is_leased(now) or not head.holder.startswith(f"{worker}/"):
        raise NotRunnable
    return head._replace(lease_until=now - CLOCK_SKEW_MS, due_at=now, rev=head.rev + 1)


class WakeCounterChanged(Exception):
    """The task was woken since the run last read the head: it must not be suspended now."""


def suspend(head: Head, fence: int, seen: int, *, now: int, wake_at: int = 0, waits: str = "") -> Head:
    """The head of a task that waits and uses no compute, until it is woken or until ``wake_at`` (ms, 0 for never).

    ``seen`` is the wake counter as last read; raises WakeCounterChanged when it is another one now. ``waits`` says
    why the task waits.
    """
    # An answer may have come since the run looked for answers. Suspended now, the task would never read it.
    # tests/domain/test_head.py: test_rule_05_a_task_parks_only_while_nothing_has_come_since_the_runner_looked
    if check_fence(head, fence).wake != seen:
        raise WakeCounterChanged
    periods = end_run(head.periods, head.created_at, now, RunEnd.WAITS)
    suspended = head._replace(
        lease_until=0, parked=True, lost=0, wake_at=wake_at, waits=waits, periods=periods, rev=head.rev + 1
    )
    due_at = due_while_suspended(suspended, now=now)
    return suspended._replace(due_at=min(due_at, _due_soon(head, now)) if head.push else due_at)


def pause(head: Head, *, now: int, wake_at: int, waits: str) -> Head:
    """The head of a task that could run and is paused, until ``wake_at`` (ms). ``waits`` says why it waits.

    A run that has died keeps its expired lease, so the next run counts it.
    """
    # ``lease_until`` stays: without it, a run that died would not count, and pauses would hide a task that kills.
    # tests/domain/test_head.py: test_a_pause_forgets_no_run_that_died
    periods = pause_queued(_resume(head, now, _end_lost_run(head, now)), head.created_at, now)
    paused = head._replace(
        parked=True, wake_at=wake_at, waits=waits, sweeps_in_a_row=0, periods=periods, rev=head.rev + 1
    )
    due_at = due_while_suspended(paused, now=now)
    return paused._replace(due_at=min(due_at, _due_soon(head, now)) if head.push else due_at)


def due_while_suspended(head: Head, *, now: int) -> int:
    """When a suspended task is due (ms): in time for the message that wakes it, or if that message was lost.

    A run enqueues the message itself if the wait ends within ``DELAY_LIMIT_MS``.
    """
    if not head.wake_at:
        return head.deadline
    # No queue delays a message for longer. So the sweeper has to enqueue that of a longer wait, and needs time for it.
    # tests/domain/test_head.py: test_a_parked_task_is_due_in_time_for_its_message_or_when_that_is_lost
    is_enqueued = head.wake_at - now <= DELAY_LIMIT_MS
    return min(head.deadline, max(head.wake_at, now) + LATE_MS if is_enqueued else head.wake_at - AHEAD_MS)


def wake(head: Head, *, now: int) -> Head:
    """The head of a task that a callback resumes; raises NotRunnable if it has ended."""
    if head.is_terminal:
        raise NotRunnable
    due_at = now + GRACE_MS if head.parked else head.due_at
    # The counter rises also while the task runs: that run must not suspend it (see ``suspend``).
    # tests/domain/test_head.py: test_news_for_a_task_that_runs_only_raises_its_wake_counter
    head = head._replace(periods=_resume(head, now))
    return head._replace(
        wake=head.wake + 1, parked=False, wake_at=0, due_at=due_at, sweeps_in_a_row=0, rev=head.rev + 1
    )


def mark_children(head: Head, fence: int) -> Head:
    """The head of a task that calls other agents: when it ends, unfinished calls are canceled."""
    return check_fence(head, fence)._replace(children=True, rev=head.rev + 1)


def note_copied(head: Head, fence: int, copied: int) -> Head:
    """The head of a retried task that has copied what it repeats, up to the moment ``copied``."""
    return check_fence(head, fence)._replace(repeats="", repeats_from="", copied=copied, rev=head.rev + 1)


def set_snapshot(head: Head, fence: int, snapshot: str) -> Head:
    """The head of a task with a new snapshot; ``snapshot`` is the reference that the store returned."""
    return check_fence(head, fence)._replace(snapshot=snapshot, rev=head.rev + 1)


def mark_orphan(head: Head, *, now: int) -> Head:
    """The head of an ended task one of whose calls still runs: that call has to be canceled."""
    return head._replace(children=True, due_at=_due_soon(head, now), rev=head.rev + 1)


def clear_children(head: Head, *, now: int) -> Head:
    """The head of an ended task without running calls."""
    due_at = _due_soon(head, now) if head.push else None
    return head._replace(children=False, due_at=due_at, rev=head.rev + 1)


def reschedule(head: Head, *, at: int | None, enqueued: bool) -> Head:
    """The head after the sweeper has handled it; ``at`` (ms) is the next due time, None for never."""
    return head._replace(
        due_at=at, sweeps_in_a_row=head.sweeps_in_a_row + 1 if enqueued else head.sweeps_in_a_row, rev=head.rev + 1
    )


def announce_wake(head: Head, *, now: int, by: str, again_at: int | None = None) -> Head:
    """The head of a suspended task of which the sweeper ``by`` enqueues the message that ends the wait.

    It is due at ``again_at`` (ms) at the latest, if a webhook is behind.
    """
    due_at = due_while_suspended(head, now=now)
    at = due_at if again_at is None else min(due_at, again_at)
    # Two sweepers make the same head but for the holder, and an equal head counts as written: both would enqueue.
    # tests/services/test_sweep.py: test_of_two_sweepers_one_enqueues_the_message_that_ends_a_wait
    return reschedule(head, at=at, enqueued=again_at is not None)._replace(holder=by)


def mark_push(head: Head) -> Head:
    """The head of a task that has a webhook."""
    return head._replace(push=True, rev=head.rev + 1)


def _sender(caller: Caller | None) -> _Sender:
    """What a head holds of the message's sender."""
    return {"scopes": " ".join(sorted(own_scopes(caller.scopes))), "api_key": caller.key} if caller else {}


def periods_at(head: Head, now: int) -> Periods:
    """The periods of the task's life, as they are known at ``now`` (ms): a run whose lease is over has died."""
    is_lost = not (head.is_terminal or head.is_leased(now))
    return read_periods(_end_lost_run(head, now) if is_lost else head.periods, head.created_at, head.fence)


def _end_lost_run(head: Head, now: int) -> str:
    """The periods of a task that another run takes: the one before it died or, if its lease lasts, is replaced."""
    if not is_in_run(head.periods):
        return head.periods
    if head.is_leased(now):
        return end_run(head.periods, head.created_at, now, RunEnd.REPLACED)
    written_at = head.lease_until - RUN_LEASE_MS
    return end_run(head.periods, head.created_at, head.lease_until, RunEnd.DIED, last_write_at=written_at)


def _resume(head: Head, now: int, periods: str | None = None) -> str:
    """The periods of a task that may run: its suspension was over at its ``wake_at``, or is over now."""
    ended_at = min(now, head.wake_at or now)
    return end_suspension(head.periods if periods is None else periods, head.created_at, ended_at)


def _ended(head: Head, event: StatusEvent, trace: str = "", periods: str = "", waits: str | None = None) -> Change:
    """Ends the task. It stays due only if a webhook may be behind or calls may have to be canceled.

    Without ``periods`` it ends outside of its run. Its waits stay in the head: they are over with it.
    """
    due = head.push or head.children
    due_at = _due_soon(head, event.at) if due else None
    trace = trace or head.trace
    if not periods and head.is_leased(event.at) and is_in_run(head.periods):
        periods = end_run(head.periods, head.created_at, event.at, RunEnd.ENDED)
    periods = periods or end_task(_resume(head, event.at, _end_lost_run(head, event.at)), head.created_at, event.at)
    fields = {"waits": head.waits if waits is None else waits, "periods": periods, "trace": trace}
    return _change(head, event, lease_until=0, parked=False, wake_at=0, due_at=due_at, **fields)


def _due_soon(head: Head, now: int) -> int:
    """The present due time if it is within ``SOON_MS``, else in ``GRACE_MS``: an unchanged one costs no index write."""
    return head.due_at if head.due_at and now < head.due_at <= now + SOON_MS else now + GRACE_MS


def _change(before: Head, event: StatusEvent, **changed: int | str | None) -> Change:
    check(before.state, event.state)
    after = before._replace(
        state=event.state,
        n=event.n,
        status_at=event.at,
        rev=before.rev + 1,
        **changed,  # type: ignore[arg-type]
    )
    return Change(before, after, event)
