"""The emulator, closed to web pages: `<the emulator's Python> -P guarded_emulator.py`, with its own settings.

The emulator accepts any credentials and lets every origin read its answers, so a page in the developer's browser could
read secrets and change everything. A browser sends the page's origin (`Origin`) and site (`Sec-Fetch-Site`); no AWS SDK
does. A page whose host name resolves to 127.0.0.1 (DNS rebinding) still sends that name as `Host`. For an address that
a person types, or opens from a terminal, the site is `none`.

This file runs in the emulator's environment, so it imports nothing of the project.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

App = Callable[[MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Any]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
FORBIDDEN = b"The emulator answers programs on this machine only, no web pages.\n"


def refused(headers: Iterable[tuple[bytes, bytes]], port: int) -> bool:
    """Return whether a request comes from a web page, or names another host than this machine at `port`."""
    given = [(name.lower(), value.lower().decode("latin-1")) for name, value in headers]
    hosts = [value for name, value in given if name == b"host"]
    sites = [value for name, value in given if name == b"sec-fetch-site"]
    ours = len(hosts) == 1 and hosts[0] in {f"{name}:{port}" for name in LOOPBACK}
    return not ours or any(name == b"origin" for name, _ in given) or any(site != "none" for site in sites)


def guarded(app: App, port: int) -> App:
    """Wrap an ASGI application so that requests that are `refused` get status 403."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has them
        if scope["type"] == "lifespan" or not refused(scope["headers"], port):
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            about = [(b"content-type", b"text/plain"), (b"content-length", str(len(FORBIDDEN)).encode())]
            await send({"type": "http.response.start", "status": 403, "headers": about})
            await send({"type": "http.response.body", "body": FORBIDDEN})

    return answer


def main() -> None:
    """Start the emulator as its own command does, wrapped in `guarded`."""
    import ministack.app as emulator

    emulator.app = guarded(emulator.app, int(os.environ["GATEWAY_PORT"]))
    emulator.main()


if __name__ == "__main__":
    main()
