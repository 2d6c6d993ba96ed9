"""After a verified notification: fetches the task that it is about, and passes both to the relays.

A notification says that something happened; the task has the current state. So the task is fetched (A2A 1.0
``GetTask``) when a status changed or an artifact is finished, but not for every chunk. The application gets a
``Delivery`` through a ``Relay``: the inbox is one, ``SnsRelay`` is an example of another.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from a2a_webhook_receiver import outbound, strict_json
from a2a_webhook_receiver.body import Content, read_task
from a2a_webhook_receiver.errors import Unreadable
from a2a_webhook_receiver.exchange import WebhookRequest
from a2a_webhook_receiver.verifier import VerifiedNotification

FETCH_SECONDS = 5.0
FETCH_BYTES = 8 * 1024 * 1024

Post = Callable[[str, bytes, Mapping[str, str]], bytes]
"""POSTs a body to a URL; returns the body of the 200 answer. Raises Unreachable."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A verified notification for the application, which gets each at least once.

    ``received_at``: ms since the epoch. ``late``: a later event of the same configuration came before. ``task``: the
    task's current state; None when it was not fetched, or when ``trouble`` says why it could not be. ``request`` is as
    received.
    """

    notification: VerifiedNotification
    received_at: int
    late: bool
    task: Content | None = None
    trouble: str | None = None
    request: WebhookRequest | None = None


class Relay(Protocol):
    """Receives deliveries. If it raises, it gets the notification again with the sender's next attempt."""

    def __call__(self, delivery: Delivery) -> None:
        """Handles the delivery completely before it returns."""


class TaskSource(Protocol):
    """Fetches tasks from agents."""

    def fetch(self, agent_url: str, task_id: str) -> Content:
        """The task's current state. Raises Unreachable or Unreadable."""


def with_task(delivery: Delivery, source: TaskSource) -> Delivery:
    """The delivery with its task, if that needs to be fetched. If it cannot be, the delivery goes on without it."""
    notification = delivery.notification
    agent_url = notification.expectation.agent_url
    if agent_url is None or not wants_task(notification.content):
        return delivery
    try:
        return replace(delivery, task=source.fetch(agent_url, notification.subject.task_id))
    except (outbound.Unreachable, Unreadable) as error:
        return replace(delivery, trouble=str(error))


def wants_task(content: Content) -> bool:
    """Whether to fetch the task: not if the notification has it already, and not for an unfinished artifact."""
    return content.kind != "task" and content.finished


def post_json(url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """A ``Post`` over HTTP, within the limits of this module."""
    return outbound.post(url, body, headers, seconds=FETCH_SECONDS, limit=FETCH_BYTES)


class JsonRpcTasks:
    """A ``TaskSource`` for A2A 1.0 over JSON-RPC (specification 1.0.1, section 9.4.3).

    ``authorization`` is sent only to agents under ``issuer``, never to another host.
    """

    def __init__(self, issuer: str, authorization: str | None = None, post: Post = post_json) -> None:
        self._issuer = issuer
        self._authorization = authorization
        self._post = post

    def fetch(self, agent_url: str, task_id: str) -> Content:
        request = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task_id}}
        answer = self._post(agent_url, json.dumps(request).encode(), self._headers(agent_url))
        task = _result(answer)
        if task.task_id != task_id:
            raise Unreadable("the agent answered with another task")
        return task

    def _headers(self, agent_url: str) -> dict[str, str]:
        headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
        if self._authorization is not None and agent_url.startswith(f"{self._issuer.rstrip('/')}/"):
            headers["Authorization"] = self._authorization
        return headers


def _result(answer: bytes) -> Content:
    try:
        body = strict_json.parse_object(answer)
    except ValueError as error:
        raise Unreadable(f"the agent's answer: {error}") from error
    problem, result = body.get("error"), body.get("result")
    if isinstance(problem, dict):
        raise Unreadable(f"the agent answered with error {problem.get('code')}")
    if not isinstance(result, dict):
        raise Unreadable("the agent answered with neither result nor error")
    return read_task(result)
