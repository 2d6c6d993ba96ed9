"""Any operation of A2A, version-free: request in, answer out. The edge decodes before and encodes after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from a2a_serverless.domain.agent import Agent
from a2a_serverless.domain.errors import PushNotSupported, UnsupportedOperation
from a2a_serverless.domain.model import Principal, SendRequest
from a2a_serverless.domain.push import WireVersion
from a2a_serverless.domain.queries import (
    Answer,
    CancelTask,
    CreatePush,
    DeletePush,
    GetPush,
    GetTask,
    ListPushes,
    PushPage,
    Request,
    TaskPush,
    shown,
)
from a2a_serverless.services import push, tasks
from a2a_serverless.services.tasks import Desk

Server: TypeAlias = Callable[[Desk, Principal, Agent, Any, WireVersion], Answer]


def serve(desk: Desk, who: Principal, agent: Agent, request: Request, wire: WireVersion) -> Answer:
    """The answer to a request that does not stream. Raises A2AError for what is refused."""
    server = _SERVERS.get(type(request))
    if server is None:
        raise UnsupportedOperation
    return server(desk, who, agent, request, wire)


def _send(desk: Desk, who: Principal, agent: Agent, request: SendRequest, wire: WireVersion) -> Answer:
    if request.push is not None:
        _check_push(agent)
    return shown(tasks.send(desk, who, agent.id, request, wire), request.history_length)


def _get(desk: Desk, who: Principal, agent: Agent, request: GetTask, _: WireVersion) -> Answer:
    return shown(tasks.get(desk, who, agent.id, request.task_id), request.history_length)


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
    CancelTask: _cancel,
    CreatePush: _create_push,
    GetPush: _get_push,
    ListPushes: _list_pushes,
    DeletePush: _delete_push,
}
