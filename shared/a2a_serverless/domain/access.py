"""API keys: what is kept of them, and how one is made. The key itself is shown once and kept by nobody."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Principal

PREFIX: Final = "a2a_"
ENTROPY_BYTES: Final = 32


class BadToken(Exception):
    """The token admits nobody; why is not told to whoever sent it."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key that admits ``who``, and to the operator's API when it is an ``operator``'s.

    ``digest`` is the SHA-256 (hex) of the key: enough, for 256 random bits.
    """

    digest: str
    who: Principal
    note: str
    made_at: int
    operator: bool = False


def spelled(entropy: bytes) -> str:
    """The key as its user gets it; ``entropy`` is ``ENTROPY_BYTES`` random bytes."""
    return PREFIX + urlsafe_b64encode(entropy).rstrip(b"=").decode()


def digest_of(key: str) -> str:
    """What a key is known by."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
