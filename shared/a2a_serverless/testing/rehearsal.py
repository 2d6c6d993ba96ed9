"""Plays stored tasks against other code, up to the first act that is not stored.

No step works, no agent is called, nothing is written: a play is on a copy of the task's partition, under a clock that
stands at the last stored moment. The work of a step that has not ended, code behind the wait, and branches on a coming
answer are not seen.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from a2a_serverless.adapters.clock import UuidIds
from a2a_serverless.domain.budgets import read_budget
from a2a_serverless.domain.head import CurrentHead
from a2a_serverless.domain.waits import WaitKind
from a2a_serverless.engine.acts import Acts
from a2a_serverless.engine.budgets import TaskBudget
from a2a_serverless.engine.calls import AgentRegistry
from a2a_serverless.engine.execution import Execution, first_request
from a2a_serverless.engine.loop import create_engine_task, play
from a2a_serverless.engine.run import work_on_acts
from a2a_serverless.engine.run_session import RunSession
from a2a_serverless.engine.task_files import TaskFiles
from a2a_serverless.engine.task_reader import TaskReader
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.store import keys
from a2a_serverless.store.items import head_of
from a2a_serverless.store.stores import ContentStore
from a2a_serverless.store.table import Put
from a2a_serverless.testing.effects import EffectRefused, refuse_effects
from a2a_serverless.testing.memory import MemoryBlobStore, MemorySealer, MemoryStores
from a2a_serverless.testing.rehearsal_acts import RehearsedActs, Rested, line_of
from a2a_serverless.testing.rehearsal_report import Judge, Rehearsal, RehearsalVerdict, waits_of
from a2a_serverless.testing.simulated_loop import SimulatedLoop
from a2a_serverless.testing.unknown import SECRET
from a2a_serverless.testing.waiting import own_line, thread_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import JsonObject, TaskKey
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.store.items import Item
    from a2a_serverless.store.stores import TaskIndex
    from a2a_serverless.store.table import Table
    from a2a_serverless.store.task_log import TaskLog

ReadBlob: TypeAlias = "Callable[[str, int | None], bytes]"
"""Reads a big text by its name, and its size if that is known. Raises KeyError."""
LONGEST_S: Final = 5.0
"""So many real seconds a play may take."""
LONGEST_MS: Final = 86_400_000
"""So long, in simulated time, timers outside of steps are waited for."""
LEASE_MS: Final = 10 * LONGEST_MS
RETRY_S: Final = 3600
TRIES: Final = 3


@dataclass(frozen=True)
class StoredTask:
    """A copy of a task's partition, and of the values of its conversation. ``read_blob`` reads big texts by name."""

    key: TaskKey
    head: Head
    items: tuple[Item, ...]
    read_blob: ReadBlob

    @property
    def shape(self) -> tuple[str, ...]:
        """Code, agent, state, and what the task waits for: of tasks of one shape a few are enough."""
        waits = (f"{wait.kind} {wait.name}" for wait in self.head.open_waits.waits if wait.kind != WaitKind.QUESTION)
        return (self.head.code, self.head.agent, str(self.head.state), *sorted(waits))

    def json_form(self) -> JsonObject:
        """The copy without its big texts, for another process."""
        return {"key": [*self.key], "items": [*self.items]}

    @classmethod
    def of(cls, form: JsonObject, read_blob: ReadBlob) -> StoredTask:
        """The copy of a ``json_form``."""
        items: Any = form["items"]
        head = head_of(next(item for item in items if item["sk"]["S"] == keys.HEAD))
        return cls(head.key, head, tuple(items), read_blob)

    def load(self, now: Callable[[], int]) -> MemoryStores:
        """A table with these items only."""
        stores = _CopiedStores(now)
        stores.blobs.read = self.read_blob
        for item in self.items:
            stores.items.write(Put(item))
        return stores


class _CopiedBlobs(MemoryBlobStore):
    """A bucket in which what is new stays in memory, and the rest is read by ``read``."""

    read: ReadBlob

    def get(self, name: str, size: int | None = None) -> bytes:
        return super().get(name, size) if name in self.content else self.read(name, size)


class _CopiedStores(MemoryStores):
    blobs: _CopiedBlobs

    def make_blobs(self) -> _CopiedBlobs:
        return _CopiedBlobs()


