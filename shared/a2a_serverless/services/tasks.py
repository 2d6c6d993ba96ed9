"""Send, get and cancel (specification 3.1.1, 3.1.3, 3.1.5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import head as heads
from a2a_serverless.domain.bells import WorkBell
from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.errors import FieldViolation, InvalidParams, Overloaded, TaskNotFound
from a2a_serverless.domain.events import Fold, Incoming
from a2a_serverless.domain.measures import UNMEASURED
from a2a_serverless.domain.model import Message, Principal, PushRequest, SendRequest, Task, TaskKey
from a2a_serverless.domain.states import INTERRUPTED, RUNNABLE
from a2a_serverless.ports import Bells, Clock, Contents, Here, Ids, Metrics, Opening, Receipt, TaskLog
from a2a_serverless.services.changes import change, found
from a2a_serverless.services.follow import OffLoop, in_thread
from a2a_serverless.services.push import Webhooks, new_config

if TYPE_CHECKING:
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.head import Change, Head, Life, Look
    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.services.listing import Shelf

POLL_FIRST_S: Final = 0.05
POLL_LAST_S: Final = 0.5
TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Desk:
    """What the client-facing use cases need. ``blocking_ms`` caps how long a blocking send waits.

    ``trace`` is that of the request which is served (``domain/trace.py``), ``caller`` whoever sent it.
    """

    log: TaskLog
    bells: Bells
    clock: Clock
    ids: Ids
    webhooks: Webhooks
    shelf: Shelf
    life: Life
    blocking_ms: int
    idempotent: bool = True
    off_loop: OffLoop = in_thread
    here: Here | None = None
    trace: str = ""
    metrics: Metrics = UNMEASURED
    contents: Contents | None = None
    caller: Caller | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """A message that has been taken in: the task's head, and the task itself when it is new."""

    head: Head
    task: Task | None


def send(desk: Desk, who: Principal, agent: str, request: SendRequest, wire: WireVersion) -> Task | Message:
    """Starts a task or goes on with one, or gives the message that an inline agent answers with.

    Waits for the task to end or to need its client, unless the request says ``return_immediately``; after
    ``blocking_ms`` it answers with the task as it is (a written deviation: the platform ends requests). That time
    begins with the request: what an inline agent thinks before it wants a task is part of it. A repeated message id
    gives the task that it made the first time.
    """
    until = desk.clock.now() + desk.blocking_ms
    begun = take_in(desk, who, agent, request, wire)
    if isinstance(begun, Message):
        return begun
    head = begun.head
    if request.return_immediately or not _run_here(desk, agent, head, until):
        ring(desk, head)
    if request.return_immediately:
        return begun.task or _read(desk.log, head.key)[1]
    return _wait(desk, head, until)


def take_in(desk: Desk, who: Principal, agent: str, request: SendRequest, wire: WireVersion) -> Begun | Message:
    """Stores a message as a new task's first event or an old one's next; the caller sees to it that it is run."""
    message = request.message
    if message.task_id is not None:
        return Begun(_continue(desk, who.key(message.task_id), agent, request, wire), None)
    placed = replace(message, context_id=message.context_id or desk.ids.new())
    reply = desk.here and desk.here.reply(agent, placed, request.accepted_output_modes)
    return reply or _start(desk, who, agent, request, wire)


def ring(desk: Desk, head: Head) -> None:
    """Rings for a task that can be run."""
    if head.state in RUNNABLE:
        desk.bells.ring(WorkBell(head.key))


def _run_here(desk: Desk, agent: str, head: Head, until: int) -> bool:
    left = max(0, until - desk.clock.now())
    return head.state in RUNNABLE and desk.here is not None and desk.here.run(agent, head.key, left)


def get(desk: Desk, who: Principal, agent: str, task_id: str) -> Task:
    """The task as of now, from one consistent query."""
    head, task = _read(desk.log, who.key(task_id))
    if head.agent != agent:
        raise TaskNotFound
    return task


def cancel(desk: Desk, who: Principal, agent: str, task_id: str) -> Task:
    """Ends the task; whoever runs it stops within a second or two. Raises TaskNotCancelable when it has ended."""
    key, by = who.key(task_id), desk.ids.new()
    canceled = change(
        desk.log, key, agent, lambda look: heads.cancel(look, now=desk.clock.now(), by=by, trace=desk.trace)
    )
    desk.metrics.count("TaskStates", state=canceled.after.state, task=task_id)
    if canceled.after.children:
        desk.bells.ring(WorkBell(key))  # a worker tells the agents that the task has called
    return _read(desk.log, key)[1]


