"""Bearer tokens of any OpenID Connect issuer: signature, issuer, audience and times are checked, by PyJWT.

The key set is fetched when a token first needs it, kept, and fetched again for an unknown ``kid`` at most every
``COOL_DOWN_MS``: a flood of made-up kids costs nothing, and an issuer that does not answer leaves known keys working.
"""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.access import BadToken
from a2a_serverless.domain.model import Principal

if TYPE_CHECKING:
    from collections.abc import Callable

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
COOL_DOWN_MS: Final = 30_000
LEEWAY_S: Final = 60
TOKEN_LIMIT: Final = 8192
KEYS_LIMIT: Final = 64
DOCUMENT_LIMIT: Final = 256 * 1024
OWNER_LIMIT: Final = 256
DEFAULT_TENANT: Final = "default"


class OidcTokens:
    """Checks the tokens of one issuer. ``fetch`` gets the JSON text behind a URL; ``tenant_claim`` may be empty."""

    def __init__(
        self,
        issuer: str,
        audience: str,
        jwks_url: str,
        tenant_claim: str,
        fetch: Callable[[str], str],
        now: Callable[[], int],
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self._jwks_url = jwks_url
        self._tenant_claim = tenant_claim
        self._fetch = fetch
        self._now = now
        self._lock = Lock()
        self._keys: dict[str, Any] = {}
        self._asked_at: int | None = None

    def principal(self, token: str) -> Principal:
        """Whom the token speaks for; raises BadToken."""
        import jwt

        if len(token) > TOKEN_LIMIT:
            raise BadToken
        try:
            key = self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name] if key.algorithm_name in ALGORITHMS else [],
                issuer=self._issuer,
                audience=self._audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError) as error:
            raise BadToken from error
        tenant = self._claim(claims, self._tenant_claim) if self._tenant_claim else DEFAULT_TENANT
        return Principal(tenant, self._claim(claims, "sub"))

    def _claim(self, claims: dict[str, Any], name: str) -> str:
        value = claims.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= OWNER_LIMIT:
            raise BadToken
        return value

    def _key(self, kid: str) -> Any:  # noqa: ANN401 - a jwt.PyJWK, imported late
        with self._lock:
            if kid not in self._keys and self._may_ask():
                self._asked_at = self._now()
                self._keys = self._keys_of(self._fetch(self._jwks_url)) or self._keys
            if kid not in self._keys:
                raise BadToken
            return self._keys[kid]

    def _may_ask(self) -> bool:
        return self._asked_at is None or self._now() - self._asked_at >= COOL_DOWN_MS

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
