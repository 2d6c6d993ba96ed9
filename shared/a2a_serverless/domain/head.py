"""The head of a task, and every decision that may change it.

Each decision takes the head that a consistent read gave and returns the ``Change`` to append, or raises. The store
carries a change out only while the head's ``rev`` is still the one that the decision saw, so a decision on stale facts
is refused and made again. Fences, wakes, leases and due times therefore need no guards of their own.

A head is *due* while somebody has to look at it again: while the task can run, while a webhook may be behind, and at
the end of its life. The sweeper rings for what is due; a due time moves only when it would otherwise pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from a2a_serverless.domain.access import FULL_SCOPE, READ, Caller, own_scopes, scope_of
from a2a_serverless.domain.errors import TaskNotCancelable, UnsupportedOperation
from a2a_serverless.domain.events import Incoming, StatusEvent
from a2a_serverless.domain.model import Message, Principal, TaskKey, TaskState
from a2a_serverless.domain.states import INTERRUPTED, RUNNABLE, TERMINAL, check

LEASE_MS: Final = 30_000
RENEW_MS: Final = 10_000
SUSPEND_MS: Final = 3_600_000
GRACE_MS: Final = 30_000
SOON_MS: Final = 60_000
LOST_LIMIT: Final = 5


@dataclass(frozen=True, slots=True)
class TaskLifetime:
    """How long tasks live. ``max_life_ms`` until a task that has not ended fails; ``retention_ms`` after that."""

    max_life_ms: int
    retention_ms: int


@dataclass(frozen=True, slots=True)
class Head:
    """What is true of a task now. ``n`` is the last *status* event; ``expires`` is in seconds, the table's TTL.

    ``scopes`` (with spaces between them) and ``api_key`` (its digest) are those of the caller whose message came last;
    there are no scopes in what an earlier release made. ``trace`` is the trace of the request that last changed the
    task from outside (``domain/trace.py``). ``fold`` names the last stored fold of a long log: the number of its last
    event, then what the store needs to find it.
    """

    key: TaskKey
    agent: str
    context_id: str
    state: TaskState
    n: int
    created_at: int
    status_at: int
    deadline: int
    expires: int
    rev: int = 1
    fence: int = 0
    lease_until: int = 0
    wake: int = 0
    push: bool = False
    due_at: int | None = None
    rings: int = 0
    lost: int = 0
    parked: bool = False
    children: bool = False
    trace: str = ""
    fold: str = ""
    scopes: str = ""
    api_key: str = ""

    @property
    def caller(self) -> Caller:
        """In whose name the task's agent calls others: never with more scopes than the message had that it works on.

        What an earlier release's caller might do is not known: more than reading, with this agent only.
        """
        scopes = self.scopes.split() or (scope_of(self.agent, "operate"), f"{FULL_SCOPE}:{READ}")
        return Caller(Principal(self.key.tenant, self.key.owner), frozenset(scopes), key=self.api_key)

    @property
    def snapshot_position(self) -> int:
        """The number of the last event that the stored fold holds; 0 without one."""
        return int(self.fold.partition(" ")[0] or 0)

    @property
    def is_terminal(self) -> bool:
        """Whether the task is in a terminal state."""
        return self.state in TERMINAL

    def is_leased(self, now: int) -> bool:
        """Whether a runner holds the task at ``now``."""
        return self.lease_until > now


@dataclass(frozen=True, slots=True)
class HeadSnapshot:
    """A head and the number of the last event of any kind, read together."""

    head: Head
    last: int


@dataclass(frozen=True, slots=True)
class Change:
    """One status event and the head that it leads to. Holds only while the head is still ``before``."""

    before: Head
    after: Head
    event: StatusEvent


class NotRunnable(Exception):
    """There is nothing to run: the task has ended or waits for its client."""


class AlreadyLeased(Exception):
    """The runner with ``fence`` holds the task until ``until`` (ms)."""

    def __init__(self, fence: int, until: int) -> None:
        super().__init__(f"leased until {until}")
        self.fence = fence
        self.until = until


class TooManyLostRuns(Exception):
    """The task's runners have died ``LOST_LIMIT`` times in a row: running it once more would not mend it."""


