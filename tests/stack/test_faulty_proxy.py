"""The proxy of ``make prove KIND=chaos`` makes calls of DynamoDB and SQS go wrong as AWS does, and no others."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless_tools.stack import sam
from a2a_serverless_tools.stack.processes import claim_port
from chaos_clients import Observed
from faulty_proxy import FaultyProxy, Rates, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.enable_socket

PUT: Final = "DynamoDB_20120810.PutItem"
SEEDED: Final = Random(1)  # noqa: S311 - a seed, not a secret
SEND: Final = "AmazonSQS.SendMessage"


@contextmanager
def emulator() -> Iterator[tuple[int, Counter[str]]]:
    """The port of a server that answers {}, and what it was asked."""
    asked = Counter[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked[self.headers.get("X-Amz-Target", "")] += 1
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
            thread.join()


def ask(port: int, target: str) -> tuple[int, bytes] | None:
    """Status and body of the answer; None if the connection ended without one."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/", json.dumps({"MessageBody": "m"}), {"X-Amz-Target": target})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except HTTPException:
        return None
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("rates", "target", "times", "said"),
    [
        (Rates(throttled=1), PUT, 0, b"ProvisionedThroughputExceededException"),
        (Rates(unanswered=1), PUT, 1, None),
        (Rates(lost=1), SEND, 0, b"MessageId"),
        (Rates(doubled=1), SEND, 2, b"{}"),
        (Rates(lost=1, doubled=1), PUT, 1, b"{}"),
        (Rates(1, 1, 1, 1), "TrentService.Encrypt", 1, b"{}"),
        (Rates(), SEND, 1, b"{}"),
    ],
)
def test_a_call_goes_wrong_as_the_rates_say(rates: Rates, target: str, times: int, said: bytes | None) -> None:
    port = claim_port("proxy", 0)
    with emulator() as (behind, asked), serving(FaultyProxy(behind, SEEDED, rates), port):
        answer = ask(port, target)
    assert asked[target] == times
    assert (answer is None) is (said is None)
    assert answer is None or (said or b"") in answer[1]


def test_the_sdk_takes_lost_messages_for_sent_ones() -> None:
    port = claim_port("proxy", 0)
    with serving(FaultyProxy(0, SEEDED, Rates(lost=1)), port):
        sqs = sam.client("sqs", f"http://127.0.0.1:{port}")
        assert sqs.send_message(QueueUrl="http://127.0.0.1/q", MessageBody="m")["MessageId"]
        entries = [{"Id": str(number), "MessageBody": "m"} for number in range(3)]
        assert len(sqs.send_message_batch(QueueUrl="http://127.0.0.1/q", Entries=entries)["Successful"]) == 3


@pytest.mark.parametrize(("status", "stopping", "excused"), [(500, True, 1), (500, False, 0), (404, True, 0)])
def test_a_plain_text_error_is_excused_only_of_an_api_that_is_being_stopped(
    status: int,
    stopping: bool,  # noqa: FBT001
    excused: int,
) -> None:
    observed = Observed(lambda *_: stopping)
    observed.judge(0.0, status, b"Internal Server Error")
    assert (observed.excused, len(observed.wrong)) == (excused, 1 - excused)
