"""The loop that streams, started by its wrapper from the api function's zip under the Runtime Interface Emulator.

The emulator hands on what the loop has posted once it is complete: that each event goes out when it is there is seen
in ``tests/handlers/test_runtime.py``. Here: the wrapper, the zip, the Runtime API of somebody else, prelude and body.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from a2a_serverless.http.runtime import SEPARATOR
from tests.functions.emulated_runtime import Function, running
from tests.observed import check_proxy_answer, check_streamed_answer
from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

EVENTS = Path(__file__).parents[2] / "events"


def event(name: str, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return found | fields


def streamed(function: Function, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Prelude and body of an answer in the streamed form."""
    prelude, separator, body = function.invoke_raw(asked).partition(SEPARATOR)
    assert separator == SEPARATOR
    check_streamed_answer(asked, json.loads(prelude), body)
    return json.loads(prelude), body


def test_the_loop_answers_both_forms_and_streams_to_the_end(stack: LocalStack, tmp_path: Path) -> None:
    call = json.loads(event("api-send")["body"])
    with running(stack, "api", tmp_path, "stream") as function:
        card = function.invoke(event("api-card"))
        sent, answer = streamed(function, event("api-send"))
        method = {"method": "SendStreamingMessage", "id": "stream"}
        call["params"]["message"]["messageId"] = "streamed"
        prelude, body = streamed(function, event("api-send", body=json.dumps(call | method)))
    check_proxy_answer(event("api-card"), card)
    assert (card["statusCode"], "skills" in json.loads(card["body"])) == (200, True)
    assert (sent["statusCode"], "result" in json.loads(answer)) == (200, True)
    assert (prelude["statusCode"], prelude["headers"]["content-type"]) == (200, "text/event-stream")
    assert body.endswith(b"\n\n")
    frames = [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]
    assert ["task" in frames[0]["result"], {frame["id"] for frame in frames}] == [True, {"stream"}]


def test_under_sam_local_the_ordinary_runtime_answers(stack: LocalStack, tmp_path: Path) -> None:
    with running(stack, "api", tmp_path, "stream", {"AWS_SAM_LOCAL": "true"}) as function:
        answer = function.invoke(event("api-send"))
    check_proxy_answer(event("api-send"), answer)
    assert (answer["statusCode"], "result" in json.loads(answer["body"])) == (200, True)
