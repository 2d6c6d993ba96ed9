"""Bearer tokens of any OpenID Connect issuer: signature, issuer, audience and times are checked, by PyJWT.

The key set is fetched when a token first needs it, kept, and fetched again for an unknown ``kid`` at most every
``COOL_DOWN_MS``: a flood of made-up kids costs nothing, and an issuer that does not answer leaves known keys working,
without a wait. Until its keys have been read once, nobody can be told from anybody: that passes, and is said so.
"""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.access import EVERYTHING, BadToken, Caller
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.model import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.domain.access import Trust

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
COOL_DOWN_MS: Final = 30_000
FIRST_COOL_DOWN_MS: Final = 5_000
LEEWAY_S: Final = 60
TOKEN_LIMIT: Final = 8192
KEYS_LIMIT: Final = 64
DOCUMENT_LIMIT: Final = 256 * 1024
OWNER_LIMIT: Final = 256
SCOPES_LIMIT: Final = 200
DEFAULT_TENANT: Final = "default"


class OidcTokens:
    """Checks the tokens of one issuer. ``fetch`` gets the JSON text behind a URL, empty when there is none."""

    def __init__(self, trust: Trust, fetch: Callable[[str], str], now: Callable[[], int]) -> None:
        self._trust = trust
        self._fetch = fetch
        self._now = now
        self._lock = Lock()
        self._keys: dict[str, Any] = {}
        self._asked_at: int | None = None

    def caller(self, token: str) -> Caller:
        """Whom the token speaks for; raises BadToken, and Overloaded while the issuer's keys cannot be read."""
        claims, trust = self._claims(token), self._trust
        tenant = self._claim(claims, trust.tenant_claim) if trust.tenant_claim else DEFAULT_TENANT
        who = Principal(tenant, self._claim(claims, trust.owner_claim))
        scopes = frozenset(self._scopes(claims)) if trust.scope_claims else frozenset({EVERYTHING})
        return Caller(who, scopes, trust.scope_prefix)

    def _claims(self, token: str) -> dict[str, Any]:
        """What a token says that is whole, from the issuer, for us, and valid now."""
        import jwt

        if len(token) > TOKEN_LIMIT:
            raise BadToken
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid"))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name] if key.algorithm_name in ALGORITHMS else [],
                issuer=self._trust.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss"], "verify_aud": False},
            )
        except (jwt.PyJWTError, ValueError) as error:
            raise BadToken from error
        if self._trust.audience not in _texts(claims.get(self._trust.audience_claim)):
            raise BadToken
        return claims

    def _scopes(self, claims: dict[str, Any]) -> Iterator[str]:
        """Our scopes among the token's: a claim is a list of them or a text with spaces (RFC 8693, section 4.2)."""
        prefix = self._trust.scope_prefix
        for name in self._trust.scope_claims:
            value = claims.get(name)
            listed = value.split() if isinstance(value, str) else _texts(value)
            yield from (scope.removeprefix(prefix) for scope in listed[:SCOPES_LIMIT] if scope.startswith(prefix))

    def _claim(self, claims: dict[str, Any], name: str) -> str:
        value = claims.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= OWNER_LIMIT:
            raise BadToken
        return value

    def _key(self, kid: object) -> Any:  # noqa: ANN401 - a jwt.PyJWK, imported late
        if not isinstance(kid, str):
            raise BadToken
        if kid not in self._keys:
            with self._lock:
                self._ask()
        if not self._keys:
            raise Overloaded("The issuer's keys cannot be read now. Try again.")
        if kid not in self._keys:
            raise BadToken
        return self._keys[kid]

    def _ask(self) -> None:
        """Reads the issuer's keys, unless that was tried just now."""
        pause = COOL_DOWN_MS if self._keys else FIRST_COOL_DOWN_MS
        if self._asked_at is None or self._now() - self._asked_at >= pause:
            self._asked_at = self._now()
            self._keys = self._keys_of(self._fetch(self._trust.jwks_url)) or self._keys

    def _keys_of(self, text: str) -> dict[str, Any]:
        """The signing keys of a key set by ``kid``; what cannot be read is left out."""
        import jwt

        keys: dict[str, Any] = {}
        try:
            listed = json.loads(text)["keys"][:KEYS_LIMIT]
        except (ValueError, KeyError, TypeError, RecursionError):
            return keys
        for one in listed:
            try:
                if isinstance(one, dict) and one.get("use", "sig") == "sig" and one.get("kty") in {"RSA", "EC", "OKP"}:
                    keys[str(one["kid"])] = jwt.PyJWK(one)
            except (jwt.PyJWTError, KeyError, ValueError):
                continue
        return keys


def _texts(value: object) -> list[str]:
    """The texts of a claim that is one or a list of them."""
    listed = value if isinstance(value, list) else [value]
    return [one for one in listed if isinstance(one, str)]


def fetch_document(url: str) -> str:
    """GETs a JSON document of the issuer's, by urllib3; an issuer that does not answer gives an empty text."""
    from urllib3 import PoolManager, Retry, Timeout
    from urllib3.exceptions import HTTPError

    try:
        with PoolManager(retries=Retry(0), timeout=Timeout(connect=3, read=5)) as pool:
            answer = pool.request("GET", url, preload_content=False, redirect=False)
            content: bytes = answer.read(DOCUMENT_LIMIT + 1)
            answer.release_conn()
    except HTTPError:
        return ""
    return content.decode("utf-8", "replace") if answer.status == 200 and len(content) <= DOCUMENT_LIMIT else ""  # noqa: PLR2004
