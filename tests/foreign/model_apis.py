"""The APIs of model vendors, as a server speaks them: OpenAI's two, Google's generateContent, Bedrock's ConverseStream.

Each reads a request into a ``ModelRequest``, and writes what a model says: texts and tool calls.
"""

from __future__ import annotations

import json
import struct
from binascii import crc32
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

Role = Literal["user", "model", "tool"]
END = "END"
"""A piece of what a model says, after which the response ends without its last event."""


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool. An empty id gets one that no other call has, as vendors do it."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


Said = list[str | ToolCall]
"""What a model says in one response: pieces of text, and tool calls."""


@dataclass(frozen=True)
class Turn:
    """A message of a request, or several of one role."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelRequest:
    """A request to a model. ``body`` is that of HTTP."""

    api: str
    system: str
    turns: tuple[Turn, ...]
    streams: bool
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """The last text of the user."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user"), "")

    @property
    def number(self) -> int:
        """How often the model has answered since the last text of the user."""
        return sum(turn.role == "model" for turn in self.turns[self._last_user() :])

    @property
    def results(self) -> list[str]:
        """The results of tools since the last text of the user."""
        return [result for turn in self.turns[self._last_user() :] for result in turn.results]

    def _last_user(self) -> int:
        return max((place for place, turn in enumerate(self.turns) if turn.role == "user"), default=0)


class ModelApi(Protocol):
    """How a vendor writes requests and responses."""

    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        """The request to this path."""

    def write(self, said: Said) -> tuple[str, bytes]:
        """A whole response: its media type and its body."""

    def stream(self, said: Said) -> tuple[str, bytes]:
        """The events of a response: their media type and their bytes."""

    def error(self, status: int) -> dict[str, Any]:
        """The body of an error."""


def text_of(said: Said) -> str:
    """The text that a model says."""
    return "".join(piece for piece in said if isinstance(piece, str) and piece != END)


def calls_in(said: Said) -> list[ToolCall]:
    """The tool calls of a response."""
    return [piece for piece in said if isinstance(piece, ToolCall)]


def _pieces(said: Said) -> list[str]:
    return [piece for piece in said if isinstance(piece, str) and piece != END]


def _plain(content: Any) -> str:
    """The text of a message's content: a text, or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content or ())


def _server_sent(events: list[dict[str, Any]], *, named: bool = False, done: str = "") -> tuple[str, bytes]:
    lines = [
        f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" if named else _data(json.dumps(one)) for one in events
    ]
    return "text/event-stream", ("".join(lines) + (_data(done) if done else "")).encode()


def _data(text: str) -> str:
    return f"data: {text}\n\n"


class Responses:
    """OpenAI's Responses API."""

    USAGE: Final = {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 10,
    }

    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        del path
        turns: list[Turn] = []
        listed = body["input"]
        for item in [{"role": "user", "content": listed}] if isinstance(listed, str) else listed:
            match item.get("type", "message"):
                case "function_call":
                    call = ToolCall(item["name"], json.loads(item["arguments"] or "{}"), item["call_id"])
                    turns.append(Turn("model", calls=(call,)))
                case "function_call_output":
                    turns.append(Turn("tool", results=(_plain(item["output"]),)))
                case "message":
                    roles: dict[str, Role] = {"assistant": "model", "user": "user"}
                    if role := roles.get(item["role"]):
                        turns.append(Turn(role, _plain(item["content"])))
        system = "".join(_plain(one["content"]) for one in listed if _is_system(one))
        stream = bool(body.get("stream"))
        return ModelRequest("responses", (body.get("instructions") or "") + system, _merged(turns), stream, body)

    def write(self, said: Said) -> tuple[str, bytes]:
        return "application/json", json.dumps(self._response(said)).encode()

    def stream(self, said: Said) -> tuple[str, bytes]:
        whole = self._response(said)
        created = {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
        place: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
        events = [created, *({"type": "response.output_text.delta", "delta": one, **place} for one in _pieces(said))]
        for number, item in enumerate(whole["output"]):
            if item["type"] == "function_call":
                at: dict[str, Any] = {"output_index": number, "item_id": item["id"]}
                added = {"type": "response.output_item.added", "item": {**item, "arguments": ""}, **at}
                delta = {"type": "response.function_call_arguments.delta", "delta": item["arguments"], **at}
                events += [added, delta, {"type": "response.output_item.done", "item": item, **at}]
        end = [] if END in said else [{"type": "response.completed", "response": whole}]
        numbered = [{**one, "sequence_number": number} for number, one in enumerate([*events, *end])]
        return _server_sent(numbered, named=True)

    def error(self, status: int) -> dict[str, Any]:
        return {"error": {"message": f"status {status}", "type": "error", "code": "x"}}

    def _response(self, said: Said) -> dict[str, Any]:
        content = {"type": "output_text", "text": text_of(said), "annotations": [], "logprobs": []}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [content]}
        calls = [
            {"id": f"fc_{place}", "type": "function_call", "status": "completed", "call_id": call.id, "name": call.name}
            | {"arguments": json.dumps(call.arguments)}
            for place, call in enumerate(said)
            if isinstance(call, ToolCall)
        ]
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": "gpt-test-2026-01-01",
            "output": [*([message] if text_of(said) else []), *calls],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": self.USAGE,
        }


