"""The way out to a stranger's URL: one bounded lookup, every answer vetted, a connection to that very address.

This is ours because a library that takes a URL looks the name up again when it connects, after our check. Nothing
here reads the environment: no proxy, no netrc, no ``SSL_CERT_FILE``, no ``SSLKEYLOGFILE``. Trust is certifi's list,
the same on a laptop and in every Lambda image, updated with the dependency.
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
# Of names, at a time: getaddrinfo cannot be interrupted, so one that hangs keeps its thread for as long as the system
# tries. A notifier sends ten webhooks at a time and waits 2 s for each: it comes to 150 when every name hangs for 30 s.
MAX_LOOKUPS: Final = 256
_LOOKUPS: Final[dict[tuple[int, str, int], _Lookup]] = {}
_LOCK: Final = Lock()


class Deadline:
    """One budget of time for all that an exchange does; every wait asks for what is left of it."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._end = self._start + seconds

    def left(self) -> float:
        """Seconds, more than 0; raises TimeoutError when they are spent."""
        left = self._end - self._clock()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left

    def elapsed_ms(self) -> int:
        return round((self._clock() - self._start) * 1000)


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a name, as the system's resolver orders them."""
    return [str(answer[4][0]) for answer in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def connect(address: str, port: int, seconds: float) -> socket.socket:
    """A TCP connection to a literal address. Not ``create_connection``, which would look the address up."""
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
    """Certificate and name are checked, TLS 1.2 at least. ``create_default_context`` would heed the environment."""
    import certifi

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(certifi.where())
    return context


class SystemResolver:
    """``ports.Resolver``, by the system's resolver."""

    def __init__(self, resolver: ResolveHost = resolve) -> None:
        self._resolver = resolver

    def check(self, target: WebhookTarget) -> None:
        addresses_of(target, self._resolver, LOOKUP_SECONDS)


def vet(url: str, policy: EgressPolicy, resolver: ResolveHost = resolve) -> WebhookTarget:
    """The check at registration. Raises UrlNotAllowed for good, NameUnresolved when the name has no address now."""
    target = check_url(url, policy)
    addresses_of(target, resolver, LOOKUP_SECONDS)
    return target


def addresses_of(target: WebhookTarget, resolver: ResolveHost, seconds: float) -> tuple[str, ...]:
    """The vetted addresses of a target, by one lookup of at most ``seconds``. Raises UrlNotAllowed, NameUnresolved."""
    literal = target.host.strip("[]")
    if is_loopback(literal):  # only the local allow list lets a literal come this far
        return (literal,)
    try:
        return check_addresses(_look_up_shared(target, resolver, seconds), target)
    except (OSError, UnicodeError) as error:
        raise NameUnresolved("the name does not resolve") from error


def dial(target: WebhookTarget, addresses: tuple[str, ...], deadline: Deadline, connector: Connector) -> socket.socket:
    """A connection to the first vetted address that answers; each try gets its share of the time that is left."""
    *first, last = addresses[:MAX_DIALS]
    for index, address in enumerate(first):
        with suppress(OSError):
            return connector(address, target.port, deadline.left() / (len(first) + 1 - index))
    return connector(last, target.port, deadline.left())


def secure(sock: socket.socket, target: WebhookTarget, context: ssl.SSLContext, deadline: Deadline) -> socket.socket:
    """TLS over ``sock`` with SNI and certificate check on the name, not the address. Closes ``sock`` if it fails."""
    try:
        sock.settimeout(deadline.left())  # CPython holds the whole handshake to this
        return context.wrap_socket(sock, server_hostname=target.host.strip("[]"))
    except BaseException:
        sock.close()
        raise


@dataclass(slots=True)
class _Lookup:
    """A lookup under way. It ``hangs`` once somebody has waited in vain."""

    answer: Future[list[str]] = field(default_factory=Future)
    hangs: bool = False


def _look_up_shared(target: WebhookTarget, resolver: ResolveHost, seconds: float) -> list[str]:
    """Whoever asks for a name that is being looked up gets the same answer, and does not wait for one that hangs."""
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
