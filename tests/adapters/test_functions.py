"""Calls of a deployment's functions, against Lambda's API played on this machine: each is made once."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from a2a_serverless.adapters.aws import emulated
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless_tools.operators.deployed import FunctionFailed
from a2a_serverless_tools.operators.deployed_stack import FUNCTION_TIMEOUT_S, invoke_function
from tests.functions.template import functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.enable_socket


@dataclass
class Lambda:
    """Answers each call with ``status`` and ``body``; one that ``hangs`` until it is told to end does not."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = field(default_factory=dict)
    hangs: bool = False
    calls: list[tuple[str, Any]] = field(default_factory=list)
    over: Event = field(default_factory=Event)


@contextmanager
def played(cloud: Lambda, waits_s: float = FUNCTION_TIMEOUT_S) -> Iterator[Callable[[str, Any], Any]]:
    """The functions that ``cloud`` plays."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            cloud.calls.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            if cloud.hangs:
                cloud.over.wait()
                return
            said = json.dumps(cloud.body).encode()
            self.send_response(cloud.status)
            for name, value in {**cloud.headers, "Content-Length": str(len(said))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield partial(invoke_function, emulated(f"http://127.0.0.1:{server.server_port}"), waits_s=waits_s)
    finally:
        cloud.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_function_gets_its_event_and_its_answer_comes_back() -> None:
    cloud = Lambda(body={"previous": []})
    with played(cloud) as lambdas:
        assert lambdas("rotator", {"command": "show"}) == {"previous": []}
    assert cloud.calls == [("/2015-03-31/functions/rotator/invocations", {"command": "show"})]


def test_a_function_that_goes_on_is_not_called_a_second_time() -> None:
    cloud = Lambda(hangs=True)
    with played(cloud, 0.05) as lambdas, pytest.raises(TimeoutError, match=r"rotator has not ended in 0\.05 s"):
        lambdas("rotator", {})
    assert len(cloud.calls) == 1


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_call_that_lambda_cannot_take_is_not_made_again(status: int) -> None:
    cloud = Lambda(status, {"x-amzn-errortype": "ServiceException"}, {"message": "no"})
    with played(cloud) as lambdas, pytest.raises(ClientError):
        lambdas("rotator", {})
    assert len(cloud.calls) == 1


def test_invoking_a_function_that_lambda_throttles_is_an_overload() -> None:
    cloud = Lambda(429, {"x-amzn-errortype": "TooManyRequestsException"}, {"Reason": "ReservedFunction"})
    with played(cloud) as lambdas, pytest.raises(Overloaded, match="Too many functions run at once"):
        lambdas("rotator", {})
    assert len(cloud.calls) == 1


def test_a_function_that_fails_says_why() -> None:
    cloud = Lambda(200, {"x-amz-function-error": "Unhandled"}, {"errorType": "X", "errorMessage": "No such key."})
    with played(cloud) as lambdas, pytest.raises(FunctionFailed, match="rotator failed: No such key"):
        lambdas("rotator", {})


def test_a_command_waits_longer_than_a_function_may_run() -> None:
    assert max(one["Timeout"] for name, one in functions().items() if name != "api") < FUNCTION_TIMEOUT_S
