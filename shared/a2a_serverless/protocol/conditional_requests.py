"""ETags and conditional requests (RFC 9110, 8.8 and 13)."""

from __future__ import annotations

from hashlib import sha256

from a2a_serverless.protocol.protojson import read_http_date


def etag(content: bytes) -> str:
    """A strong ETag of these bytes."""
    return f'"{sha256(content).hexdigest()[:32]}"'


def unchanged(if_none_match: str | None, current: str) -> bool:
    """Whether the client's ``If-None-Match`` names the current ETag, so that 304 will do. Compares weakly."""
    names = [name.strip().removeprefix("W/") for name in (if_none_match or "").split(",")]
    return "*" in names or current in names


def unchanged_since(if_modified_since: str | None, modified: str) -> bool:
    """Whether the client's ``If-Modified-Since`` is not before ``modified``. An invalid date is ignored."""
    if not if_modified_since:
        return False
    try:
        return read_http_date(modified) <= read_http_date(if_modified_since)
    except ValueError:
        return False
