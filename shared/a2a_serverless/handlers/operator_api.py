"""The operator's API: the commands ``push list|show|redrive|pause|resume`` over HTTP, for operators' API keys.

``GET /operator/deliveries`` is what was given up, ``GET /operator/deliveries/TENANT/OWNER/TASK[/CONFIG]`` how webhooks
of a task stand, ``POST .../CONFIG/redrive`` (``pause``, ``resume``) steers one, ``POST /operator/deliveries/redrive``
all that were given up and are meant. ``POST /operator/erase`` with ``tenant``, ``owner``, and ``context`` or ``task``
if not all of the owner's is meant, asks the eraser function, which erases for as long as a request may take and says
how much is left; ``dryRun`` only counts. For whoever is no operator there is no such path.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from a2a_serverless.adapters.keys import path
from a2a_serverless.domain.errors import FieldViolation, InvalidParams, MethodNotFound, Overloaded, TaskNotFound
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.handlers.exchange import JSON, HttpAnswer, HttpRequest
from a2a_serverless.services.deliveries import (
    Selection,
    Switchboard,
    exhausted,
    pause,
    redrive,
    redrive_all,
    resume,
    standings,
)
from a2a_serverless.services.erase import Erased, order_of
from a2a_serverless.wire.deliveries import print_standing
from a2a_serverless.wire.document import dumps, loads
from a2a_serverless.wire.errors import VerbNotAllowed
from a2a_serverless.wire.rest import check_content_type
from a2a_serverless.wire.timestamps import from_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.push import Standing
    from a2a_serverless.handlers.gate import Gate
    from a2a_serverless.services.tasks import Desk
    from a2a_serverless.wire.limits import Limits

LISTED: Final = 100
LISTED_MOST: Final = 1000
_LIMIT: Final = re.compile(r"[1-9][0-9]{0,3}")
CHANGES: Final = {"redrive": redrive, "pause": pause, "resume": resume}


def serve_operator(
    desk: Desk,
    gate: Gate,
    request: HttpRequest,
    below: str,
    limits: Limits,
    eraser: Callable[[JsonObject], JsonObject] | None = None,
) -> HttpAnswer:
    """The answer to an operator's request. Raises Unauthenticated, MethodNotFound, TaskNotFound and the like."""
    gate.admit(request.headers)
    if not gate.operates(request.headers):
        raise MethodNotFound("There is no such path.")
    if request.body:
        check_content_type(request.headers.get("content-type"))
    if below == "erase" and eraser:
        _only(request, "POST")
        erased = dumps(_erase(eraser, loads(request.body, limits)))
        return HttpAnswer(200, erased, {"content-type": JSON, "cache-control": "no-store"})
    board = Switchboard(desk.log, desk.webhooks.store, desk.bells, desk.clock)
    answer = _answer(board, request, tuple(map(unquote, below.split("/"))), limits)
    return HttpAnswer(200, dumps(answer), {"content-type": JSON, "cache-control": "no-store"})


def _answer(board: Switchboard, request: HttpRequest, where: tuple[str, ...], limits: Limits) -> JsonObject:
    match where:
        case ("deliveries",):
            _only(request, "GET")
            return _list(exhausted(board, *_listed(dict(request.query))))
        case ("deliveries", "redrive"):
            _only(request, "POST")
            return _redrive_all(board, loads(request.body, limits))
        case ("deliveries", tenant, owner, task):
            _only(request, "GET")
            return _list(standings(board.log, board.store, TaskKey(tenant, owner, task)))
        case ("deliveries", tenant, owner, task, config):
            _only(request, "GET")
            return _named(_one(board, TaskKey(tenant, owner, task), config))
        case ("deliveries", tenant, owner, task, config, change) if change in CHANGES:
            _only(request, "POST")
            CHANGES[change](board, TaskKey(tenant, owner, task), config)
            return _named(_one(board, TaskKey(tenant, owner, task), config))
    raise MethodNotFound("There is no such path.")


def _erase(eraser: Callable[[JsonObject], JsonObject], wanted: Json) -> JsonObject:
    """The eraser's answer. What takes longer than the request may goes on: whoever asks again finds less."""
    order = order_of(wanted)
    try:
        return eraser(order.told())
    except TimeoutError:
        if order.dry_run:
            text = "Counting takes longer than a request may. The command a2a-serverless erase waits for it."
            raise Overloaded(text) from None
        return Erased(later=1).told()


def _redrive_all(board: Switchboard, wanted: Json) -> JsonObject:
    """``{"host": ..., "since": ...}``, or ``{"all": true}``: nobody redrives everything by an empty body."""
    if not isinstance(wanted, dict) or not (wanted.get("all") is True or wanted.get("host") or wanted.get("since")):
        raise InvalidParams("Say what is meant: host, since, or all: true.")
    told: list[Json] = [
        {"task": path(key.tenant, key.owner, key.task), "id": config_id}
        for key, config_id in redrive_all(board, _selection(wanted))
    ]
    return {"redriven": told}


def _listed(query: Mapping[str, str]) -> tuple[int, Selection]:
    limit = query.get("limit", str(LISTED))
    if not _LIMIT.fullmatch(limit) or int(limit) > LISTED_MOST:
        raise _wrong("limit", f"is a number from 1 to {LISTED_MOST}")
    return int(limit), _selection(query)


def _selection(wanted: Mapping[str, Json]) -> Selection:
    host, since = wanted.get("host") or "", wanted.get("since") or ""
    if not isinstance(host, str):
        raise _wrong("host", "is a name, or name:port")
    try:
        return Selection(host, from_text(str(since)) if since else 0)
    except ValueError:
        raise _wrong("since", "is a timestamp, such as 2026-05-28T09:30:00Z") from None


def _wrong(field: str, description: str) -> InvalidParams:
    return InvalidParams(violations=(FieldViolation(field, description),))


def _one(board: Switchboard, key: TaskKey, config: str) -> Standing:
    for one in standings(board.log, board.store, key):
        if one.config.config_id == config:
            return one
    raise TaskNotFound("The push notification configuration was not found.")


def _list(found: list[Standing]) -> JsonObject:
    listed: list[Json] = [_named(one) for one in found]
    return {"deliveries": listed}


def _named(one: Standing) -> JsonObject:
    """A webhook with its task as the paths of this API name it."""
    return {"task": path(one.key.tenant, one.key.owner, one.key.task), **print_standing(one)}


def _only(request: HttpRequest, verb: str) -> None:
    if request.verb != verb:
        raise VerbNotAllowed((verb,))
