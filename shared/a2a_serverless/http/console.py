"""The console: a page at ``/`` that shows the agents and lets its user talk to them, and the files of the page.

The page itself holds only the public answer of ``/agents``. It fetches everything else like any client, with the
credentials that its user enters. Its policy allows no script but its own, and no request to another host.
"""

from __future__ import annotations

import re
import secrets
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.responses import Response

from a2a_serverless.http.api import no_such_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.agent import Agent

POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = {
    "cache-control": "no-cache",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
TYPES: Final = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_FOLDER: Final = resources.files("a2a_serverless.http").joinpath("pages")


def show_page(agents: Mapping[str, Agent]) -> Response:
    """The page with the agents of the deployment."""
    nonce = secrets.token_urlsafe(16)
    page = _read("page.html").decode().replace("{{nonce}}", nonce)
    page = page.replace("{{agents}}", "\n".join(map(_entry, agents.values())))
    headers = HEADERS | {"content-security-policy": POLICY.format(nonce=nonce)}
    return Response(page, headers=headers, media_type="text/html; charset=utf-8")


def serve_file(name: str) -> Response:
    """A stylesheet or a module of the page. Raises MethodNotFound."""
    media_type = TYPES.get(name[name.rfind(".") :])
    if media_type is None or name not in {file.name for file in _FOLDER.iterdir()}:
        raise no_such_path()
    return Response(_read(name), headers=HEADERS, media_type=media_type)


def _entry(agent: Agent) -> str:
    name, text = (escape(UNSEEN.sub("", value)) for value in (agent.name, agent.description))
    link = f'<a href="?agent={quote(agent.id, safe="")}" data-agent="{escape(agent.id)}" title="{text}">'
    return f'<li>{link}<bdi class="name">{name}</bdi><bdi class="about">{text}</bdi></a></li>'


def _read(name: str) -> bytes:
    return _FOLDER.joinpath(name).read_bytes()
