"""The webhook over HTTP, and the dependency with which your own application receives webhooks.

::

    install(app, receiver, settings)

    @app.post("/webhook")
    def webhook(claimed: VerifiedWebhook) -> dict[str, bool]:
        ...

The handler gets each genuine notification at least once. Refusals, challenges and duplicates are answered without it.
When it returns, the notification is settled and does not come again; when it raises, or its process dies before that,
the sender's next attempt calls it again.
"""

import asyncio
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2a_webhook_receiver import http_inbox
from a2a_webhook_receiver.answers import (
    WebhookAnswer,
    answer_handled,
    answer_refusal,
    answer_without_handler,
    log_failed,
    log_handled,
)
from a2a_webhook_receiver.errors import Refused, TooLarge, TooSlow
from a2a_webhook_receiver.inbox import Answer
from a2a_webhook_receiver.preview import view_refusal
from a2a_webhook_receiver.receive import Claimed, Receiver, WebhookRequest, begin, finish, release, settle
from a2a_webhook_receiver.settings import Settings

_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Answered(Exception):
    """A genuine request that needs only this answer and no handler."""

    def __init__(self, answer: WebhookAnswer) -> None:
        super().__init__()
        self.answer = answer


async def read_body(request: Request) -> bytes:
    """The raw body. Raises TooLarge or TooSlow; reads at most one chunk over the limit."""
    settings: Settings = request.app.state.settings
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > settings.max_body_bytes:
        raise TooLarge(f"more than {settings.max_body_bytes} bytes")
    try:
        async with asyncio.timeout(settings.body_seconds):
            return await _read_bounded(request, settings.max_body_bytes)
    except TimeoutError as error:
        raise TooSlow(f"the body did not arrive in {settings.body_seconds} s") from error
    except ClientDisconnect as error:
        raise TooSlow("the client disconnected before the whole body arrived") from error


async def _read_bounded(request: Request, limit: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise TooLarge(f"more than {limit} bytes")
    return bytes(body)


def verified_notification(request: Request, body: Annotated[bytes, Depends(read_body)]) -> Iterator[Claimed]:
    """A dependency: a verified notification, claimed for this request and settled when the handler returns."""
    receiver: Receiver = request.app.state.receiver
    outcome = begin(receiver, _remember(request, body))
    if not isinstance(outcome, Claimed):
        raise Answered(answer_without_handler(outcome))
    try:
        yield outcome
    except BaseException as error:
        release(receiver, outcome)
        log_failed(outcome, error)
        raise
    settle(receiver, outcome)
    log_handled(outcome)


VerifiedWebhook = Annotated[Claimed, Depends(verified_notification, scope="function")]

router = APIRouter()


@router.post("/webhook")
def receive_webhook(request: Request, claimed: VerifiedWebhook) -> Response:
    """Receives one A2A notification or challenge."""
    finish(request.app.state.receiver, claimed)
    return _respond(answer_handled(claimed))


@router.get("/healthz")
def tell_health() -> JSONResponse:
    """Answers 200 while the process runs."""
    return JSONResponse({"status": "ok"})


def install(app: FastAPI, receiver: Receiver, settings: Settings) -> None:
    """Makes ``VerifiedWebhook`` work in ``app``: sets its state, and the answers that need no handler."""
    app.state.receiver = receiver
    app.state.settings = settings
    app.add_exception_handler(Refused, _answer_refusal)
    app.add_exception_handler(Answered, _answer_answered)


def create_app(receiver: Receiver, settings: Settings) -> FastAPI:
    """The whole receiver: webhook, inbox page and expectations."""
    app = FastAPI(title="A2A webhook receiver", docs_url=None, redoc_url=None, openapi_url=None)
    install(app, receiver, settings)
    app.include_router(router)
    app.include_router(http_inbox.router)
    app.add_middleware(SafeHeaders)
    app.add_middleware(NoteAnswers, receiver=receiver)
    return app


class NoteAnswers:
    """Middleware: notes in the inbox how each webhook was answered, and after how long."""

    def __init__(self, app: ASGIApp, receiver: Receiver) -> None:
        self._app = app
        self._receiver = receiver

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = self._receiver.clock()

        async def send_and_note(message: Message) -> None:
            await send(message)
            webhook = scope.get("state", {}).get("webhook")
            if message["type"] == "http.response.start" and webhook is not None:
                ms = self._receiver.clock() - began
                self._receiver.inbox.note_answer(webhook, Answer(message["status"], ms))

        await self._app(scope, receive, send_and_note)


class SafeHeaders:
    """Middleware: answers must not be cached, sniffed, or sent on as a referrer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, send_safely)


def _remember(request: Request, body: bytes) -> WebhookRequest:
    """The request as received. The middleware finds it in the request's state."""
    headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw)
    webhook = WebhookRequest(headers, body)
    request.state.webhook = webhook
    return webhook


async def _answer_answered(_request: Request, answered: Exception) -> Response:
    assert isinstance(answered, Answered)  # noqa: S101 - Starlette types all handlers alike
    return _respond(answered.answer)


async def _answer_refusal(request: Request, refusal: Exception) -> Response:
    """Turns a refusal into an answer, a log line and an entry of the inbox."""
    assert isinstance(refusal, Refused)  # noqa: S101 - as above
    receiver: Receiver = request.app.state.receiver
    webhook = getattr(request.state, "webhook", None) or _remember(request, b"")
    receiver.inbox.add(receiver.clock(), "refused", view_refusal(refusal, webhook.headers), webhook)
    return _respond(answer_refusal(refusal))


def _respond(answer: WebhookAnswer) -> Response:
    return Response(answer.body, answer.status, answer.all_headers)
