"""Models of runs: the lease and its fence, and how a task waits without a run.

**Lease**: two workers get the task's message, and one may die at any call. Each run emits a chunk, stores a step's
result, and hands over or completes. The clock moves past a lease; the sweeper comes after that.

**Wait**: a run suspends its task until the agent that it has called is done. That agent's callback and a message of the
client come at any time; two workers get what messages there are.

Assumed: one clock; a worker's call of the clock takes no time after the answer before it; a queue message stays until
it is deleted, and any worker may get it meanwhile, also before its delay is over.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from a2a_serverless.domain import decisions
from a2a_serverless.domain.call_records import OpenedCall, SentCall
from a2a_serverless.domain.decisions import RUN_LEASE_MS, SUSPEND_MS
from a2a_serverless.domain.errors import UnsupportedOperation
from a2a_serverless.domain.events import ArtifactEvent, Incoming
from a2a_serverless.domain.periods import RunEnd
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.record_names import call_name
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.engine.engine import Engine
from a2a_serverless.engine.lease import take_task_once
from a2a_serverless.engine.run_session import RunSession
from a2a_serverless.ports.agents import IncomingNotification
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.services.callbacks import handle_callback
from a2a_serverless.services.requests import TaskService
from a2a_serverless.services.sweep import Sweeper, sweep
from a2a_serverless.services.task_changes import change_task, retry_on_conflict
from a2a_serverless.services.tasks import enqueue_task
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.model.explorer import BLOCKED, Actor, Model
from tests.model.ports import require
from tests.model.tasks import AGENT, KEY, LIFE, START, check_log, chunk, create, ended, message, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.model.explorer import World
    from tests.model.ports import Ports

WORK = WorkMessage(KEY)
UNUSED: Any = None


def _prepare(ports: Ports) -> None:
    create(ports)
    ports.queues.enqueue(WORK)


def _start(ports: Ports) -> RunSession | None:
    """Takes the task as ``engine.run.run`` does; None if there is nothing to run, or somebody runs it."""
    engine = Engine(
        log=ports.log,
        index=UNUSED,
        queues=ports.queues,
        ids=ports.ids,
        now=ports.clock.now,
        agents={},
        registry=UNUSED,
        values=UNUSED,
        callback_sealer=UNUSED,
    )
    by = ports.ids.new()
    try:
        taken = retry_on_conflict(lambda: take_task_once(engine, KEY, by))  # run() needs a loop
    except decisions.AlreadyLeased:
        return None
    ports.events = taken[1] if taken else []
    return RunSession(ports.log, ports.ids, ports.clock.now, taken[0]) if taken else None


def _worker(work: Callable[[Ports, RunSession], object]) -> Callable[[Ports], None]:
    def working(ports: Ports) -> None:
        receipt = ports.take(WORK)
        session = _start(ports)
        if session:
            with suppress(decisions.LeaseLost):
                work(ports, session)
        ports.ack(receipt)

    return working


def _note_lease(ports: Ports, session: RunSession) -> None:
    until = session.head.lease_until
    ports.note("begins", lambda notes: notes.update(leases=tuple(sorted((*notes.get("leases", ()), until)))))


def _do_step(ports: Ports, session: RunSession) -> None:
    kept = session.store_step("step", StepResult("", ports.name)).value
    ports.note("uses the step", lambda notes: notes.update(used=tuple(sorted({*notes.get("used", ()), str(kept)}))))


def _complete(ports: Ports, session: RunSession) -> None:
    _note_lease(ports, session)
    _do_step(ports, session)
    session.renew_when_due()
    session.report_status(TaskState.COMPLETED)


def _emit(ports: Ports, session: RunSession) -> None:
    """Emits its one chunk, unless the log that it has read holds it."""
    _note_lease(ports, session)
    if not any(isinstance(event, ArtifactEvent) for event in ports.events):
        session.emit(chunk("a"), 1, append=False, last=True)
    session.report_status(TaskState.COMPLETED)


def _hand_over(ports: Ports, session: RunSession) -> None:
    if session.fence > 1:
        _complete(ports, session)
        return
    _note_lease(ports, session)
    session.hand_over(RunEnd.HANDED_OVER)
    ports.note("has handed over", lambda notes: notes.update(released=True))
    ports.queues.enqueue(WORK)


def _check_lease(world: World) -> None:
    check_log(world)
    require(len(world.notes.get("used", ())) <= 1, "two runs use different results of one step")
    for before, after in pairwise(world.notes.get("leases", ())):
        early = after < before + RUN_LEASE_MS
        require(not early or world.notes.get("released"), "a run began while another had the lease")


def _check_found(world: World) -> None:
    """Nothing is forgotten: the task has ended, or a message or the sweeper will come for it."""
    head, _ = read(world)
    assert head
    found = head.due_at is not None and head.due_at <= max(head.lease_until, head.status_at + RUN_LEASE_MS)
    require(ended(world) or world.queue or found, "the task has not ended, and nothing will run it soon")


def _sweep(at: int) -> Any:
    def sweeping(ports: Ports) -> None:
        def is_due(world: World) -> bool:
            head, _ = read(world)
            return head is not None and head.parked and at <= world.now >= (head.due_at or at)

        ports.ask("begins", lambda world, _: None if is_due(world) else BLOCKED)
        sweep(Sweeper(ports.log, ports.push, ports.queues, ports.clock, ports.ids))

    return sweeping


# ---- Waiting for another agent


def _prepare_waiting(ports: Ports) -> None:
    _prepare(ports)
    snapshot = ports.log.read_head(KEY)
    assert snapshot
    head = snapshot.head._replace(lease_until=START + 1)
    name = call_name("call")
    opened = OpenedCall("other", "digest", "message", "t", START, "https://a.example/callbacks/address", "agent")
    ports.log.store_callback(head, opened.callback, name.opened)
    ports.log.store_step(head, name.opened, StepResult("", opened.value))
    ports.log.store_step(head, name.sent, StepResult("", SentCall("other", "child").value))


def _wait(ports: Ports, session: RunSession) -> None:
    """Follows a called task as ``engine.calls`` does: reads the counter, then the task, then suspends."""
    while True:
        seen = session.head.wake
        if ports.ask("asks for the called task", lambda world, _: world.notes.get("done", False)):
            return session.report_status(TaskState.COMPLETED)
        ports.note("wants to suspend", lambda notes, seen=seen: notes.update(seen=seen))  # type: ignore[misc]
        with suppress(decisions.WakeCounterChanged):
            return session.suspend(seen, session.now() + decisions.SUSPEND_MS, "")
        session.reload_head()


def _call_back(ports: Ports) -> None:
    ports.ask("ends the called task", lambda world, _: world.notes.update(done=True))
    body = b'{"statusUpdate":{"taskId":"child","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}'
    request = IncomingNotification({"x-a2a-notification-token": "t"}, body)
    handle_callback(_service(ports), MemoryCallbackVerifier(), "address", request)


def _service(ports: Ports) -> TaskService:
    return TaskService(
        log=ports.log,
        publications=UNUSED,
        queues=ports.queues,
        clock=ports.clock,
        ids=ports.ids,
        webhooks=UNUSED,
        lister=UNUSED,
        callback_sealer=UNUSED,
        life=LIFE,
        blocking_ms=0,
    )


def _follow_up(ports: Ports) -> None:
    by, incoming = ports.ids.new(), Incoming(message("second"))
    with suppress(UnsupportedOperation):
        change = change_task(
            ports.log,
            KEY,
            AGENT,
            lambda snapshot: decisions.follow_up(snapshot, incoming, now=ports.clock.now(), by=by),
        )
        enqueue_task(_service(ports), change.after)


def _check_waiting(world: World) -> None:
    check_log(world)
    head, _ = read(world)
    assert head
    require(not head.parked or head.wake == world.notes["seen"], "a task was suspended that had been woken")


def _check_woken(world: World) -> None:
    if world.notes.get("done") and not world.queue:
        require(ended(world), "the called task has ended, and nothing resumes its caller")


def _check_swept(world: World) -> None:
    """After a lost callback the sweeper resumes the task as soon as it is due."""
    head, _ = read(world)
    assert head
    was_swept = head.parked and 0 < head.wake_at <= world.now < (head.due_at or 0)
    require(world.queue or not was_swept, "the time of a suspended task has come, and the sweeper has not resumed it")


def _pair(work: Callable[[Ports, RunSession], object], *, mortal: bool) -> tuple[Actor, ...]:
    return tuple(Actor(f"worker {name}", (_worker(work),), mortal=mortal) for name in "AB")


def models() -> list[Model]:
    expired = START + RUN_LEASE_MS + 1
    late = START + SUSPEND_MS + 1
    lease: dict[str, Any] = {"prepare": _prepare, "check": _check_lease, "check_end": _check_found}
    waiting: dict[str, Any] = {"prepare": _prepare_waiting, "check": _check_waiting, "check_end": _check_woken}
    called = Actor("called agent", (_call_back,))
    waiters = _pair(_wait, mortal=False)
    return [
        Model(
            "lease: a run that dies or is late",
            _pair(_complete, mortal=True),
            times=(START, START + 12_000, expired),
            deaths=1,
            **lease,
        ),
        Model("lease: a late chunk", _pair(_emit, mortal=False), times=(START, expired), **lease),
        Model(
            "lease: a run that hands over",
            (Actor("worker A", (_worker(_hand_over),)), Actor("worker B", (_worker(_hand_over), _worker(_hand_over)))),
            times=(START,),
            **lease,
        ),
        Model("waiting: a callback", (*waiters, called), times=(START,), **waiting),
        Model("waiting: a message", (waiters[0], called, Actor("client", (_follow_up,))), times=(START,), **waiting),
        Model(
            "waiting: a lost callback",
            (
                Actor("worker", (_worker(_wait), _worker(_wait))),
                replace(called, mortal=True),
                Actor("sweeper", (_sweep(late),)),
            ),
            times=(START, late),
            deaths=1,
            **(waiting | {"check_end": _check_swept}),
        ),
    ]
