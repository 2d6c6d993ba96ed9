"""An exchange runs an application as far as its next message, and lets it end when the client has gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse

from a2a_serverless.http.lambda_proxy import Exchange
from a2a_serverless.http.messages import EventStream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

HTTP: Scope = {"type": "http", "method": "GET", "path": "/", "headers": []}


class Streaming:
    """An application that streams three events and waits before each. It notes what it has made, and its end."""

    def __init__(self) -> None:
        self.made = 0
        self.ends: list[str] = []

    async def frames(self) -> AsyncGenerator[bytes]:
        for number in range(3):
            await asyncio.sleep(0)
            self.made += 1
            yield b"data: %d\n\n" % number

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.ends.append("closed")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await EventStream(self.frames(), {}, self.close)(scope, receive, send)
        except ClientDisconnect:
            self.ends.append("the client has gone")


def test_a_plain_answer_needs_no_event_loop() -> None:
    exchange = Exchange(PlainTextResponse("hello", 201), HTTP, b"")
    assert (exchange.status, exchange.streams, exchange.read(), exchange.read()) == (201, False, b"hello", b"")


def test_events_are_made_when_they_are_asked_for() -> None:
    app = Streaming()
    exchange = Exchange(app, HTTP, b"")
    assert (exchange.status, exchange.streams, app.made) == (200, True, 0)

    async def first() -> bytes:
        return await anext(exchange)

    assert (asyncio.run(first()), app.made, app.ends) == (b"data: 0\n\n", 1, [])


def test_a_stream_that_was_read_to_its_end_is_closed() -> None:
    app = Streaming()

    async def every() -> list[bytes]:
        return [frame async for frame in Exchange(app, HTTP, b"")]

    assert (len(asyncio.run(every())), app.ends) == (3, ["closed"])


@pytest.mark.parametrize("read", [0, 1, 2])
def test_closing_a_stream_ends_the_application_behind_it(read: int) -> None:
    app = Streaming()
    exchange = Exchange(app, HTTP, b"")

    async def leave() -> None:
        for _ in range(read):
            await anext(exchange)
        await exchange.aclose()
        await exchange.aclose()

    asyncio.run(leave())
    assert (app.made, app.ends) == (read, ["closed", "the client has gone"])


def test_an_application_that_waits_before_its_answer_fails() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits"):
        Exchange(app, HTTP, b"")
