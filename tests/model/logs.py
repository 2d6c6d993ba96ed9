"""Models of the log and its head.

**Writers**: a client sends a message, another cancels, and a run emits a chunk and completes, all at once. The answer
to one write is lost, and it is sent again.

**Readers**: a client sends a message and another cancels, in transactions that a reader's queries may see by halves.

**Repeats**: a message is sent twice at the same time, with the same message id, to a new task and to an existing one.

Assumed: a conditional write happens whole or not at all, and its answer is lost at most once; a query sees each item as
it was before or after a transaction under way; the writes of two transactions under way to one item exclude each other.
The bodies are small, so no event is stored outside the table, and there is no snapshot.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from a2a_serverless.domain import decisions
from a2a_serverless.domain.errors import TaskNotCancelable, UnsupportedOperation
from a2a_serverless.domain.events import Incoming, StatusEvent
from a2a_serverless.domain.head import CurrentHead
from a2a_serverless.engine.run_session import RunSession
from a2a_serverless.protocol.v1 import SendMessageRequest, TaskState
from a2a_serverless.services.requests import RequestContext, TaskService
from a2a_serverless.services.task_changes import change_task
from a2a_serverless.services.tasks import StartedTask, accept_message
from a2a_serverless.store import keys
from tests.model.explorer import Actor, Model
from tests.model.ports import require
from tests.model.tasks import AGENT, KEY, LIFE, ME, START, check_log, create, message, read, start
from tests.model.tasks import chunk as artifact

if TYPE_CHECKING:
    from tests.model.explorer import World
    from tests.model.ports import Ports


def _accept(ports: Ports, by: str) -> None:
    ports.note("its append was accepted", lambda notes: notes.update(accepted=(*notes.get("accepted", ()), by)))


def _begin(ports: Ports) -> None:
    create(ports)
    start(ports)


def _follow_up(ports: Ports) -> None:
    by = ports.ids.new()
    incoming = Incoming(message("second"))
    with suppress(UnsupportedOperation):
        change_task(
            ports.log,
            KEY,
            AGENT,
            lambda snapshot: decisions.follow_up(snapshot, incoming, now=ports.clock.now(), by=by),
        )
        _accept(ports, by)


def _cancel(ports: Ports) -> None:
    by = ports.ids.new()
    with suppress(TaskNotCancelable):
        change_task(ports.log, KEY, AGENT, lambda snapshot: decisions.cancel(snapshot, now=ports.clock.now(), by=by))
        _accept(ports, by)


def _run(ports: Ports) -> None:
    by = ports.ids.new()
    with suppress(decisions.NotRunnable, decisions.LeaseLost):
        taken = change_task(
            ports.log, KEY, AGENT, lambda snapshot: decisions.start_run(snapshot, now=ports.clock.now(), by=by)
        )
        _accept(ports, by)
        snapshot = CurrentHead(taken.after, taken.event.n)
        session = RunSession(ports.log, ports.ids, ports.clock.now, snapshot)
        session.emit(artifact("a"), 1, append=False, last=True)
        session.flush()
        _accept(ports, f"{ports.name}-2")
        session.report_status(TaskState.COMPLETED)
        _accept(ports, f"{ports.name}-3")


def _read_head(ports: Ports) -> None:
    snapshot = ports.log.read_head(KEY)
    assert snapshot

    def is_of_its_time(world: World) -> None:
        _, events = read(world)
        later = [one.n for one in events if isinstance(one, StatusEvent) and snapshot.head.n < one.n <= snapshot.last]
        require(not later, "a reader got a head that is older than the event beside it")

    ports.verify("compares head and event", is_of_its_time)


def _read_log(ports: Ports) -> None:
    found = ports.log.read_log(KEY)
    assert found
    statuses = [event.n for event in found[1] if isinstance(event, StatusEvent)]
    require(statuses[-1] == found[0].n, "a reader got a head and a log that do not belong together")


def _service(ports: Ports) -> TaskService:
    unused: Any = None
    return TaskService(
        log=ports.log,
        publications=unused,
        queues=ports.queues,
        clock=ports.clock,
        ids=ports.ids,
        webhooks=unused,
        lister=unused,
        callback_sealer=unused,
        life=LIFE,
        blocking_ms=0,
    )


def _send(ports: Ports, **fields: str) -> None:
    """Sends the message; notes which task it was answered with, if it was not refused."""
    request, answer = SendMessageRequest(message=message("the same", **fields)), "refused"
    with suppress(UnsupportedOperation):
        started = accept_message(_service(ports), RequestContext(ME, AGENT, "1.0"), request)
        assert isinstance(started, StartedTask)
        answer = started.head.key.task
    ports.note("has its answer", lambda notes: notes.update({f"answer to {ports.name}": answer}))


def _continue(ports: Ports) -> None:
    _send(ports, task_id=KEY.task)


def _check_sent_once(world: World) -> None:
    stored = sum(sk == keys.HEAD for rows in world.items.partitions.values() for sk in rows)
    require(stored <= 1, "one message has made two tasks")


def _check_answered(world: World) -> None:
    answers = {value for name, value in world.notes.items() if name.startswith("answer to ")}
    require(len(answers - {"refused"}) <= 1, "one message was answered with two tasks")
    count = sum(name.startswith("answer to ") for name in world.notes)
    require(count == 2, "a client got no answer")


def _check_continued_once(world: World) -> None:
    check_log(world)
    _, events = read(world)
    same = [one for one in events if isinstance(one, StatusEvent) and one.incoming and one.n > 1]
    require(len(same) <= 1, "one message is in the log twice")


def models() -> list[Model]:
    writers = (Actor("client", (_follow_up,)), Actor("canceler", (_cancel,)), Actor("run", (_run,)))
    senders = (Actor("client", (_send,)), Actor("again", (_send,)))
    continuing = (Actor("client", (_continue,)), Actor("again", (_continue,)), Actor("canceler", (_cancel,)))
    readers = (*writers[:2], Actor("reader", (_read_head, _read_log)))
    return [
        Model("log and head: writers", writers, create, check_log, times=(START,), repeats=1),
        Model("log and head: readers", readers, _begin, check_log, times=(START,), torn=True),
        Model(
            "log: a repeated send",
            senders,
            lambda _: None,
            _check_sent_once,
            _check_answered,
            times=(START,),
            repeats=1,
        ),
        Model(
            "log: a repeated answer",
            continuing,
            _begin,
            _check_continued_once,
            _check_answered,
            times=(START,),
            repeats=1,
        ),
    ]
