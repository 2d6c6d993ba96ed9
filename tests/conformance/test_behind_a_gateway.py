"""What API Gateway does to requests and answers by itself, as the stand-in in front of the streaming loop does it."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import pytest

from tests.conformance.loop import LARGEST, Refused, answer_of, looping
from tests.echo import Writer
from tests.runtime_api import Invocation

pytestmark = pytest.mark.enable_socket
HEADERS = {"content-type": "application/json", "a2a-version": "1.0"}


def test_too_large_a_request_does_not_reach_the_function_and_a_client_that_goes_harms_nobody() -> None:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
    with looping([Writer().agent]) as base:
        host = urlsplit(base).netloc
        big = http.client.HTTPConnection(host)
        big.request("POST", "/echo", b"x" * (LARGEST + 1), HEADERS)
        assert big.getresponse().status == 413
        big.close()
        gone = http.client.HTTPConnection(host)
        gone.request("POST", "/echo", json.dumps(call), HEADERS)
        assert gone.getresponse().readline().startswith(b"id: 1")
        gone.close()
        after = http.client.HTTPConnection(host)
        after.request("POST", "/echo", json.dumps(call | {"method": "GetTask", "params": {"id": "no"}}), HEADERS)
        assert after.getresponse().status == 200
        after.close()


@pytest.mark.parametrize("streams", [True, False])
def test_an_answer_in_the_wrong_form_for_its_route_is_refused(streams: bool) -> None:  # noqa: FBT001
    invocation = Invocation(b"{}", kind="response")
    if not streams:
        invocation.headers["Lambda-Runtime-Function-Response-Mode"] = "streaming"
    invocation.chunks.put(b"{}")
    with pytest.raises(Refused, match="502"):
        answer_of(invocation, streams=streams)
