"""Sockets under one deadline: looking up a name, connecting to one of its addresses."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Lock, Thread
from typing import Final, TypeAlias

Connector: TypeAlias = "Callable[[str, int, float], socket.socket]"
"""Returns a connection to an address and port, within so many seconds; raises OSError."""


ResolveHost: TypeAlias = Callable[[str, int], Iterable[str]]
"""Returns the addresses of a host and port; raises OSError when the name does not resolve."""

# Name lookups at a time. getaddrinfo cannot be interrupted, so a hanging one keeps its thread until the system gives
# up. A notifier sends ten webhooks at a time and waits 2 s for each: about 150 threads if every name hangs for 30 s.
MAX_LOOKUPS: Final = 256
HANG_S: Final = 60
_FREE: Final = BoundedSemaphore(MAX_LOOKUPS)
_LOOKUPS: Final[dict[tuple[int, str, int], _Lookup]] = {}
_LOCK: Final = Lock()


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
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


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
    host: str, port: int, resolver: ResolveHost, seconds: float, clock: Callable[[], float] = time.time
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
        return lookup.answer.result(seconds)
    except TimeoutError:
        lookup.hangs_since = lookup.hangs_since or clock()
        raise


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
