"""Decides who may see the inbox and register tokens: requests from this machine, or with the password.

Requests from this machine are trusted only when our own webhook URL is loopback. A receiver with a public URL is behind
a proxy, and the proxy's requests come from this machine too. The Host header must name this machine as well, or a web
page could reach us under a name of its own (DNS rebinding). Open registration also admits other machines, if the Host
is an address or a name that cannot be public. Browsers mark requests from other sites' pages; these are refused, with
or without the password.
"""

import base64
import hmac
import ipaddress
import re
from collections.abc import Mapping
from enum import Enum

from a2a_webhook_receiver.expectations import digest
from a2a_webhook_receiver.outbound import is_loopback
from a2a_webhook_receiver.settings import Settings


class Access(Enum):
    """What a caller may do. UNKNOWN asks for the password."""

    GRANTED = "granted"
    UNKNOWN = "unknown"
    """The password is needed."""
    FORBIDDEN = "forbidden"


def decide(settings: Settings, headers: Mapping[str, str], peer: str | None) -> Access:
    """Whether the caller at address ``peer`` may see the inbox. ``headers`` has lower-case names."""
    if _is_foreign(headers):
        return Access.FORBIDDEN
    if settings.is_local and (_is_this_machine(headers, peer) or (settings.open_registration and _is_near(headers))):
        return Access.GRANTED
    if settings.admin_token_sha256 is None:
        return Access.FORBIDDEN
    password_digest = digest(_password(headers.get("authorization", "")))
    return Access.GRANTED if hmac.compare_digest(password_digest, settings.admin_token_sha256) else Access.UNKNOWN


def _is_foreign(headers: Mapping[str, str]) -> bool:
    """Whether the browser says that a page of another origin makes the request.

    A link of a page of the same site, such as the console's on this machine, opens the inbox; that page reads nothing.
    """
    if "sec-fetch-site" in headers:
        opens = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
        is_link = opens and headers["sec-fetch-site"] == "same-site" and "origin" not in headers
        return not is_link and headers["sec-fetch-site"] not in ("none", "same-origin")
    return "origin" in headers and headers["origin"].partition("://")[2] != headers.get("host", "")


def _is_this_machine(headers: Mapping[str, str], peer: str | None) -> bool:
    return peer is not None and is_loopback(peer) and is_loopback(_host(headers))


def _is_near(headers: Mapping[str, str]) -> bool:
    """Whether the Host is an address, or a name that cannot be public: a single label, or under ``internal``."""
    name = _host(headers)
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.internal|[a-z0-9-]+", name.lower()) is not None
    return True


def _host(headers: Mapping[str, str]) -> str:
    """The host in the Host header, without the port."""
    host = headers.get("host", "")
    return host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host


def _password(authorization: str) -> str:
    """The secret of a Bearer or Basic ``Authorization``; empty for anything else."""
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return rest
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(rest, validate=True).decode("utf-8").partition(":")[2]
    except ValueError:
        return ""
