"""The operator's API: the commands ``push list|show|redrive|pause|resume`` and ``erase`` over HTTP.

It needs an operator's API key; other callers get "not found".

- ``GET /operator/deliveries`` lists the exhausted webhooks (query: ``limit``, ``host``, ``since``).
- ``GET /operator/deliveries/TENANT/OWNER/TASK[/CONFIG]`` shows the webhooks of a task, or one of them.
- ``POST /operator/deliveries/TENANT/OWNER/TASK/CONFIG/redrive`` (``pause``, ``resume``) changes one.
- ``POST /operator/deliveries/redrive`` redrives the exhausted webhooks that its body selects.
- ``POST /operator/erase`` with ``tenant``, ``owner``, and ``context`` or ``task`` for less than the whole owner, calls
  the eraser function, which erases for a limited time and returns how much is left. With ``dryRun`` it only counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from a2a_serverless.adapters.dynamodb.keys import path
from a2a_serverless.domain.errors import Overloaded, TaskNotFound
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.http.api import no_such_path
from a2a_serverless.http.messages import json_answer
from a2a_serverless.http.routes import Description
from a2a_serverless.protocol.additions import (
    Deliveries,
    Delivery,
    EraseRequest,
    EraseResponse,
    ListDeliveriesQuery,
    RedrivenDelivery,
    RedriveRequest,
    RedriveResponse,
)
from a2a_serverless.protocol.protojson import as_json, read_model
from a2a_serverless.protocol.strict_json import dumps, loads
from a2a_serverless.services.delivery_admin import (
    DeliveryAdmin,
    list_exhausted,
    list_statuses,
    pause,
    redrive,
    redrive_all,
    resume,
)
from a2a_serverless.services.erasure import make_response

if TYPE_CHECKING:
    from starlette.responses import Response

    from a2a_serverless.domain.push import WebhookStatus
    from a2a_serverless.http.api import Api
    from a2a_serverless.http.messages import HttpRequest
    from a2a_serverless.protocol.protojson import ProtoModel

Change = Callable[[DeliveryAdmin, TaskKey, str], object]
M = TypeVar("M", bound="ProtoModel")


def check_operator(api: Api, request: HttpRequest) -> None:
    """Raises Unauthenticated, and MethodNotFound if the caller is no operator."""
    api.authenticator.authenticate(request.headers)
    if not api.authenticator.is_operator(request.headers):
        raise no_such_path()
    if request.body:
        request.check_content_type()


def _admin(api: Api, request: HttpRequest) -> DeliveryAdmin:
    check_operator(api, request)
    return DeliveryAdmin(api.service.log, api.service.webhooks().store, api.service.queues, api.service.clock)


def list_given_up(api: Api, request: HttpRequest) -> Response:
    """The webhooks that were given up."""
    admin, query = _admin(api, request), read_model(ListDeliveriesQuery, dict(request.query), api.limits)
    return _listed(list_exhausted(admin, query.limit, query))


def redrive_many(api: Api, request: HttpRequest) -> Response:
    """Redrives the webhooks that the body selects."""
    admin, wanted = _admin(api, request), _body(RedriveRequest, api, request)
    done = [
        RedrivenDelivery(task=path(key.tenant, key.owner, key.task), id=config_id)
        for key, config_id in redrive_all(admin, wanted)
    ]
    return json_answer(RedriveResponse(redriven=tuple(done)).json_bytes())


def show_task(api: Api, request: HttpRequest) -> Response:
    """The webhooks of a task."""
    admin = _admin(api, request)
    return _listed(list_statuses(admin.log, admin.store, _key(request)))


def show_webhook(api: Api, request: HttpRequest) -> Response:
    """One webhook of a task."""
    return _one(_admin(api, request), request)


def change_webhook(change: Change, api: Api, request: HttpRequest) -> Response:
    """Redrives, pauses or resumes a webhook, and returns its status after that."""
    admin = _admin(api, request)
    change(admin, _key(request), request.params["config"])
    return _one(admin, request)


def erase(api: Api, request: HttpRequest) -> Response:
    """The eraser's answer. If the request's time is over first, the eraser goes on, and ``later`` is 1."""
    check_operator(api, request)
    if api.eraser is None:
        raise no_such_path()
    wanted = _body(EraseRequest, api, request)
    try:
        erased = api.eraser(as_json(wanted))
    except TimeoutError:
        if wanted.dry_run:
            text = "Counting takes longer than a request may. The command a2a-serverless erase waits for it."
            raise Overloaded(text) from None
        erased = as_json(make_response(later=1))
    return json_answer(dumps(erased))


def _body(model: type[M], api: Api, request: HttpRequest) -> M:
    return read_model(model, loads(request.body, api.limits), api.limits)


def _key(request: HttpRequest) -> TaskKey:
    return TaskKey(request.params["tenant"], request.params["owner"], request.params["task"])


def _one(admin: DeliveryAdmin, request: HttpRequest) -> Response:
    for one in list_statuses(admin.log, admin.store, _key(request)):
        if one.config.config_id == request.params["config"]:
            return json_answer(named_delivery(one).json_bytes())
    raise TaskNotFound("The push notification configuration was not found.")


def _listed(found: list[WebhookStatus]) -> Response:
    return json_answer(Deliveries(deliveries=tuple(map(named_delivery, found))).json_bytes())


def named_delivery(one: WebhookStatus) -> Delivery:
    """A webhook's status with its task, written as in the paths of this API."""
    return Delivery.of(one, path(one.key.tenant, one.key.owner, one.key.task))


ALL: Final = "/operator/deliveries"
TASK: Final = ALL + "/{tenant:name}/{owner:name}/{task:name}"
ONE: Final = TASK + "/{config:name}"
OPERATIONS: Final = (
    (
        "/operator/deliveries",
        "GET",
        "ListDeliveries",
        list_given_up,
        Description(Deliveries, None, ListDeliveriesQuery),
    ),
    (ALL + "/redrive", "POST", "RedriveDeliveries", redrive_many, Description(RedriveResponse, RedriveRequest)),
    (TASK, "GET", "ListDeliveriesOfTask", show_task, Description(Deliveries)),
    (ONE, "GET", "GetDelivery", show_webhook, Description(Delivery)),
    (ONE + "/redrive", "POST", "RedriveDelivery", partial(change_webhook, redrive), Description(Delivery)),
    (ONE + "/pause", "POST", "PauseDelivery", partial(change_webhook, pause), Description(Delivery)),
    (ONE + "/resume", "POST", "ResumeDelivery", partial(change_webhook, resume), Description(Delivery)),
    ("/operator/erase", "POST", "Erase", erase, Description(EraseResponse, EraseRequest)),
)
