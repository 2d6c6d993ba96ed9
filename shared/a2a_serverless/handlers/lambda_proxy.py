"""The handler of the api function for API Gateway's REST proxy events.

A JSON-RPC call goes directly to the edge, to save the cold start of FastAPI and Mangum. Other requests go through them;
they are imported at the first such request.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.handlers.http_types import JSON, HttpRequest, HttpResponse, encode_path
from a2a_serverless.wire.rest import A2A_JSON

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from a2a_serverless.handlers.http import Edge
    from a2a_serverless.handlers.http_types import Frames
    from a2a_serverless.handlers.invocations import Event, Handler

# Media types that are sent as text; others would be sent in base64, which API Gateway does not decode here.
TEXT: Final = ["text/", JSON, A2A_JSON]
BUFFERED_MS: Final = 29_000  # how long API Gateway waits for an answer that is not streamed
SECURE: Final = {"strict-transport-security": "max-age=31536000"}  # API Gateway speaks TLS only (specification 13.4)


class NotHttp(ValueError):
    """The event is not a REST proxy event: a schedule, a queue message, another kind of HTTP event, a console test."""

    def __init__(self) -> None:
        super().__init__("This function answers proxy events of API Gateway's REST APIs, and this event is none.")


def make_gateway_handler(edge: Edge) -> Handler:
    """Returns a Lambda handler for proxy integrations."""

    @cache
    def web() -> Callable[[Any, Any], dict[str, Any]]:
        from mangum import Mangum

        from a2a_serverless.handlers.asgi import make_asgi_app

        return Mangum(make_asgi_app(edge), lifespan="off", text_mime_types=TEXT)

    def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
        proxy_event(event)
        request = request_of(event, min(context.get_remaining_time_in_millis(), BUFFERED_MS))
        if request.verb == "POST" and request.path.count("/") == 1:
            return proxy_answer(edge.answer(request))
        # Mangum needs an event loop set in this thread; an earlier asyncio.run may have removed it.
        with asyncio.Runner() as runner:
            runner.get_loop()
            answer = web()(event, context)
        return answer | {"headers": answer["headers"] | SECURE}

    return handler


def proxy_event(event: object) -> Event:
    """Returns the event; raises NotHttp if it is not what API Gateway sends."""
    if not isinstance(event, dict):
        raise NotHttp
    whole = all(isinstance(event.get(name), str) for name in ("httpMethod", "path"))
    texts = all(isinstance(event.get(name, ""), str | None) for name in ("resource", "body"))
    values = all(_is_map(event.get(name), str) for name in ("headers", "queryStringParameters"))
    lists = all(_is_map(event.get(f"multiValue{name}"), list) for name in ("Headers", "QueryStringParameters"))
    if not (whole and texts and values and lists):
        raise NotHttp
    return event


def _is_map(found: object, kind: type) -> bool:
    if not isinstance(found, dict):
        return found is None
    each = [one for value in found.values() for one in (value if isinstance(value, list) else [value])]
    return all(isinstance(value, kind) for value in found.values()) and all(isinstance(one, str) for one in each)


def request_of(event: Event, time_left_ms: int) -> HttpRequest:
    """Converts a proxy event to a request. Several headers of one name are joined by a comma (RFC 9110, 5.3)."""
    headers = {name.lower(): ",".join(values) for name, values in _many(event, "multiValueHeaders", "headers").items()}
    query = _many(event, "multiValueQueryStringParameters", "queryStringParameters")
    return HttpRequest(
        verb=str(event.get("httpMethod", "GET")),
        path=encode_path(str(event.get("path", "/"))),
        headers=headers,
        query=tuple((name, value) for name, values in query.items() for value in values),
        body=_body(event),
        time_left_ms=time_left_ms,
    )


def proxy_answer(answer: HttpResponse) -> dict[str, Any]:
    """Converts an answer to a proxy answer; a stream is collected first. All our buffered answers are UTF-8 text."""
    body = answer.body if answer.stream is None else asyncio.run(_collected(answer.stream))
    return {
        "statusCode": answer.status,
        "headers": dict(answer.headers) | SECURE,
        "body": body.decode(),
        "isBase64Encoded": False,
    }


async def _collected(stream: Frames) -> bytes:
    try:
        return b"".join([frame async for frame in stream])
    finally:
        await stream.aclose()


def _many(event: Event, many: str, one: str) -> Mapping[str, list[str]]:
    if event.get(many):
        return {name: list(values) for name, values in event[many].items()}
    return {name: [value] for name, value in (event.get(one) or {}).items()}


def _body(event: Event) -> bytes:
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body).encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body)
    except (binascii.Error, ValueError):
        return b""
