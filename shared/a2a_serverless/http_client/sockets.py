"""Sockets under one deadline: looking up a name, connecting to one of its addresses, the TLS handshake."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import BoundedSemaphore, Lock, Thread
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from ssl import SSLContext

T = TypeVar("T")

Connector: TypeAlias = "Callable[[str, int, float], socket.socket]"
"""Returns a connection to an address and port, within so many seconds; raises OSError."""


ResolveHost: TypeAlias = Callable[[str, int], Iterable[str]]
"""Returns the addresses of a host and port; raises OSError when the name does not resolve."""

# Name lookups at a time. getaddrinfo cannot be interrupted, so a hanging one keeps its thread until the system gives
# up. A notifier sends ten webhooks at a time and waits 2 s for each: about 150 threads if every name hangs for 30 s.
MAX_LOOKUPS: Final = 256
HANG_S: Final = 60
LOOK_S: Final = 0.5
"""How often whoever waits asks whether the result is still wanted."""
_FREE: Final = BoundedSemaphore(MAX_LOOKUPS)
_LOOKUPS: Final[dict[tuple[int, str, int], _Lookup]] = {}
_LOCK: Final = Lock()


def always() -> bool:
    """True: a result is wanted to its end."""
    return True


class Deadline:
    """One time budget for a whole exchange; every wait asks for the time that is left.

    Every wait also ends, as if the time were over, within half a second after ``goes_on`` returns False.
    """

    def __init__(
        self, seconds: float, clock: Callable[[], float] = time.monotonic, goes_on: Callable[[], bool] = always
    ) -> None:
        self._seconds, self._clock, self.goes_on = seconds, clock, goes_on
        self._start = clock()

    def left(self) -> float:
        """Seconds left, more than 0; raises TimeoutError when the time is up."""
        left = self._start + self._seconds - self._clock()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left

    def wait(self, act: Callable[[float], T]) -> T:
        """The result of ``act``, which waits for the seconds that it gets, and is repeated after a TimeoutError."""
        while self.goes_on():
            seconds = min(LOOK_S, self.left())
            try:
                return act(seconds)
            except TimeoutError as error:
                if error.errno:  # ETIMEDOUT: the system has given the connection up
                    raise
        raise TimeoutError("nobody waits for the answer any more")

    def elapsed_ms(self) -> int:
        return round((self._clock() - self._start) * 1000)


class WaitLimit(Deadline):
    """A time limit for each single wait of an exchange: for a stream, or a big file."""

    def left(self) -> float:
        """The seconds of one wait."""
        return self._seconds

    def wait(self, act: Callable[[float], T]) -> T:
        """As a deadline that begins now."""
        return Deadline(self._seconds, self._clock, self.goes_on).wait(act)


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a name, in the order of the system's resolver; raises OSError."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def connect(address: str, port: int, seconds: float, goes_on: Callable[[], bool] = always) -> socket.socket:
    """A TCP connection to a literal address. Not ``create_connection``, which would resolve the address again."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(0)
        code = sock.connect_ex((address, port))
        if code == errno.EINPROGRESS:
            Deadline(seconds, goes_on=goes_on).wait(partial(_await_connection, sock))
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        _check_code(code)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(seconds)
    except BaseException:
        sock.close()
        raise
    return sock


def _await_connection(sock: socket.socket, seconds: float) -> None:
    connection = select.poll()
    connection.register(sock, select.POLLOUT)
    if not connection.poll(seconds * 1000):
        raise TimeoutError("not connected yet")


def _check_code(code: int) -> None:
    if code:
        raise OSError(code, os.strerror(code))


def dial(addresses: Sequence[str], port: int, deadline: Deadline, connector: Connector) -> socket.socket:
    """A connection to the first address that answers; each try gets its share of the time that is left."""
    *first, last = addresses
    for index, address in enumerate(first):
        with suppress(OSError):
            return connector(address, port, deadline.left() / (len(first) + 1 - index))
    return connector(last, port, deadline.left())


def secure(sock: socket.socket, name: str, context: SSLContext, deadline: Deadline) -> socket.socket:
    """TLS over ``sock``; SNI and the certificate check use the name, not the address. Closes ``sock`` on failure."""

    def shake_hands(seconds: float) -> None:
        sock.settimeout(seconds)
        tls.do_handshake()

    try:
        sock = tls = context.wrap_socket(sock, server_hostname=name, do_handshake_on_connect=False)
        deadline.wait(shake_hands)
    except BaseException:
        sock.close()
        raise
    return sock


@dataclass(slots=True)
class _Lookup:
    """A lookup in progress. It hangs since the moment until which a caller has waited for it (s, wall clock)."""

    answer: Future[list[str]] = field(default_factory=Future)
    hangs_since: float | None = None

    def hangs(self, now: float) -> bool:
        # After a minute somebody asks again: Lambda freezes an instance for hours, and with it the lookup's thread.
        # tests/http_client/test_sockets.py: test_a_lookup_that_was_frozen_with_its_instance_stops_no_later_one
        return self.hangs_since is not None and 0 <= now - self.hangs_since < HANG_S


def look_up(
    host: str, port: int, resolver: ResolveHost, deadline: Deadline, clock: Callable[[], float] = time.time
) -> list[str]:
    """Shares one lookup of a name between all callers that wait for it; fails at once while that lookup hangs."""
    key = (id(resolver), host, port)
    with _LOCK:
        lookup = _LOOKUPS.get(key)
        if lookup and lookup.hangs(clock()):
            raise OSError("the lookup of this name hangs")
        if lookup is None or lookup.hangs_since is not None:
            lookup = _LOOKUPS[key] = _start(key, resolver)
    try:
        deadline.wait(lookup.answer.exception)
    except TimeoutError:
        if deadline.goes_on():
            lookup.hangs_since = lookup.hangs_since or clock()
        raise
    return lookup.answer.result()


def _start(key: tuple[int, str, int], resolver: ResolveHost) -> _Lookup:
    if not _FREE.acquire(blocking=False):
        raise OSError("too many lookups hang")
    lookup = _Lookup()
    try:
        Thread(target=_run, args=(key, lookup, resolver), name="lookup", daemon=True).start()
    except RuntimeError as error:
        _FREE.release()
        raise OSError("the process has no thread for a lookup") from error
    return lookup


def _run(key: tuple[int, str, int], lookup: _Lookup, resolver: ResolveHost) -> None:
    answer: list[str] | Exception
    try:
        answer = list(resolver(*key[1:]))
    except Exception as error:  # noqa: BLE001
        answer = error
    with _LOCK:
        if _LOOKUPS.get(key) is lookup:
            del _LOOKUPS[key]
        _FREE.release()
    if isinstance(answer, Exception):
        lookup.answer.set_exception(answer)
    else:
        lookup.answer.set_result(answer)
