"""The one HTTP client: a deadline over the whole exchange, no redirects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.http_client.transport import Unreachable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from a2a_serverless.http_client.transport import ClientRequest, ClientResponse


def open_request(call: ClientRequest) -> AbstractContextManager[ClientResponse]:
    """The transport over HTTP/1.1, by the environment's proxy for hosts other than this machine.

    It follows no redirects, because credentials would go to the redirect's target.
    """
    if not call.url.lower().startswith(("http:", "https:")):
        raise Unreachable(call.url, "not an http or https URL")
    try:
        from a2a_serverless.http_client.exchange import exchange  # a cold start needs no HTTP
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"Requests need {error.name}: install a2a-serverless[client].") from error
    return exchange(call)
