"""Calls an ASGI app as a server would, without a socket."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

from a2a_webhook_receiver.receive import WebhookRequest


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Call:
    """A request. ``chunks`` is the body in pieces; one that ``stalls`` never ends, unless its client ``leaves``."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    chunks: tuple[bytes, ...] = (b"",)
    query: str = ""
    peer: str | None = "127.0.0.1"
    stalls: bool = False
    leaves: bool = False


def call(app: ASGIApp, wanted: Call) -> Answer:
    """The whole answer of ``app``."""
    return asyncio.run(_call(app, wanted))


def post(app: ASGIApp, request: WebhookRequest, path: str = "/webhook") -> Answer:
    return call(app, Call("POST", path, request.headers, (request.body,)))


async def _call(app: ASGIApp, wanted: Call) -> Answer:
    sent: list[dict[str, Any]] = []
    waiting = list(wanted.chunks)

    async def receive() -> dict[str, Any]:
        if not waiting and wanted.leaves:
            return {"type": "http.disconnect"}
        if not waiting:
            await asyncio.Event().wait()
        chunk = waiting.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(waiting) or wanted.stalls}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(_scope(wanted), receive, send)
    start = sent[0]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], headers, b"".join(message.get("body", b"") for message in sent[1:]))


def _scope(wanted: Call) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": wanted.method,
        "scheme": "http",
        "path": wanted.path,
        "raw_path": wanted.path.encode(),
        "query_string": wanted.query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in wanted.headers],
        "client": (wanted.peer, 5000) if wanted.peer else None,
        "server": ("127.0.0.1", 8010),
        "state": {},
    }
