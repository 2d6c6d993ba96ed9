"""A client of HTTP for agents that write the address of a service into their code: its requests come to the tests."""

from __future__ import annotations

import os

from httpx import URL, AsyncClient, Request


async def redirect(request: Request) -> None:
    own = URL(os.environ["WEATHER_URL"])
    request.url = request.url.copy_with(scheme=own.scheme, host=own.host, port=own.port)


def make_client() -> AsyncClient:
    return AsyncClient(event_hooks={"request": [redirect]})
