"""Connects to URLs of clients: one bounded DNS lookup, a check of all addresses, a connection to one of them.

A library that takes a URL would look the name up again when it connects, after our check. Nothing here reads the
environment: no proxy, no netrc, no ``SSL_CERT_FILE``, no ``SSLKEYLOGFILE``. Trusted CAs are certifi's list: the same
on a laptop and in every Lambda image, updated with the dependency.
"""

from __future__ import annotations

import ssl
from typing import Final

from a2a_serverless.domain.outbound import NameUnresolved, WebhookTarget, check_addresses, is_loopback
from a2a_serverless.http_client.sockets import Deadline, ResolveHost, look_up, resolve

LOOKUP_SECONDS: Final = 2.0
MAX_DIALS: Final = 3


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


def addresses_of(
    target: WebhookTarget, resolver: ResolveHost = resolve, seconds: float = LOOKUP_SECONDS
) -> tuple[str, ...]:
    """The checked addresses of a target, by one lookup of at most ``seconds``. Raises UrlNotAllowed, NameUnresolved."""
    literal = target.host.strip("[]")
    if is_loopback(literal):  # only the local allow list permits a literal address
        return (literal,)
    try:
        return check_addresses(look_up(target.host, target.port, resolver, Deadline(seconds)), target)
    except (OSError, UnicodeError) as error:
        raise NameUnresolved("the name does not resolve") from error
