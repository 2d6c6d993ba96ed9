"""The api under uvicorn for the kits. They send one message id in many tests, so every message is a new one here."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_serverless.adapters.aws import Aws
from a2a_serverless.aws.api_dependencies import make_dependencies
from a2a_serverless_tools.local.api import serve

if TYPE_CHECKING:
    from starlette.types import ASGIApp


def make_app() -> ASGIApp:
    """The api as an ASGI application, over the resources that the environment names."""
    api = make_dependencies(os.environ, Aws())
    return serve(replace(api, service=api.service._replace(idempotent=False)), os.environ)
