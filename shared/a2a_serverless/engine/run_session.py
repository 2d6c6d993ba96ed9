"""A run's lease on its task: every write of the run goes through here, under its fence.

After a refused append the head is read again. If the fence is still ours, the decision is repeated on the new head;
otherwise, or if the task has ended, ``LeaseLost`` stops the run. Chunks may wait briefly to be joined
(``engine.chunks``). All other writes of a run come after the waiting chunks, and nothing is written after a lost chunk.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, TypeVar, cast

from a2a_serverless.domain.budgets import micro_usd
from a2a_serverless.domain.decisions import (
    RUN_LEASE_MS,
    RUN_RENEWAL_MS,
    Change,
    LeaseLost,
    ask,
    check_fence,
    hand_over,
    mark_children,
    mark_orphan,
    note_copied,
    renew_lease,
    report_status,
    set_snapshot,
    suspend,
)
from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.events import UNWRITTEN, ArtifactEvent, Event, event_size
from a2a_serverless.domain.head import CurrentHead, Head
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.record_names import OVER
from a2a_serverless.domain.replay import TaskReplay
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.domain.step_results import MOMENT_BITS, late_names
from a2a_serverless.domain.trace import child_of
from a2a_serverless.domain.usage import add_usage
from a2a_serverless.engine.budgets import TaskBudget
from a2a_serverless.engine.chunks import DELAY_S, ChunkBuffer, ProgressBuffer, join_messages
from a2a_serverless.engine.messages import make_message
from a2a_serverless.engine.observer import RunObserver
from a2a_serverless.engine.signals import StoreFailed
from a2a_serverless.engine.store_guard import guard_call, guard_store
from a2a_serverless.ports.tracing import NULL_TRACER
from a2a_serverless.protocol.v1 import Artifact, Message, TaskState
from a2a_serverless.services.content_links import may_be_long, store_contents
from a2a_serverless.services.task_changes import Conflict, retry_on_conflict, update_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from a2a_serverless.domain.events import StatusEvent
    from a2a_serverless.domain.model import JsonObject, TaskKey
    from a2a_serverless.domain.periods import RunEnd
    from a2a_serverless.domain.step_results import NamedResult, StepResult
    from a2a_serverless.domain.task_context import MessageContent
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.ports.system import Ids, Metrics
    from a2a_serverless.ports.tracing import Tracer
    from a2a_serverless.store.stores import ContentStore
    from a2a_serverless.store.task_log import TaskLog

SNAPSHOT_BYTES: Final = 512 * 1024
RESTING: Final = TERMINAL | INTERRUPTED

P = TypeVar("P")
T = TypeVar("T")


def _retry(attempt: Callable[[], T]) -> T:
    """As ``retry_on_conflict``, but raises StoreFailed if every attempt was refused."""
    try:
        return retry_on_conflict(attempt)
    except Overloaded as error:
        raise StoreFailed(cause=error) from error


class RunSession:
    """One run's lease and writes. Not thread-safe, except ``store_sent_call``.

    ``is_late`` is set when chunks or progress have waited long enough, until they are written. ``budget`` is what each
    status says about the task's spending; with ``counts_spending`` it also counts for the task's owner.
    ``log_bytes`` is the size of the log, ``bytes_since_snapshot`` of its part after the snapshot. ``contents`` are the
    files of tasks. ``waits_over`` are the records of waits that it has stored.
    """

    def __init__(  # noqa: PLR0913 - the parts of a session
        self,
        log: TaskLog,
        ids: Ids,
        now: Callable[[], int],
        snapshot: CurrentHead,
        budget: TaskBudget | None = None,
        *,
        counts_spending: bool = False,
        bytes_since_snapshot: int = 0,
        log_bytes: int = 0,
        contents: ContentStore | None = None,
        metrics: Metrics = NULL_METRICS,
        tracer: Tracer = NULL_TRACER,
        observer: RunObserver | None = None,
    ) -> None:
        self.observer = observer or RunObserver()
        self._log = guard_store(log)
        self._update_head = guard_call(partial(update_head, log))
        self._ids = ids
        self._snapshot = snapshot
        self._bytes_since_snapshot = bytes_since_snapshot
        self._log_bytes = log_bytes
        self._contents = contents
        self.metrics = metrics
        self.chunks = ChunkBuffer()
        self.progress = ProgressBuffer(now)
        self.is_late = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.has_written = False
        self.waits_over: list[NamedResult] = []
        self._chunk_error: BaseException | None = None
        self._read_until = snapshot.last
        self._usage: Usage = {}
        self._moment = 0
        self._seen: int | None = None
        self.budget = budget or TaskBudget()
        self._counts_spending = counts_spending
        self.spent = 0
        self.now = now
        self.fence = snapshot.head.fence
        self.began_at = now()
        self.trace = child_of(snapshot.head.trace, f"{snapshot.head.key.task} {self.fence}")
        self.tracer = tracer
        self._spans = 0

    @property
    def key(self) -> TaskKey:
        """The key of the task."""
        return self._snapshot.head.key

    @property
    def head(self) -> Head:
        """The head as last read or written."""
        return self._snapshot.head

    @property
    def origin(self) -> str:
        """The task's id, or that of the first task that was retried. Ids of messages and artifacts are made of it."""
        return self.head.origin or self.key.task

    def digest(self, value: object) -> str:
        """The digest of a value, in which the task's id counts as its origin."""
        return digest(value, self.key.task, self.head.origin)

    def new_trace(self) -> str:
        """The trace with a new span of this run; "" if nothing is recorded."""
        if not self.tracer.is_on:
            return ""
        self._spans += 1
        return child_of(self.trace, f"{self.key.task} {self.fence} {self._spans}")

    @property
    def event_count(self) -> int:
        """The number of events in the log."""
        return self._snapshot.last

    def new_secret(self) -> str:
        """A new ``Ids.secret``."""
        return self._ids.secret()

    def make_message(self, content: MessageContent, metadata: JsonObject | None = None) -> Message:
        """A message from the agent; raises ValueError when ``content`` is none."""
        return make_message(content, self._ids.new, self.head.context_id, self.key.task, metadata)

    def report_progress(self, message: Message) -> None:
        """Queues a progress message. It is written soon and before any other write, except that of waiting chunks."""
        if self.progress.add(message):
            self.flush()
        else:
            self._write_soon()

    def report_status(self, state: TaskState, message: Message | None = None, *records: NamedResult) -> None:
        """Appends a status event. It is in the log when this returns, and ``records`` are stored with it."""
        self.flush()
        if state is not TaskState.WORKING:
            self.close_question()
        self._append_status(state, message, (), *records)

    def ask(
        self, state: TaskState, question: Message, wake: int, wake_at: int, waits: str, *records: NamedResult
    ) -> None:
        """Asks the client, and suspends the task until it answers, is woken, or until ``wake_at`` (ms, 0 for never).

        ``waits`` says why it waits (``domain/waits.py``). ``records`` are stored with it. Raises WakeCounterChanged as
        ``head.ask``.
        """
        self.flush()
        self.close_question()

        def decide(by: str, usage: JsonObject | None) -> Change:
            when = {"now": self.now(), "wake_at": wake_at}
            return self._with_budget(
                ask(self._snapshot, self.fence, state, question, wake, by=by, usage=usage, waits=waits, **when)
            )

        self._append(decide, *records)

    def close_question(self) -> None:
        """Appends ``working`` if a question is open: before the run's first change that the client sees."""
        if self.head.state in INTERRUPTED:
            self._append_status(TaskState.WORKING)

    def _append_status(
        self, state: TaskState, message: Message | None = None, joined: tuple[str, ...] = (), *records: NamedResult
    ) -> None:
        def decide(by: str, usage: JsonObject | None) -> Change:
            return self._with_budget(
                report_status(
                    self._snapshot, self.fence, state, message, now=self.now(), by=by, usage=usage, joined=joined
                )
            )

        self._append(decide, *records)

    def _with_budget(self, change: Change) -> Change:
        budget = self.budget.describe(is_over=change.after.is_terminal)
        return change._replace(event=change.event._replace(budget=budget))

    def _append(self, decide: Callable[[str, JsonObject | None], Change], *steps: NamedResult) -> None:
        by, usage = self._ids.new(), cast("JsonObject | None", self._usage or None)

        def attempt() -> Change:
            change = decide(by, usage)
            if change.after.state in RESTING:
                self._store_contents(change.event)
            self._check_written(self._log.append(change, None, *steps))
            return change

        change = self._write(attempt)
        self.has_written = True
        self._note_over(steps)
        if change.before.state is not change.after.state:
            self.metrics.count("TaskStates", state=change.after.state, task=self.key.task)
        self._snapshot = CurrentHead(change.after, change.event.n)
        self._count_bytes(change.event)
        if change.after.lease_until:
            self.observer.note_act(f"status {change.event.n}")

    def emit(
        self, artifact: Artifact, number: int, *, append: bool, last: bool, step: str = "", attempt: int = 0
    ) -> ArtifactEvent:
        """Queues the author's ``number``-th chunk of an artifact; it is written soon and before any other write.

        Returns it as an event, which gets its number, its time and its author when it is written.
        """
        chunk = ArtifactEvent(*UNWRITTEN, artifact, append, last, (number, number), self.fence, step, attempt)
        self.write_chunk(chunk)
        return chunk

    def write_chunk(self, chunk: ArtifactEvent) -> None:
        """As ``emit``, with a chunk of this run that is an event already."""
        if not self.chunks.add(chunk):
            self.flush()
            self.chunks.add(chunk)
        if self.chunks.is_full:
            self.flush()
        else:
            self._write_soon()

    def copy_status(self, status: StatusEvent) -> None:
        """Appends a status with the messages of one of the task that this one repeats."""
        self.flush()

        def decide(by: str, _: JsonObject | None) -> Change:
            change = report_status(self._snapshot, self.fence, TaskState.WORKING, None, now=self.now(), by=by)
            event = change.event
            return change._replace(event=status._replace(n=event.n, at=event.at, append_id=by, fence=self.fence))

        self._append(decide)

    def note_copied(self) -> list[Event]:
        """Stores that the task has copied what it repeats, and returns its log."""
        self.flush()
        self._moment = max(self._moment, self._snapshot.last << MOMENT_BITS)
        self._touch(lambda head: note_copied(head, self.fence, self._moment))
        self._read_until = 0
        return self.read_new_events()

    def _write_soon(self) -> None:
        """Sets a timer for ``is_late``, unless it is set. It is none of the agent's timers (``endings.RunLoop``)."""
        if not self._timer:
            with suppress(RuntimeError):  # outside of a loop, the caller flushes
                self._timer = asyncio.get_running_loop().call_later(DELAY_S, self._end_timer, context=Context())

    def _end_timer(self) -> None:
        self._timer = None
        self.is_late.set()

    def flush(self) -> None:
        """Appends the waiting chunks and progress; they are in the log when this returns.

        Once it has raised, every call raises.
        """
        if self._chunk_error:
            raise self._chunk_error
        self.is_late.clear()
        try:
            for chunk in self.chunks.take():
                self._append_chunk(chunk)
            if messages := self.progress.take():
                earlier = tuple(message.message_id for message in messages[:-1])
                self._append_status(TaskState.WORKING, join_messages(messages), earlier)
            # At growing distances: so all snapshots of a task have at most twice the bytes of its log.
            # tests/engine/test_snapshots.py: test_the_snapshots_of_a_long_text_have_at_most_twice_what_was_emitted
            if self._bytes_since_snapshot >= max(SNAPSHOT_BYTES, self.head.snapshot_bytes):
                self._store_snapshot()
        except BaseException as error:
            self._chunk_error = error
            raise

    def _append_chunk(self, chunk: ArtifactEvent) -> None:
        self.close_question()
        by = self._ids.new()

        def attempt() -> None:
            event = chunk._replace(n=self._snapshot.last + 1, at=self.now(), append_id=by)
            self._check_written(self._log.append_chunk(self.head, event))
            self._snapshot = self._snapshot._replace(last=event.n)
            self._count_bytes(event)

        self._write(attempt)
        self.has_written = True
        self.observer.note_act(f"chunk {self._snapshot.last} of {chunk.artifact.name or chunk.artifact.artifact_id!r}")

    def _write(self, attempt: Callable[[], T]) -> T:
        """Writes, unless the observer ends the run before."""
        self.observer.before_write()
        return _retry(attempt)

    def _count_bytes(self, event: Event) -> None:
        self._bytes_since_snapshot += event_size(event)
        self._log_bytes += event_size(event)

    def _store_contents(self, *events: Event) -> None:
        """Stores, before the task rests, what readers of a long task then get as links. ``events`` are its next ones.

        After the task has ended nobody would store what a run that died did not.
        """
        if self._contents is None or not may_be_long(self._log_bytes + sum(map(event_size, events))):
            return
        current = self._log.read_task(self.key)
        if current and current[1].n == self._snapshot.last:  # else the write is refused, and tried again
            task = TaskReplay.from_task(current[1]).after(events)
            store_contents(self._contents, Principal(self.key.tenant, self.key.owner), task)

    def _store_snapshot(self) -> None:
        """Stores a snapshot for the readers of a long log, and its reference in the head."""
        replay = self._log.store_snapshot(self.key)
        self._move(lambda head: set_snapshot(head, self.fence, replay))
        self._bytes_since_snapshot = 0

    def steps(self) -> dict[str, StepResult]:
        """The results of earlier runs' steps, and those that are copied. The first run of other tasks reads nothing."""
        results = dict(self._log.read_steps(self.key)) if self.fence > 1 or self.head.origin else {}
        for name in late_names(results):
            self._write(partial(self._remove_late, name, results.pop(name)))
        self._moment = self._seen = max([self.head.copied, *(step.moment for step in results.values())])
        self._usage = reduce(add_usage, (step.usage for step in results.values()), self._usage)
        return results

    def store_step(self, name: str, result: StepResult) -> StepResult:
        """Stores a step's result unless one is stored already; returns the stored one."""
        self.flush()
        self._moment = max(self._moment + 1, self._snapshot.last << MOMENT_BITS)
        result = replace(result, ended_at=self.now(), moment=self._moment)
        if self._seen is not None:
            result = replace(result, fence=self.fence, seen=self._seen)
        spent = micro_usd(result.usage) if self._counts_spending else 0

        def attempt() -> StepResult:
            entry = self._log.store_step(self.head, name, result, spent=spent)
            self._check_written(entry is not None)
            entry = cast("StepResult", entry)
            # A write of an earlier run has come late: this run began without its result, and has perhaps acted since.
            # tests/engine/test_late_results.py: test_rule_07_a_run_replaces_the_late_result_of_an_earlier_run
            if 0 < entry.fence < self.fence and self._seen is not None and entry.moment > self._seen:
                self._remove_late(name, entry)
                raise Conflict
            return entry

        entry = self._write(attempt)
        self.spent += spent
        self._usage = add_usage(self._usage, entry.usage)
        self.has_written = True
        self.observer.note_act(name)
        return entry

    def _remove_late(self, name: str, result: StepResult) -> None:
        self._check_written(self._log.remove_step(self.head, name, result.fence))

    def read_spent(self) -> int:
        """What the owner has spent on this day (UTC), in micro-USD."""
        return self._log.read_spent(self.key, self.now())

    def write_value(self, key: str, write: Callable[[Head], str | None]) -> str:
        """Writes the value of a key; returns the version that is stored afterwards.

        ``write`` returns that version, or None if the stored head differs from the run's.
        """

        def attempt() -> str:
            version = write(self.head)
            self._check_written(version is not None)
            return str(version)

        version = self._write(attempt)
        self.observer.note_act(f"value {key} {version}")
        return version

    def store_sent_call(self, name: str, result: StepResult) -> tuple[StepResult, bool]:
        """Stores which task a call created and returns the stored result. Works in any thread, also without the lease.

        Also returns whether our task has ended meanwhile. Then the head is marked again as having calls, because an
        earlier cancellation of its calls has not seen this one.
        """
        result = replace(result, ended_at=self.now())
        entry = self._log.store_step(self.head, name, result, of_run=False)
        if entry is None:
            return result, True  # the task was erased

        def decide(head: Head) -> Head | None:
            return mark_orphan(head, now=self.now()) if head.is_terminal else None

        return entry, self._update_head(self.key, decide)

    def read_step(self, name: str) -> StepResult | None:
        """The result that is stored under this name, or None."""
        return self._log.read_step(self.key, name)

    def store_callback(self, callback: str, record: str, *steps: NamedResult) -> None:
        """Stores that the address ``callback`` belongs to a record of the task, and ``steps``, which are new, with it.

        The address accepts callbacks from now on.
        """
        self.flush()

        def attempt() -> None:
            self._check_written(self._log.store_callback(self.head, callback, record, *steps))

        self._write(attempt)
        self.observer.note_act(f"callback {record}")

    def has_webhook_come(self, origin: str) -> bool:
        """Whether a webhook of an agent at this origin has come to this deployment."""
        return self._log.has_webhook_come(origin)

    @property
    def is_renewal_due(self) -> bool:
        """Whether a third of the lease is over."""
        # By the lease itself: the write that took it may have needed the time of a renewal.
        # tests/faults/test_retries.py: test_rule_06_copies_that_take_longer_than_a_lease_are_made_in_one_run
        lease_until = self.head.lease_until
        return lease_until > 0 and self.now() >= lease_until - RUN_LEASE_MS + RUN_RENEWAL_MS

    def renew_when_due(self) -> None:
        """Extends the lease if that is due."""
        if self.is_renewal_due:
            self._move(lambda head: renew_lease(head, self.fence, now=self.now()))

    def hand_over(self, end: RunEnd, *records: NamedResult) -> None:
        """Releases the lease with the task due at once, in one write, and stores ``records`` with it.

        ``end`` says why.
        """
        self.flush()
        self._store_contents()
        self._touch(lambda head: hand_over(head, self.fence, now=self.now(), end=end), *records)

    def release(self) -> bool:
        """Releases the lease after a store failure, with the task due at once; False if it is released already.

        The run does not count as lost. The next run emits the unwritten chunks again.
        """
        self.reload_head()
        if not self.head.lease_until:
            return False
        self._move(lambda head: hand_over(head, self.fence, now=self.now()))
        return True

    def suspend(self, wake: int, wake_at: int, waits: str, *records: NamedResult) -> None:
        """Suspends the task until it is woken, or until ``wake_at`` (ms, 0 for never). ``records`` are stored with it.

        ``waits`` says why it waits. Raises WakeCounterChanged as ``head.suspend``.
        """
        self.flush()
        self._store_contents()
        self._touch(
            lambda head: suspend(head, self.fence, wake, now=self.now(), wake_at=wake_at, waits=waits), *records
        )

    @property
    def has_read_all(self) -> bool:
        """Whether ``read_new_events`` has returned all events that the head counts: a read may be torn."""
        return self._read_until >= self._snapshot.last

    def read_new_events(self) -> list[Event]:
        """The events that other writers have appended since the last call, or since the run began."""
        events = list[Event]()
        while page := self._log.read(self.key, self._read_until):
            events += page
            self._read_until = page[-1].n
        return events

    def mark_children(self) -> None:
        """Stores in the head that the task has called other agents."""
        self._touch(lambda head: mark_children(head, self.fence))

    def reload_head(self) -> None:
        """Reads the head and the last event number.

        Raises LeaseLost when the task has ended (a cancel) or another run has taken it.
        """
        snapshot = self._log.read_head(self.key)
        if snapshot is None:
            raise LeaseLost
        check_fence(snapshot.head, self.fence)
        self._snapshot = snapshot

    def _touch(self, move: Callable[[Head], Head], *steps: NamedResult) -> None:
        self.flush()
        self._move(move, *steps)

    def _move(self, move: Callable[[Head], Head], *steps: NamedResult) -> None:
        def attempt() -> None:
            after = move(self.head)
            self._check_written(self._log.update_head(self.head, after, *steps))
            self._snapshot = self._snapshot._replace(head=after)

        self._write(attempt)
        self._note_over(steps)

    def _note_over(self, records: Iterable[NamedResult]) -> None:
        self.waits_over += (record for record in records if record[0].startswith(OVER))

    def _check_written(self, is_written: bool) -> None:  # noqa: FBT001 - the result of the log
        """Reads the head again and raises Conflict if a write was refused; raises LeaseLost when the lease is lost."""
        if not is_written:
            self.reload_head()
            raise Conflict
