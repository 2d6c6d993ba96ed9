"""Any operation of A2A, version-free: request in, answer out. The edge decodes before and encodes after."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from a2a_serverless.domain.errors import PushNotSupported, UnsupportedOperation
from a2a_serverless.domain.model import Message, SendRequest
from a2a_serverless.domain.queries import (
    CancelTask,
    CreatePush,
    DeletePush,
    GetPush,
    GetTask,
    ListPushes,
    ListTasks,
    PushPage,
    SubscribeToTask,
    TaskPush,
    shown,
)
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.services import push, tasks
from a2a_serverless.services.follow import TURN_ENDS, Item, Stream, begin, follow
from a2a_serverless.services.listing import list_tasks

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import Principal, Task, TaskKey, TaskState
    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.domain.queries import Answer, Request
    from a2a_serverless.services.follow import Beat
    from a2a_serverless.services.tasks import Begun, Desk

    Server: TypeAlias = Callable[[Desk, Principal, Agent, Any, WireVersion], Answer]


def serve(desk: Desk, who: Principal, agent: Agent, request: Request, wire: WireVersion) -> Answer:
    """The answer to a request that does not stream. Raises A2AError for what is refused."""
    server = _SERVERS.get(type(request))
    if server is None:
        raise UnsupportedOperation
    return server(desk, who, agent, request, wire)


@dataclass(frozen=True, slots=True)
class Opened:
    """A stream that has begun."""

    task_id: str
    context_id: str
    items: AsyncIterator[Item | Beat]


def open_stream(  # noqa: PLR0913 - who asks what of whom, from where, until when
    desk: Desk, who: Principal, agent: Agent, request: Request, wire: WireVersion, after: int | None, until: int
) -> Opened:
    """The stream that a sent message or a subscription opens. ``after`` is the last event that the client has seen.

    Raises A2AError for what is refused. A send stream ends where the turn becomes the client's; a subscription goes on
    until the task ends (specification 3.1.2, 3.1.6, 11.7; which of them when is written down in docs/deviations.md).
    """
    if not agent.streaming:
        raise UnsupportedOperation("This agent does not stream.")
    if isinstance(request, SubscribeToTask):
        key, ends = who.key(request.task_id), TERMINAL
    elif isinstance(request, SendRequest):
        begun = _begin_to_send(desk, who, agent, request, wire, until)
        if isinstance(begun, Message):
            return Opened("", begun.context_id or "", _only(begun))
        key, ends = begun.head.key, TURN_ENDS
    else:
        raise UnsupportedOperation
    task, first = begin(desk.log, key, agent.id, after, ends_fine=ends is TURN_ENDS)
    stream = Stream(desk.log, desk.clock, until, desk.off_loop)
    return Opened(key.task, task.context_id, _items(stream, key, task, first, after, ends))


def _begin_to_send(
    desk: Desk, who: Principal, agent: Agent, request: SendRequest, wire: WireVersion, until: int
) -> Begun | Message:
    if request.push is not None:
        _check_push(agent)
    begun = tasks.take_in(desk, who, agent.id, request, wire)
    if isinstance(begun, Message):
        return begun
    time_ms = until - desk.clock.now()
    if desk.here is None or not desk.here.start(agent.id, begun.head.key, time_ms):
        tasks.ring(desk, begun.head)
    return begun


async def _only(message: Message) -> AsyncIterator[Item | Beat]:
    """A stream that is one message (specification 3.1.2)."""
    yield Item(None, message)


async def _items(
    stream: Stream, key: TaskKey, task: Task, first: Item | None, after: int | None, ends: frozenset[TaskState]
) -> AsyncIterator[Item | Beat]:
    if first:
        yield first
        if task.status.state in ends:
            return
    async for item in follow(stream, key, task.n if first or after is None else after, ends):
        yield item


def _send(desk: Desk, who: Principal, agent: Agent, request: SendRequest, wire: WireVersion) -> Answer:
    if request.push is not None:
        _check_push(agent)
    sent = tasks.send(desk, who, agent.id, request, wire)
    return sent if isinstance(sent, Message) else shown(sent, request.history_length)


def _get(desk: Desk, who: Principal, agent: Agent, request: GetTask, _: WireVersion) -> Answer:
    return shown(tasks.get(desk, who, agent.id, request.task_id), request.history_length)


def _list(desk: Desk, who: Principal, agent: Agent, request: ListTasks, _: WireVersion) -> Answer:
    return list_tasks(desk.shelf, who, agent.id, request)


def _cancel(desk: Desk, who: Principal, agent: Agent, request: CancelTask, _: WireVersion) -> Answer:
    return tasks.cancel(desk, who, agent.id, request.task_id)


def _create_push(desk: Desk, who: Principal, agent: Agent, request: CreatePush, wire: WireVersion) -> Answer:
    _check_push(agent)
    return TaskPush(request.task_id, desk.webhooks.add(who.key(request.task_id), agent.id, request.push, wire))


def _get_push(desk: Desk, who: Principal, agent: Agent, request: GetPush, _: WireVersion) -> Answer:
    _check_push(agent)
    config = push.get(desk.webhooks, who.key(request.task_id), agent.id, request.config_id)
    return TaskPush(request.task_id, config)


def _list_pushes(desk: Desk, who: Principal, agent: Agent, request: ListPushes, _: WireVersion) -> Answer:
    _check_push(agent)
    configs = push.all_of(desk.webhooks, who.key(request.task_id), agent.id)
    return PushPage(tuple(TaskPush(request.task_id, config) for config in configs))


def _delete_push(desk: Desk, who: Principal, agent: Agent, request: DeletePush, _: WireVersion) -> Answer:
    _check_push(agent)
    push.delete(desk.webhooks, who.key(request.task_id), agent.id, request.config_id)
    return None


def _check_push(agent: Agent) -> None:
    if not agent.push:
        raise PushNotSupported


_SERVERS: Final[dict[type, Server]] = {
    SendRequest: _send,
    GetTask: _get,
    ListTasks: _list,
    CancelTask: _cancel,
    CreatePush: _create_push,
    GetPush: _get_push,
    ListPushes: _list_pushes,
    DeletePush: _delete_push,
}
