"""Verifies access tokens (JWT) of any OpenID Connect issuer with PyJWT: signature, issuer, audience and times.

The issuer's discovery document gives the URL of the key set, unless the deployment has configured it. The key set is
fetched when a token first needs it, and in the background once it is ``RENEW_AFTER_MS`` old; keys that the issuer has
withdrawn are dropped then. While the issuer does not answer, the known keys stay valid for ``STALE_AFTER_MS``. An
unknown ``kid`` makes one request fetch the set, at most every ``COOL_DOWN_MS``; no other request waits for it, so a
flood of invented kids costs nothing. Until the key set has been fetched once, requests get 503.

Only access tokens are accepted: a token that names another type, or needs a proof of possession (which is not checked
here), is refused. So is JSON with a duplicate name, which parsers read in different ways.
"""

from __future__ import annotations

import json
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.access import FULL_SCOPE, Caller, InvalidToken, TrustedIssuer
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.schedules import OWNER as SCHEDULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.client import Transport

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
COOL_DOWN_MS: Final = 30_000
FIRST_COOL_DOWN_MS: Final = 15_000  # more than twice FETCH_SECONDS: the discovery document, then the keys
RENEW_AFTER_MS: Final = 600_000
STALE_AFTER_MS: Final = 4 * 3_600_000
FETCH_SECONDS: Final = 5.0
LEEWAY_S: Final = 60
TOKEN_LIMIT: Final = 8192
KEYS_LIMIT: Final = 64
DOCUMENT_LIMIT: Final = 256 * 1024
OWNER_LIMIT: Final = 256
SCOPES_LIMIT: Final = 200
HTTP_OK: Final = 200
DEFAULT_TENANT: Final = "default"
ACCESS_TOKENS: Final = frozenset({"jwt", "at+jwt"})  # the header's typ (RFC 9068, section 2.1); it may be missing too
OTHER_TOKENS: Final = frozenset({"id", "refresh", "offline", "logout"})  # Keycloak's claim typ, Cognito's token_use
# These claims mark ID tokens (OpenID Connect Core, 3.1.3.6 and 3.3.2.11), security events and logout tokens (RFC 8417),
# and tokens that are bound to a key or a certificate (RFC 7800).
FOREIGN_CLAIMS: Final = frozenset({"at_hash", "c_hash", "events", "cnf"})


def run_in_thread(work: Callable[[], None]) -> None:
    """Runs ``work`` in a background thread."""
    Thread(target=work, name="oidc", daemon=True).start()


