"""Warm requests: sends messages and gets their tasks, and prints the processor time of one of each (us) as JSON.

``python -S many_calls.py <module> <path> <version> <times>``. A candidate is asked without its web server: an ASGI
application on one running loop, or a handler of Lambda events.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any

from first_call import Context

NEW = {"send": "SendMessage", "get": "GetTask"}
OLD = {"send": "message/send", "get": "tasks/get"}
WARM_UP = 50
Call = Callable[[bytes], Awaitable[dict[str, Any]]]


def body(version: str, kind: str, what: str) -> bytes:
    """A request; `what` is the message's or the task's id."""
    new = version == "1.0"
    params: dict[str, Any] = {"id": what}
    if kind == "send":
        part = {"text": "Say it again."} if new else {"kind": "text", "text": "Say it again."}
        message = {"messageId": what, "role": "ROLE_USER" if new else "user", "parts": [part]}
        waits: dict[str, Any] = {"returnImmediately": True} if new else {"blocking": False}
        params = {"message": message, "configuration": waits}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": (NEW if new else OLD)[kind], "params": params}).encode()


def asgi(app: Any, path: str, version: str) -> Call:  # noqa: ANN401 - any ASGI application
    """Asks an ASGI application."""
    headers = [(b"content-type", b"application/json"), (b"a2a-version", version.encode()), (b"host", b"example.com")]
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
    }
    scope |= {"query_string": b"", "headers": headers, "scheme": "https", "root_path": "", "asgi": {"version": "3.0"}}

    async def call(content: bytes) -> dict[str, Any]:
        sent: list[bytes] = []
        waiting = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> dict[str, Any]:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message.get("body", b""))

        await app(dict(scope), receive, send)
        return dict(json.loads(b"".join(sent)))

    return call


def gateway(handler: Any, path: str, version: str) -> Call:  # noqa: ANN401 - any handler of Lambda events
    """Asks a handler of API Gateway's events."""
    headers = {"Content-Type": "application/json", "A2A-Version": version, "Host": "example.com"}
    event = {"resource": "/{agent}", "path": path, "httpMethod": "POST", "headers": headers, "isBase64Encoded": False}

    async def call(content: bytes) -> dict[str, Any]:
        return dict(json.loads(handler({**event, "body": content.decode()}, Context())["body"]))

    return call


async def timed(call: Call, bodies: list[bytes]) -> tuple[float, list[dict[str, Any]]]:
    """The processor time of one call (us), with what it leaves to be done afterwards, and all answers."""
    start = time.process_time()
    answers = [await call(content) for content in bodies]
    while len(asyncio.all_tasks()) > RESTING:  # noqa: ASYNC110 - there is nothing that says so
        await asyncio.sleep(0)
    return (time.process_time() - start) / len(bodies) * 1_000_000, answers


def task_of(answer: dict[str, Any]) -> str:
    """The id of the task that a send has made; fails when there is none."""
    result = answer["result"]
    return str(result.get("task", result)["id"])


RESTING = 1


async def main() -> None:
    """Prints the figures."""
    global RESTING  # noqa: PLW0603 - how many tasks a candidate keeps while nothing happens
    module, path, version, times = sys.argv[1:]
    candidate = import_module(module)
    async with AsyncExitStack() as stack:
        if hasattr(candidate, "app"):
            await stack.enter_async_context(candidate.app.router.lifespan_context(candidate.app))
            call = asgi(candidate.app, path, version)
        else:
            call = gateway(candidate.handler, path, version)
        await asyncio.sleep(0.01)
        RESTING = len(asyncio.all_tasks())
        await timed(call, [body(version, "send", f"warm-{number}") for number in range(WARM_UP)])
        send, answers = await timed(call, [body(version, "send", f"sent-{number}") for number in range(int(times))])
        get, found = await timed(call, [body(version, "get", task_of(answer)) for answer in answers])
        if not all("result" in one for one in found):
            raise SystemExit(f"no result: {found[0]}")
        print(json.dumps({"send": send, "get": get}))


if __name__ == "__main__":
    asyncio.run(main())
