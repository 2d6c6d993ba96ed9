"""A runner's hold on its task: every write of a run goes through here, under its fence.

A refused append is looked at again: if the fence is still ours, the decision is made anew on what is true now; if it
is not, or the task has ended, the hold is lost and ``LeaseLost`` stops the run. Chunks may wait for each other for a
moment (``engine.chunks``); everything else that a run writes goes behind them, and nothing behind a chunk that is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from a2a_serverless.domain.contents import ContentNotFound
from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.domain.events import ArtifactEvent, event_size
from a2a_serverless.domain.head import (
    RENEW_MS,
    Head,
    HeadSnapshot,
    LeaseLost,
    check_fence,
    hand_over,
    mark_children,
    mark_orphan,
    renew_lease,
    report_status,
    set_snapshot,
    suspend,
)
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.domain.model import Artifact, Message, Part, Role, TaskKey, TaskState
from a2a_serverless.engine.chunks import Chunk, ChunkBuffer

if TYPE_CHECKING:
    from a2a_serverless.ports import Ids, Metrics, StepResult, TaskLog

TRIES: Final = 20
SNAPSHOT_BYTES: Final = 512 * 1024


P = TypeVar("P")


class StoreFailed(BaseException):
    """A call of the run to a store did not come through. Not the agent's fault: no ``except`` of its gets to see it.

    ``again`` makes that very call again, and raises when it fails again. Whether it took effect the first time does not
    matter: every write may be retried.
    """

    def __init__(self, again: Callable[[], object] = lambda: None) -> None:
        super().__init__("the store has failed")
        self.retry = again

    @property
    def is_permanent(self) -> bool:
        """Whether waiting does not mend it: the fault is in what was asked or found, and not in the store."""
        return isinstance(self.__cause__, (AttributeError, LookupError, RuntimeError, TypeError, ValueError))


class _GuardedStore:
    """A port; a call of it that fails raises StoreFailed."""

    def __init__(self, port: object) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._port, name)
        return lambda *args, **kwargs: _made(partial(method, *args, **kwargs))


def guard_store(port: P) -> P:
    """The port as a run uses it: a call of it that fails raises StoreFailed."""
    stand_in: Any = _GuardedStore(port)
    return cast("P", stand_in)


def _made(call: Callable[[], object]) -> object:
    try:
        return call()
    except (IllegalTransition, ContentNotFound):
        raise
    except Exception as error:
        raise StoreFailed(partial(_made, call)) from error


@contextmanager
def _store() -> Iterator[None]:
    try:
        yield
    except IllegalTransition:
        raise
    except Exception as error:
        raise StoreFailed from error


class RunSession:
    """A lease, kept. Not for two threads at once, but for ``store_sent_call``."""

    def __init__(
        self,
        log: TaskLog,
        ids: Ids,
        now: Callable[[], int],
        snapshot: HeadSnapshot,
        metrics: Metrics = NULL_METRICS,
        bytes_since_snapshot: int = 0,
    ) -> None:
        self._log = guard_store(log)
        self._ids = ids
        self._snapshot = snapshot
        self._bytes_since_snapshot = bytes_since_snapshot
        self.metrics = metrics
        self._renewed_at = snapshot.head.status_at
        self.chunks = ChunkBuffer()
        self._lost: BaseException | None = None
        self.now = now
        self.fence = snapshot.head.fence

    @property
    def key(self) -> TaskKey:
        """Which task it is."""
        return self._snapshot.head.key

    @property
    def head(self) -> Head:
        """The head as of the last look."""
        return self._snapshot.head

    def make_message(self, text: str) -> Message:
        """A message of the agent's."""
        return Message(self._ids.new(), Role.AGENT, (Part("text", text),), self.head.context_id, self.key.task)

    @_store()
    def report_status(self, state: TaskState, message: Message | None = None) -> None:
        """Appends a status event. It is in the log when this returns."""
        self.flush()
        by = self._ids.new()
        for _ in range(TRIES):
            change = report_status(self._snapshot, self.fence, state, message, now=self.now(), by=by)
            if self._log.append(change):
                if change.before.state is not state:
                    self.metrics.count("TaskStates", state=state, task=self.key.task)
                self._snapshot = HeadSnapshot(change.after, change.event.n)
                self._bytes_since_snapshot += event_size(change.event)
                return
            self.reload_head()
        raise TimeoutError("a status could not be appended: too many writers")

    def emit(self, artifact: Artifact, number: int, *, append: bool, last: bool, step: str = "") -> None:
        """Takes the author's ``number``-th chunk of an artifact, to be written in a moment, before anything else is."""
        chunk = Chunk(artifact, (number, number), append, last, step)
        if not self.chunks.add(chunk):
            self.flush()
            self.chunks.add(chunk)
        if self.chunks.is_full:
            self.flush()

    def flush(self) -> None:
        """Appends the chunks that wait. They are in the log when this returns; once it has raised, it always does."""
        if self._lost:
            raise self._lost
        try:
            for chunk in self.chunks.take():
                self._append_chunk(chunk)
            if self._bytes_since_snapshot >= SNAPSHOT_BYTES:
                self._store_snapshot()
        except BaseException as lost:
            self._lost = lost
            raise

    @_store()
    def _append_chunk(self, chunk: Chunk) -> None:
        by = self._ids.new()
        for _ in range(TRIES):
            last = self._snapshot.last + 1
            event = ArtifactEvent(
                last, self.now(), by, chunk.artifact, chunk.append, chunk.last, chunk.emits, self.fence, chunk.step
            )
            if self._log.append_chunk(self.key, event, self.head.expires):
                self._snapshot = replace(self._snapshot, last=event.n)
                self._bytes_since_snapshot += event_size(event)
                return
            self.reload_head()
        raise TimeoutError("a chunk could not be appended: too many writers")

    @_store()
    def _store_snapshot(self) -> None:
        """Has what is new in a long log folded for its readers, and the head tell them."""
        replay = self._log.store_snapshot(self.key)
        self._move(lambda head: set_snapshot(head, self.fence, replay))
        self._bytes_since_snapshot = 0

    def steps(self) -> dict[str, StepResult]:
        """The results of earlier runs' steps. A first run has none, so it does not ask."""
        return dict(self._log.read_steps(self.key)) if self.fence > 1 else {}

    @_store()
    def store_step(self, name: str, result: StepResult) -> StepResult:
        """Stores a step's result; the one that is stored counts."""
        self.flush()
        return self._log.store_step(self.key, name, result, self.head.expires)

    @_store()
    def store_sent_call(self, name: str, result: StepResult) -> tuple[StepResult, bool]:
        """Stores where a call went, in any thread and also when the hold is lost; gives the one that is stored.

        Says too whether the task has ended meanwhile. Its head then knows that it has a child: whoever ended the
        children before has not seen this one.
        """
        kept = self._log.store_step(self.key, name, result, self.head.expires)
        for _ in range(TRIES):
            snapshot = self._log.read_head(self.key)
            if snapshot is None or not snapshot.head.is_terminal:
                return kept, False
            if self._log.update_head(snapshot.head, mark_orphan(snapshot.head, now=self.now())):
                return kept, True
        raise TimeoutError("a called agent could not be noted: too many writers")

    @_store()
    def store_callback(self, callback: str, call: str) -> None:
        """Notes that the address ``callback`` stands for one of the task's calls. It may be told of from now on."""
        self._log.store_callback(callback, self.key, call, self.head.expires)

    def check_lease(self) -> None:
        """Raises Fenced when the task has ended (a cancel) or has been taken by another runner."""
        self.reload_head()

    def renew_when_due(self) -> bool:
        """Makes the lease longer when a third of it is over; says whether it did."""
        if self.now() - self._renewed_at < RENEW_MS:
            return False
        self._move(lambda head: renew_lease(head, self.fence, now=self.now()))
        self._renewed_at = self.now()
        return True

    def hand_over(self) -> None:
        """Releases the lease with the task due at once, in one write."""
        self._touch(lambda head: hand_over(head, self.fence, now=self.now()))

    def release(self) -> bool:
        """Releases the lease after the store has failed, with the task due at once; False when it is released already.

        No runner has died. What still waits to be written is emitted again by the next run.
        """
        self.reload_head()
        if not self.head.lease_until:
            return False
        self._move(lambda head: hand_over(head, self.fence, now=self.now()))
        return True

    def suspend(self, seen: int, until: int | None) -> None:
        """Gives the task back until somebody has news; raises Woken when the wake counter is not ``seen`` any more."""
        self._touch(lambda head: suspend(head, self.fence, seen, now=self.now(), until=until))

    def mark_children(self) -> None:
        """Notes that the task has called other agents."""
        self._touch(lambda head: mark_children(head, self.fence))

    def reload_head(self) -> None:
        """Reads the head and the last number; raises Fenced when the hold is lost."""
        snapshot = self._log.read_head(self.key)
        if snapshot is None:
            raise LeaseLost
        check_fence(snapshot.head, self.fence)
        self._snapshot = snapshot

    def _touch(self, move: Callable[[Head], Head]) -> None:
        self.flush()
        self._move(move)

    @_store()
    def _move(self, move: Callable[[Head], Head]) -> None:
        for _ in range(TRIES):
            after = move(self.head)
            if self._log.update_head(self.head, after):
                self._snapshot = replace(self._snapshot, head=after)
                return
            self.reload_head()
        raise TimeoutError("a lease could not be moved: too many writers")
