"""What the api function serves: the agents alone, or the project's own application with the agents in it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from a2a_serverless.http.app import make_asgi_app

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp

    from a2a_serverless.http.api import Api


class Served(NamedTuple):
    """An application, and the event loop that it needs; None if it needs none before it streams."""

    app: ASGIApp
    loop: asyncio.AbstractEventLoop | None = None


def make_served_app(api: Api, environment: Mapping[str, str]) -> Served:
    """The application that ``APPLICATION`` names, after the beginning of its lifespan; without a name the agents.

    Raises ApplicationError, and what the application raises.
    """
    path = environment.get("APPLICATION", "")
    if not path:
        return Served(make_asgi_app(api))
    from a2a_serverless.http.application import import_application
    from a2a_serverless.http.hosting import Hosted
    from a2a_serverless.http.threads import in_threads

    loop = asyncio.new_event_loop()
    agents = make_asgi_app(replace(api, run=in_threads()))
    hosted = Hosted(import_application(path).with_agents(agents))
    try:
        loop.run_until_complete(hosted.start())
    except BaseException:
        loop.close()
        raise
    return Served(hosted, loop)
