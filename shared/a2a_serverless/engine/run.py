"""One run of a task: take it, let the agent work under a keeper's eye, say how it ended.

A run may die at any line. What it wrote stands, what it did not is done by the next run: steps read their results back,
emits that the log holds are skipped, and a run that was overtaken finds a foreign fence at its next append and stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, NoReturn

from a2a_serverless.domain import head as heads
from a2a_serverless.domain.agent import Agent, Answer, Cancellation, Failed, PeerFailed, Reject, StepConflict
from a2a_serverless.domain.bells import WorkBell
from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.errors import A2AError, IllegalTransition
from a2a_serverless.domain.events import bytes_of
from a2a_serverless.domain.failures import described
from a2a_serverless.domain.head import Head, Look
from a2a_serverless.domain.measures import UNMEASURED
from a2a_serverless.domain.model import Message, Part, Role, TaskKey, TaskState
from a2a_serverless.domain.trace import trace_id
from a2a_serverless.engine.calls import Apart, Directory, end_children
from a2a_serverless.engine.chunks import DELAY_S
from a2a_serverless.engine.files import INLINE, Files
from a2a_serverless.engine.hold import Hold, StoreFailed, watched
from a2a_serverless.engine.others import Others
from a2a_serverless.engine.work import Models, ReadAnew, Waits, Work, placed

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.ports import Bells, Ids, Metrics, TaskIndex, TaskLog

WATCH_S: Final = 1.0
MARGIN_MS: Final = 20_000
CLEAN_UP_S: Final = 5.0
TRIES: Final = 10
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 10.0

logger = logging.getLogger(__name__)


class Ending(Enum):
    """How a run ended. Nothing of it needs to be remembered: the log says what is to be done."""

    ENDED = "ended"
    WAITS = "waits"
    HANDED_ON = "handed on"
    OVERTAKEN = "overtaken"
    NOTHING_TO_DO = "nothing to do"
    LEASED = "leased"


@dataclass(frozen=True, slots=True)
class Engine:
    """What a run needs. ``now`` is in ms. ``bury`` puts the bell of a task that was given up where operators look.

    ``raised`` is told what an agent has raised.
    """

    log: TaskLog
    index: TaskIndex
    bells: Bells
    ids: Ids
    now: Callable[[], int]
    agents: Mapping[str, Agent]
    models: Models
    directory: Directory
    metrics: Metrics = UNMEASURED
    bury: Callable[[WorkBell], None] = lambda _: None
    files: Files = INLINE
    raised: Callable[[TaskKey, BaseException], None] = lambda *_: None


class Parked(Exception):
    """The task waits for other agents, and has been given back."""


class OutOfTime(Exception):
    """The platform's time limit is near: the work is handed on."""


async def run(engine: Engine, key: TaskKey, remaining_ms: Callable[[], int], fence: int = 0) -> Ending:
    """Runs the task until it ends, waits, or has to be handed on. ``remaining_ms`` is the time that is left.

    A message that meets a live lease is dropped: the runner reads the news that it brings, and whoever releases a lease
    looks once more. Only the message that finds that very runner dead (its ``fence``) is sent on, past the lease.
    """
    try:
        taken = _take(engine, key)
    except heads.Leased as leased:
        if leased.fence == fence:
            engine.bells.ring(WorkBell(key, fence), _seconds_until(leased.until, engine.now()))
        return Ending.LEASED
    if taken is None:
        _end_children(engine, key)
        return Ending.NOTHING_TO_DO
    look, events = taken
    unfolded = sum(bytes_of(event) for event in events[look.head.folded :])
    hold = Hold(engine.log, engine.ids, engine.now, look, engine.metrics, unfolded)
    try:
        try:
            ending = await _work(_watched_stores(engine), hold, events, remaining_ms)
        except StoreFailed as failed:
            ending = await _given_back(engine, hold, failed, remaining_ms)
    except heads.Fenced:
        ending = Ending.OVERTAKEN
    if ending is not Ending.ENDED or hold.head.children:
        _end_children(engine, key)
    return ending


def _watched_stores(engine: Engine) -> Engine:
    """The engine, each of whose stores raises StoreFailed when it fails."""
    files = replace(engine.files, contents=engine.files.contents and watched(engine.files.contents))
    log, index, bells = watched(engine.log), watched(engine.index), watched(engine.bells)
    return replace(engine, log=log, index=index, bells=bells, files=files)


