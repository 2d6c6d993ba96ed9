"""What both versions share about the authentication that a client asks for on its webhook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_serverless.wire.fields import Fields


def authentication(fields: Fields, offered: Sequence[str]) -> tuple[str | None, str | None]:
    """Scheme and credentials: the first scheme when there are credentials, else Bearer, for which we sign a JWT."""
    credentials = fields.secret("credentials")
    if credentials:
        return (offered[0] if offered else "Bearer"), credentials
    for scheme in offered:
        if scheme.lower() == "bearer":
            return scheme, None
    if offered:
        fields.wrong("credentials", "is required; only Bearer goes without (this server then signs a JWT)")
    return None, None
