"""Connects to URLs that clients supplied: one bounded DNS lookup, all addresses checked, a connection to one of them.

A library that takes a URL would look the name up again when it connects, after our check. Nothing here reads the
environment: no proxy, no netrc, no ``SSL_CERT_FILE``, no ``SSLKEYLOGFILE``. Trusted CAs are certifi's list: the same
on a laptop and in every Lambda image, updated with the dependency.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Final, TypeAlias

from a2a_serverless.domain.url_policy import NameUnresolved, WebhookTarget, check_addresses, is_loopback
from a2a_serverless.http_client.sockets import Deadline, resolve

# (host, port) -> addresses; raises OSError when the name does not resolve.
ResolveHost: TypeAlias = "Callable[[str, int], Iterable[str]]"

LOOKUP_SECONDS: Final = 2.0
MAX_DIALS: Final = 3
# Name lookups at a time. getaddrinfo cannot be interrupted, so a hanging one keeps its thread until the system gives
# up. A notifier sends ten webhooks at a time and waits 2 s for each: about 150 threads if every name hangs for 30 s.
MAX_LOOKUPS: Final = 256
_LOOKUPS: Final[dict[tuple[int, str, int], _Lookup]] = {}
_LOCK: Final = Lock()


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


def addresses_of(target: WebhookTarget, resolver: ResolveHost, seconds: float) -> tuple[str, ...]:
    """The checked addresses of a target, by one lookup of at most ``seconds``. Raises UrlNotAllowed, NameUnresolved."""
    literal = target.host.strip("[]")
    if is_loopback(literal):  # only the local allow list lets a literal address get here
        return (literal,)
    try:
        return check_addresses(_look_up_shared(target, resolver, seconds), target)
    except (OSError, UnicodeError) as error:
        raise NameUnresolved("the name does not resolve") from error


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
