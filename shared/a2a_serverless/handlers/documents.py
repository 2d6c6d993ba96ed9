"""Serves the public documents (cards, list of agents, key set), which the rotator writes, with cache headers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import MethodNotFound
from a2a_serverless.domain.publications import AGENTS, JWKS, card_name, legacy_card_name
from a2a_serverless.handlers.http_types import JSON, HttpRequest, HttpResponse
from a2a_serverless.protocol.conditional_requests import unchanged, unchanged_since
from a2a_serverless.protocol.errors import VerbNotAllowed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.ports.keys import Publications

CARD: Final = ".well-known/agent-card.json"
OLD_CARD: Final = ".well-known/agent.json"
JWKS_PATH: Final = ".well-known/jwks.json"
MAX_AGE_S: Final = 300


@cache
def catalogue(agents: tuple[str, ...]) -> Mapping[str, str]:
    """Maps every public path, without slashes around it, to the name of its document.

    The card at the root is the first agent's. Clients from before 0.3 read ``agent.json``.
    """
    names = {JWKS_PATH: JWKS, "agents": AGENTS}
    for agent in agents:
        for path in (CARD, OLD_CARD):
            names[f"{agent}/{path}"] = card_name(agent)
            names.setdefault(path, card_name(agent))
        names[f"legacy/{agent}/{OLD_CARD}"] = legacy_card_name(agent)
    return names


def serve_document(public: Publications, request: HttpRequest, name: str, jwks_max_age_s: int) -> HttpResponse:
    """Returns a document with cache headers (specification 8.6), or 304 if the client has the current one.

    Raises VerbNotAllowed, and MethodNotFound if the document has not been published yet.
    """
    if request.verb not in {"GET", "HEAD"}:
        raise VerbNotAllowed(("GET", "HEAD"))
    document = public.get_document(name)
    if not isinstance(document, dict):
        raise MethodNotFound("This document has not been published yet. The rotator function does it.")
    max_age_s = jwks_max_age_s if name == JWKS else MAX_AGE_S
    headers = {"cache-control": f"public, max-age={max_age_s}", "etag": str(document["etag"])}
    headers |= {"last-modified": str(document["modified"]), "content-type": JSON}
    if _is_current(request.headers, headers):
        return HttpResponse(304, headers=headers)
    return HttpResponse(200, str(document["body"]).encode(), headers)


def _is_current(asked: Mapping[str, str], held: Mapping[str, str]) -> bool:
    """Whether the client has the current document, by ETag, else by date (RFC 9110, 13.2.2)."""
    etag = asked.get("if-none-match")
    if etag is not None:
        return unchanged(etag, held["etag"])
    return unchanged_since(asked.get("if-modified-since"), held["last-modified"])
