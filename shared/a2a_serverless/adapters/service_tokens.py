"""Issues and checks service tokens, with which an agent calls another agent of this deployment for its own caller.

So the tasks that it makes there belong to that caller too. A token is valid for an hour, permits what the caller may
do, and stops working when the API key that the caller used is revoked. It exists in clear only in the memory of the
worker that made it and in the requests that carry it; it is never stored.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from a2a_serverless.domain.access import (
    CLAIMS_LIMIT,
    SERVICE_TOKEN_LEEWAY_MS,
    SERVICE_TOKEN_LIFE_MS,
    SERVICE_TOKEN_PREFIX,
    Caller,
    InvalidToken,
    ServiceToken,
    encode_key,
    own_scopes,
    sealed_claims,
)
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.model import Principal
from a2a_serverless.ports.agents import AgentUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.ports.system import ServiceTokenSealer

T = TypeVar("T")

REUSED_MS: Final = SERVICE_TOKEN_LIFE_MS - 300_000  # a reused token is valid for 5 minutes more at least
KEPT: Final = 1000
FAILURES: Final = 20
_VERSION: Final = 1


class ServiceTokenIssuer:
    """Makes service tokens, and reuses them within this process. ``now`` is the time in ms."""

    def __init__(self, sealer: ServiceTokenSealer, now: Callable[[], int]) -> None:
        self._sealer = sealer
        self._now = now
        self._lock = Lock()
        self._tokens: dict[Caller, tuple[int, str]] = {}

    def headers(self, caller: Caller) -> dict[str, str]:
        """The headers with which a sibling agent serves ``caller``; raises AgentCallFailed when it cannot make them."""
        with self._lock:
            token = self._tokens.get(caller)
            if token is None or self._now() - token[0] >= REUSED_MS:
                token = self._new(caller)
        return {"X-API-Key": token[1]}

    def _new(self, caller: Caller) -> tuple[int, str]:
        now = self._now()
        claims = dump_claims(ServiceToken(caller.principal, caller.scopes, caller.key, now + SERVICE_TOKEN_LIFE_MS))
        if len(claims.encode()) > CLAIMS_LIMIT:
            raise AgentCallFailed("The caller has too many scopes for a call to another agent of this deployment.")
        try:
            sealed = self._sealer.seal(claims)
        except Overloaded as error:
            raise AgentUnavailable(str(error), error.retry_after_s) from error
        if len(self._tokens) >= KEPT:
            self._tokens.clear()
        self._tokens[caller] = (now, encode_key(sealed, SERVICE_TOKEN_PREFIX))
        return self._tokens[caller]


def require_worker(caller: Caller) -> dict[str, str]:
    """Replaces ``ServiceTokenIssuer.headers`` where no service token can be made."""
    del caller
    raise AgentCallFailed("Agents of this deployment are called by the worker.")


class ServiceTokenVerifier:
    """Verifies service tokens. It opens each token once and caches the result, for forged tokens too.

    After ``FAILURES`` failed openings in a second, unknown tokens are refused as Overloaded until the next second:
    valid tokens among them cannot be recognised without opening them.
    """

    def __init__(self, sealer: ServiceTokenSealer, now: Callable[[], int]) -> None:
        self._sealer = sealer
        self._now = now
        self._lock = Lock()
        self._good: OrderedDict[bytes, ServiceToken] = OrderedDict()
        self._bad: OrderedDict[bytes, None] = OrderedDict()
        self._failures = (0, 0)

    def find(self, token: str) -> ServiceToken | None:
        """The token's claims; None for an invalid or expired token. Text of another form is not opened."""
        try:
            sealed = sealed_claims(token)
        except InvalidToken:
            return None
        digest, now = sha256(sealed).digest(), self._now()
        with self._lock:
            service_token = self._good.get(digest)
            if service_token is None and digest in self._bad:
                return None
        if service_token is None:
            service_token = self._open(sealed, digest, now)
        return service_token if service_token and now < service_token.expires_at else None

    def _open(self, sealed: bytes, digest: bytes, now: int) -> ServiceToken | None:
        second = now // 1000
        with self._lock:
            if self._failures[0] == second and self._failures[1] >= FAILURES:
                raise Overloaded("Too many unknown service tokens at once. Try again.")
        try:
            service_token = load_claims(self._sealer.open(sealed), now)
        except Overloaded:
            self._count_failure(second)
            raise
        except (InvalidToken, ValueError):
            self._count_failure(second)
            self._keep(self._bad, digest, None)
            return None
        self._keep(self._good, digest, service_token)
        return service_token

    def _count_failure(self, second: int) -> None:
        with self._lock:
            self._failures = (second, self._failures[1] + 1 if self._failures[0] == second else 1)

    def _keep(self, cache: OrderedDict[bytes, T], digest: bytes, value: T) -> None:
        with self._lock:
            cache[digest] = value
            while len(cache) > KEPT:
                cache.popitem(last=False)


class _Claims(BaseModel):
    """The claims in a service token. ``parent`` is the digest of the API key, ``ends`` is in ms."""

    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)
    v: int
    tenant: str = Field(min_length=1)
    owner: str = Field(min_length=1)
    scopes: list[str]
    parent: str
    ends: int


def dump_claims(token: ServiceToken) -> str:
    """The claims as JSON, for sealing."""
    tenant, owner, scopes = token.principal.tenant, token.principal.owner, sorted(token.scopes)
    claims = _Claims(v=_VERSION, tenant=tenant, owner=owner, scopes=scopes, parent=token.api_key, ends=token.expires_at)
    return claims.model_dump_json()


def load_claims(claims: str, now: int) -> ServiceToken:
    """Parses the claims; raises InvalidToken if they are malformed, expired or valid for over an hour."""
    try:
        fields = _Claims.model_validate_json(claims)
    except ValidationError:
        raise InvalidToken from None
    is_in_time = now < fields.ends <= now + SERVICE_TOKEN_LIFE_MS + SERVICE_TOKEN_LEEWAY_MS
    if not (fields.v == _VERSION and is_in_time and all(own_scopes([scope]) for scope in fields.scopes)):
        raise InvalidToken
    return ServiceToken(Principal(fields.tenant, fields.owner), frozenset(fields.scopes), fields.parent, fields.ends)
