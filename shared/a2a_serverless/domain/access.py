"""Callers and their scopes, API keys, service tokens, and quotas.

A scope is ``a2a`` (everything), ``a2a:<agent>`` (everything with one agent), ``a2a:read`` or ``a2a:<agent>:read``
(reading only). An API key is shown once; only its hash is stored. With a service token, an agent calls another agent of
the same deployment in its caller's name. The token has the caller's scopes, expires within an hour, and is not valid
once the caller's API key is revoked. It is not stored: it contains its claims, sealed by the deployment's KMS key.

Quotas are the most that each owner may use in a window of time, and the most open streams.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from a2a_serverless.domain.errors import InsufficientScope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.model import Principal


class Quota(NamedTuple):
    """The limits for each owner. Zero means no limit.

    ``sends`` is messages per minute, ``uploads`` bytes per day (UTC), counted when an upload is requested, ``streams``
    open streams at a time. ``streams_in_all`` is the number of open streams of all owners together.
    """

    sends: int = 0
    streams: int = 0
    uploads: int = 0
    streams_in_all: int = 0


Access: TypeAlias = Literal["read", "operate"]

PREFIX: Final = "a2a_"
ENTROPY_BYTES: Final = 32
FULL_SCOPE: Final = "a2a"
READ: Final = "read"  # therefore no agent may have this id
SCOPE_FORM: Final = r"a2a(:[A-Za-z0-9_-]+){0,2}"
SERVICE_TOKEN_PREFIX: Final = "a2a_pass_"  # noqa: S105 - a prefix, no secret
SERVICE_TOKEN_LIFE_MS: Final = 3_600_000
SERVICE_TOKEN_LEEWAY_MS: Final = 60_000  # for clocks that differ
CLAIMS_LIMIT: Final = 4096  # bytes; the longest text that KMS encrypts
SEALED_BYTES: Final = range(64, CLAIMS_LIMIT + 513)
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]+")


class InvalidToken(Exception):
    """The token is not valid. The sender does not learn the reason."""


class Caller(NamedTuple):
    """An authenticated caller and its scopes. ``prefix`` is the text that its issuer writes before our scopes.

    ``key`` is the digest of the API key of the caller, or of the first caller in a chain of agents; may be empty.
    With ``is_agent`` an agent of this deployment calls in the principal's name.
    """

    principal: Principal
    scopes: frozenset[str] = frozenset({FULL_SCOPE})
    prefix: str = ""
    key: str = ""
    is_agent: bool = False

    def allows(self, agent: str, access: Access) -> bool:
        """Whether the caller has that access to the agent."""
        return is_allowed(self.scopes, agent, access)

    def check(self, agent: str, access: Access) -> None:
        """Checks that the caller has that access to the agent; raises InsufficientScope with the missing scope."""
        if not self.allows(agent, access):
            raise InsufficientScope(self.prefix + scope_of(agent, access))


class TrustedIssuer(NamedTuple):
    """An issuer of OpenID Connect tokens, and the names of the claims that we use.

    ``owner_claim`` and ``tenant_claim`` name the caller's owner and tenant; without a tenant claim all share one
    tenant. ``scope_claims`` hold the scopes, after ``scope_prefix``; if it is empty, every token has full access.
    ``jwks_url`` is the URL of the issuer's keys; empty means that its discovery document gives it.
    """

    issuer: str
    audience: str
    jwks_url: str
    audience_claim: str = "aud"
    owner_claim: str = "sub"
    tenant_claim: str = ""
    scope_claims: tuple[str, ...] = ()
    scope_prefix: str = ""

    def scopes_for(self, agent: str) -> tuple[str, ...]:
        """The scopes, as the issuer writes them, that a token needs for full access to the agent."""
        return (self.scope_prefix + scope_of(agent, "operate"),) if self.scope_claims else ()


class ApiKey(NamedTuple):
    """An API key of ``principal``.

    ``digest`` is the SHA-256 (hex) of the key; a plain hash is enough for 256 random bits.
    """

    digest: str
    principal: Principal
    note: str
    made_at: int
    scopes: frozenset[str] = frozenset({FULL_SCOPE})

    @property
    def caller(self) -> Caller:
        """The caller that this key authenticates."""
        return Caller(self.principal, self.scopes, key=self.digest)


class ServiceToken(NamedTuple):
    """The claims of a service token: its caller, scopes and expiry (ms).

    ``api_key`` is the digest of the caller's API key, which must still exist; empty for a caller with an OIDC token.
    """

    principal: Principal
    scopes: frozenset[str]
    api_key: str
    expires_at: int

    @property
    def caller(self) -> Caller:
        """The caller that this token authenticates."""
        return Caller(self.principal, self.scopes, key=self.api_key, is_agent=True)


def scope_of(agent: str, access: Access) -> str:
    """The narrowest scope that allows the access."""
    return f"{FULL_SCOPE}:{agent}" if access == "operate" else f"{FULL_SCOPE}:{agent}:{READ}"


def is_allowed(scopes: Iterable[str], agent: str, access: Access) -> bool:
    """Whether one of the scopes allows the access."""
    enough = {FULL_SCOPE, scope_of(agent, "operate"), scope_of(agent, access)}
    return not (enough if access == "operate" else enough | {f"{FULL_SCOPE}:{READ}"}).isdisjoint(scopes)


def own_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """Our scopes among these; only ``a2a`` if it is among them. An issuer's tokens may have many other scopes."""
    ours = frozenset(scope for scope in scopes if scope == FULL_SCOPE or scope.startswith(f"{FULL_SCOPE}:"))
    return frozenset({FULL_SCOPE}) if FULL_SCOPE in ours else ours


def encode_key(entropy: bytes, prefix: str = PREFIX) -> str:
    """The key as text for its user; ``entropy`` is ``ENTROPY_BYTES`` random bytes."""
    return prefix + urlsafe_b64encode(entropy).rstrip(b"=").decode()


def digest_of(key: str) -> str:
    """The SHA-256 of a key in hex, by which it is stored and found."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def sealed_claims(token: str) -> bytes:
    """Decodes the sealed claims from a service token; raises InvalidToken for any other text."""
    text = token.removeprefix(SERVICE_TOKEN_PREFIX)
    if text == token or len(text) > 2 * SEALED_BYTES.stop or not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        raise InvalidToken
    sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(sealed) not in SEALED_BYTES or encode_key(sealed, SERVICE_TOKEN_PREFIX) != token:
        raise InvalidToken
    return sealed
