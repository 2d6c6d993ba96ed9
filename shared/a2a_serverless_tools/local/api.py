"""The api over deployed resources, for uvicorn on a developer's machine."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from a2a_serverless.adapters.aws import Aws
from a2a_serverless.adapters.logs import start_process_log
from a2a_serverless.aws.api_dependencies import make_dependencies
from a2a_serverless.http.app import make_asgi_app
from a2a_serverless.http.application import import_application
from a2a_serverless.http.threads import in_threads
from a2a_serverless_tools.local.edge import find_documents, flush_after, refuse_foreign_pages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp

    from a2a_serverless.http.api import Api


def make_app(environment: Mapping[str, str] = os.environ) -> ASGIApp:
    """The api as an ASGI application."""
    return serve(make_dependencies(environment, Aws()), environment)


def serve(api: Api, environment: Mapping[str, str]) -> ASGIApp:
    """An api with these dependencies as an ASGI application: in the project's own, if it has one.

    Pages of other origins may not call the agents; the project's application decides for itself.
    """
    start_process_log(environment)
    base_url = environment.get("PUBLIC_BASE_URL", "")
    api = replace(api, run=in_threads())
    if api.console:
        name, inbox = environment.get("PROJECT", ""), environment.get("INBOX", "")
        api = replace(api, console=replace(api.console, name=name, inbox=inbox, documents=find_documents(environment)))
    app = flush_after(make_asgi_app(api), api.service.tracer)
    agents = refuse_foreign_pages(app, urlsplit(base_url).hostname or "localhost", api.origins)
    application = environment.get("APPLICATION")
    return import_application(application).with_agents(agents) if application else agents