class LeaseLost(BaseException):
    """The task has ended or another runner has taken it: whoever sees this stops at once and writes nothing more.

    Not an ``Exception``, so that no author's ``except`` can keep a run going that is over.
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
    )
    return _sent_by(head, caller), StatusEvent(1, now, by, TaskState.SUBMITTED, incoming=incoming)


def follow_up(
    snapshot: HeadSnapshot, incoming: Incoming, *, now: int, by: str, trace: str = "", caller: Caller | None = None
) -> Change:
    """A client's further message. A task that waited for it can run again; one that has ended refuses it."""
    head = snapshot.head
    if head.is_terminal:
        raise UnsupportedOperation("The task has ended. Send a new message with the same contextId to go on.")
    state = TaskState.SUBMITTED if head.state is TaskState.SUBMITTED else TaskState.WORKING
    event = StatusEvent(snapshot.last + 1, now, by, state, incoming=incoming)
    due_at = _due_soon(head, now)
    change = _change(head, event, wake=head.wake + 1, parked=False, due_at=due_at, rings=0, trace=trace or head.trace)
    return replace(change, after=_sent_by(change.after, caller))


def cancel(snapshot: HeadSnapshot, *, now: int, by: str, trace: str = "") -> Change:
    """Ends a task for its client. Whoever runs it reads the event and stops."""
    if snapshot.head.is_terminal:
        raise TaskNotCancelable
    event = StatusEvent(snapshot.last + 1, now, by, TaskState.CANCELED)
    return _ended(snapshot.head, event, trace)


def start_run(snapshot: HeadSnapshot, *, now: int, by: str) -> Change:
    """Takes a task to run it: ``working`` under a new fencing number and a lease.

    Raises NotRunnable, Leased, or TooManyLostRuns: a lease that ran out without a release is a runner that died.
    """
    head = snapshot.head
    if head.state not in RUNNABLE or head.parked:
        raise NotRunnable
    if head.is_leased(now):
        raise AlreadyLeased(head.fence, head.lease_until)
    lost = head.lost + 1 if head.lease_until else head.lost
    if lost >= LOST_LIMIT:
        raise TooManyLostRuns
    fence = head.fence + 1
    event = StatusEvent(snapshot.last + 1, now, by, TaskState.WORKING, fence=fence)
    until = now + LEASE_MS
    due_at = min(_due_soon(head, now), until)  # so the sweep that comes next after the lease finds a dead runner
    return _change(head, event, fence=fence, lease_until=until, due_at=due_at, rings=0, lost=lost)


def report_status(
    snapshot: HeadSnapshot, fence: int, state: TaskState, message: Message | None, *, now: int, by: str
) -> Change:
    """What a runner has to say: progress (``working``), a question, or the end. Raises Fenced for a stale runner."""
    head = check_fence(snapshot.head, fence)
    event = StatusEvent(snapshot.last + 1, now, by, state, message=message, fence=fence)
    if state in TERMINAL:
        return _ended(head, event)
    if state in INTERRUPTED:
        return _change(head, event, lease_until=0, lost=0, due_at=_due_soon(head, now) if head.push else head.deadline)
    return _change(head, event)


def fail_task(snapshot: HeadSnapshot, message: Message, *, now: int, by: str) -> Change:
    """Fails a task whoever holds it: it has reached its maximum life, or its runners die. NotRunnable once ended."""
    if snapshot.head.is_terminal:
        raise NotRunnable
    event = StatusEvent(snapshot.last + 1, now, by, TaskState.FAILED, message=message)
    return _ended(snapshot.head, event)


def check_fence(head: Head, fence: int) -> Head:
    """The head, when the runner with ``fence`` still holds the task; raises Fenced otherwise."""
    if head.fence != fence or head.is_terminal:
        raise LeaseLost(canceled=head.state is TaskState.CANCELED)
    return head


