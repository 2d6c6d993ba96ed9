"""The one seam through which callers come in: who is calling, and in whose name (tenant) they may act."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from a2a_serverless.domain.access import (
    PREFIX,
    SERVICE_TOKEN_PREFIX,
    ApiKey,
    Caller,
    InvalidToken,
    ServiceToken,
    digest_of,
)
from a2a_serverless.domain.errors import TaskNotFound, Unauthenticated
from a2a_serverless.domain.model import Principal


class Authenticator(Protocol):
    """Says who calls."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """The caller; raises Unauthenticated."""
        ...

    def enter_tenant(self, principal: Principal, tenant: str) -> Principal:
        """The caller acting in the tenant that the request names."""
        ...

    def is_operator(self, headers: Mapping[str, str]) -> bool:
        """Whether the caller is an operator, who may see and steer the webhooks of all owners."""
        ...


@dataclass(frozen=True, slots=True)
class AllowAnonymous:
    """Everybody is one fixed principal, in whichever tenant they name. For local runs only."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        del headers
        return Caller(ANYBODY)

    def enter_tenant(self, principal: Principal, tenant: str) -> Principal:
        return replace(principal, tenant=tenant)

    def is_operator(self, headers: Mapping[str, str]) -> bool:
        del headers
        return True


@dataclass(frozen=True, slots=True)
class OidcOrApiKey:
    """Admits API keys (``X-API-Key``, or as a bearer token) and the bearer tokens of an issuer, whichever is set up.

    ``passes`` opens what agents of this deployment show each other; whatever it returns was sealed by a worker.
    """

    keys: Callable[[str], ApiKey | None]
    tokens: Callable[[str], Caller] | None = None
    service_tokens: Callable[[str], ServiceToken | None] = lambda _: None

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """The caller; every reason to refuse looks the same from outside."""
        key, bearer = _credentials(headers)
        found = self._pass(key) if key.startswith(SERVICE_TOKEN_PREFIX) else self._key(key)
        caller = found.caller if found else None if key else self._token(bearer)
        if caller is None:
            raise Unauthenticated(given=bool(key or bearer))
        return caller

    def enter_tenant(self, principal: Principal, tenant: str) -> Principal:
        """A caller acts in its own tenant; no other one exists for it."""
        if tenant != principal.tenant:
            raise TaskNotFound
        return principal

    def is_operator(self, headers: Mapping[str, str]) -> bool:
        """Only API keys that were made for an operator; no token of the issuer says so much."""
        found = self._key(_credentials(headers)[0])
        return found is not None and found.operator

    def _key(self, key: str) -> ApiKey | None:
        """The key. What cannot be ours is not looked for."""
        return self.keys(digest_of(key)) if key.startswith(PREFIX) and len(key) <= KEY_LIMIT else None

    def _pass(self, token: str) -> ServiceToken | None:
        """The pass, while there is the API key that it was made for, or an issuer for those without one."""
        made = self.service_tokens(token)
        return made if made and self._is_backed(made) else None

    def _is_backed(self, made: ServiceToken) -> bool:
        if not made.api_key:
            return self.tokens is not None
        parent = self.keys(made.api_key)
        return parent is not None and parent.principal == made.principal

    def _token(self, token: str) -> Caller | None:
        if not token or self.tokens is None:
            return None
        try:
            return self.tokens(token)
        except InvalidToken:
            return None


def _credentials(headers: Mapping[str, str]) -> tuple[str, str]:
    """The API key and the bearer token that a request carries, "" for none."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    bearer = credentials.strip() if scheme.lower() == "bearer" else ""
    return headers.get(API_KEY_HEADER, "") or (bearer if bearer.startswith(PREFIX) else ""), bearer


API_KEY_HEADER: Final = "x-api-key"
KEY_LIMIT: Final = 256
ANYBODY: Final = Principal("local", "anybody")