class OidcTokenVerifier:
    """Verifies the tokens of one issuer. ``fetch`` returns the JSON text at a URL, empty when there is none.

    ``beside`` runs work in the background, so that the request does not wait for it.
    """

    def __init__(
        self,
        trust: TrustedIssuer,
        fetch: Callable[[str], str],
        now: Callable[[], int],
        beside: Callable[[Callable[[], None]], None] = run_in_thread,
    ) -> None:
        self._trust = trust
        self._fetch = fetch
        self._now = now
        self._run_in_background = beside
        self._lock = Lock()
        self._keys: dict[str, Any] = {}
        self._read_at = 0
        self._asked_at: int | None = None
        self._asking = False
        self._keys_url = trust.jwks_url

    def verify(self, token: str) -> Caller:
        """The token's caller; raises InvalidToken, and Overloaded while the issuer's keys cannot be read."""
        claims, trust = self._claims(token), self._trust
        tenant = self._claim(claims, trust.tenant_claim) if trust.tenant_claim else DEFAULT_TENANT
        principal = Principal(tenant, self._claim(claims, trust.owner_claim))
        if principal.owner == SCHEDULES:  # an issuer may let its users choose their names
            raise InvalidToken
        scopes = frozenset(self._scopes(claims)) if trust.scope_claims else frozenset({FULL_SCOPE})
        return Caller(principal, scopes, trust.scope_prefix)

    def _claims(self, token: str) -> dict[str, Any]:
        """The claims of a token that is intact, comes from the issuer, is for our audience and is valid now."""
        import jwt

        if len(token) > TOKEN_LIMIT:
            raise InvalidToken
        try:
            header, unverified = _unverified(token)
            _check_kind(header, unverified)
            key = self._key(header.get("kid"))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name] if key.algorithm_name in ALGORITHMS else [],
                issuer=self._trust.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss"], "verify_aud": False},
            )
        except (jwt.PyJWTError, ValueError, ArithmeticError, RecursionError) as error:
            raise InvalidToken from error
        if self._trust.audience not in _texts(claims.get(self._trust.audience_claim)):
            raise InvalidToken
        return claims

    def _scopes(self, claims: dict[str, Any]) -> Iterator[str]:
        """Our scopes among the token's: a claim is a list or a space-separated text (RFC 8693, section 4.2)."""
        prefix = self._trust.scope_prefix
        for name in self._trust.scope_claims:
            value = claims.get(name)
            words = value.split() if isinstance(value, str) else _texts(value)
            yield from (scope.removeprefix(prefix) for scope in words[:SCOPES_LIMIT] if scope.startswith(prefix))

    def _claim(self, claims: dict[str, Any], name: str) -> str:
        value = claims.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= OWNER_LIMIT or not value.isprintable():
            raise InvalidToken
        return value

    def _key(self, kid: object) -> Any:  # noqa: ANN401 - a jwt.PyJWK, imported late
        if not isinstance(kid, str):
            raise InvalidToken
        keys = self._current_keys()
        if kid not in keys:
            if self._may_fetch():
                self._fetch_keys()
            keys = self._current_keys()
        elif self._now() - self._read_at >= RENEW_AFTER_MS and self._may_fetch():
            self._run_in_background(self._fetch_keys)
        if not keys or (kid not in keys and self._asking):
            raise Overloaded("The issuer's keys cannot be read now. Try again.")
        if kid not in keys:
            raise InvalidToken
        return keys[kid]

    def _current_keys(self) -> dict[str, Any]:
        """The known keys; none once they are too old."""
        return self._keys if self._now() - self._read_at < STALE_AFTER_MS else {}

    def _may_fetch(self) -> bool:
        """Whether to read the issuer's keys now. Returns true to one caller only, once per pause."""
        now, pause = self._now(), COOL_DOWN_MS if self._current_keys() else FIRST_COOL_DOWN_MS
        with self._lock:
            if self._asked_at is not None and now - self._asked_at < pause:
                return False
            self._asked_at, self._asking = now, True
            return True

    def _fetch_keys(self) -> None:
        """Reads the issuer's keys. If that fails, the known keys stay."""
        now = self._now()
        try:
            self._keys_url = self._keys_url or self._discover_keys_url()
            keys = self._keys_of(self._fetch(self._keys_url)) if self._keys_url else {}
            if not keys:  # the issuer may have moved its keys
                self._keys_url = self._trust.jwks_url
            if keys and now >= self._read_at:
                self._keys, self._read_at = keys, now
        finally:
            self._asking = False

    def _discover_keys_url(self) -> str:
        """The URL of the issuer's keys (OpenID Connect Discovery 1.0); empty if the document has none."""
        text = self._fetch(f"{self._trust.issuer.rstrip('/')}/.well-known/openid-configuration")
        try:
            document = json.loads(text)
            issuer, url = document["issuer"], document["jwks_uri"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""
        return url if issuer == self._trust.issuer and isinstance(url, str) and url.startswith("https://") else ""

    def _keys_of(self, text: str) -> dict[str, Any]:
        """The signing keys of a key set by ``kid``; keys that cannot be read are left out."""
        import jwt

        keys: dict[str, Any] = {}
        try:
            jwks = json.loads(text)["keys"][:KEYS_LIMIT]
        except (ValueError, KeyError, TypeError, RecursionError):
            return keys
        for jwk in jwks:
            try:
                key = jwt.PyJWK(jwk) if _is_usable(jwk) else None
                if key and not key.Algorithm.check_key_length(key.key):  # type: ignore[no-untyped-call, unused-ignore]
                    keys[jwk["kid"]] = key
            except Exception:  # noqa: BLE001, S112 - one bad key must not affect the others
                continue
        return keys


def _is_usable(jwk: Any) -> bool:  # noqa: ANN401 - anything that JSON has
    """Whether it is a public signature key with an id."""
    return (
        isinstance(jwk, dict)
        and isinstance(jwk.get("kid"), str)
        and "d" not in jwk
        and jwk.get("use", "sig") == "sig"
        and jwk.get("kty") in {"RSA", "EC", "OKP"}
    )


def _unverified(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a token, unverified; raises ValueError for a duplicate name, which PyJWT would accept."""
    from jwt.utils import base64url_decode

    from a2a_serverless.protocol.strict_json import unique

    header, claims = (json.loads(base64url_decode(part), object_pairs_hook=unique) for part in token.split(".")[:2])
    if not (isinstance(header, dict) and isinstance(claims, dict)):
        raise ValueError("not two objects")  # noqa: TRY004 - of a wrong value
    return header, claims


def _check_kind(header: dict[str, Any], claims: dict[str, Any]) -> None:
    """Raises InvalidToken for a token that is not an access token, or is bound to a key."""
    kind = header.get("typ", "JWT")
    kinds = (str(claims.get(name, "")).lower() for name in ("typ", "token_use"))
    if (
        not isinstance(kind, str)
        or kind.lower().removeprefix("application/") not in ACCESS_TOKENS
        or not OTHER_TOKENS.isdisjoint(kinds)
        or not FOREIGN_CLAIMS.isdisjoint(claims)
    ):
        raise InvalidToken


def _texts(value: object) -> list[str]:
    """The texts of a claim that is a text or a list of texts."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


def fetch_document(url: str, transport: Transport | None = None, seconds: float = FETCH_SECONDS) -> str:
    """GETs a JSON document of the issuer; empty when it does not answer in ``seconds``, or not with 200."""
    from a2a_serverless.http_client import open_request
    from a2a_serverless.http_client.transport import ClientRequest, Unreachable

    try:
        with (transport or open_request)(ClientRequest(url, {"Accept": "application/json"}, seconds=seconds)) as answer:
            status, content = answer.status, answer.body.read(DOCUMENT_LIMIT + 1)
    except Unreachable:
        return ""
    return content.decode("utf-8", "replace") if status == HTTP_OK and len(content) <= DOCUMENT_LIMIT else ""
