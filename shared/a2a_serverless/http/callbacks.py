"""``POST /callbacks/{id}``: notifications from agents that a task has called, and their ownership challenges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.http.answers import json_answer
from a2a_serverless.http.api import no_such_path
from a2a_serverless.ports.agents import CallbackRequest
from a2a_serverless.protocol.strict_json import loads
from a2a_serverless.services.callbacks import handle_callback

if TYPE_CHECKING:
    from starlette.responses import Response

    from a2a_serverless.http.api import Api
    from a2a_serverless.http.requests import HttpRequest


def answer_callback(api: Api, request: HttpRequest) -> Response:
    """Resumes the task whose call the path names; echoes a challenge.

    Raises TaskNotFound for a request that is not genuine, ContentTypeNotSupported for a genuine one that is not JSON.
    """
    from a2a_serverless.protocol.additions import CallbackResponse

    if request.verb != "POST":
        raise no_such_path()

    def check_body(body: bytes) -> None:
        request.check_content_type()
        loads(body, api.limits)

    news = CallbackRequest(request.headers, request.body)
    challenge = handle_callback(api.service, api.verifier, request.params["id"], news, check_body)
    return json_answer(CallbackResponse(challenge=challenge).json_bytes(), {})
