"""What the api function answers from its zip, and what its address in the emulator hands on, can be read as it says."""

import json
from pathlib import Path

import pytest

from a2a_serverless.client import ClientRequest
from tests.functions.emulated_runtime import running
from tests.handlers.test_buffered_routes import TYPES, check_every_route
from tests.observed import WHOLE, observed
from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

MESSAGE = {"messageId": "readable", "role": "ROLE_USER", "parts": [{"text": "hello"}]}


@pytest.mark.requirement(110)
def test_every_route_of_the_built_function_can_be_read_in_every_type(stack: LocalStack, tmp_path: Path) -> None:
    with running(stack, "api", tmp_path) as function:
        for accepted in TYPES:
            check_every_route(function.invoke, "conformance", accepted)


@pytest.mark.requirement(110)
@pytest.mark.parametrize("accepted", TYPES[:2])
def test_the_address_that_up_prints_answers_in_the_type_that_was_asked_for(stack: LocalStack, accepted: str) -> None:
    agent = f"{stack.deployment.rest_url}/conformance"
    sent = json.dumps({"message": MESSAGE, "configuration": {"returnImmediately": True}}).encode()
    asked = observed(stack.deployment.rest_url)
    headers = {"Content-Type": "application/json", "Accept": accepted, "A2A-Version": "1.0"}
    for path, body in (("message:send", sent), ("tasks", None), ("tasks/nowhere", None), ("extendedAgentCard", None)):
        with asked(ClientRequest(f"{agent}/{path}", headers, body)) as answer:
            assert answer.headers["content-type"].partition(";")[0] == accepted
            assert json.loads(answer.body.read(WHOLE))
