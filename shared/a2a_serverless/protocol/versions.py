"""Which version and which extensions a request asks for (specification 3.6, 3.2.6 and 4.6 of v1.0.1).

A request says its version in ``A2A-Version``, or in a query parameter of that name; saying nothing means 0.3. The name
of a JSON-RPC method, or the ``/v1`` of a path, tells what it is written in; the two must agree, with one exception: a
0.3 method is served to a client that says 1.0, because its meaning is not in doubt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import ExtensionRequired, VersionNotSupported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.push import WireVersion

VERSION_HEADER: Final = "A2A-Version"
EXTENSION_HEADERS: Final[dict[WireVersion, str]] = {"1.0": "A2A-Extensions", "0.3": "X-A2A-Extensions"}
EXTENSIONS_READ: Final = 32

_ACCEPTED: Final[dict[WireVersion, frozenset[str]]] = {"1.0": frozenset({"1.0"}), "0.3": frozenset({"0.3", "1.0"})}
_VERSION: Final = re.compile(r"(\d{1,4}\.\d{1,4})(\.\d{1,4})?", re.ASCII)


def asked(header: str | None, query: str | None = None) -> str:
    """``Major.Minor`` that the request asks for; a patch does not matter. The header goes before the parameter."""
    said = (header or "").strip() or (query or "").strip() or "0.3"
    found = _VERSION.fullmatch(said)
    return found[1] if found else said


def check(written_in: WireVersion, version: str) -> None:
    """Returns when a request written in one version may ask for ``version``; raises VersionNotSupported otherwise."""
    if version in _ACCEPTED[written_in]:
        return
    if written_in == "1.0" and version == "0.3":
        raise VersionNotSupported(
            f"This is written in 1.0. Send the header {VERSION_HEADER}: 1.0; without it a request is read as 0.3. "
            "0.3 has paths below /v1, such as /v1/message:send, and methods such as message/send."
        )
    raise VersionNotSupported("This A2A version is not supported. Supported are 1.0 and 0.3.")


def requested(*headers: str | None) -> tuple[str, ...]:
    """The URIs of the extension headers, each once, in order."""
    names = [name.strip() for header in headers if header for name in header.split(",")]
    return tuple(dict.fromkeys(filter(None, names)))[:EXTENSIONS_READ]


def activated(names: Iterable[str], supported: Iterable[str], required: Iterable[str]) -> tuple[str, ...]:
    """The requested extensions that we support, to be echoed. Raises ExtensionRequired when a required one is missing.

    An extension that we do not know is ignored; no other version of it is taken in its place (4.6.3).
    """
    names = tuple(names)
    missing = [name for name in required if name not in names]
    if missing:
        raise ExtensionRequired(f"Name these extensions in the request: {', '.join(missing)}.")
    known = frozenset(supported)
    return tuple(name for name in names if name in known)
