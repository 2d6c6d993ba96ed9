"""What a caller may do, and API keys: what is kept of them, and how one is made.

A scope is ``a2a`` (everything), ``a2a:<agent>`` (everything with one agent), ``a2a:read`` or ``a2a:<agent>:read``
(reading only). The key itself is shown once and kept by nobody. A pass is an API key that ends by itself: what an agent
of a deployment shows to its siblings, in its caller's name. It has its caller's scopes, and ends with its caller's key.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from a2a_serverless.domain.errors import InsufficientScope

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Principal

Access: TypeAlias = Literal["read", "operate"]

PREFIX: Final = "a2a_"
ENTROPY_BYTES: Final = 32
EVERYTHING: Final = "a2a"
READ: Final = "read"  # so no agent may be called like that
SCOPE_FORM: Final = r"a2a(:[A-Za-z0-9_-]+){0,2}"
PASS_PREFIX: Final = "a2a_pass_"  # noqa: S105 - how one begins
PASS_DIGEST: Final = "pass-"  # noqa: S105 - as above


class BadToken(Exception):
    """The token admits nobody; why is not told to whoever sent it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and what it may do. ``prefix`` is what its issuer writes before scopes of ours.

    ``key`` is the digest of the API key that the caller, or the first one of a chain of agents, has signed in with.
    """

    who: Principal
    scopes: frozenset[str] = frozenset({EVERYTHING})
    prefix: str = ""
    key: str = ""

    def check(self, agent: str, access: Access) -> None:
        """Returns when the caller may do that with the agent; raises InsufficientScope, naming what is missing."""
        if not allows(self.scopes, agent, access):
            raise InsufficientScope(self.prefix + scope_of(agent, access))


@dataclass(frozen=True, slots=True)
class Trust:
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

    ``digest`` is the SHA-256 (hex) of the key: enough, for 256 random bits. ``expires`` (ms) is when a pass ends; None
    for a key that lasts until it is revoked. ``parent`` is the digest of the key without which a pass admits nobody.
    """

    digest: str
    who: Principal
    note: str
    made_at: int
    operator: bool = False
    scopes: frozenset[str] = frozenset({EVERYTHING})
    expires: int | None = None
    parent: str = ""

    @property
    def caller(self) -> Caller:
        """Who calls with it."""
        return Caller(self.who, self.scopes, key=self.digest if self.expires is None else self.parent)


def scope_of(agent: str, access: Access) -> str:
    """The narrowest scope that allows it."""
    return f"{EVERYTHING}:{agent}" if access == "operate" else f"{EVERYTHING}:{agent}:{READ}"


def allows(scopes: Iterable[str], agent: str, access: Access) -> bool:
    """Whether one of the scopes allows it."""
    enough = {EVERYTHING, scope_of(agent, "operate"), scope_of(agent, access)}
    return not (enough if access == "operate" else enough | {f"{EVERYTHING}:{READ}"}).isdisjoint(scopes)


def ours(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes among these that are ours, and only the widest when it is there: an issuer's tokens may have many."""
    known = frozenset(scope for scope in scopes if scope == EVERYTHING or scope.startswith(f"{EVERYTHING}:"))
    return frozenset({EVERYTHING}) if EVERYTHING in known else known


def spelled(entropy: bytes, prefix: str = PREFIX) -> str:
    """The key as its user gets it; ``entropy`` is ``ENTROPY_BYTES`` random bytes."""
    return prefix + urlsafe_b64encode(entropy).rstrip(b"=").decode()


def digest_of(key: str) -> str:
    """What a key is known by. Those of passes stand apart."""
    digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return PASS_DIGEST + digest if key.startswith(PASS_PREFIX) else digest