class ChatCompletions:
    """OpenAI's chat completions."""

    USAGE: Final = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}

    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        del path
        turns: list[Turn] = []
        for message in body["messages"]:
            match message["role"]:
                case "user":
                    turns.append(Turn("user", _plain(message["content"])))
                case "assistant":
                    calls = [
                        ToolCall(call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"])
                        for call in message.get("tool_calls") or ()
                    ]
                    turns.append(Turn("model", _plain(message.get("content")), tuple(calls)))
                case "tool":
                    turns.append(Turn("tool", results=(_plain(message["content"]),)))
        system = "".join(_plain(one["content"]) for one in body["messages"] if _is_system(one))
        return ModelRequest("chat", system, _merged(turns), bool(body.get("stream")), body)

    def write(self, said: Said) -> tuple[str, bytes]:
        message: dict[str, Any] = {"role": "assistant", "content": text_of(said) or None}
        if calls := self._calls(said):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": self._reason(said)}
        return "application/json", json.dumps(self._head("chat.completion") | {"choices": [choice]}).encode()

    def stream(self, said: Said) -> tuple[str, bytes]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in _pieces(said)]
        deltas += [{"tool_calls": [{"index": place, **call}]} for place, call in enumerate(self._calls(said))]
        head = self._head("chat.completion.chunk") | {"usage": None}
        chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        if END in said:
            return _server_sent(chunks)
        last = {"index": 0, "delta": {}, "finish_reason": self._reason(said)}
        usage = {**head, "choices": [], "usage": self.USAGE}
        return _server_sent([*chunks, {**head, "choices": [last]}, usage], done="[DONE]")

    def error(self, status: int) -> dict[str, Any]:
        return {"error": {"message": f"status {status}", "type": "error", "code": "x"}}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": "gpt-test", "usage": self.USAGE}

    def _calls(self, said: Said) -> list[dict[str, Any]]:
        return [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in calls_in(said)
        ]

    def _reason(self, said: Said) -> str:
        return "tool_calls" if calls_in(said) else "stop"


