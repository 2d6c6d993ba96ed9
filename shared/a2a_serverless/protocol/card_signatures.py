"""Signatures of agent cards (specification 8.4) and of AI Catalogs: detached JWS over the canonical form.

The header's ``jku`` is a hint where the key may be found. A forger can write any ``jku`` into a document, so a key from
there proves nothing unless the reader knows that the address is the signer's. Nothing here reads that address.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final, cast

from a2a_serverless.domain.errors import A2AError
from a2a_serverless.protocol.strict_json import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from a2a_serverless.domain.model import Json, JsonObject

CARDS: Final = "signatures"
CATALOGS: Final = "signature"


def canonical(document: JsonObject, member: str = CARDS) -> bytes:
    """A card's canonical form (8.4.1): JCS (RFC 8785) of all but its signatures, which are in ``member``."""
    import rfc8785

    return rfc8785.dumps({name: value for name, value in document.items() if name != member})


def signature(
    card: JsonObject, kid: str, sign: Callable[[bytes], bytes], jku: str | None = None, member: str = CARDS
) -> JsonObject:
    """An AgentCardSignature (8.4.2): a JWS whose payload is the card itself.

    ``sign`` returns the ES256 signature of its argument in JWS form (64 bytes, R and S). ``jku`` is the key set's URL.
    """
    header = {"alg": "ES256", "kid": kid, "typ": "JOSE"} | ({"jku": jku} if jku else {})
    protected = _base64url(dumps(dict(header)))
    signing_input = f"{protected}.{_base64url(canonical(card, member))}".encode()
    return {"protected": protected, "signature": _base64url(sign(signing_input))}


def sign_catalog(catalog: JsonObject, kid: str, sign: Callable[[bytes], bytes], jku: str) -> JsonObject:
    """The catalog with its signature, made like a card's, in the compact form without a payload (RFC 7515, F)."""
    parts = signature(catalog, kid, sign, jku, CATALOGS)
    return catalog | {CATALOGS: f"{parts['protected']}..{parts['signature']}"}


def signed_by(document: JsonObject) -> Iterator[tuple[str, bytes, bytes]]:
    """Each signature of a received card: the key's id, the signed bytes, and the signature (8.4.3).

    Unreadable signatures are left out, and so is every algorithm but ES256.
    """
    signatures = document.get(CARDS)
    objects = [item for item in signatures if isinstance(item, dict)] if isinstance(signatures, list) else []
    return _readable(
        [(signature.get("protected"), signature.get("signature")) for signature in objects], canonical(document)
    )


def catalog_signed_by(document: JsonObject) -> Iterator[tuple[str, bytes, bytes]]:
    """The signature of a received AI Catalog, in the form of ``signed_by``; nothing if the catalog has none."""
    protected, _, signature_text = str(document.get(CATALOGS)).partition("..")
    return _readable([(protected, signature_text)], canonical(document, CATALOGS))


def _readable(parts: Iterable[tuple[Json, Json]], content: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    payload = _base64url(content)
    for protected, signature_text in parts:
        try:
            header, raw = loads(_unbase64url(str(protected))), _unbase64url(str(signature_text))
        except (ValueError, A2AError):
            continue
        if isinstance(header, dict) and header.get("alg") == "ES256":
            yield str(header.get("kid")), f"{protected}.{payload}".encode(), raw


def signed_forms(card: JsonObject, document: JsonObject) -> list[JsonObject]:
    """Each form in which clients verify the 1.0 card that is ``document``, alone or among members of 0.3.

    Clients that read it as a 1.0 card and ignore unknown members verify ``card``. SDK 1.3.0 also drops every empty
    member, required or not (a requirement without scopes is such a member). Clients that follow the letter (8.4.3)
    verify the document as they received it. A client should verify at least one signature.
    """
    forms = [card, cast("JsonObject", without_empties(card)), document]
    return list({canonical(form): form for form in forms}.values())


def without_empties(value: Json) -> Json:
    """The value without its empty members, and without those that become empty; None when nothing is left."""
    if isinstance(value, dict):
        value = {name: bare for name, inner in value.items() if (bare := without_empties(inner)) is not None}
    elif isinstance(value, list):
        value = [bare for inner in value if (bare := without_empties(inner)) is not None]
    return None if value in ("", [], {}) else value


def _base64url(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _unbase64url(text: str) -> bytes:
    return urlsafe_b64decode(text + "==")
