"""What we add to an agent's paths: upload slots, and the delivery log of a task.

``POST /{agent}/uploads`` with ``{"sha256": <hex>, "size": <bytes>}`` is for a file that is too big for a message. It
gets the URL to PUT exactly that content to, the headers for that, and the ``url`` of the part that names the file.
That ``url`` holds no owner: for other callers it names nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.contents import UPLOADS, StoredFile
from a2a_serverless.http.answers import json_answer
from a2a_serverless.http.api import no_such_path
from a2a_serverless.http.routes import Description
from a2a_serverless.protocol.additions import (
    Deliveries,
    Delivery,
    UploadedPart,
    UploadRequest,
    UploadResponse,
    UploadTarget,
)
from a2a_serverless.protocol.strict_json import loads
from a2a_serverless.protocol.validation import read
from a2a_serverless.services.delivery_admin import list_deliveries

if TYPE_CHECKING:
    from starlette.responses import Response

    from a2a_serverless.http.api import Api
    from a2a_serverless.http.requests import HttpRequest


def create_upload(api: Api, request: HttpRequest) -> Response:
    """A slot for one upload. Raises InvalidParams, InsufficientScope, TooManyRequests and other A2AErrors."""
    agent, caller = api.agent(request), api.sign_in(request)
    caller.check(agent.id, "operate")
    if api.service.contents is None:
        raise no_such_path()
    principal = api.principal(caller, dict(request.query).get("tenant"))
    request.check_content_type()
    wanted = read(UploadRequest, loads(request.body))
    upload = StoredFile(UPLOADS, wanted.sha256, wanted.size)
    if api.limiter:
        api.limiter.admit_upload(principal, upload.size)
    slot = api.service.contents.presign_put(principal, upload)
    target = UploadTarget(url=slot.url, headers=dict(slot.headers))
    return json_answer(UploadResponse(upload=target, part=UploadedPart(url=upload.address)).json_bytes())


def show_deliveries(api: Api, request: HttpRequest) -> Response:
    """The delivery status of the webhooks of the caller's task. Raises TaskNotFound, InsufficientScope."""
    agent, caller = api.agent(request), api.sign_in(request)
    caller.check(agent.id, "read")
    key = api.principal(caller, dict(request.query).get("tenant")).key(request.params["taskId"])
    found = list_deliveries(api.service.log, api.service.webhooks.store, key, agent.id)
    return json_answer(Deliveries(deliveries=tuple(map(Delivery.of, found))).json_bytes())


TASK: Final = "/{agent:agent}/tasks/{taskId:name}"
ADDED: Final = (
    ("/{agent:agent}/uploads", "POST", "CreateUpload", create_upload, Description(UploadResponse, UploadRequest)),
    (TASK + "/deliveries", "GET", "ListTaskDeliveries", show_deliveries, Description(Deliveries)),
)
