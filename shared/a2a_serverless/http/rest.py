"""HTTP+JSON (specification 11), and our additions: uploads and delivery logs, by FastAPI.

FastAPI routes and describes. The codecs read the bodies, as over JSON-RPC, so that both bindings refuse the same
requests in the same words. A path without ``/v1`` is 1.0, and may begin with a tenant. The body and the query may
repeat a value of the path, and may not have another. A caller without valid credentials learns nothing about paths: the
last routes authenticate, then answer 404 or 405.

``POST /{agent}/uploads`` with ``{"sha256": <hex>, "size": <bytes>}`` is for a file that is too big for a message. The
answer has the URL to which the client PUTs exactly that content, the headers for that, and the ``url`` of the part that
names the file. That ``url`` holds no owner: for other callers it names nothing.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from pydantic.alias_generators import to_snake
from starlette.routing import BaseRoute, Match, Route

from a2a_serverless.domain.agent import requested_webhook_events
from a2a_serverless.domain.contents import UPLOADS, StoredFile
from a2a_serverless.domain.errors import FieldViolation, InvalidParams
from a2a_serverless.domain.model import path
from a2a_serverless.http.api import Api, Endpoint, Responder, no_such_path, respond
from a2a_serverless.http.messages import json_answer
from a2a_serverless.http.operation_handler import Envelope, OperationHandler
from a2a_serverless.http.routes import LEGACY_ROUTES, ROUTES, TENANT_ROUTES, AddedRoute
from a2a_serverless.protocol.additions import (
    Deliveries,
    Delivery,
    RetryRequest,
    Timeline,
    UploadedPart,
    UploadRequest,
    UploadResponse,
    UploadTarget,
)
from a2a_serverless.protocol.error_bodies import http_failure
from a2a_serverless.protocol.error_codes import HttpMethodNotAllowed
from a2a_serverless.protocol.jsonrpc import NOTHING
from a2a_serverless.protocol.protojson import read_model
from a2a_serverless.protocol.strict_json import dumps, loads
from a2a_serverless.protocol.v1 import Task
from a2a_serverless.protocol.versions import requested_extensions
from a2a_serverless.services import retries
from a2a_serverless.services.content_links import INLINE_BYTES, resolve_contents
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.timelines import read_timeline
from a2a_serverless.services.webhook_statuses import list_deliveries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp

    from a2a_serverless.domain.model import JsonObject, TaskKey
    from a2a_serverless.http.messages import HttpRequest
    from a2a_serverless.http.routes import OperationRoute
    from a2a_serverless.protocol.codecs import Binding
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.task_log import TaskLog


def create_upload(api: Api, request: HttpRequest) -> Response:
    """A slot for one upload. Raises InvalidParams, InsufficientScope, TooManyRequests and other A2AErrors."""
    agent, caller = api.agent(request), api.sign_in(request)
    caller.check(agent.id, "operate")
    if api.service.contents is None:
        raise no_such_path()
    principal = api.principal(caller, dict(request.query).get("tenant"))
    request.check_content()
    upload_request = read_model(UploadRequest, loads(request.body))
    upload = StoredFile(UPLOADS, upload_request.sha256, upload_request.size)
    if api.limiter:
        api.limiter.admit_upload(principal, upload.size)
    slot = api.service.contents.presign_put(principal, upload)
    target = UploadTarget(url=slot.url, headers=dict(slot.headers))
    return json_answer(UploadResponse(upload=target, part=UploadedPart(url=upload.address)).json_bytes())


def show_deliveries(api: Api, request: HttpRequest) -> Response:
    """The delivery status of the webhooks of the caller's task. Raises TaskNotFound, InsufficientScope."""
    statuses = list_deliveries(*_own_task(api, request))
    deliveries = tuple(Delivery.of(status, path(*status.key)) for status in statuses)
    return json_answer(Deliveries(deliveries=deliveries).json_bytes())


def show_timeline(api: Api, request: HttpRequest) -> Response:
    """The timeline of the caller's task. Raises TaskNotFound, InsufficientScope."""
    timeline = read_timeline(*_own_task(api, request), api.service.clock.now())
    return json_answer(Timeline.of(timeline).json_bytes())


def retry_task(api: Api, request: HttpRequest) -> Response:
    """Repeats the caller's failed task. Raises TaskNotFound, InsufficientScope, TooManyRequests and other A2AErrors."""
    agent, caller = api.agent(request), api.sign_in(request)
    caller.check(agent.id, "operate")
    principal = api.principal(caller, dict(request.query).get("tenant"))
    request.check_content()
    retry_request = read_model(RetryRequest, loads(request.body))
    if api.limiter:
        api.limiter.admit_send(principal)
    events = requested_webhook_events(requested_extensions(request.headers)) or agent.webhook_events
    context = RequestContext(principal, agent.id, "1.0", caller, webhook_events=events)
    task = retries.retry_task(api.service, context, agent, request.params["taskId"], retry_request)
    content = resolve_contents(api.service.contents, principal, task, INLINE_BYTES)
    return json_answer(content.json_bytes())


def _own_task(api: Api, request: HttpRequest) -> tuple[TaskLog, PushStore, TaskKey, str]:
    """The stores, the key and the agent of the task in the path, if it is the caller's. Raises InsufficientScope."""
    agent, caller = api.agent(request), api.sign_in(request)
    caller.check(agent.id, "read")
    key = api.principal(caller, dict(request.query).get("tenant")).key(request.params["taskId"])
    return api.service.log, api.service.webhooks().store, key, agent.id


