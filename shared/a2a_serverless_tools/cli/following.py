"""Sends a message and follows its task, by a stream or by polls, until it ends or needs its client."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from a2a_serverless.client import Client, ClientEvent, DiscoveredAgent, Unreachable
from a2a_serverless.domain.errors import InvalidAgentResponse, UnsupportedOperation
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.protocol.v1 import (
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
)

PAUSE_S = 1.0
TRIES = 5
Sleep: TypeAlias = Callable[[float], None]
SETTLED = TERMINAL | INTERRUPTED


def make_request(
    message: Message, *, push: TaskPushNotificationConfig | None = None, wait: bool = False
) -> SendMessageRequest:
    """Returns the request that sends a message; without ``wait`` the agent answers at once."""
    configuration = SendMessageConfiguration(return_immediately=not wait, task_push_notification_config=push)
    return SendMessageRequest(message=message, configuration=configuration)


def send_and_follow(remote: DiscoveredAgent, request: SendMessageRequest, sleep: Sleep) -> Iterator[ClientEvent]:
    """Sends a message and yields what happens to its task."""
    if remote.card.capabilities.streaming:
        return _follow(remote.client, remote.client.stream(request), None, sleep)
    answer = remote.client.send(request)
    return iter([ClientEvent(None, answer)]) if isinstance(answer, Message) else _poll(remote.client, answer, sleep)


def watch(remote: DiscoveredAgent, task_id: str, sleep: Sleep) -> Iterator[ClientEvent]:
    """Yields a task's items and follows it. Agents of this project start at its first event, others at the present."""
    if remote.card.capabilities.streaming:
        return _follow(remote.client, _subscribed(remote.client, task_id, 0), task_id, sleep)
    return _poll(remote.client, remote.client.get(task_id), sleep)


def _follow(client: Client, items: Iterator[ClientEvent], task_id: str | None, sleep: Sleep) -> Iterator[ClientEvent]:
    """Yields the items of a stream and of further streams, each resumed behind the last event number.

    A stream ends when its function reaches its time limit, and a connection may break at any moment. Raises Unreachable
    when connections break ``TRIES`` times without an item between, or before the task's id is known.
    """
    last, failures = None, 0
    while True:
        try:
            for item in items:
                task_id, last, failures = item.task_id or task_id, item.n or last, 0
                yield item
                if _is_last(client, item):
                    return
        except Unreachable:
            failures += 1
            if failures == TRIES or not task_id:
                raise
        if not task_id:
            raise InvalidAgentResponse("The agent ended its stream without an item.")
        sleep(PAUSE_S)
        items = _subscribed(client, task_id, last)


def _is_last(client: Client, item: ClientEvent) -> bool:
    """True if nothing more happens without the client. An old question may have been answered since."""
    if item.state in INTERRUPTED and item.task_id:
        return client.get(item.task_id).status == item.status
    return item.state in TERMINAL or isinstance(item.content, Message)


def _subscribed(client: Client, task_id: str, last: int | None) -> Iterator[ClientEvent]:
    """Subscribes to the task. A task that has ended and has no more events has no stream: it is read instead."""
    try:
        yield from client.subscribe(task_id, last)
    except UnsupportedOperation:
        yield ClientEvent(None, client.get(task_id))


def _poll(client: Client, task: Task, sleep: Sleep) -> Iterator[ClientEvent]:
    """Polls an agent that does not stream: yields the task each time it has changed."""
    yield ClientEvent(None, task)
    while task.status.state not in SETTLED:
        sleep(PAUSE_S)
        before, task = task, client.get(task.id)
        if task != before:
            yield ClientEvent(None, task)