def _start(desk: Desk, who: Principal, agent: str, request: SendRequest, wire: WireVersion) -> Begun:
    key = who.key(desk.ids.new())
    context_id = request.message.context_id or desk.ids.new()
    receipt = _receipt(desk, agent, request.message, key.task)
    incoming = _incoming(request, key.task, context_id)
    pushes = () if request.push is None else (new_config(desk.webhooks, key, request.push, wire),)
    head, event = heads.submit(
        key,
        agent,
        context_id,
        incoming,
        now=desk.clock.now(),
        by=desk.ids.new(),
        life=desk.life,
        push=bool(pushes),
        trace=desk.trace,
        caller=desk.caller,
    )
    earlier = desk.log.create(Opening(head, event, receipt, pushes))
    if earlier is not None:
        return Begun(_repeated(desk, who, agent, receipt, earlier), None)
    desk.metrics.count("TaskStates", state=head.state, task=key.task)
    first = Fold(key.task, context_id)
    first.apply(event)
    return Begun(head, first.task())


def _continue(desk: Desk, key: TaskKey, agent: str, request: SendRequest, wire: WireVersion) -> Head:
    message, by = request.message, desk.ids.new()
    receipt = _receipt(desk, agent, message, key.task)

    def decide(look: Look) -> Change:
        _check_context(message, look.head)
        incoming = _incoming(request, key.task, look.head.context_id)
        return heads.follow_up(look, incoming, now=desk.clock.now(), by=by, trace=desk.trace, caller=desk.caller)

    wanted = request.push
    for _ in range(TRIES):
        if receipt and (earlier := desk.log.receipt(key, agent, message.message_id)):
            return _repeated(desk, Principal(key.tenant, key.owner), agent, receipt, earlier)
        decided = decide(found(desk.log, key, agent))
        if wanted is not None:
            desk.webhooks.add(key, agent, _named(wanted, message), wire)
            wanted = None
        elif desk.log.append(decided, receipt):
            return decided.after
    raise Overloaded


def _named(wanted: PushRequest, message: Message) -> PushRequest:
    """A webhook that comes with a message is stored before it, under an id of the message's: sent again, it is one."""
    return replace(wanted, config_id=wanted.config_id or digest([message.message_id])[:32])


def _repeated(desk: Desk, who: Principal, agent: str, ours: Receipt | None, earlier: Receipt) -> Head:
    """The head of the task that the first send made; the same id with another content is refused."""
    if ours is None or earlier.digest != ours.digest:
        raise InvalidParams(violations=(_USED,))
    return found(desk.log, who.key(earlier.task), agent).head


_USED: Final = FieldViolation("message.messageId", "was used before with another content; use a new one")


def _receipt(desk: Desk, agent: str, message: Message, task_id: str) -> Receipt | None:
    return Receipt(agent, message.message_id, digest(message), task_id) if desk.idempotent else None


def _incoming(request: SendRequest, task_id: str, context_id: str) -> Incoming:
    message = replace(request.message, task_id=task_id, context_id=context_id)
    return Incoming(message, request.accepted_output_modes, request.metadata)


def _check_context(message: Message, head: Head) -> None:
    if message.context_id is not None and message.context_id != head.context_id:
        raise InvalidParams(violations=(FieldViolation("message.contextId", "is not the context of the task"),))


def _read(log: TaskLog, key: TaskKey) -> tuple[Head, Task]:
    read = log.task(key)
    if read is None:
        raise TaskNotFound
    return read


def _wait(desk: Desk, head: Head, until: int) -> Task:
    head, task = _read(desk.log, head.key)
    if _settled(head):
        return task
    pause = POLL_FIRST_S
    while not _settled(head) and (left := until - desk.clock.now()) > 0:
        desk.clock.sleep(min(pause, left / 1000))
        pause = min(pause * 1.5, POLL_LAST_S)
        look = desk.log.look(head.key)
        if look is None:
            raise TaskNotFound
        head = look.head
    return _read(desk.log, head.key)[1]


def _settled(head: Head) -> bool:
    return head.ended or head.state in INTERRUPTED
