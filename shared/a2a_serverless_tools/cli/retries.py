"""The request to retry a task, which deployments of this project take beside those of the protocol."""

from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from a2a_serverless.client import Client, ClientRequest, HttpError
from a2a_serverless.domain.errors import A2AError, TaskNotFound
from a2a_serverless.protocol import peers
from a2a_serverless.protocol.additions import RetryRequest
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS, loads
from a2a_serverless.protocol.v1 import Task
from a2a_serverless_tools.cli.options import UserError
from a2a_serverless_tools.cli.terminal import quote_words


class RetryRefused(UserError):
    """The task cannot be retried, or not from this step."""


def post_retry(client: Client, task_id: str, from_step: str | None, trace: str) -> Task:
    """Retries a task and returns the new one. ``trace`` is the command that shows its steps.

    Raises RetryRefused, TaskNotFound, Unreachable, HttpError.
    """
    address = f"{client.url}/tasks/{quote(task_id, safe='')}/retry"
    address += f"?tenant={quote(client.tenant, safe='')}" if client.tenant else ""
    headers = {"A2A-Version": "1.0", "Content-Type": "application/json", **client.headers}
    body = RetryRequest(request_id=uuid4().hex, from_step=from_step).json_bytes()
    with client.transport(ClientRequest(address, headers, body)) as answer:
        status, content = answer.status, answer.body.read(ANSWER_LIMITS.body + 1)
    if status == HTTPStatus.NOT_FOUND:
        raise TaskNotFound("The task was not found, or the agent's deployment is not of this project.")
    if status != HTTPStatus.OK:
        raise _refusal(status, content, from_step, trace)
    return peers.read_task("1.0", loads(content, ANSWER_LIMITS))


def _refusal(status: int, content: bytes, from_step: str | None, trace: str) -> Exception:
    try:
        error: Any = loads(content, ANSWER_LIMITS)
        text = str(error["error"]["message"])
        fields = [one for detail in error["error"].get("details", []) for one in detail.get("fieldViolations", [])]
        if from_step and any(one["field"] == "fromStep" for one in fields):
            return RetryRefused(f"--from {quote_words(from_step)} names no step that has ended in this task.", trace)
        steps = [f"{one['field']}: {one['description']}" for one in fields if one["description"] not in text]
    except (A2AError, KeyError, TypeError, AttributeError):
        return HttpError(status, "")
    if status != HTTPStatus.BAD_REQUEST:
        return HttpError(status, text)
    return RetryRefused("\n".join([text, *steps]), "`trace` shows the task's steps, `get` how it has ended")
