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

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from a2a_serverless.adapters.dynamodb.keys import path
from a2a_serverless.domain.errors import FieldViolation, InvalidParams, MethodNotFound, Overloaded, TaskNotFound
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.handlers.http_types import JSON, HttpRequest, HttpResponse
from a2a_serverless.protocol.errors import VerbNotAllowed
from a2a_serverless.protocol.strict_json import dumps, loads
from a2a_serverless.protocol.timestamps import from_text
from a2a_serverless.services.delivery_admin import (
    DeliveryAdmin,
    Selection,
    list_exhausted,
    list_statuses,
    pause,
    redrive,
    redrive_all,
    resume,
)
from a2a_serverless.services.erasure import ErasureResult, parse_request
from a2a_serverless.wire.deliveries import print_standing
from a2a_serverless.wire.rest import check_content_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.push import WebhookStatus
    from a2a_serverless.handlers.authentication import Authenticator
    from a2a_serverless.protocol.limits import Limits
    from a2a_serverless.services.tasks import TaskService

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1000
_LIMIT: Final = re.compile(r"[1-9][0-9]{0,3}")
CHANGES: Final = {"redrive": redrive, "pause": pause, "resume": resume}


def serve_operator(
    service: TaskService,
    authenticator: Authenticator,
    request: HttpRequest,
    below: str,
    limits: Limits,
    eraser: Callable[[JsonObject], JsonObject] | None = None,
) -> HttpResponse:
    """Returns the answer to an operator's request.

    Raises Unauthenticated, MethodNotFound, TaskNotFound and other A2AErrors.
    """
    authenticator.authenticate(request.headers)
    if not authenticator.is_operator(request.headers):
        raise MethodNotFound("There is no such path.")
    if request.body:
        check_content_type(request.headers.get("content-type"))
    if below == "erase" and eraser:
        _only(request, "POST")
        erased = dumps(_erase(eraser, loads(request.body, limits)))
        return HttpResponse(200, erased, {"content-type": JSON, "cache-control": "no-store"})
    admin = DeliveryAdmin(service.log, service.webhooks.store, service.queues, service.clock)
    answer = _answer(admin, request, tuple(map(unquote, below.split("/"))), limits)
    return HttpResponse(200, dumps(answer), {"content-type": JSON, "cache-control": "no-store"})


def _answer(admin: DeliveryAdmin, request: HttpRequest, where: tuple[str, ...], limits: Limits) -> JsonObject:
    match where:
        case ("deliveries",):
            _only(request, "GET")
            return _list(list_exhausted(admin, *_list_query(dict(request.query))))
        case ("deliveries", "redrive"):
            _only(request, "POST")
            return _redrive_all(admin, loads(request.body, limits))
        case ("deliveries", tenant, owner, task):
            _only(request, "GET")
            return _list(list_statuses(admin.log, admin.store, TaskKey(tenant, owner, task)))
        case ("deliveries", tenant, owner, task, config):
            _only(request, "GET")
            return _named(_one(admin, TaskKey(tenant, owner, task), config))
        case ("deliveries", tenant, owner, task, config, change) if change in CHANGES:
            _only(request, "POST")
            CHANGES[change](admin, TaskKey(tenant, owner, task), config)
            return _named(_one(admin, TaskKey(tenant, owner, task), config))
    raise MethodNotFound("There is no such path.")


def _erase(eraser: Callable[[JsonObject], JsonObject], wanted: Json) -> JsonObject:
    """Returns the eraser's answer. If the request's time is over first, the eraser goes on, and ``later`` is 1."""
    order = parse_request(wanted)
    try:
        return eraser(order.to_json())
    except TimeoutError:
        if order.dry_run:
            text = "Counting takes longer than a request may. The command a2a-serverless erase waits for it."
            raise Overloaded(text) from None
        return ErasureResult(later=1).to_json()


def _redrive_all(admin: DeliveryAdmin, wanted: Json) -> JsonObject:
    """Body: ``{"host": ..., "since": ...}``, or ``{"all": true}``; an empty body is refused, not taken for all."""
    if not isinstance(wanted, dict) or not (wanted.get("all") is True or wanted.get("host") or wanted.get("since")):
        raise InvalidParams("Say what is meant: host, since, or all: true.")
    told: list[Json] = [
        {"task": path(key.tenant, key.owner, key.task), "id": config_id}
        for key, config_id in redrive_all(admin, _selection(wanted))
    ]
    return {"redriven": told}


def _list_query(query: Mapping[str, str]) -> tuple[int, Selection]:
    limit = query.get("limit", str(DEFAULT_PAGE))
    if not _LIMIT.fullmatch(limit) or int(limit) > MAX_PAGE:
        raise _invalid("limit", f"is a number from 1 to {MAX_PAGE}")
    return int(limit), _selection(query)


def _selection(wanted: Mapping[str, Json]) -> Selection:
    host, since = wanted.get("host") or "", wanted.get("since") or ""
    if not isinstance(host, str):
        raise _invalid("host", "is a name, or name:port")
    try:
        return Selection(host, from_text(str(since)) if since else 0)
    except ValueError:
        raise _invalid("since", "is a timestamp, such as 2026-05-28T09:30:00Z") from None


def _invalid(field: str, description: str) -> InvalidParams:
    return InvalidParams(violations=(FieldViolation(field, description),))


def _one(admin: DeliveryAdmin, key: TaskKey, config: str) -> WebhookStatus:
    for one in list_statuses(admin.log, admin.store, key):
        if one.config.config_id == config:
            return one
    raise TaskNotFound("The push notification configuration was not found.")


def _list(found: list[WebhookStatus]) -> JsonObject:
    listed: list[Json] = [_named(one) for one in found]
    return {"deliveries": listed}


def _named(one: WebhookStatus) -> JsonObject:
    """A webhook's status with its task, written as in the paths of this API."""
    return {"task": path(one.key.tenant, one.key.owner, one.key.task), **print_standing(one)}


def _only(request: HttpRequest, verb: str) -> None:
    if request.verb != verb:
        raise VerbNotAllowed((verb,))
