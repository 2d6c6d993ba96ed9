"""The inbox over HTTP: a page, its live feed, the entries as JSON, and token registration. For admins only."""

import json
import secrets
from collections.abc import AsyncIterator
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from a2a_webhook_receiver.admin import Access, decide
from a2a_webhook_receiver.errors import STEPS
from a2a_webhook_receiver.exchange import view_request
from a2a_webhook_receiver.expectations import STANDING, Expectation, digest
from a2a_webhook_receiver.inbox import Entry, Inbox
from a2a_webhook_receiver.outbound import is_loopback, require_safe_url
from a2a_webhook_receiver.preview import view_part

if TYPE_CHECKING:
    from a2a_webhook_receiver.receive import Receiver
    from a2a_webhook_receiver.settings import Settings

Visible = Annotated[str, Field(pattern=r"^[\x21-\x7e]+$", max_length=256)]
Label = Annotated[str | None, Query(max_length=100)]

HEARTBEAT_SECONDS = 15.0
LISTED = 100
_FULL_RETRY = 30_000
_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


def require_admin(request: Request) -> None:
    """Raises HTTPException (403, or 401 to ask for the password) unless the caller is an admin."""
    peer = request.client.host if request.client else None
    access = decide(request.app.state.settings, request.headers, peer)
    if access is Access.FORBIDDEN:
        raise HTTPException(403, "The inbox is for this machine, or for its password: see ADMIN_TOKEN_SHA256.")
    if access is Access.UNKNOWN:
        raise HTTPException(401, headers={"WWW-Authenticate": 'Basic realm="inbox", charset="UTF-8"'})


router = APIRouter(dependencies=[Depends(require_admin)])


def _safe_url(url: str) -> str:
    require_safe_url(url)
    return url


class ExpectationRequest(BaseModel):
    """What to expect: a task, a token, or neither (then a token is made). ``authorization``: the whole header value."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    task_id: Visible | None = None
    token: Visible | None = None
    authorization: Annotated[str, Field(pattern=r"^[\x20-\x7e]+$", max_length=4096)] | None = None
    agent_url: Annotated[str, Field(max_length=2048), AfterValidator(_safe_url)] | None = None


@router.post("/expectations", status_code=201)
def expect(registration: ExpectationRequest, request: Request, agent: Label = None) -> JSONResponse:
    """Registers a token or task. Call it before the message is sent: a webhook can be faster than the answer.

    ``agent`` is a name for the page, nothing more.
    """
    receiver: Receiver = request.app.state.receiver
    settings: Settings = request.app.state.settings
    _check_agent(registration, settings)
    new_token = secrets.token_urlsafe(24) if registration.token is None and registration.task_id is None else None
    expectation = _expectation(
        registration, registration.token or new_token, receiver.clock() + settings.expectation_seconds * 1000
    )
    receiver.expectations.add(expectation)
    if agent:
        receiver.inbox.note_label(expectation.id, agent)
    answer = {"id": expectation.id, "expires": expectation.expires, "taskId": expectation.task_id}
    config = {"url": receiver.audience} | ({"token": new_token} if new_token else {})
    return JSONResponse(answer | {"pushNotificationConfig": config}, 201)


def _check_agent(registration: ExpectationRequest, settings: "Settings") -> None:
    """Refuses a loopback agent URL, unless the receiver itself is local: it must not be sent to its own machine."""
    host = require_safe_url(registration.agent_url).hostname if registration.agent_url else None
    if host is not None and is_loopback(host) and not settings.is_local:
        raise HTTPException(422, "agentUrl is on this machine, and the receiver is not")


def _expectation(registration: ExpectationRequest, token: str | None, expires: int) -> Expectation:
    return Expectation(
        id=secrets.token_hex(8),
        expires=expires,
        task_id=registration.task_id,
        token_digest=digest(token) if token else None,
        authorization_digest=digest(registration.authorization) if registration.authorization else None,
        agent_url=registration.agent_url,
    )


@router.get("/expectations")
def list_expectations(request: Request) -> JSONResponse:
    """The registered tokens and tasks that are still valid, without any token."""
    receiver: Receiver = request.app.state.receiver
    expectations = receiver.expectations.list_open(receiver.clock(), LISTED)
    return JSONResponse({"expectations": [_view(each, receiver.inbox) for each in expectations]})


def _view(expectation: Expectation, inbox: Inbox) -> dict[str, str | int | bool | None]:
    is_standing = expectation.id == STANDING
    return {
        "id": expectation.id,
        "expires": None if is_standing else expectation.expires,
        "standing": is_standing,
        "taskId": expectation.task_id,
        "agentUrl": expectation.agent_url,
        "agent": inbox.label_of(expectation.id),
    }


@router.get("/api/notifications")
def list_notifications(request: Request, after: Annotated[int, Query(ge=0)] = 0) -> JSONResponse:
    """The entries after ``after``, the newest state of each task, and the receiver's own settings."""
    receiver: Receiver = request.app.state.receiver
    settings: Settings = request.app.state.settings
    about = {"issuer": receiver.issuer, "audience": receiver.audience, "jwksUrl": settings.jwks_url}
    about |= {"documentsUrl": settings.documents_url or ""}
    return JSONResponse(
        {
            "receiver": about | {"live": settings.live, "expecting": receiver.expectations.any_open(receiver.clock())},
            "checks": list(STEPS),
            "outcomes": receiver.inbox.outcomes(),
            "refused": receiver.inbox.refused(),
            "tasks": [line.as_json() for line in receiver.inbox.tasks()],
            "entries": [entry.as_json() for entry in receiver.inbox.after(after)],
        }
    )


