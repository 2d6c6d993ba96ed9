"""Checks answers over HTTP or of a Lambda function against the schemas, as ``tests.edge`` does in the process.

``tests/test_rules.py`` checks that tests send requests to deployments in no other way.
"""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from a2a_serverless.client import ClientRequest, ClientResponse, Transport, open_request
from a2a_serverless.http.lambda_proxy import proxy_body, proxy_scope
from a2a_serverless.http.messages import HttpRequest, read_request
from a2a_serverless.protocol import sse
from tests.edge import HttpResponse, check_frame, conforming, form_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from a2a_serverless.http_client.transport import ResponseBody
    from tests.edge import Form

WHOLE = 64 * 1024 * 1024


def observed(*bases: str) -> Transport:
    """The client's transport, with a check that answers of deployments at ``bases`` follow the protocol."""

    @contextmanager
    def transport(call: ClientRequest) -> Iterator[ClientResponse]:
        base = next((one for one in bases if call.url.startswith(f"{one}/")), None)
        with open_request(call) as answer:
            yield answer if base is None else checked(_form(call, base), answer)

    return transport


def asked(base: str, path: str, verb: str = "GET", body: object = None) -> Any:
    """Returns the JSON document of a deployment's answer; ``body`` is posted as JSON."""
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    posted = None if verb == "GET" else b"" if body is None else json.dumps(body).encode()
    with observed(base)(ClientRequest(f"{base}/{path}", headers, posted)) as answer:
        said = answer.body.read(WHOLE)
    assert answer.status == 200, said
    return json.loads(said)


def checked(form: Form, answer: ClientResponse) -> ClientResponse:
    """Asserts that the answer has the form and returns it; a stream is checked while it is read."""
    if answer.headers.get("content-type", "").startswith(sse.CONTENT_TYPE):
        assert form.item, "this answer is no stream"
        return ClientResponse(answer.status, answer.headers, Frames(form, answer.body))
    content = answer.body.read(WHOLE)
    conforming(form, HttpResponse(answer.status, content, answer.headers))
    return ClientResponse(answer.status, answer.headers, io.BytesIO(content))


class Frames:
    """A streamed body that checks each event before it returns the event's last bytes."""

    def __init__(self, form: Form, body: ResponseBody) -> None:
        self._form = form
        self._body = body
        self._frame = b""
        self._last = 0

    def read(self, limit: int, /) -> bytes:
        return self.read1(limit)

    def read1(self, limit: int, /) -> bytes:
        block = self._body.read1(limit)
        *frames, self._frame = (self._frame + block).split(b"\n\n")
        for frame in frames:
            self._last = check_frame(self._form, frame + b"\n\n", self._last)
        return block


def check_proxy_answer(event: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Checks a function's buffered answer to an event of API Gateway."""
    request = read_request(proxy_scope(event, None, 0), proxy_body(event))
    content = HttpResponse(answer["statusCode"], answer["body"].encode(), answer["headers"])
    conforming(form_of(request, _agents(request.path)), content)


def check_streamed_answer(event: Mapping[str, Any], prelude: Mapping[str, Any], body: bytes) -> None:
    """Checks a function's streamed answer to an event of API Gateway."""
    request = read_request(proxy_scope(event, None, 0), proxy_body(event))
    answer = ClientResponse(prelude["statusCode"], prelude["headers"], io.BytesIO(body))
    looked_at = checked(form_of(request, _agents(request.path)), answer).body
    while looked_at.read(WHOLE):
        pass


def _form(call: ClientRequest, base: str) -> Form:
    target = urlsplit(call.url.removeprefix(base))
    headers = {name.lower(): value for name, value in call.headers.items()}
    query = tuple(parse_qsl(target.query))
    return form_of(HttpRequest(call.verb, target.path, headers, query, call.body or b""), _agents(target.path))


def _agents(path: str) -> tuple[str, ...]:
    """Returns the agent that the path names, whether it exists or not."""
    words = path.strip("/").split("/")
    return (words[1] if words[0] == "legacy" and words[1:] else words[0],)
