"""``GET /{agent}/tasks/{id}/deliveries``: the delivery status of a task's webhooks, for its owner (not in A2A)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from a2a_serverless.handlers.http_types import JSON, HttpRequest, HttpResponse
from a2a_serverless.protocol.errors import VerbNotAllowed
from a2a_serverless.protocol.strict_json import dumps

if TYPE_CHECKING:
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.handlers.authentication import Authenticator
    from a2a_serverless.services.tasks import TaskService


def task_of(below: str) -> str | None:
    """Returns the task id of a deliveries path below an agent's; None for every other path."""
    match below.split("/"):
        case ["tasks", task, "deliveries"] if task:
            return unquote(task)
    return None


def serve_deliveries(
    service: TaskService, authenticator: Authenticator, caller: Caller, agent: Agent, request: HttpRequest, task: str
) -> HttpResponse:
    """Returns the delivery status of the caller's task. Raises VerbNotAllowed, TaskNotFound, InsufficientScope."""
    from a2a_serverless.services.delivery_admin import list_deliveries
    from a2a_serverless.wire.deliveries import print_standings

    if request.verb != "GET":
        raise VerbNotAllowed(("GET",))
    caller.check(agent.id, "read")
    tenant = dict(request.query).get("tenant")
    key = (authenticator.enter_tenant(caller.principal, tenant) if tenant else caller.principal).key(task)
    body = dumps(print_standings(list_deliveries(service.log, service.webhooks.store, key, agent.id)))
    return HttpResponse(200, body, {"content-type": JSON, "cache-control": "no-store"})
