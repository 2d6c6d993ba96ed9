"""The only place where credentials are attached to requests: to those of the origin to which they belong.

So no card, redirect, link or argument of a command can lead them to another origin.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.origins import origin_of
from a2a_serverless.http_client.transport import ClientRequest, is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from a2a_serverless.http_client.transport import ClientResponse, Transport

_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


class CredentialsKept(A2AError):
    """The credentials were not sent: anybody on the way could have read them, or the card names another origin."""


def attach_credentials(
    call: ClientRequest, url: str, read: Callable[[ClientRequest], Mapping[str, str]]
) -> ClientRequest:
    """The request with the headers that ``read`` returns for it, if it goes to the origin of ``url``; else as it is.

    Raises CredentialsKept if that origin is not https and not this machine.
    """
    origin = origin_of(url)
    if not origin or origin_of(call.url) != origin:
        return call
    headers = read(call)
    if headers and not origin.startswith("https:") and not is_local(origin):
        raise CredentialsKept(f"Credentials are sent over https only, not to {origin}.")
    return replace(call, headers={**headers, **call.headers})


def with_credentials(transport: Transport, url: str, headers: Mapping[str, str]) -> Transport:
    """A transport that sends the headers with each request to the origin of ``url``, and with no other."""

    def send(call: ClientRequest) -> AbstractContextManager[ClientResponse]:
        return transport(attach_credentials(call, url, lambda _: headers))

    return send


def is_header_value(value: str) -> bool:
    """Whether a header can have the value: visible ASCII characters, and spaces between them (RFC 9110, 5.5)."""
    return _VALUE.fullmatch(value) is not None
