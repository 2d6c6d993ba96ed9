"""``GET /{agent}/tasks/{id}/deliveries``: an owner sees how the webhooks of a task stand (our own addition)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from a2a_serverless.handlers.exchange import JSON, HttpAnswer, HttpRequest
from a2a_serverless.wire.document import dumps
from a2a_serverless.wire.errors import VerbNotAllowed

if TYPE_CHECKING:
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.handlers.gate import Gate
    from a2a_serverless.services.tasks import Desk


def task_of(below: str) -> str | None:
    """The task whose deliveries a path below an agent's asks for; None for every other path."""
    match below.split("/"):
        case ["tasks", task, "deliveries"] if task:
            return unquote(task)
    return None


def serve_deliveries(
    desk: Desk, gate: Gate, caller: Caller, agent: Agent, request: HttpRequest, task: str
) -> HttpAnswer:
    """The delivery log of a task of the caller's. Raises TaskNotFound, InsufficientScope."""
    from a2a_serverless.services.deliveries import deliveries
    from a2a_serverless.wire.deliveries import print_standings

    if request.verb != "GET":
        raise VerbNotAllowed(("GET",))
    caller.check(agent.id, "read")
    tenant = dict(request.query).get("tenant")
    key = (gate.enter(caller.who, tenant) if tenant else caller.who).key(task)
    body = dumps(print_standings(deliveries(desk.log, desk.webhooks.store, key, agent.id)))
    return HttpAnswer(200, body, {"content-type": JSON, "cache-control": "no-store"})