async def _given_back(engine: Engine, hold: Hold, failed: StoreFailed, remaining_ms: Callable[[], int]) -> Ending:
    """Waits until a store that failed does what it was asked, and gives the task back: no runner has died.

    The lease is kept meanwhile, as far as the store lets us. When time is over the task is given back as it is; when
    that fails too, and when waiting would not help, the failure is raised, and the message comes again.
    """
    if failed.lasts:
        raise failed.__cause__ or failed from None
    ids = {"task": hold.key.task, "fence": hold.fence}
    logger.error("a store has failed", extra=described(failed.__cause__ or failed) | ids)
    pause_s = FIRST_PAUSE_S
    while not _tried(engine, hold, failed, in_time=remaining_ms() >= MARGIN_MS):
        with suppress(StoreFailed):
            hold.renew_when_due()
        left_s = max(0.0, (remaining_ms() - MARGIN_MS) / 1000)
        await asyncio.sleep(min(pause_s, left_s + FIRST_PAUSE_S))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    return Ending.HANDED_ON


def _tried(engine: Engine, hold: Hold, failed: StoreFailed, *, in_time: bool) -> bool:
    """Whether what failed is done and the task given back; False when there is time to try again."""
    try:
        if in_time:
            failed.again()
        if hold.give_back():
            engine.bells.ring(WorkBell(hold.key))
    except StoreFailed as still:
        if still.lasts or not in_time:
            raise still.__cause__ or still from None
        return False
    return True


def _end_children(engine: Engine, key: TaskKey) -> None:
    """Tells the agents that an ended task has called. What fails is done when the task is next due."""
    look = engine.log.look(key)
    if look and look.head.ended and look.head.children:
        try:
            end_children(engine.log, engine.directory.peers, look.head, now=engine.now())
        except PeerFailed:
            logger.warning("a called agent could not be told", extra={"task": key.task})


def _take(engine: Engine, key: TaskKey) -> tuple[Look, list[Event]] | None:
    """The task, taken, with its log; None when there is nothing to run. Raises Leased."""
    for _ in range(TRIES):
        look = engine.log.look(key)
        if look is None:
            return None
        head, now, by = look.head, engine.now(), engine.ids.new()
        try:
            change = heads.take(look, now=now, by=by)
        except heads.NotRunnable:
            return None
        except heads.LostTooOften:
            engine.bury(WorkBell(key))
            change = heads.give_up(
                look, _said(engine, head, "The task was given up: its workers died."), now=now, by=by
            )
            if engine.log.append(change):
                engine.metrics.count("TaskStates", state=TaskState.FAILED, task=key.task)
                logger.error("task given up", extra={"task": key.task, "fence": head.fence})
                return None
            continue
        loaded = engine.log.load(key)  # a long log is read only by who can run the task
        if loaded is None:
            return None
        if loaded[1][-1].n == look.last and engine.log.append(change):
            _note_taken(engine, head, change.after)
            return Look(change.after, change.event.n), [*loaded[1], change.event]
    raise TimeoutError("a task could not be taken: too many writers")


def _note_taken(engine: Engine, before: Head, after: Head) -> None:
    """Says that a run begins, whether the one before it died, and how long the task waited if it was its turn."""
    task = after.key.task
    if after.lost > before.lost:
        engine.metrics.count("LeaseLost", of="worker", task=task)
    elif before.fence == 0:
        engine.metrics.measure({"QueueAge": after.status_at - before.status_at}, queue="work", task=task)
    ids = {"task": task, "agent": after.agent, "fence": after.fence, "trace": trace_id(after.trace)}
    logger.info("task taken", extra=ids)


async def _work(engine: Engine, hold: Hold, events: list[Event], remaining_ms: Callable[[], int]) -> Ending:
    agent = engine.agents.get(hold.head.agent)
    if agent is None:
        return _end(hold, TaskState.FAILED, "This agent is no longer deployed.")
    others = Others(engine.log, engine.index, hold.key)
    work = Work(hold, events, engine.models, others, engine.directory, engine.files)
    try:
        state, last_word = await _outcome(agent, work, hold, engine, remaining_ms)
    except (Waits, Parked):
        return Ending.WAITS
    except (OutOfTime, Apart, ReadAnew) as reason:
        if isinstance(reason, OutOfTime):
            work.note_unfinished()
        hold.hand_on()
        engine.bells.ring(WorkBell(hold.key))
        return Ending.HANDED_ON
    return _end(hold, state, last_word)


