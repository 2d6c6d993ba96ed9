"""The origin of a URL (RFC 6454): to whom a credential belongs."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_PORTS: Final = {"https": 443, "http": 80}
# Some parsers end the host at a backslash, and urllib decodes it: these URLs could be read as those of two hosts.
_AMBIGUOUS: Final = re.compile(r"[\\%\s]")


def origin_of(url: str) -> str:
    """Scheme, host and port, such as ``https://agents.example.com``; "" for a URL without an origin.

    Names are in lower case and in ASCII (IDNA), a default port and the user-info are left out.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        host = host if host.isascii() else host.encode("idna").decode()
    except (KeyError, ValueError):
        return ""
    if not host or _AMBIGUOUS.search(parts.netloc):
        return ""
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + (f":{port}" if port != _PORTS[parts.scheme] else "")


def address_below(url: str, path: str) -> str:
    """The address of ``path`` below that of the URL, whose query stays: it may choose the agent's version."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))
