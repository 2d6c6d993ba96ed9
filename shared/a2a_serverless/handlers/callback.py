"""``POST /callbacks/{id}``: notifications from agents that a task has called, and their ownership challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import MethodNotFound
from a2a_serverless.handlers.http_types import JSON, HttpRequest, HttpResponse
from a2a_serverless.ports.agents import CallbackRequest
from a2a_serverless.protocol.strict_json import dumps, loads
from a2a_serverless.services.callbacks import handle_callback
from a2a_serverless.wire.rest import check_content_type

if TYPE_CHECKING:
    from a2a_serverless.ports.agents import CallbackVerifier
    from a2a_serverless.protocol.limits import Limits
    from a2a_serverless.services.tasks import TaskService

CALLBACKS: Final = "callbacks"


def answer_callback(
    service: TaskService, verifier: CallbackVerifier, request: HttpRequest, below: str, limits: Limits
) -> HttpResponse:
    """Resumes the task whose call the path names; echoes a challenge.

    Raises TaskNotFound for a request that is not genuine, ContentTypeNotSupported for a genuine one that is not JSON.
    """
    if request.verb != "POST" or not below or "/" in below:
        raise MethodNotFound("There is no such path.")

    def check_body(body: bytes) -> None:
        check_content_type(request.headers.get("content-type"))
        loads(body, limits)

    challenge = handle_callback(service, verifier, below, CallbackRequest(request.headers, request.body), check_body)
    return HttpResponse(200, dumps({"challenge": challenge} if challenge else {}), {"content-type": JSON})
