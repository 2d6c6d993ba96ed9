"""How much of ours lies between a request and the agent's code: what a reader who follows one through has to know."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from types import CoroutineType, FrameType
from typing import TYPE_CHECKING, Any

from a2a_serverless.http.lambda_proxy import make_gateway_handler
from tests.conformance.live import Live
from tests.echo import agent_of
from tests.handlers.test_buffered_routes import event
from tests.handlers.test_queues import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = "a2a_serverless."
CLASSES, FUNCTIONS = 7, 26  # one class is ``Run``: in its place five functions handed on the same five arguments


class Seen:
    """An inline agent that looks back: at the frames that called it, and at those that wait for it."""

    def __init__(self) -> None:
        self.functions: set[str] = set()
        self.classes: set[str] = set()

    async def work(self, task: Any) -> str:
        task.id  # noqa: B018 - an agent that wants a task, so that one is made
        for frame in (*_callers(sys._getframe()), *_waiting()):  # noqa: SLF001 - that is what this test is about
            module = frame.f_globals.get("__name__", "")
            if module.startswith(OURS):
                self.functions.add(f"{module}.{frame.f_code.co_qualname}")
                if "self" in frame.f_locals:
                    self.classes.add(type(frame.f_locals["self"]).__qualname__)
        return "seen"


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame:
        yield frame
        frame = frame.f_back


def _waiting() -> Iterator[FrameType]:
    """The frames of every coroutine that waits in this loop, down to what it waits for."""
    for task in asyncio.all_tasks():
        waits: Any = task.get_coro()
        while isinstance(waits, CoroutineType):
            if waits.cr_frame:
                yield waits.cr_frame
            waits = waits.cr_await


def test_between_a_request_and_the_agent_stand_few_classes_and_functions() -> None:
    seen = Seen()
    handler = make_gateway_handler(Live([_inline(seen)]).edge.app)
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}})
    answer = handler(event("api-send", path="/echo", body=call), Clock())
    assert "seen" in answer["body"]
    assert len(seen.classes) <= CLASSES, sorted(seen.classes)
    assert 0 < len(seen.functions) <= FUNCTIONS, sorted(seen.functions)


def _inline(seen: Seen) -> Any:
    return replace(agent_of(seen.work), runs="inline")
