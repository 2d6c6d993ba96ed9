"""Routes that FastAPI and Mangum serve inside the buffered api function, beside JSON-RPC, which needs neither."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from a2a_serverless.agents import conformance
from a2a_serverless.handlers.gateway import make_gateway_handler
from tests.conformance.live import Live
from tests.handlers.test_queues import Clock

EVENTS = Path(__file__).parents[2] / "events"


def event(name: str, **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return given | fields


def rest(path: str) -> dict[str, Any]:
    return event("api-rest-get-unknown-task", path=path)


def test_a_rest_call_is_answered_before_and_after_an_inline_agent_has_run_here() -> None:
    handler = make_gateway_handler(Live([conformance.full]).edge)
    message = {"messageId": "tck-complete-task", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}})
    assert handler(rest("/conformance/tasks/t"), Clock())["statusCode"] == 404
    sent = handler(event("api-send", path="/conformance", body=call), Clock())
    task = json.loads(sent["body"])["result"]["task"]
    got = handler(rest(f"/conformance/tasks/{task['id']}"), Clock())
    assert (got["statusCode"], json.loads(got["body"])) == (200, task)
