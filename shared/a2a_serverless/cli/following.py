"""Following a task until it is done or needs its client: by its stream, and when that breaks off, by the next one."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from a2a_serverless.client import Client, DiscoveredAgent, StreamResponse, Unreachable
from a2a_serverless.domain.errors import InvalidAgentResponse, UnsupportedOperation
from a2a_serverless.domain.model import Message, SendRequest, Task
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL

PAUSE_S = 1.0
TRIES = 5
Sleep: TypeAlias = Callable[[float], None]
SETTLED = TERMINAL | INTERRUPTED


def send_and_follow(found: DiscoveredAgent, request: SendRequest, sleep: Sleep) -> Iterator[StreamResponse]:
    """Sends a message and follows what becomes of it."""
    if found.card.streaming:
        return _follow(found.client, found.client.stream(request), None, sleep)
    sent = found.client.send(request)
    return iter([StreamResponse(None, sent)]) if isinstance(sent, Message) else _poll(found.client, sent, sleep)


def watch(found: DiscoveredAgent, task_id: str, sleep: Sleep) -> Iterator[StreamResponse]:
    """Tells what has happened to a task since its first event, and follows it. Only agents of ours tell of the past."""
    if found.card.streaming:
        return _follow(found.client, _subscribed(found.client, task_id, 0), task_id, sleep)
    return _poll(found.client, found.client.get(task_id), sleep)


def _follow(
    client: Client, items: Iterator[StreamResponse], task_id: str | None, sleep: Sleep
) -> Iterator[StreamResponse]:
    """The items, and after them those of further streams, each behind the last number that was seen.

    A stream ends when its function's time is over, and a connection may break at any moment. Raises Unreachable when
    that happens ``TRIES`` times without news, or before anything is known of the task.
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
            raise InvalidAgentResponse("The agent ended its stream without a word.")
        sleep(PAUSE_S)
        items = _subscribed(client, task_id, last)


def _is_last(client: Client, item: StreamResponse) -> bool:
    """Whether nothing more happens without the client. A question of the past may have been answered since."""
    if item.state in INTERRUPTED and item.task_id:
        return client.get(item.task_id).status == item.status
    return item.state in TERMINAL or isinstance(item.content, Message)


def _subscribed(client: Client, task_id: str, last: int | None) -> Iterator[StreamResponse]:
    """The task's stream. A task that has ended, with nothing more to tell, has none: it is read instead."""
    try:
        yield from client.subscribe(task_id, last)
    except UnsupportedOperation:
        yield StreamResponse(None, client.get(task_id))


def _poll(client: Client, task: Task, sleep: Sleep) -> Iterator[StreamResponse]:
    """The same for an agent that does not stream: the task, each time that it has changed."""
    yield StreamResponse(None, task)
    while task.status.state not in SETTLED:
        sleep(PAUSE_S)
        before, task = task, client.get(task.task_id)
        if task != before:
            yield StreamResponse(None, task)
