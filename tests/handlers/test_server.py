"""Whoever sends a request slowly, or not to its end, holds a connection for a while only, and costs one line."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import uvicorn

from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from a2a_serverless_tools.local.edge import BODY_S, BodyDeadline, in_threads
from a2a_serverless_tools.local.server import HEAD_S, BoundedHead, PortInUse, listen
from tests.echo import Writer
from tests.edge import Edge
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.enable_socket

SOON_S = 0.5
TIMEOUT_S = 60.0
BODY = json.dumps({"sha256": "0" * 64, "size": 7}).encode()
HEAD = b"POST /echo/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(BODY)


@contextmanager
def served(*, head_s: float = HEAD_S, body_s: float = BODY_S) -> Iterator[socket.socket]:
    """A connection to the application."""

    class Bounded(BoundedHead):
        head_seconds = head_s

    world = World([Writer().agent])
    edge = Edge(world.service, world.table, world.engine.agents, AllowAnonymous(), MemoryCallbackVerifier(), 60)
    listener = socket.create_server(("127.0.0.1", 0))
    app = BodyDeadline(replace(edge, run=in_threads()).app, edge.limits.body, body_s)
    config = uvicorn.Config(app, http=Bounded, log_config=None, lifespan="off", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        with socket.create_connection(listener.getsockname(), timeout=TIMEOUT_S) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def all_of(client: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    said = b""
    while piece := client.recv(65_536):
        said += piece
    return said


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged as a warning or worse, once there is something; a traceback would be several lines."""
    give_up = time.monotonic() + TIMEOUT_S
    found: list[str] = []
    while not found and time.monotonic() < give_up:
        wanted = [record for record in caplog.records if record.levelno >= logging.WARNING]
        found = [line for record in wanted for line in caplog.handler.format(record).splitlines()]
    return [line.partition(" ")[2] for line in found]


def test_a_body_that_does_not_come_is_given_up_and_so_is_its_connection(caplog: pytest.LogCaptureFixture) -> None:
    with served(body_s=SOON_S) as client:
        client.sendall(HEAD + BODY[:1])
        answer = all_of(client)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"The body did not arrive in time." in answer
    (line,) = lines(caplog)
    assert "its body did not arrive in time" in line


@pytest.mark.parametrize("sent", [b"", b"P", HEAD[:-2]], ids=["nothing", "a byte", "no end"])
def test_a_head_that_does_not_come_is_given_up(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with served(head_s=SOON_S) as client:
        client.sendall(sent)
        assert all_of(client) == b""
    (line,) = lines(caplog)
    assert "no request headers within 0.5 s" in line


def test_so_is_the_head_of_a_second_request_on_the_same_connection(caplog: pytest.LogCaptureFixture) -> None:
    with served(head_s=4 * SOON_S) as client:
        client.sendall(HEAD + BODY)
        first = client.recv(65_536)
        client.sendall(b"P")
        all_of(client)
    assert first.startswith(b"HTTP/1.1 200 ")
    (line,) = lines(caplog)
    assert "no request headers within 2 s" in line


def test_a_client_that_leaves_in_the_middle_of_its_body_costs_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with served() as client:
        client.sendall(HEAD + BODY[:1])
        client.close()
        (line,) = lines(caplog)
    assert "its client left before the body was there" in line


def test_a_request_that_comes_in_pieces_is_answered() -> None:
    with served() as client:
        for piece in (HEAD[:10], HEAD[10:], BODY[:3], BODY[3:]):
            client.sendall(piece)
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_a_connection_of_a_listener_sends_answers_without_delay() -> None:
    """asyncio sets TCP_NODELAY on accepted sockets whose protocol is named."""
    with listen(0) as listener, socket.create_connection(listener.getsockname()) as client:
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP
            assert accepted.getpeername() == client.getsockname()


def test_a_port_is_listened_on_by_one_program_only() -> None:
    with listen(0) as listener, pytest.raises(PortInUse, match="cannot be used"):
        listen(listener.getsockname()[1])
