"""What a caller may do, and API keys: what is kept of them, and how one is made.

A scope is ``a2a`` (everything), ``a2a:<agent>`` (everything with one agent), ``a2a:read`` or ``a2a:<agent>:read``
(reading only). The key itself is shown once and kept by nobody. A pass is a short-lived service token: what an agent of
a deployment shows to its siblings, in its caller's name. It has its caller's scopes, ends within the hour, and is worth
nothing without its caller's key. It is stored nowhere: its claims travel in it, sealed by the deployment's KMS key.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from a2a_serverless.domain.errors import InsufficientScope
from a2a_serverless.domain.model import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

Access: TypeAlias = Literal["read", "operate"]

PREFIX: Final = "a2a_"
ENTROPY_BYTES: Final = 32
FULL_SCOPE: Final = "a2a"
READ: Final = "read"  # so no agent may be called like that
SCOPE_FORM: Final = r"a2a(:[A-Za-z0-9_-]+){0,2}"
SERVICE_TOKEN_PREFIX: Final = "a2a_pass_"  # noqa: S105 - how one begins
SERVICE_TOKEN_LIFE_MS: Final = 3_600_000
SERVICE_TOKEN_LEEWAY_MS: Final = 60_000  # of the clock of whoever made it
CLAIMS_LIMIT: Final = 4096  # bytes that KMS encrypts
SEALED_BYTES: Final = range(64, CLAIMS_LIMIT + 513)
_VERSION: Final = 1
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]+")


class InvalidToken(Exception):
    """The token admits nobody; why is not told to whoever sent it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and what it may do. ``prefix`` is what its issuer writes before scopes of ours.

    ``key`` is the digest of the API key that the caller, or the first one of a chain of agents, has signed in with.
    """

    principal: Principal
    scopes: frozenset[str] = frozenset({FULL_SCOPE})
    prefix: str = ""
    key: str = ""

    def check(self, agent: str, access: Access) -> None:
        """Returns when the caller may do that with the agent; raises InsufficientScope, naming what is missing."""
        if not is_allowed(self.scopes, agent, access):
            raise InsufficientScope(self.prefix + scope_of(agent, access))


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """An issuer of OpenID Connect tokens, and which of their claims say what we go by.

    ``owner_claim`` and ``tenant_claim`` say in whose name the caller acts; without a tenant claim all share one.
    ``scope_claims`` hold the scopes, after ``scope_prefix``; without such claims every token may do everything.
    ``jwks_url`` is where its keys are; empty when its discovery document is to say it.
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
        """What a token must have to do everything with the agent, as the issuer writes it."""
        return (self.scope_prefix + scope_of(agent, "operate"),) if self.scope_claims else ()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key that admits ``who``, and to the operator's API when it is an ``operator``'s.

    ``digest`` is the SHA-256 (hex) of the key: enough, for 256 random bits.
    """

    digest: str
    principal: Principal
    note: str
    made_at: int
    operator: bool = False
    scopes: frozenset[str] = frozenset({FULL_SCOPE})

    @property
    def caller(self) -> Caller:
        """Who calls with it."""
        return Caller(self.principal, self.scopes, key=self.digest)


@dataclass(frozen=True, slots=True)
class ServiceToken:
    """The claims of a pass: whom it stands for, what it may do, and when it ends (ms).

    ``parent`` is the digest of the API key without which it admits nobody; empty for a caller with an issuer's token.
    """

    principal: Principal
    scopes: frozenset[str]
    api_key: str
    expires_at: int

    @property
    def caller(self) -> Caller:
        """Who calls with it."""
        return Caller(self.principal, self.scopes, key=self.api_key)


def scope_of(agent: str, access: Access) -> str:
    """The narrowest scope that allows it."""
    return f"{FULL_SCOPE}:{agent}" if access == "operate" else f"{FULL_SCOPE}:{agent}:{READ}"


def is_allowed(scopes: Iterable[str], agent: str, access: Access) -> bool:
    """Whether one of the scopes allows it."""
    enough = {FULL_SCOPE, scope_of(agent, "operate"), scope_of(agent, access)}
    return not (enough if access == "operate" else enough | {f"{FULL_SCOPE}:{READ}"}).isdisjoint(scopes)


def own_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes among these that are ours, and only the widest when it is there: an issuer's tokens may have many."""
    known = frozenset(scope for scope in scopes if scope == FULL_SCOPE or scope.startswith(f"{FULL_SCOPE}:"))
    return frozenset({FULL_SCOPE}) if FULL_SCOPE in known else known


def encode_key(entropy: bytes, prefix: str = PREFIX) -> str:
    """The key as its user gets it; ``entropy`` is ``ENTROPY_BYTES`` random bytes."""
    return prefix + urlsafe_b64encode(entropy).rstrip(b"=").decode()


def digest_of(key: str) -> str:
    """What a key is known by."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def sealed_claims(token: str) -> bytes:
    """The sealed claims in a pass as it travels; raises InvalidToken for what cannot be one."""
    text = token.removeprefix(SERVICE_TOKEN_PREFIX)
    if text == token or len(text) > 2 * SEALED_BYTES.stop or not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        raise InvalidToken
    sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(sealed) not in SEALED_BYTES or encode_key(sealed, SERVICE_TOKEN_PREFIX) != token:
        raise InvalidToken
    return sealed


def dump_claims(made: ServiceToken) -> str:
    """The claims as they are sealed."""
    claims = {
        "v": _VERSION,
        "tenant": made.principal.tenant,
        "owner": made.principal.owner,
        "scopes": sorted(made.scopes),
        "parent": made.api_key,
        "ends": made.expires_at,
    }
    return json.dumps(claims, ensure_ascii=False, separators=(",", ":"))


def load_claims(claims: str, now: int) -> ServiceToken:
    """What the claims say; raises InvalidToken for anything but claims of ours that end within the hour."""
    try:
        said = json.loads(claims)
    except (ValueError, RecursionError):
        raise InvalidToken from None
    if not isinstance(said, dict) or {name: type(one) for name, one in said.items()} != _CLAIMS:
        raise InvalidToken
    if (
        said["v"] != _VERSION
        or not (said["tenant"] and said["owner"])
        or not all(isinstance(scope, str) and own_scopes([scope]) for scope in said["scopes"])
        or not now < said["ends"] <= now + SERVICE_TOKEN_LIFE_MS + SERVICE_TOKEN_LEEWAY_MS
    ):
        raise InvalidToken
    return ServiceToken(
        Principal(said["tenant"], said["owner"]), frozenset(said["scopes"]), said["parent"], said["ends"]
    )


_CLAIMS: Final[Mapping[str, Any]] = {
    "v": int,
    "tenant": str,
    "owner": str,
    "scopes": list,
    "parent": str,
    "ends": int,
}
