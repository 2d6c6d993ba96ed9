"""News from an agent that a task of ours has called, and that agent's question whether the URL is ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from a2a_serverless.domain.errors import MethodNotFound
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.handlers.exchange import JSON, HttpAnswer, HttpRequest
from a2a_serverless.services.callbacks import take_news
from a2a_serverless.wire.document import dumps, loads

if TYPE_CHECKING:
    from a2a_serverless.services.tasks import Desk
    from a2a_serverless.wire.limits import Limits

CALLBACKS: Final = "callbacks"
TOKEN_HEADER: Final = "x-a2a-notification-token"  # noqa: S105 - a name, not a token
_PARTS: Final = 4


def take_callback(desk: Desk, request: HttpRequest, below: str, limits: Limits) -> HttpAnswer:
    """Wakes the task that the path names. Raises TaskNotFound unless the token is that of the call."""
    names = [unquote(name) for name in below.split("/")]
    if request.verb != "POST" or len(names) != _PARTS:
        raise MethodNotFound("There is no such path.")
    tenant, owner, task, call = names
    document = loads(request.body, limits)
    take_news(desk, TaskKey(tenant, owner, task), call, request.headers.get(TOKEN_HEADER, ""))
    challenge = document.get("challenge") if isinstance(document, dict) else None
    return HttpAnswer(200, dumps({"challenge": challenge} if challenge else {}), {"content-type": JSON})
