"""A Lambda function that receives webhooks, behind API Gateway or a function URL, without FastAPI.

::

    def handle(claimed: Claimed) -> None:
        ...

    handler = make_handler(handle)

``handle`` gets each genuine notification at least once. When it returns, the notification is settled and does not come
again; when it raises, the answer is 500 and the sender's next attempt calls it again, as it does after a function that
died before that. Importing this module reads and opens nothing: settings are read
from the environment at the first request (``a2a_webhook_receiver.settings``).
"""

import base64
import logging
import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from a2a_webhook_receiver.answers import (
    FAILED,
    NOT_ALLOWED,
    WebhookAnswer,
    answer_handled,
    answer_refusal,
    answer_without_handler,
    log_failed,
    log_handled,
)
from a2a_webhook_receiver.errors import Refused, TooLarge
from a2a_webhook_receiver.receive import Claimed, Receiver, WebhookRequest, begin, release, settle
from a2a_webhook_receiver.settings import Settings, read_settings
from a2a_webhook_receiver.wiring import build_receiver

Event = Mapping[str, Any]
Handle = Callable[[Claimed], object]
LambdaHandler = Callable[[Event, object], dict[str, Any]]
Built = tuple[Receiver, Settings]

logger = logging.getLogger(__name__)


def build_from_environment() -> Built:
    """The receiver that the environment's variables describe. Raises BadSettings."""
    logging.getLogger("a2a_webhook_receiver").setLevel(logging.INFO)
    settings = read_settings(os.environ)
    return build_receiver(settings), settings


def make_handler(handle: Handle, build: Callable[[], Built] = build_from_environment) -> LambdaHandler:
    """The Lambda entry point that calls ``handle``. ``build`` is called at the first request."""
    build_once = cache(build)

    def handler(event: Event, _context: object) -> dict[str, Any]:
        receiver, settings = build_once()
        answer = answer_event(event, receiver, settings, handle)
        return {"statusCode": answer.status, "headers": answer.all_headers, "body": answer.body}

    return handler


def answer_event(event: Event, receiver: Receiver, settings: Settings, handle: Handle) -> WebhookAnswer:
    """Verifies the request in an event of API Gateway (both versions) or a function URL, and handles it."""
    if _method(event) != "POST":
        return NOT_ALLOWED
    try:
        outcome = begin(receiver, read_request(event, settings.max_body_bytes))
    except Refused as refusal:
        return answer_refusal(refusal)
    if isinstance(outcome, Claimed):
        return _handle(receiver, outcome, handle)
    return answer_without_handler(outcome)


def read_request(event: Event, limit: int) -> WebhookRequest:
    """The request in an event. Raises TooLarge for a body of more than ``limit`` bytes."""
    text = event.get("body") or ""
    body = base64.b64decode(text) if event.get("isBase64Encoded") else text.encode("utf-8", "surrogatepass")
    if len(body) > limit:
        raise TooLarge(f"more than {limit} bytes")
    return WebhookRequest(_headers(event), body)


def _handle(receiver: Receiver, claimed: Claimed, handle: Handle) -> WebhookAnswer:
    try:
        handle(claimed)
    except Exception as error:
        release(receiver, claimed)
        log_failed(claimed, error)
        logger.exception("the handler raised")  # its traceback, which is the application's own
        return FAILED
    settle(receiver, claimed)
    log_handled(claimed)
    return answer_handled(claimed)


def _method(event: Event) -> str:
    """The HTTP method: in version 2.0's context, else at the top."""
    http = event.get("requestContext", {}).get("http", {})
    return str(http.get("method") or event.get("httpMethod") or "POST")


def _headers(event: Event) -> tuple[tuple[str, str], ...]:
    """All headers: a REST API lists duplicates separately, other APIs join them with commas."""
    several = event.get("multiValueHeaders")
    if several is not None:
        return tuple((name, value) for name, values in several.items() for value in values)
    return tuple((event.get("headers") or {}).items())
