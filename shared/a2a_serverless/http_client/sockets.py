"""Sockets under one deadline: looking up a name, connecting to one of its addresses."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

Connector: TypeAlias = "Callable[[str, int, float], socket.socket]"
"""Returns a connection to an address and port, within so many seconds; raises OSError."""


class Deadline:
    """One time budget for a whole exchange; every wait asks for the time that is left."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._end = self._start + seconds

    def left(self) -> float:
        """Seconds left, more than 0; raises TimeoutError when the time is up."""
        left = self._end - self._clock()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left

    def elapsed_ms(self) -> int:
        return round((self._clock() - self._start) * 1000)


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a name, in the order of the system's resolver; raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in found))


def connect(address: str, port: int, seconds: float) -> socket.socket:
    """A TCP connection to a literal address. Not ``create_connection``, which would resolve the address again."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(seconds)
        sock.connect((address, port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock


def dial(addresses: Sequence[str], port: int, left: Callable[[], float], connector: Connector) -> socket.socket:
    """A connection to the first address that answers; each try gets its share of the time that is left."""
    *first, last = addresses
    for index, address in enumerate(first):
        with suppress(OSError):
            return connector(address, port, left() / (len(first) + 1 - index))
    return connector(last, port, left())