def renew_lease(head: Head, fence: int, *, now: int) -> Head:
    """The head with the runner's lease made longer."""
    return replace(check_fence(head, fence), lease_until=now + LEASE_MS, rev=head.rev + 1)


def hand_over(head: Head, fence: int, *, now: int) -> Head:
    """The head with the lease released and the task due at once, for the next runner."""
    return replace(check_fence(head, fence), lease_until=0, due_at=now, lost=0, rev=head.rev + 1)


class WakeCounterChanged(Exception):
    """News has come since the runner last looked: it must not park now."""


def suspend(head: Head, fence: int, seen: int, *, now: int, until: int | None = None) -> Head:
    """The head of a task that waits for others and holds no compute; ``seen`` is the wake counter as last looked at.

    Somebody looks again at ``until``, and after ``SUSPEND_MS``, should news get lost. Raises WakeCounterChanged then.
    """
    if check_fence(head, fence).wake != seen:
        raise WakeCounterChanged
    return replace(
        head,
        lease_until=0,
        parked=True,
        lost=0,
        due_at=min(now + SUSPEND_MS, until or now + SUSPEND_MS),
        rev=head.rev + 1,
    )


def wake(head: Head, *, now: int) -> Head:
    """The head of a task for which there is news; raises NotRunnable once it has ended."""
    if head.is_terminal:
        raise NotRunnable
    due_at = now + GRACE_MS if head.parked else head.due_at
    return replace(head, wake=head.wake + 1, parked=False, due_at=due_at, rings=0, rev=head.rev + 1)


def mark_children(head: Head, fence: int) -> Head:
    """The head of a task that calls other agents: when it ends, they have to be told."""
    return replace(check_fence(head, fence), children=True, rev=head.rev + 1)


def set_snapshot(head: Head, fence: int, replay: str) -> Head:
    """The head of a task whose log has been folded."""
    return replace(check_fence(head, fence), fold=replay, rev=head.rev + 1)


def mark_orphan(head: Head, *, now: int) -> Head:
    """The head of an ended task when one of its calls turns out to go on: that agent has to be told."""
    return replace(head, children=True, due_at=_due_soon(head, now), rev=head.rev + 1)


def clear_children(head: Head, *, now: int) -> Head:
    """The head of an ended task whose calls have all ended too."""
    due_at = _due_soon(head, now) if head.push else None
    return replace(head, children=False, due_at=due_at, rev=head.rev + 1)


def reschedule(head: Head, *, at: int | None, enqueued: bool) -> Head:
    """The head after the sweeper has looked at it; ``at`` None means that nobody needs to look again."""
    return replace(head, due_at=at, rings=head.rings + 1 if enqueued else head.rings, rev=head.rev + 1)


def mark_push(head: Head) -> Head:
    """The head of a task that has got its first webhook."""
    return replace(head, push=True, rev=head.rev + 1)


def _sent_by(head: Head, caller: Caller | None) -> Head:
    """The head, which says what the sender of the message may do."""
    return replace(head, scopes=" ".join(sorted(own_scopes(caller.scopes))), api_key=caller.key) if caller else head


def _ended(head: Head, event: StatusEvent, trace: str = "") -> Change:
    """An ended task stays due only while a webhook may be behind, or a called agent does not know of it yet."""
    due = head.push or head.children
    due_at = _due_soon(head, event.at) if due else None
    return _change(head, event, lease_until=0, parked=False, due_at=due_at, trace=trace or head.trace)


def _due_soon(head: Head, now: int) -> int:
    """The due time that stands when it lies just ahead: an index entry that need not move is not paid for."""
    return head.due_at if head.due_at and now < head.due_at <= now + SOON_MS else now + GRACE_MS


def _change(before: Head, event: StatusEvent, **changed: int | str | None) -> Change:
    check(before.state, event.state)
    after = replace(
        before,
        state=event.state,
        n=event.n,
        status_at=event.at,
        rev=before.rev + 1,
        **changed,  # type: ignore[arg-type]
    )
    return Change(before, after, event)
