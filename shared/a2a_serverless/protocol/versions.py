"""The versions of A2A, and the version and the extensions that a request asks for (specification 3.6, 3.2.6 and 4.6).

The version is in ``A2A-Version``, or in a query parameter of that name; without both it is 0.3. The name of a JSON-RPC
method, or the ``/v1`` of a path, tells the version in which the request is written. The two must agree, with one
exception: a client that asks for 1.0 may call a 0.3 method, because the meaning of the method is not in doubt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from a2a_serverless.domain.errors import ExtensionRequired, VersionNotSupported

if TYPE_CHECKING:
    from collections.abc import Mapping

ProtocolVersion: TypeAlias = Literal["1.0", "0.3"]
"""The versions of A2A that requests, webhooks and cards have."""

VERSION_HEADER: Final = "A2A-Version"
EXTENSION_HEADERS: Final[dict[ProtocolVersion, str]] = {"1.0": "A2A-Extensions", "0.3": "X-A2A-Extensions"}
MAX_EXTENSIONS: Final = 32

_ACCEPTABLE: Final[dict[ProtocolVersion, frozenset[str]]] = {
    "1.0": frozenset({"1.0"}),
    "0.3": frozenset({"0.3", "1.0"}),
}
_VERSION: Final = re.compile(r"(\d{1,4}\.\d{1,4})(\.\d{1,4})?", re.ASCII)


def asked_version(header: str | None, query: str | None = None) -> str:
    """``Major.Minor`` that the request asks for; a patch does not matter. The header goes before the parameter."""
    text = (header or "").strip() or (query or "").strip() or "0.3"
    match = _VERSION.fullmatch(text)
    return match[1] if match else text


def check_version(written_in: ProtocolVersion, version: str) -> None:
    """Checks that a request written in one version may ask for ``version``. Raises VersionNotSupported."""
    if version in _ACCEPTABLE[written_in]:
        return
    if written_in == "1.0" and version == "0.3":
        raise VersionNotSupported(
            f"This is written in 1.0. Send the header {VERSION_HEADER}: 1.0; without it a request is read as 0.3. "
            "0.3 has paths below /v1, such as /v1/message:send, and methods such as message/send."
        )
    raise VersionNotSupported("This A2A version is not supported. Supported are 1.0 and 0.3.")


def requested_extensions(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The URIs of the extension headers, each once, in order. The names of ``headers`` are in lower case."""
    lines = [headers.get(name.lower(), "") for name in EXTENSION_HEADERS.values()]
    names = [name.strip() for line in lines for name in line.split(",")]
    return tuple(dict.fromkeys(filter(None, names)))[:MAX_EXTENSIONS]


def activated_extensions(names: tuple[str, ...], offer: Mapping[str, bool]) -> tuple[str, ...]:
    """The requested extensions that an agent offers, to be echoed. Raises ExtensionRequired.

    ``offer`` tells of each URI whether requests must name it. An extension that we do not know is ignored; no other
    version of it is taken in its place (4.6.3).
    """
    missing = [uri for uri, is_required in offer.items() if is_required and uri not in names]
    if missing:
        raise ExtensionRequired(f"Name these extensions in the request: {', '.join(missing)}.")
    return tuple(name for name in names if name in offer)
