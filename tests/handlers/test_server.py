"""What listens on a developer's machine."""

from __future__ import annotations

import socket

import pytest

from a2a_serverless_tools.local.server import PortInUse, listen

pytestmark = pytest.mark.enable_socket


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
