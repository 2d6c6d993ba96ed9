"""News from an agent that a task of ours has called, and that agent's question whether the address is ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import MethodNotFound
from a2a_serverless.handlers.exchange import JSON, HttpAnswer, HttpRequest
from a2a_serverless.ports import News
from a2a_serverless.services.callbacks import take_news
from a2a_serverless.wire.document import dumps, loads
from a2a_serverless.wire.rest import check_content_type

if TYPE_CHECKING:
    from a2a_serverless.ports import Proofs
    from a2a_serverless.services.tasks import Desk
    from a2a_serverless.wire.limits import Limits

CALLBACKS: Final = "callbacks"


def take_callback(desk: Desk, proofs: Proofs, request: HttpRequest, below: str, limits: Limits) -> HttpAnswer:
    """Wakes the task whose call the path stands for.

    Raises TaskNotFound for what is not genuine, ContentTypeNotSupported for genuine news that is not sent as JSON.
    """
    if request.verb != "POST" or not below or "/" in below:
        raise MethodNotFound("There is no such path.")

    def check_body(body: bytes) -> None:
        check_content_type(request.headers.get("content-type"))
        loads(body, limits)

    challenge = take_news(desk, proofs, below, News(request.headers, request.body), check_body)
    return HttpAnswer(200, dumps({"challenge": challenge} if challenge else {}), {"content-type": JSON})