def read_task(table: Table, key: TaskKey, read_blob: ReadBlob) -> StoredTask | None:
    """A copy of an unfinished task, without its webhooks; None if it has ended, or does not exist.

    Several queries are no snapshot: the task is read again while it changes, ``TRIES`` times at most.
    """
    copy: StoredTask | None = None
    for _ in range(TRIES):
        pk = keys.task(key)
        log = tuple(table.query_range(pk, keys.EVENTS, keys.HEAD))
        top = log[-1] if log else None
        if top is None or top["sk"]["S"] != keys.HEAD or (head := head_of(top)).is_terminal:
            return None
        steps, values = table.query_prefix(pk, keys.STEPS), table.query_prefix(pk, keys.VALUES)
        of_conversation = table.query_prefix(keys.owner(key), keys.context(head.context_id))
        copy = StoredTask(key, head, (*log, *steps, *values, *of_conversation), read_blob)
        after = table.get(pk, keys.HEAD)
        if after and head_of(after) == head:
            break
    return copy


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a play reads beside its task. Without ``index`` and ``read_secret`` these are not seen."""

    base_url: str = "https://agents.example.com"
    read_secret: Callable[[str], str] | None = None
    log: TaskLog | None = None
    index: TaskIndex | None = None
    prices: Usage = field(default_factory=dict)


def rehearse_task(task: StoredTask, agent: Agent, surroundings: Surroundings) -> Rehearsal:
    """Plays a task against the agent's code.

    If stored acts are left, a second play lends new steps what equal ones have stored, which names a renamed step. A
    third one lets the waits be over, which finds acts that have moved behind them.
    """
    rehearsal = _Play(task, agent, surroundings).play()
    if rehearsal.verdict is not RehearsalVerdict.FITS and rehearsal.acts != rehearsal.read:
        with_names = _Play(task, agent, surroundings, lends=True)
        lending = with_names.play()
        if with_names.has_lent and lending.verdict.is_red:
            return lending
    if rehearsal.verdict is RehearsalVerdict.DROPPED:
        play_beyond = _Play(task, agent, surroundings, goes_beyond=True)
        beyond = play_beyond.play()
        if beyond.verdict is RehearsalVerdict.FITS and beyond.acts == beyond.read:
            return replace(beyond, findings=[])
        if play_beyond.has_guessed:
            return beyond
    return rehearsal


class _Play:
    """One play of a task, in a thread of its own, so that code that does not end can be left."""

    def __init__(
        self,
        task: StoredTask,
        agent: Agent,
        surroundings: Surroundings,
        *,
        lends: bool = False,
        goes_beyond: bool = False,
    ) -> None:
        self._task, self._agent, self._surroundings = task, agent, surroundings
        self._lends, self._goes_beyond = lends, goes_beyond
        self._now = self._passed = 0
        self._rehearsal = Rehearsal(task.key.task, agent.id)
        self._acts: RehearsedActs | None = None
        self._ending: list[BaseException | None] = []

    @property
    def has_lent(self) -> bool:
        """Whether new steps have got stored results, all of them rightly."""
        return bool(self._acts and self._acts.lent and not self._acts.has_lent_wrongly)

    @property
    def has_guessed(self) -> bool:
        """Whether the arguments of stored steps were made of what is unknown."""
        return bool(self._acts and self._acts.guesses)

    def play(self) -> Rehearsal:
        """Plays the task and returns what that has shown."""
        rehearsal, head = self._rehearsal, self._task.head
        if head.repeats or self._agent.remote:
            rehearsal.add(
                RehearsalVerdict.UNSEEN, "the task has to copy another one" if head.repeats else "the agent is a mirror"
            )
            return rehearsal
        thread = threading.Thread(target=self._work, daemon=True)
        thread.start()
        thread.join(LONGEST_S)
        if not self._ending:
            frames = thread_frames(sys._current_frames().get(thread.ident or 0))  # noqa: SLF001 - documented
            line = own_line(frames) if frames else None
            place = f"{line.file}:{line.line}" if line else ""
            rehearsal.is_stuck = True
            rehearsal.add(
                RehearsalVerdict.UNSEEN, f"the code has not come to rest in {LONGEST_S:g} seconds", line=place
            )
        elif error := self._ending[0]:
            rehearsal.add(
                RehearsalVerdict.UNSEEN,
                f"the play ends with {type(error).__name__}",
                line=line_of(error),
                text=str(error),
            )
        return rehearsal

    def _work(self) -> None:
        loop = SimulatedLoop(lambda: self._now + self._passed, self._pass, io_s=0.0)
        try:
            with refuse_effects() as refusals:
                play(self._play(refusals), loop)
            self._ending.append(None)
        except BaseException as error:  # noqa: BLE001 - code of an agent may raise anything
            self._ending.append(error)

    def _pass(self, ms: int) -> None:
        self._passed += ms

    async def _play(self, refusals: list[str]) -> None:
        agent, observer, execution, acts = self._agent, *self._prepare()
        observer.begin(execution)
        self._rehearsal.waits = waits_of(observer)
        work = asyncio.ensure_future(work_on_acts(agent, acts))
        watch = create_engine_task(execution.endings.run(observer.rest))
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED, timeout=LONGEST_MS / 1000)
        error: BaseException | None = execution.signal
        is_over = work.done() and not work.cancelled()
        if error is None and is_over:
            error = work.exception()
        elif error is None and watch.done():
            error = watch.exception()
        Judge(self._rehearsal, observer, error, is_over=is_over).judge(refusals)
        execution.close(end=Rested())
        work.cancel()
        watch.cancel()
        await asyncio.wait({work, watch}, timeout=1)
        for task in (work, watch):
            if task.done() and not task.cancelled():
                task.exception()  # it is known

    def _prepare(self) -> tuple[RehearsedActs, Execution, Acts]:
        """The execution of a run that has just taken the task's lease, on a copy of it."""
        task, agent, around = self._task, self._agent, self._surroundings
        stores = task.load(lambda: self._now)
        head, events = stores.read_log(task.key) or (task.head, [])
        self._now = max([event.at for event in events] + [one.ended_at for one in stores.read_steps(task.key).values()])
        taken = head._replace(
            fence=head.fence + 1,
            lease_until=self._now + LEASE_MS,
            holder="rehearsal",
            parked=False,
            wake_at=0,
            rev=head.rev + 1,
        )
        stores.update_head(head, taken)
        observer = self._acts = RehearsedActs(head, events, lends=self._lends, goes_beyond=self._goes_beyond)
        session = RunSession(
            stores,
            UuidIds(),
            lambda: self._now,
            CurrentHead(taken, events[-1].n),
            _budget(agent, events),
            observer=observer,
        )
        execution = Execution(session, events, whole_last_chunk=agent.whole_last_chunk)
        log: Any = around.log or _NoOtherTasks(stores, task.key)
        reader = TaskReader(log, around.index or _NO_INDEX, task.key)
        acts = Acts(
            execution,
            reader,
            AgentRegistry(_SilentAgents(), UuidIds(), around.base_url),
            stores,
            TaskFiles(ContentStore(stores.blobs), _refuse_to_fetch),
            read_secret=around.read_secret or partial(_read_no_secret, observer),
            callback_sealer=MemorySealer(),
            prices=around.prices,
        )
        return observer, execution, acts


