"""The application of others in which the agents are mounted: ``application = "shop.web:app"`` of a project names it.

Whoever serves it hands the deployment's agents on with each request, in the ASGI scope. So the application can be
imported where there is no deployment: the build does it.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.applications import Starlette
from starlette.routing import Mount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

AGENTS: Final = "a2a_serverless.agents"
"""The key of the deployment's agents, an ASGI application, in a scope."""
_LINE: Final = 'app.mount("/agents", make_agents_app())'


class ApplicationError(ValueError):
    """An import path names no application with the agents in it. The text says what helps."""


class MountedAgents:
    """The agents, as an ASGI application: those that the server brings in the scope, else those that ``make`` makes."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = scope.get(AGENTS) or self._own
        await app(scope, receive, send)

    @cached_property
    def _own(self) -> ASGIApp:
        return self._make()


class Application(NamedTuple):
    """An application, and the path at which the agents are mounted in it: ``/agents``, or "" for its root."""

    app: ASGIApp
    path: str

    def with_agents(self, agents: ASGIApp) -> ASGIApp:
        """The application with these agents."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            await self.app({**scope, AGENTS: agents}, receive, send)

        return serve


def import_application(path: str) -> Application:
    """Imports the application at ``package.module:attribute``.

    Raises ApplicationError, or any error of the import itself.
    """
    module, _, attribute = path.partition(":")
    app = getattr(import_module(module), attribute, None)
    if app is None:
        raise ApplicationError(f"{path} is no application: {module} has no {attribute}")
    if not isinstance(app, Starlette):
        kind = f"{type(app).__module__}.{type(app).__name__}"
        helps = "name the FastAPI object itself, and give it its middlewares by app.add_middleware"
        raise ApplicationError(f"{path} is no FastAPI application but a {kind}: {helps}")
    paths = [*_mount_paths(app.routes)]
    if not paths:
        raise ApplicationError(f"{path} has no agents: add {_LINE} of a2a_serverless.aws.agents_app to it")
    if len(paths) > 1:
        raise ApplicationError(f"{path} has the agents at {' and '.join(paths)}: their cards name one address")
    if "{" in paths[0]:
        raise ApplicationError(f"{path} has the agents at {paths[0]}: mount them at a path without parameters")
    return Application(app, paths[0])


def _mount_paths(routes: Sequence[BaseRoute], before: str = "") -> Iterator[str]:
    for route in routes:
        if isinstance(route, Mount):
            if isinstance(route.app, MountedAgents):
                yield before + route.path
            else:
                yield from _mount_paths(route.routes or (), before + route.path)
