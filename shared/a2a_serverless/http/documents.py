"""Serves the public documents (cards, list of agents, key set), which the rotator writes, with cache headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from a2a_serverless.domain.errors import MethodNotFound
from a2a_serverless.domain.publications import AGENTS, JWKS, card_name, legacy_card_name
from a2a_serverless.http.answers import json_answer
from a2a_serverless.http.api import no_such_path
from a2a_serverless.protocol.conditional_requests import unchanged, unchanged_since
from a2a_serverless.protocol.errors import VerbNotAllowed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.http.api import Api
    from a2a_serverless.http.requests import HttpRequest

CARD: Final = ".well-known/agent-card.json"
OLD_CARD: Final = ".well-known/agent.json"
MAX_AGE_S: Final = 300

# The name of each path's document, of the agent's if it has one. Clients from before 0.3 read ``agent.json``.
DOCUMENTS: Final[Mapping[str, Callable[[str], str]]] = {
    "/agents": lambda _: AGENTS,
    "/.well-known/jwks.json": lambda _: JWKS,
    f"/{CARD}": card_name,
    f"/{OLD_CARD}": card_name,
    f"/{{agent}}/{CARD}": card_name,
    f"/{{agent}}/{OLD_CARD}": card_name,
    f"/legacy/{{agent}}/{OLD_CARD}": legacy_card_name,
}


def serve_document(name_of: Callable[[str], str], api: Api, request: HttpRequest) -> Response:
    """A document with cache headers (specification 8.6), or 304 if the client has the current one.

    The card at the root is the first agent's.
    """
    agent = request.params.get("agent") or next(iter(api.agents), "")
    if "agent" in request.params and agent not in api.agents:
        raise no_such_path()
    if request.verb not in {"GET", "HEAD"}:
        raise VerbNotAllowed(("GET", "HEAD"))
    name = name_of(agent)
    document = api.public.get_document(name)
    if not isinstance(document, dict):
        raise MethodNotFound("This document has not been published yet. The rotator function does it.")
    max_age_s = api.jwks_max_age_s if name == JWKS else MAX_AGE_S
    headers = {"cache-control": f"public, max-age={max_age_s}", "etag": str(document["etag"])}
    headers |= {"last-modified": str(document["modified"])}
    if _is_current(request.headers, headers):
        return Response(status_code=304, headers=headers | {"content-type": "application/json"})
    return json_answer(str(document["body"]).encode(), headers)


def _is_current(asked: Mapping[str, str], held: Mapping[str, str]) -> bool:
    """Whether the client has the current document, by ETag, else by date (RFC 9110, 13.2.2)."""
    etag = asked.get("if-none-match")
    if etag is not None:
        return unchanged(etag, held["etag"])
    return unchanged_since(asked.get("if-modified-since"), held["last-modified"])