async def _outcome(
    agent: Agent, work: Work, hold: Hold, engine: Engine, remaining_ms: Callable[[], int]
) -> tuple[TaskState, Answer]:
    """The state that the agent's work comes to, and what is said about it. What ends the run only goes through."""
    done = await _watched(agent, work, hold, engine, remaining_ms)
    try:
        return TaskState.COMPLETED, placed(work.outcome(done), hold.head.context_id, hold.key.task)
    except IllegalTransition:
        raise
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the agent's, whatever it is
        engine.raised(hold.key, error)
        return _made_of(error, agent, hold)


def _made_of(error: BaseException, agent: Agent, hold: Hold) -> tuple[TaskState, str]:
    """The state that an agent's exception comes to, and what its client is told: its own words, or where to look."""
    if isinstance(error, Reject | A2AError):
        return TaskState.REJECTED, str(error)
    if isinstance(error, Failed):
        return TaskState.FAILED, str(error)
    task, fence = hold.key.task, hold.fence
    reference = digest([task, fence])[:8]
    said = {"task": task, "agent": agent.id, "fence": fence, "reference": reference}
    logger.error("agent failed", extra=described(error) | said)
    return TaskState.FAILED, f"The agent stopped with an error (reference {reference})."


async def _watched(
    agent: Agent, work: Work, hold: Hold, engine: Engine, remaining_ms: Callable[[], int]
) -> asyncio.Future[Answer]:
    """Lets the agent work until it is done or its keeper or writer has a reason to stop it, and raises that reason.

    What those raise is never the agent's fault; what the agent raised is in the future. What its task has raised
    (``work.signal``) decides before either.
    """
    working = asyncio.ensure_future(agent.work(work))
    keeping = asyncio.ensure_future(_keep(hold, work, engine.bells, remaining_ms))
    writing = asyncio.ensure_future(_write(hold))
    try:
        await asyncio.wait({working, keeping, writing}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            stopped = keeping if keeping.done() else writing
            work.close(_why(stopped.exception() or work.signal))
            working.cancel()
            await asyncio.wait({working}, timeout=CLEAN_UP_S)
            stopped.result()
        return working
    finally:
        writing.cancel()
        keeping.cancel()
        working.cancel()


def _why(reason: BaseException | None) -> Cancellation:
    """What the agent is told of the reason why its run is stopped."""
    if isinstance(reason, OutOfTime | Parked | Apart | ReadAnew | Waits):
        return Cancellation.HAND_OVER
    if isinstance(reason, heads.Fenced | StepConflict):
        return Cancellation.CLIENT if getattr(reason, "canceled", False) else Cancellation.FENCE
    return Cancellation.STORE


async def _write(hold: Hold) -> NoReturn:
    """Writes chunks that have waited long enough. Ends only by raising why the work must stop."""
    while True:
        await hold.chunks.some.wait()
        await asyncio.sleep(DELAY_S)
        hold.flush()


async def _keep(hold: Hold, work: Work, bells: Bells, remaining_ms: Callable[[], int]) -> None:
    """Looks after the lease, the time and the task's own news. Ends by raising why the work must stop.

    It also ends when the agent works on for seconds after its task has raised a signal.

    The first renewal sends one message past the lease; whoever gets it while this run's lease lives sends it on past
    that. So a run that dies is found by its own message, and there is one for each run.
    """
    rang = False
    while True:
        await asyncio.sleep(WATCH_S)
        if work.signal:
            await asyncio.sleep(CLEAN_UP_S)
            return
        with suppress(StoreFailed):  # it is done a second later; the agent works on until it has to write
            hold.watch()
            work.calls.notice()
            if work.idle and work.calls.park():
                raise Parked
        if remaining_ms() < MARGIN_MS:
            raise OutOfTime
        with suppress(StoreFailed):
            if hold.renew_when_due() and not rang:
                bells.ring(WorkBell(hold.key, hold.fence), _seconds_until(hold.head.lease_until, hold.now()))
                rang = True


def _end(hold: Hold, state: TaskState, last_word: Answer) -> Ending:
    hold.report(state, hold.say(last_word) if isinstance(last_word, str) else last_word)
    return Ending.ENDED


def _said(engine: Engine, head: Head, text: str) -> Message:
    return Message(engine.ids.new(), Role.AGENT, (Part("text", text),), head.context_id, head.key.task)


def _seconds_until(until: int, now: int) -> int:
    """Whole seconds until just after ``until`` (ms), as a queue's delay takes them."""
    return min(900, max(1, (until - now) // 1000 + 1))
