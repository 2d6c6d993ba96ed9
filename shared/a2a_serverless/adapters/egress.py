"""Connects to URLs that clients supplied: one bounded DNS lookup, all addresses checked, a connection to one of them.

A library that takes a URL would look the name up again when it connects, after our check. Nothing here reads the
environment: no proxy, no netrc, no ``SSL_CERT_FILE``, no ``SSLKEYLOGFILE``. Trusted CAs are certifi's list: the same
on a laptop and in every Lambda image, updated with the dependency.
"""

from __future__ import annotations

import socket
import ssl
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, TypeAlias

from a2a_serverless.domain.url_policy import NameUnresolved, check_addresses, check_url, is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from a2a_serverless.domain.url_policy import EgressPolicy, WebhookTarget

# (host, port) -> addresses; raises OSError when the name does not resolve.
ResolveHost: TypeAlias = "Callable[[str, int], Iterable[str]]"
# (address, port, seconds) -> a connected TCP socket; raises OSError.
Connector: TypeAlias = "Callable[[str, int, float], socket.socket]"

LOOKUP_SECONDS: Final = 2.0
MAX_DIALS: Final = 3
# Name lookups at a time. getaddrinfo cannot be interrupted, so a hanging one keeps its thread until the system gives
# up. A notifier sends ten webhooks at a time and waits 2 s for each: about 150 threads if every name hangs for 30 s.
MAX_LOOKUPS: Final = 256
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
    """All addresses of a name, in the order of the system's resolver."""
    return [str(answer[4][0]) for answer in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


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


def strict_ssl_context() -> ssl.SSLContext:
    """Checks certificate and host name, TLS 1.2 or newer. ``create_default_context`` would read the environment."""
    import certifi

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(certifi.where())
    return context


class SystemResolver:
    """``ports.Resolver`` over the system's resolver."""

    def __init__(self, resolver: ResolveHost = resolve) -> None:
        self._resolver = resolver

    def check(self, target: WebhookTarget) -> None:
        addresses_of(target, self._resolver, LOOKUP_SECONDS)


def vet(url: str, policy: EgressPolicy, resolver: ResolveHost = resolve) -> WebhookTarget:
    """The check at registration. Raises UrlNotAllowed, or NameUnresolved when the name has no address at present."""
    target = check_url(url, policy)
    addresses_of(target, resolver, LOOKUP_SECONDS)
    return target


def addresses_of(target: WebhookTarget, resolver: ResolveHost, seconds: float) -> tuple[str, ...]:
    """The checked addresses of a target, by one lookup of at most ``seconds``. Raises UrlNotAllowed, NameUnresolved."""
    literal = target.host.strip("[]")
    if is_loopback(literal):  # only the local allow list lets a literal address get here
        return (literal,)
    try:
        return check_addresses(_look_up_shared(target, resolver, seconds), target)
    except (OSError, UnicodeError) as error:
        raise NameUnresolved("the name does not resolve") from error


def dial(target: WebhookTarget, addresses: tuple[str, ...], deadline: Deadline, connector: Connector) -> socket.socket:
    """A connection to the first address that answers; each try gets its share of the time that is left."""
    *first, last = addresses[:MAX_DIALS]
    for index, address in enumerate(first):
        with suppress(OSError):
            return connector(address, target.port, deadline.left() / (len(first) + 1 - index))
    return connector(last, target.port, deadline.left())


def secure(sock: socket.socket, target: WebhookTarget, context: ssl.SSLContext, deadline: Deadline) -> socket.socket:
    """TLS over ``sock``; SNI and the certificate check use the name, not the address. Closes ``sock`` on failure."""
    try:
        sock.settimeout(deadline.left())  # CPython applies it to the whole handshake
        return context.wrap_socket(sock, server_hostname=target.host.strip("[]"))
    except BaseException:
        sock.close()
        raise


@dataclass(slots=True)
class _Lookup:
    """A lookup in progress. ``hangs`` is set once a caller has waited for it until its time was up."""

    answer: Future[list[str]] = field(default_factory=Future)
    hangs: bool = False


def _look_up_shared(target: WebhookTarget, resolver: ResolveHost, seconds: float) -> list[str]:
    """Shares one lookup of a name between all who ask for it; fails at once when that lookup hangs."""
    key = (id(resolver), target.host, target.port)
    with _LOCK:
        lookup = _LOOKUPS.get(key)
        if lookup is None:
            if len(_LOOKUPS) >= MAX_LOOKUPS:
                raise OSError("too many lookups hang")
            lookup = _LOOKUPS[key] = _Lookup()
            Thread(target=_run, args=(key, lookup, resolver), name="lookup", daemon=True).start()
        elif lookup.hangs:
            raise OSError("the lookup of this name hangs")
    try:
        return lookup.answer.result(seconds)
    except TimeoutError:
        lookup.hangs = True
        raise


def _run(key: tuple[int, str, int], lookup: _Lookup, resolver: ResolveHost) -> None:
    found: list[str] | Exception
    try:
        found = list(resolver(*key[1:]))
    except Exception as error:  # noqa: BLE001
        found = error
    with _LOCK:
        del _LOOKUPS[key]
    if isinstance(found, Exception):
        lookup.answer.set_exception(found)
    else:
        lookup.answer.set_result(found)
