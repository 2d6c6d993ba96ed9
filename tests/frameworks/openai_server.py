"""A server on this machine that speaks OpenAI's Responses API or Gemini's, and says what a test tells it."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

USAGE = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 1},
    "total_tokens": 10,
}
CUT = "CUT"
"""A piece of text after which the connection is closed."""


@dataclass
class OpenAIServer:
    """``say`` gets the body of each request.

    It returns pieces of text and tool calls as (name, id, input), or the status of an error. ``keys`` are those of the
    requests.
    """

    say: Callable[[dict[str, Any]], Iterable[Any] | int]
    url: str = ""
    keys: list[str] = field(default_factory=list)


@contextmanager
def openai_server(say: Callable[[dict[str, Any]], Iterable[Any] | int] = lambda _: 500) -> Iterator[OpenAIServer]:
    """A server that runs while it is entered."""
    made = OpenAIServer(say)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            made.keys.append(self.headers["authorization"].removeprefix("Bearer "))
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = made.say(request)
            if isinstance(said, int):
                self._answer(said, "application/json", json.dumps({"error": {"message": "no", "code": "x"}}))
            elif "contents" in request:
                self._answer(200, "text/event-stream", f"data: {json.dumps(_gemini_response([*said]))}\n\n")
            elif request.get("stream"):
                text = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in _events([*said]))
                self._answer(200, "text/event-stream", text)
            else:
                self._answer(200, "application/json", json.dumps(_response([*said])))

        def _answer(self, status: int, kind: str, text: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            made.url = f"http://127.0.0.1:{server.server_port}/v1"
            yield made
        finally:
            server.shutdown()
            thread.join()


def _response(said: list[Any]) -> dict[str, Any]:
    text = "".join(one for one in said if isinstance(one, str))
    content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [content]}
    calls = [
        {"id": f"fc_{place}", "type": "function_call", "status": "completed", "call_id": one[1], "name": one[0]}
        | {"arguments": json.dumps(one[2])}
        for place, one in enumerate(said)
        if not isinstance(one, str)
    ]
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": "gpt-test-2026-01-01",
        "output": [*([message] if text else []), *calls],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": USAGE,
    }


def _gemini_response(said: list[str]) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text} for text in said]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 7}}


def _events(said: list[Any]) -> list[dict[str, Any]]:
    whole = _response([one for one in said if one != CUT])
    deltas = [
        {"type": "response.output_text.delta", "delta": one, "item_id": "msg_1", "output_index": 0, "content_index": 0}
        | {"logprobs": []}
        for one in said
        if isinstance(one, str) and one != CUT
    ]
    created: dict[str, Any] = {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    end: list[dict[str, Any]] = [] if CUT in said else [{"type": "response.completed", "response": whole}]
    return [{**one, "sequence_number": number} for number, one in enumerate([created, *deltas, *end])]
