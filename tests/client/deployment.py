"""A whole deployment in one process, spoken to as over HTTP: the real edge over the world of the tests."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from a2a_serverless.client import ClientRequest, ClientResponse, Transport, Unreachable
from a2a_serverless.domain.errors import Unauthenticated
from a2a_serverless.http.api import AllowAnonymous, Authenticator
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.services.publish import CardPublisher, publish_cards
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from a2a_serverless.testing.simulated_loop import SimulatedLoop
from tests.edge import Edge
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import Json
    from tests.edge import Frames as Stream

T = TypeVar("T")
BASE = "http://127.0.0.1:8000"
STEP_MS = 1_000


class Locked(AllowAnonymous):
    """Nobody is let in."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        del headers
        raise Unauthenticated


class Deployment:
    """Agents that are deployed at ``base``. Each read of a stream lets the world go on for ``step_ms``."""

    def __init__(
        self,
        *agents: Agent,
        authenticator: Authenticator | None = None,
        step_ms: int = STEP_MS,
        base: str = BASE,
    ) -> None:
        self.step_ms, self.base = step_ms, base
        self.world = world = World(agents)
        by_id = world.engine.agents
        signs_in = authenticator or AllowAnonymous()
        self.edge = Edge(world.service, by_id, signs_in, MemoryCallbackVerifier(), 3600)
        self.calls: list[ClientRequest] = []
        self.breaks_after: int | None = None
        publish_cards(CardPublisher(world.table, world.clock, by_id, base), "kid-1", lambda _: bytes(64))

    @contextmanager
    def transport(self, call: ClientRequest) -> Iterator[ClientResponse]:
        self.calls.append(call)
        if not call.url.startswith(f"{self.base}/"):
            raise Unreachable(call.url, "Connection refused")
        answer = self.edge.answer(request_of(call))
        if answer.stream is None:
            yield ClientResponse(answer.status, answer.headers, io.BytesIO(answer.body))
            return
        frames = Frames(self.world, answer.stream, call.url, self.breaks_after, self.step_ms)
        self.breaks_after = None
        try:
            yield ClientResponse(answer.status, answer.headers, frames)
        finally:
            frames.close()


class Frames:
    """A streamed body, in an event loop of its own. After ``left`` frames the line breaks; None is "never"."""

    def __init__(self, world: World, stream: Stream, url: str, left: int | None, step_ms: int) -> None:
        self._step_ms = step_ms
        self._world = world
        self._stream = stream
        self._url = url
        self._left = left
        self._lines: list[bytes] = []
        self._loop = SimulatedLoop(lambda: world.now, world.wait)

    def close(self) -> None:
        """Ends the stream, as when the client has gone."""
        self._play(self._stream.aclose())
        self._loop.leave()

    def read(self, limit: int, /) -> bytes:
        return b"".join(iter(lambda: self.read1(limit), b""))

    def read1(self, limit: int, /) -> bytes:
        assert limit > 0
        if not self._lines:
            self._lines = self._frame().splitlines(keepends=True)
        return self._lines.pop(0) if self._lines else b""

    def _frame(self) -> bytes:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise Unreachable(self._url, "Connection reset by peer")
        self._world.wait(self._step_ms)
        return self._play(anext(self._stream, b""))

    def _play(self, work: Awaitable[T]) -> T:
        """Waits for the stream. No worker is free meanwhile: an event loop runs in this thread."""
        busy, self._world.busy = self._world.busy, True
        try:
            return self._loop.run_until_complete(work)
        finally:
            self._world.busy = busy


def request_of(call: ClientRequest) -> HttpRequest:
    """The request as the application gets it."""
    target = urlsplit(call.url)
    headers = {name.lower(): value for name, value in call.headers.items()}
    return HttpRequest(call.verb, target.path, headers, tuple(parse_qsl(target.query)), call.body or b"")


def answering(*answers: tuple[int, Mapping[str, str], bytes]) -> tuple[Transport, list[ClientRequest]]:
    """A peer that gives these answers one after the other, the last again and again; and what it was asked."""
    calls: list[ClientRequest] = []

    @contextmanager
    def transport(call: ClientRequest) -> Iterator[ClientResponse]:
        status, headers, body = answers[min(len(calls), len(answers) - 1)]
        calls.append(call)
        yield ClientResponse(status, headers, io.BytesIO(body))

    return transport, calls


def documents(served: Mapping[str, object]) -> Transport:
    """A peer that serves JSON documents by URL, and 404 for all others."""

    @contextmanager
    def transport(call: ClientRequest) -> Iterator[ClientResponse]:
        found = call.url in served
        yield ClientResponse(200 if found else 404, {}, io.BytesIO(json.dumps(served.get(call.url)).encode()))

    return transport


def rpc(result: Json = None, error: Json = None) -> tuple[int, dict[str, str], bytes]:
    """The answer of a JSON-RPC peer."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1} | ({"error": error} if error else {"result": result})
    return 200, {"content-type": "application/json"}, json.dumps(body).encode()