TASK: Final = "/{agent:agent}/tasks/{taskId:name}"
ADDITIONS: Final = (
    AddedRoute("POST", "/{agent:agent}/uploads", "CreateUpload", create_upload, UploadResponse, UploadRequest),
    AddedRoute("GET", TASK + "/deliveries", "ListTaskDeliveries", show_deliveries, Deliveries),
    AddedRoute("GET", TASK + "/timeline", "GetTaskTimeline", show_timeline, Timeline),
    AddedRoute("POST", TASK + "/retry", "RetryTask", retry_task, Task, RetryRequest),
)


@cache
def make_rest() -> ASGIApp:
    """The routes, which all applications share. They raise errors; the application's middleware answers them."""
    own_spans: Any = {"tracing": False}  # FastAPI would make a second span of each request
    app = FastAPI(openapi_url=None, redirect_slashes=False, telemetry=own_spans)

    def add(path: str, verb: str, name: str, endpoint: Endpoint, *, in_document: bool = True) -> None:
        async def answer(request: Request) -> Response:
            return await respond(endpoint, request.scope, request.receive)

        app.add_api_route(path, answer, methods=[verb], name=name, operation_id=name, include_in_schema=in_document)

    for route in (*ROUTES, *TENANT_ROUTES, *LEGACY_ROUTES):
        base = "/legacy/{agent}" if route in LEGACY_ROUTES else "/{agent:agent}"
        add(base + route.template, route.verb, route.name, partial(_answer, route), in_document=route in ROUTES)
    for addition in ADDITIONS:
        add(addition.template, addition.verb, addition.name, addition.endpoint)
    add("/openapi.json", "GET", "Describe", _describer(tuple(app.routes)), in_document=False)
    routes = tuple(app.routes)
    for template in ("/legacy/{agent}/{path:path}", "/{agent:agent}/{path:path}", "/{path:path}"):
        app.router.routes.append(Route(template, Responder(partial(_refuse, routes))))
    # Only the router: the whole application would answer errors itself, in another form and without our log.
    return AsyncExitStackMiddleware(app.router)


def _describer(routes: tuple[BaseRoute, ...]) -> Endpoint:
    """The endpoint of the OpenAPI document."""

    @cache
    def document(agents: tuple[str, ...], base_url: str) -> bytes:
        from a2a_serverless.http.openapi import describe

        return dumps(describe(routes, ADDITIONS, agents, base_url))

    def show_document(api: Api, _: HttpRequest) -> Response:
        from a2a_serverless.services.publish import base_url_in

        return json_answer(document(tuple(sorted(api.agents)), base_url_in(api.service.publications)))

    return show_document


def _answer(route: OperationRoute, api: Api, request: HttpRequest) -> Response:
    agent, caller = api.agent(request), api.sign_in(request)
    if request.body:
        request.check_content()
    members = _from_body(request.body) if route.verb == "POST" else _from_query(request.query)
    binding: Binding = "legacy" if request.path.startswith("/legacy/") else "rest"
    envelope = Envelope(
        content_type=request.answer_type,
        success=lambda result: b"{}" if result == NOTHING else result,
        failure=lambda error: http_failure(error, route.version),
    )
    handler = OperationHandler(api, agent, caller, request, binding, route.version, envelope)
    return handler.handle(route.operation, members | _same_in_path(members, route.fields(request)))


def _same_in_path(members: JsonObject, fields: JsonObject) -> JsonObject:
    """The values of the path. Raises InvalidParams if the request has another one in its body or query."""
    given = {name: members.get(name) or members.get(to_snake(name)) or value for name, value in fields.items()}
    others = [
        FieldViolation(name, "must be that of the path") for name, value in fields.items() if given[name] != value
    ]
    if others:
        raise InvalidParams(violations=tuple(others))
    return fields


def _from_query(query: Iterable[tuple[str, str]]) -> JsonObject:
    members: JsonObject = {}
    for name, value in query:
        if name in members:
            raise InvalidParams(violations=(FieldViolation(name, "must not be given twice"),))
        members[name] = value
    return members


def _from_body(body: bytes) -> JsonObject:
    """The body's object. ``null`` is an empty body: the official Go client sends it for a request without members."""
    value = loads(body) if body.strip() else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidParams("The body must be an object.")
    return value


def _refuse(routes: tuple[BaseRoute, ...], api: Api, request: HttpRequest) -> Response:
    """Refuses an unknown path, or a known path with another verb; below an agent the caller is authenticated first."""
    if "agent" in request.params:
        api.agent(request)
        api.sign_in(request)
    scope = {"type": "http", "path": request.path, "method": request.verb}
    matches = [route for route in routes if route.matches(scope)[0] is not Match.NONE]
    verbs = {verb for route in matches if isinstance(route, Route) for verb in route.methods or ()}
    old_scope = scope | {"path": f"/legacy{request.path}"}
    is_old = request.verb == "POST" and any(route.matches(old_scope)[0] is Match.FULL for route in routes)
    hint = f"Clients from before A2A 0.3 are served at {old_scope['path']}." if is_old else ""
    raise HttpMethodNotAllowed(verbs, hint) if verbs else no_such_path()