class GenerateContent:
    """Google's generateContent and streamGenerateContent. Its calls have no ids, unless the script gives them."""

    USAGE: Final = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}

    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        turns: list[Turn] = []
        for content in body["contents"]:
            parts = content["parts"]
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
            role: Role = "model" if content.get("role") == "model" else "tool" if results else "user"
            text = "".join(part.get("text", "") for part in parts)
            made = tuple(ToolCall(call["name"], call.get("args") or {}, call.get("id") or "") for call in calls)
            turns.append(Turn(role, text, made, tuple(json.dumps(result, sort_keys=True) for result in results)))
        system = "".join(part.get("text", "") for part in (body.get("systemInstruction") or {}).get("parts", ()))
        return ModelRequest("gemini", system, _merged(turns), ":stream" in path, body)

    def write(self, said: Said) -> tuple[str, bytes]:
        return "application/json", json.dumps(self._response(said)).encode()

    def stream(self, said: Said) -> tuple[str, bytes]:
        pieces: list[Said] = [[piece] for piece in said if piece != END]
        chunks = [self._response(piece, "") for piece in pieces[:-1]]
        return _server_sent([*chunks, self._response(pieces[-1] if pieces else [], "" if END in said else "STOP")])

    def error(self, status: int) -> dict[str, Any]:
        names = {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
        return {"error": {"code": status, "message": f"status {status}", "status": names.get(status, "UNKNOWN")}}

    def _response(self, said: Said, reason: str = "STOP") -> dict[str, Any]:
        parts: list[dict[str, Any]] = [{"text": text_of(said)}] if text_of(said) else []
        for call in calls_in(said):
            identity = {"id": call.id} if call.id else {}
            parts.append({"functionCall": {"name": call.name, "args": call.arguments, **identity}})
        candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
        if reason:
            candidate["finishReason"] = reason
        return {"candidates": [candidate], "usageMetadata": self.USAGE, "modelVersion": "gemini-test"}


class ConverseStream:
    """Bedrock's ConverseStream, in the binary framing of AWS event streams."""

    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        turns: list[Turn] = []
        for message in body["messages"]:
            blocks = message["content"]
            calls = [block["toolUse"] for block in blocks if "toolUse" in block]
            results = [block["toolResult"]["content"] for block in blocks if "toolResult" in block]
            role: Role = "model" if message["role"] == "assistant" else "tool" if results else "user"
            made = tuple(ToolCall(call["name"], call["input"], call["toolUseId"]) for call in calls)
            texts = tuple("".join(part.get("text", "") or json.dumps(part) for part in result) for result in results)
            turns.append(Turn(role, "".join(block.get("text", "") for block in blocks), made, texts))
        system = "".join(block.get("text", "") for block in body.get("system") or ())
        return ModelRequest("bedrock", system, _merged(turns), path.endswith("converse-stream"), body)

    def write(self, said: Said) -> tuple[str, bytes]:
        content: list[dict[str, Any]] = [{"text": text_of(said)}] if text_of(said) else []
        content += [
            {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}} for call in calls_in(said)
        ]
        body = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": self._reason(said)}
        return "application/json", json.dumps(body | self._usage()).encode()

    def stream(self, said: Said) -> tuple[str, bytes]:
        events: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant"})]
        if text_of(said):
            events += [
                ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}}) for piece in _pieces(said)
            ]
            events.append(("contentBlockStop", {"contentBlockIndex": 0}))
        for place, call in enumerate(calls_in(said), 1):
            start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
            delta = {"toolUse": {"input": json.dumps(call.arguments)}}
            events += [
                ("contentBlockStart", {"contentBlockIndex": place, "start": start}),
                ("contentBlockDelta", {"contentBlockIndex": place, "delta": delta}),
                ("contentBlockStop", {"contentBlockIndex": place}),
            ]
        if END not in said:
            events += [("messageStop", {"stopReason": self._reason(said)}), ("metadata", self._usage())]
        return "application/vnd.amazon.eventstream", b"".join(_aws_event(*event) for event in events)

    def error(self, status: int) -> dict[str, Any]:
        return {"message": f"status {status}"}

    def _usage(self) -> dict[str, Any]:
        return {"usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}, "metrics": {"latencyMs": 1}}

    def _reason(self, said: Said) -> str:
        return "tool_use" if calls_in(said) else "end_turn"


def _aws_event(name: str, payload: dict[str, Any]) -> bytes:
    """A message of an AWS event stream: lengths, headers and payload, each with its checksum."""
    headers = b"".join(
        struct.pack(">B", len(key)) + key.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
        for key, value in ((":event-type", name), (":content-type", "application/json"), (":message-type", "event"))
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack(">I", crc32(prelude)) + headers + body
    return message + struct.pack(">I", crc32(message))


def _is_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in {"system", "developer"}


def _merged(turns: list[Turn]) -> tuple[Turn, ...]:
    """The turns, with those of one role after another as one."""
    merged: list[Turn] = []
    for turn in turns:
        if merged and merged[-1].role == turn.role:
            last = merged.pop()
            text = last.text + turn.text if turn.role == "model" else turn.text or last.text
            merged.append(Turn(turn.role, text, last.calls + turn.calls, last.results + turn.results))
        else:
            merged.append(turn)
    return tuple(merged)


def api_of(path: str) -> ModelApi | None:
    """The API to which a path belongs, or None."""
    if path.endswith("/chat/completions"):
        return ChatCompletions()
    if path.endswith("/responses"):
        return Responses()
    if "enerateContent" in path:
        return GenerateContent()
    return ConverseStream() if "/converse" in path else None