@router.get("/api/notifications/{number}")
def show_notification(number: int, request: Request) -> JSONResponse:
    """One entry with the request as received. ``request`` is null when only the entry is still kept."""
    entry = _find(request, number)
    return JSONResponse({**entry.as_json(), "request": view_request(entry.request) if entry.request else None})


@router.get("/api/notifications/{number}/parts/{at}")
def show_part(number: int, at: Annotated[int, Path(ge=0)], request: Request) -> JSONResponse:
    """One part of a verified notification, whole."""
    entry = _find(request, number)
    is_content = entry.request is not None and entry.outcome in ("accepted", "late")
    part = view_part(entry.request, at) if is_content and entry.request else None
    if part is None:
        raise HTTPException(404, "This part is no longer kept.")
    return JSONResponse(part)


def _find(request: Request, number: int) -> Entry:
    entry: Entry | None = request.app.state.receiver.inbox.find(number)
    if entry is None:
        raise HTTPException(404, "This notification is not kept here any more.")
    return entry


@router.get("/events")
async def follow(request: Request, after: Annotated[int, Query(ge=0)] = 0) -> Response:
    """The entries after ``after`` (or Last-Event-ID) and all later ones, as server-sent events; 204 on Lambda."""
    if not request.app.state.settings.live:
        return Response(status_code=204)
    last = request.headers.get("last-event-id", "")
    start = int(last) if last.isdecimal() and last.isascii() else after
    feed = stream_entries(request.app.state.receiver.inbox, start, HEARTBEAT_SECONDS)
    return StreamingResponse(feed, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def stream_entries(inbox: Inbox, after: int, heartbeat: float) -> AsyncIterator[str]:
    """Server-sent events, one per entry, with a comment after ``heartbeat`` seconds without one. Never ends."""
    with inbox.watch() as watch:
        yield f"retry: {2000 if watch else _FULL_RETRY}\n\n"
        while watch is not None:
            for entry in inbox.after(after):
                after = entry.number
                yield f"id: {entry.number}\ndata: {json.dumps(entry.as_json())}\n\n"
            if not await watch.wait(heartbeat):
                yield ": alive\n\n"


@router.get("/")
def show_page() -> HTMLResponse:
    """The inbox page. Its content security policy allows only its own script and style."""
    nonce = secrets.token_urlsafe(16)
    policy = _POLICY.format(nonce=nonce)
    return HTMLResponse(_read("page.html").replace("{{nonce}}", nonce), headers={"Content-Security-Policy": policy})


@router.get("/-/{name}")
def show_file(name: Literal["page.css", "page.js", "dom.js", "markdown.js"]) -> Response:
    """The page's style, and the modules of its script."""
    return Response(_read(name), media_type="text/css" if name == "page.css" else "text/javascript")


def _read(name: str) -> str:
    return resources.files("a2a_webhook_receiver").joinpath(name).read_text("utf-8")
