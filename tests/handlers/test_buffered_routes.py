"""Routes that FastAPI and Mangum serve inside the buffered api function, beside JSON-RPC, which needs neither."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from a2a_serverless.http import routes as binding_of_http
from a2a_serverless.http.app import DOCUMENTS
from a2a_serverless.http.lambda_proxy import make_gateway_handler
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.services.key_rotation import ensure_ring
from sample_agents import conformance
from tests.conformance.live import Live
from tests.handlers.requests import AGENT, BINDINGS, Names
from tests.handlers.test_queues import Clock
from tests.observed import check_proxy_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.http.messages import HttpRequest

EVENTS = Path(__file__).parents[2] / "events"


def event(name: str, **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return given | fields


def rest(path: str) -> dict[str, Any]:
    return event("api-rest-get-unknown-task", path=path)


def test_a_rest_call_is_answered_before_and_after_an_inline_agent_has_run_here() -> None:
    handler = make_gateway_handler(Live([conformance.full]).edge.app)
    message = {"messageId": "tck-complete-task", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}})
    assert handler(rest("/conformance/tasks/t"), Clock())["statusCode"] == 404
    sent = handler(event("api-send", path="/conformance", body=call), Clock())
    task = json.loads(sent["body"])["result"]["task"]
    got = handler(rest(f"/conformance/tasks/{task['id']}"), Clock())
    assert (got["statusCode"], json.loads(got["body"])) == (200, task)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if "{" not in path])
def test_a_public_document_is_text_for_api_gateway(path: str) -> None:
    live = Live([conformance.full])
    ensure_ring(live.rotation)
    answer = make_gateway_handler(live.edge.app)(rest(path), Clock())
    assert (answer["statusCode"], answer["isBase64Encoded"]) == (200, False)
    assert json.loads(answer["body"])


# ---- Every route in every type

TYPES = ("application/json", "application/a2a+json", "text/event-stream")
ROUTES = [
    *[("1.0 REST" if route.version == "1.0" else "0.3 REST", route) for route in binding_of_http.ROUTES],
    *[("legacy", route) for route in binding_of_http.LEGACY_ROUTES],
]


def asked(request: HttpRequest, **headers: str) -> dict[str, Any]:
    """The event of a request with these headers besides."""
    said = {**request.headers, **headers}
    return event(
        "api-rest-get-unknown-task",
        httpMethod=request.verb,
        path=request.path,
        multiValueHeaders={name: [value] for name, value in said.items()},
        multiValueQueryStringParameters={name: [value] for name, value in request.query},
        body=request.body.decode() or None,
    )


def read(request: HttpRequest, answer: dict[str, Any]) -> str:
    """The media type of an answer that API Gateway hands on as text, once it has been read as that."""
    assert not answer.get("isBase64Encoded"), "API Gateway would hand on the base64"
    kind = str(answer["headers"]["content-type"]).partition(";")[0]
    if kind == "text/event-stream":
        assert all(frame.startswith(("id: ", "data: ", "event: ", ": ")) for frame in answer["body"].split("\n\n")[:-1])
    else:
        check_proxy_answer(asked(request), answer)
    return kind


def check_every_route(handler: Callable[[dict[str, Any]], dict[str, Any]], agent: str, accepted: str) -> None:
    """Asks every route of an agent for ``accepted``, once as it is right and once for a version that there is not."""
    answers = set()
    for count, (binding, route) in enumerate(ROUTES):
        sent = handler(asked(_at(agent, BINDINGS["1.0 REST"][Operation.SEND](Names(message=uuid4().hex)))))
        # A message begins a new task: the task of the first one may have ended.
        task = None if route.operation.sends else json.loads(sent["body"])["task"]["id"]
        names = Names(task=task, message=f"{accepted}-{count}")
        request = _at(agent, BINDINGS[binding][route.operation](names))._replace(verb=route.verb)
        for one in (request, request._replace(headers={**request.headers, "a2a-version": "9.0"})):
            answer = handler(asked(one, accept=accepted))
            answers.add((answer["statusCode"], read(one, answer)))
    wanted = accepted if accepted in TYPES[:2] else "application/json"
    assert answers >= {(200, wanted), (400, wanted), (200, "text/event-stream")}, answers
    assert {kind for _, kind in answers} == {wanted, "text/event-stream"}


def _at(agent: str, request: HttpRequest) -> HttpRequest:
    return request._replace(path=request.path.replace(f"/{AGENT}/", f"/{agent}/", 1))


@pytest.mark.requirement(110)
@pytest.mark.parametrize("accepted", TYPES)
def test_every_route_can_be_read_in_every_type_that_it_answers(accepted: str) -> None:
    live = Live([conformance.full])
    ensure_ring(live.rotation)
    handler = make_gateway_handler(live.edge.app)
    check_every_route(lambda asked: handler(asked, Clock()), "conformance", accepted)
