"""ETags and conditional requests (RFC 9110, 8.8 and 13)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from a2a_serverless.protocol.protojson import read_http_date

if TYPE_CHECKING:
    from collections.abc import Mapping


def etag(content: bytes) -> str:
    """A strong ETag of these bytes."""
    return f'"{sha256(content).hexdigest()[:32]}"'


def is_current(headers: Mapping[str, str], tag: str, last_modified: str) -> bool:
    """Whether the sender of these headers has the current document, so that 304 will do.

    The ETag counts, compared weakly, or the date if the request names none (13.2.2). An invalid date is ignored.
    """
    if "if-none-match" in headers:
        names = [name.strip().removeprefix("W/") for name in headers["if-none-match"].split(",")]
        return "*" in names or tag in names
    try:
        return read_http_date(last_modified) <= read_http_date(headers.get("if-modified-since", ""))
    except ValueError:
        return False
