"""HTTP without a network: requests to an application in this process, which name their callers without secrets."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.errors import TaskNotFound, Unauthenticated
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.http.app import make_asgi_app
from a2a_serverless.http.lambda_proxy import Exchange
from a2a_serverless.http_client.transport import ClientRequest, ClientResponse, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from starlette.types import Scope

    from a2a_serverless.http.api import Api

CALLER: Final = "x-caller"


def name_caller(caller: Caller) -> dict[str, str]:
    """The header that ``NamedCallers`` accepts for this caller."""
    principal = caller.principal
    named = [principal.tenant, principal.owner, sorted(caller.scopes), caller.key, caller.is_agent]
    return {CALLER: json.dumps(named)}


class NamedCallers:
    """Implements ``http.api.Authenticator``: a caller is whom the request names."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        if CALLER not in headers:
            raise Unauthenticated
        tenant, owner, scopes, key, is_agent = json.loads(headers[CALLER])
        return Caller(Principal(tenant, owner), frozenset(scopes), key=key, is_agent=is_agent)

    def enter_tenant(self, principal: Principal, tenant: str) -> Principal:
        if tenant != principal.tenant:
            raise TaskNotFound
        return principal


class InProcessHttp:
    """Requests to the application of ``make_api()`` at ``base_url``, as Lambda makes them. Nothing else is reachable.

    It is a transport for clients (``open``), and ``ports.Sender`` for the webhooks of agents that call each other.
    """

    def __init__(self, base_url: str, make_api: Callable[[], Api]) -> None:
        self._base_url, self._make_api = base_url, make_api

    @contextmanager
    def open(self, call: ClientRequest) -> Iterator[ClientResponse]:
        if not call.url.startswith(f"{self._base_url}/"):
            raise Unreachable(call.url, f"only {self._base_url} can be reached in a test")
        exchange = Exchange(make_asgi_app(self._make_api()), _scope_of(call), call.body or b"")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in exchange.headers}
        yield ClientResponse(exchange.status, headers, io.BytesIO(exchange.read()))

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        del deadline_ms
        with self.open(ClientRequest(url, headers, body)) as response:
            content = response.body.read(-1)
        return Outcome(status=response.status, connected=True, request_sent=True, body=content)


def _scope_of(call: ClientRequest) -> Scope:
    target = urlsplit(call.url)
    return {
        "type": "http",
        "http_version": "1.1",
        "method": call.verb,
        "path": unquote(target.path),
        "raw_path": target.path.encode(),
        "root_path": "",
        "scheme": target.scheme,
        "query_string": target.query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in call.headers.items()],
    }