def _budget(agent: Agent, events: list[Event]) -> TaskBudget:
    return TaskBudget(agent.budget, read_budget(first_request(events).message.metadata))


def _read_no_secret(observer: RehearsedActs, name: str) -> str:
    observer.reads_secret = True
    return f"{SECRET}{name}"


def _refuse_to_fetch(url: str) -> NoReturn:
    raise EffectRefused(f"fetch {url.partition('?')[0]}")


class _SilentAgents:
    """Implements ``RemoteAgents``: no agent answers."""

    def address(self, agent: str) -> str:
        return agent

    def for_run(self, trace: str, goes_on: Callable[[], bool]) -> _SilentAgents:
        del trace, goes_on
        return self

    def has_push(self, agent: str) -> bool:
        del agent
        return True

    keeps_message_ids = has_push

    def _refuse(self, *_: object) -> NoReturn:
        raise AgentUnavailable("No agent is called in a rehearsal.", RETRY_S)

    card = tags = send = get = cancel = _refuse


class _NoOtherTasks:
    """The log of the copied task only."""

    def __init__(self, stores: MemoryStores, key: TaskKey) -> None:
        self._stores, self._key = stores, key

    def read_task(self, key: TaskKey) -> Any:  # noqa: ANN401 - as TaskLog.read_task
        if key != self._key:
            raise EffectRefused("read of another task")
        return self._stores.read_task(key)


class _NoIndex:
    def list_page(self, *_: object) -> NoReturn:
        raise EffectRefused("read of other tasks")


_NO_INDEX: Final[Any] = _NoIndex()


def read_unfinished(log: TaskLog, table: Table, read_blob: ReadBlob) -> Iterator[StoredTask]:
    """Copies of all unfinished tasks: each of them is in the index of what is due."""
    return filter(None, (read_task(table, key, read_blob) for key in log.list_unfinished()))


def sample(tasks: Iterable[StoredTask], most: int) -> Iterator[StoredTask]:
    """The first ``most`` tasks of each shape."""
    counts = Counter[tuple[str, ...]]()
    for task in tasks:
        counts[task.shape] += 1
        if counts[task.shape] <= most:
            yield task
