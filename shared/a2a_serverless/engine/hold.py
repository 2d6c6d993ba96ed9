"""A runner's hold on its task: every write of a run goes through here, under its fence.

A refused append is looked at again: if the fence is still ours, the decision is made anew on what is true now; if it
is not, or the task has ended, the hold is lost and ``Fenced`` stops the run. Chunks may wait for each other for a
moment (``engine.chunks``); everything else that a run writes goes behind them, and nothing behind a chunk that is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from a2a_serverless.domain.contents import ContentMissing
from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.domain.events import ArtifactEvent, bytes_of
from a2a_serverless.domain.head import (
    RENEW_MS,
    Fenced,
    Head,
    Look,
    handed_on,
    held,
    parked,
    renewed,
    report,
    with_children,
    with_fold,
    with_orphan,
)
from a2a_serverless.domain.measures import UNMEASURED
from a2a_serverless.domain.model import Artifact, Message, Part, Role, TaskKey, TaskState
from a2a_serverless.engine.chunks import Chunk, Chunks

if TYPE_CHECKING:
    from a2a_serverless.ports import Ids, Metrics, StepResult, TaskLog

TRIES: Final = 20
FOLD_BYTES: Final = 512 * 1024


P = TypeVar("P")


class StoreFailed(BaseException):
    """A call of the run to a store did not come through. Not the agent's fault: no ``except`` of its gets to see it.

    ``again`` makes that very call again, and raises when it fails again. Whether it took effect the first time does not
    matter: every write may be retried.
    """

    def __init__(self, again: Callable[[], object] = lambda: None) -> None:
        super().__init__("the store has failed")
        self.again = again

    @property
    def lasts(self) -> bool:
        """Whether waiting does not mend it: the fault is in what was asked or found, and not in the store."""
        return isinstance(self.__cause__, (AttributeError, LookupError, RuntimeError, TypeError, ValueError))


class _Watched:
    """A port; a call of it that fails raises StoreFailed."""

    def __init__(self, port: object) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._port, name)
        return lambda *args, **kwargs: _made(partial(method, *args, **kwargs))


def watched(port: P) -> P:
    """The port as a run uses it: a call of it that fails raises StoreFailed."""
    stand_in: Any = _Watched(port)
    return cast("P", stand_in)


def _made(call: Callable[[], object]) -> object:
    try:
        return call()
    except (IllegalTransition, ContentMissing):
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


class Hold:
    """A lease, kept. Not for two threads at once, but for ``keep_sent``."""

    def __init__(
        self,
        log: TaskLog,
        ids: Ids,
        now: Callable[[], int],
        look: Look,
        metrics: Metrics = UNMEASURED,
        unfolded: int = 0,
    ) -> None:
        self._log = watched(log)
        self._ids = ids
        self._look = look
        self._unfolded = unfolded
        self.metrics = metrics
        self._renewed_at = look.head.status_at
        self.chunks = Chunks()
        self._lost: BaseException | None = None
        self.now = now
        self.fence = look.head.fence

    @property
    def key(self) -> TaskKey:
        """Which task it is."""
        return self._look.head.key

    @property
    def head(self) -> Head:
        """The head as of the last look."""
        return self._look.head

    def say(self, text: str) -> Message:
        """A message of the agent's."""
        return Message(self._ids.new(), Role.AGENT, (Part("text", text),), self.head.context_id, self.key.task)

    @_store()
    def report(self, state: TaskState, message: Message | None = None) -> None:
        """Appends a status event. It is in the log when this returns."""
        self.flush()
        by = self._ids.new()
        for _ in range(TRIES):
            change = report(self._look, self.fence, state, message, now=self.now(), by=by)
            if self._log.append(change):
                if change.before.state is not state:
                    self.metrics.count("TaskStates", state=state, task=self.key.task)
                self._look = Look(change.after, change.event.n)
                self._unfolded += bytes_of(change.event)
                return
            self.look_again()
        raise TimeoutError("a status could not be appended: too many writers")

    def emit(self, artifact: Artifact, number: int, *, append: bool, last: bool, step: str = "") -> None:
        """Takes the author's ``number``-th chunk of an artifact, to be written in a moment, before anything else is."""
        chunk = Chunk(artifact, (number, number), append, last, step)
        if not self.chunks.add(chunk):
            self.flush()
            self.chunks.add(chunk)
        if self.chunks.full:
            self.flush()

    def flush(self) -> None:
        """Appends the chunks that wait. They are in the log when this returns; once it has raised, it always does."""
        if self._lost:
            raise self._lost
        try:
            for chunk in self.chunks.take():
                self._append_chunk(chunk)
            if self._unfolded >= FOLD_BYTES:
                self._fold()
        except BaseException as lost:
            self._lost = lost
            raise

    @_store()
    def _append_chunk(self, chunk: Chunk) -> None:
        by = self._ids.new()
        for _ in range(TRIES):
            last = self._look.last + 1
            event = ArtifactEvent(
                last, self.now(), by, chunk.artifact, chunk.append, chunk.last, chunk.emits, self.fence, chunk.step
            )
            if self._log.append_chunk(self.key, event, self.head.expires):
                self._look = replace(self._look, last=event.n)
                self._unfolded += bytes_of(event)
                return
            self.look_again()
        raise TimeoutError("a chunk could not be appended: too many writers")

    @_store()
    def _fold(self) -> None:
        """Has what is new in a long log folded for its readers, and the head tell them."""
        fold = self._log.keep_fold(self.key)
        self._move(lambda head: with_fold(head, self.fence, fold))
        self._unfolded = 0

    def steps(self) -> dict[str, StepResult]:
        """The results of earlier runs' steps. A first run has none, so it does not ask."""
        return dict(self._log.steps(self.key)) if self.fence > 1 else {}

    @_store()
    def keep_step(self, name: str, result: StepResult) -> StepResult:
        """Stores a step's result; the one that is stored counts."""
        self.flush()
        return self._log.keep_step(self.key, name, result, self.head.expires)

    @_store()
    def keep_sent(self, name: str, result: StepResult) -> tuple[StepResult, bool]:
        """Stores where a call went, in any thread and also when the hold is lost; gives the one that is stored.

        Says too whether the task has ended meanwhile. Its head then knows that it has a child: whoever ended the
        children before has not seen this one.
        """
        kept = self._log.keep_step(self.key, name, result, self.head.expires)
        for _ in range(TRIES):
            look = self._log.look(self.key)
            if look is None or not look.head.ended:
                return kept, False
            if self._log.touch(look.head, with_orphan(look.head, now=self.now())):
                return kept, True
        raise TimeoutError("a called agent could not be noted: too many writers")

    @_store()
    def keep_callback(self, callback: str, call: str) -> None:
        """Notes that the address ``callback`` stands for one of the task's calls. It may be told of from now on."""
        self._log.keep_callback(callback, self.key, call, self.head.expires)

    def watch(self) -> None:
        """Raises Fenced when the task has ended (a cancel) or has been taken by another runner."""
        self.look_again()

    def renew_when_due(self) -> bool:
        """Makes the lease longer when a third of it is over; says whether it did."""
        if self.now() - self._renewed_at < RENEW_MS:
            return False
        self._move(lambda head: renewed(head, self.fence, now=self.now()))
        self._renewed_at = self.now()
        return True

    def hand_on(self) -> None:
        """Releases the lease with the task due at once, in one write."""
        self._touch(lambda head: handed_on(head, self.fence, now=self.now()))

    def give_back(self) -> bool:
        """Releases the lease after the store has failed, with the task due at once; False when it is released already.

        No runner has died. What still waits to be written is emitted again by the next run.
        """
        self.look_again()
        if not self.head.lease_until:
            return False
        self._move(lambda head: handed_on(head, self.fence, now=self.now()))
        return True

    def park(self, seen: int, until: int | None) -> None:
        """Gives the task back until somebody has news; raises Woken when the wake counter is not ``seen`` any more."""
        self._touch(lambda head: parked(head, self.fence, seen, now=self.now(), until=until))

    def adopt(self) -> None:
        """Notes that the task has called other agents."""
        self._touch(lambda head: with_children(head, self.fence))

    def look_again(self) -> None:
        """Reads the head and the last number; raises Fenced when the hold is lost."""
        look = self._log.look(self.key)
        if look is None:
            raise Fenced
        held(look.head, self.fence)
        self._look = look

    def _touch(self, move: Callable[[Head], Head]) -> None:
        self.flush()
        self._move(move)

    @_store()
    def _move(self, move: Callable[[Head], Head]) -> None:
        for _ in range(TRIES):
            after = move(self.head)
            if self._log.touch(self.head, after):
                self._look = replace(self._look, head=after)
                return
            self.look_again()
        raise TimeoutError("a lease could not be moved: too many writers")
