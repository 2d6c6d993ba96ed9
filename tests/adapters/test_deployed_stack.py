"""The clock of a deployed stack."""

from __future__ import annotations

import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from a2a_serverless.adapters.aws import emulated
from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless_tools.operators.deployed_stack import DeployedStack

pytestmark = pytest.mark.enable_socket

MINUTE_MS = 60_000


class CloudFormation(BaseHTTPRequestHandler):
    """Answers that there is a stack; its clock differs from ours by ``minutes``."""

    minutes = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        stack = b"<DescribeStacksResult><Stacks><member/></Stacks></DescribeStacksResult>"
        body = b"<DescribeStacksResponse>" + stack + b"</DescribeStacksResponse>"
        self.send_response_only(200)
        self.send_header("Date", formatdate(SystemClock().now() / 1000 + self.minutes * 60, usegmt=True))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.mark.parametrize("minutes", [-5, 0, 5])
def test_the_clock_of_a_stack_is_that_of_aws_and_never_ahead_of_it(minutes: int) -> None:
    handler = type("Handler", (CloudFormation,), {"minutes": minutes})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        clock = DeployedStack(emulated(f"http://127.0.0.1:{server.server_port}"), "agents").clock()
        server.shutdown()
        thread.join()
    late = SystemClock().now() + minutes * MINUTE_MS - clock.now()
    assert 0 <= late < MINUTE_MS
