"""The api of a deployment for another application: ``app.mount("/agents", make_agents_app())`` (docs/fastapi.md)."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_serverless.http.application import MountedAgents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp


def make_agents_app(environment: Mapping[str, str] = os.environ) -> ASGIApp:
    """The api as an ASGI application to mount in another.

    The project's servers (``dev``, ``up``, the api function) bring their agents. Elsewhere the first request makes
    them, of the variables of the api function in ``environment``; then it has to be mounted where the deployment's
    ``PublicBaseUrl`` says. That request raises SettingsError and NotBuilt.
    """

    def make() -> ASGIApp:
        from a2a_serverless.adapters.aws import Aws
        from a2a_serverless.aws.api_dependencies import make_dependencies
        from a2a_serverless.http.app import make_asgi_app
        from a2a_serverless.http.threads import in_threads

        return make_asgi_app(replace(make_dependencies(environment, Aws()), run=in_threads()))

    return MountedAgents(make)
