"""``POST /{agent}/uploads``: an upload slot for a file that is too big for a message (our own addition).

The body ``{"sha256": <hex>, "size": <bytes>}`` gets the URL to PUT exactly that content to, the headers for that, and
the ``url`` for the part that names the file in a message. That ``url`` holds no owner: for other callers it names
nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.contents import LARGEST, UPLOADS, StoredFile
from a2a_serverless.domain.errors import FieldViolation, InvalidParams, MethodNotFound
from a2a_serverless.handlers.http_types import JSON, HttpRequest, HttpResponse
from a2a_serverless.protocol.errors import VerbNotAllowed
from a2a_serverless.protocol.strict_json import dumps, loads
from a2a_serverless.wire.rest import check_content_type

if TYPE_CHECKING:
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import Json
    from a2a_serverless.handlers.authentication import Authenticator
    from a2a_serverless.services.rate_limiter import RateLimiter
    from a2a_serverless.services.tasks import TaskService

_SHA256: Final = re.compile("[0-9a-f]{64}")


def serve_upload(
    service: TaskService,
    authenticator: Authenticator,
    limiter: RateLimiter | None,
    caller: Caller,
    agent: Agent,
    request: HttpRequest,
) -> HttpResponse:
    """Returns a slot for one upload. Raises InvalidParams, InsufficientScope, TooManyRequests and other A2AErrors."""
    if request.verb != "POST":
        raise VerbNotAllowed(("POST",))
    caller.check(agent.id, "operate")
    if service.contents is None:
        raise MethodNotFound("There is no such path.")
    tenant = dict(request.query).get("tenant")
    principal = authenticator.enter_tenant(caller.principal, tenant) if tenant else caller.principal
    check_content_type(request.headers.get("content-type"))
    upload = _requested_file(loads(request.body))
    if limiter:
        limiter.admit_upload(principal, upload.size)
    slot = service.contents.presign_put(principal, upload)
    body = dumps({"upload": {"url": slot.url, "headers": {**slot.headers}}, "part": {"url": upload.address}})
    return HttpResponse(200, body, {"content-type": JSON, "cache-control": "no-store"})


def _requested_file(body: Json) -> StoredFile:
    given = body if isinstance(body, dict) else {}
    sha256, size = given.get("sha256"), given.get("size")
    wrong = []
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        wrong.append(FieldViolation("sha256", "must be the SHA-256 of the content, 64 hex digits in lower case"))
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= LARGEST:
        wrong.append(FieldViolation("size", f"must be the number of bytes, from 1 to {LARGEST}"))
    if wrong:
        raise InvalidParams(violations=tuple(wrong))
    return StoredFile(UPLOADS, str(sha256), int(str(size)))
