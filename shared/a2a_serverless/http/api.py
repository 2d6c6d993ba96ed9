"""The dependencies of the endpoints; authentication of the caller and lookup of the agent for every request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from starlette.responses import Response

from a2a_serverless.domain.access import (
    PREFIX,
    SERVICE_TOKEN_PREFIX,
    ApiKey,
    Caller,
    InvalidToken,
    ServiceToken,
    digest_of,
)
from a2a_serverless.domain.errors import MethodNotFound, TaskNotFound, Unauthenticated
from a2a_serverless.domain.model import Principal
from a2a_serverless.http.messages import read_body, read_request
from a2a_serverless.protocol.strict_json import LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Receive, Scope, Send

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.http.messages import HttpRequest
    from a2a_serverless.ports.agents import CallbackVerifier
    from a2a_serverless.services.rate_limiter import RateLimiter
    from a2a_serverless.services.requests import TaskService


class Authenticator(Protocol):
    """Determines the caller."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Returns the caller; raises Unauthenticated."""
        ...

    def enter_tenant(self, principal: Principal, tenant: str) -> Principal:
        """Returns the caller in the tenant that the request names; raises TaskNotFound if it may not act there."""
        ...


class AllowAnonymous:
    """Every caller is the same principal, in any tenant that the request names. For local runs only."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        key, _ = _credentials(headers)
        return Caller(ANYBODY, is_agent=key.startswith(SERVICE_TOKEN_PREFIX))

    def enter_tenant(self, principal: Principal, tenant: str) -> Principal:
        return replace(principal, tenant=tenant)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OidcOrApiKey:
    """Accepts API keys (``X-API-Key``, or as a bearer token), service tokens, and an issuer's bearer tokens if set.

    ``service_tokens`` opens the tokens with which agents of this deployment call each other; only a worker can seal
    such a token.
    """

    keys: Callable[[str], ApiKey | None]
    tokens: Callable[[str], Caller] | None = None
    service_tokens: Callable[[str], ServiceToken | None] = lambda _: None

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Returns the caller; raises Unauthenticated, with the same text for every reason."""
        key, bearer = _credentials(headers)
        credential: ApiKey | ServiceToken | None = None
        if key.startswith(SERVICE_TOKEN_PREFIX):
            credential = self._open_service_token(key)
        elif key.startswith(PREFIX) and len(key) <= KEY_LIMIT:  # a text of another form costs no lookup
            credential = self.keys(digest_of(key))
        caller = credential.caller if credential else None if key else self._verify_token(bearer)
        if caller is None:
            raise Unauthenticated(given=bool(key or bearer))
        return caller

    def enter_tenant(self, principal: Principal, tenant: str) -> Principal:
        """A caller acts in its own tenant only; raises TaskNotFound for another tenant."""
        if tenant != principal.tenant:
            raise TaskNotFound
        return principal

    def _open_service_token(self, token: str) -> ServiceToken | None:
        """Returns the service token if its API key still exists, or, without a key, if an issuer is set."""
        service_token = self.service_tokens(token)
        if service_token is None:
            return None
        if not service_token.api_key:
            return service_token if self.tokens is not None else None
        parent = self.keys(service_token.api_key)
        return service_token if parent and parent.principal == service_token.principal else None

    def _verify_token(self, token: str) -> Caller | None:
        if not token or self.tokens is None:
            return None
        try:
            return self.tokens(token)
        except InvalidToken:
            return None


def _credentials(headers: Mapping[str, str]) -> tuple[str, str]:
    """Returns the API key (or service token) and the bearer token of a request, "" for a missing one."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    bearer = credentials.strip() if scheme.lower() == "bearer" else ""
    return headers.get(API_KEY_HEADER, "") or (bearer if bearer.startswith(PREFIX) else ""), bearer


API_KEY_HEADER: Final = "x-api-key"
KEY_LIMIT: Final = 256
ANYBODY: Final = Principal("local", "anybody")


STREAM_MS: Final = 180_000  # API Gateway does not report a client that has disconnected: its stream runs until then


@dataclass(frozen=True, slots=True)
class Console:
    """The console of a deployment: its name, and links to an inbox and to documents ("": none).

    With ``internals``, owners of tasks also see what steps returned, the addresses of events, and the ``log_lines`` of
    a task, which a deployment in AWS cannot read (None).
    """

    name: str = ""
    inbox: str = ""
    documents: str = ""
    internals: bool = False
    log_lines: Callable[[str], Sequence[JsonObject]] | None = None


# Makes a response in a thread. Lambda serves one request at a time, so the api function makes it without a thread.
Run = Callable[[Callable[[], Response]], Awaitable[Response]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Api:
    """The dependencies of the endpoints.

    Receivers may cache the key set for ``jwks_max_age_s``; a stream lasts ``stream_ms``. ``run`` runs the endpoints.
    """

    service: TaskService
    agents: Mapping[str, Agent]
    authenticator: Authenticator
    verifier: CallbackVerifier
    jwks_max_age_s: int
    stream_ms: int = STREAM_MS
    limiter: RateLimiter | None = None
    origins: tuple[str, ...] = ()
    run: Run | None = None
    console: Console | None = None

    def agent(self, request: HttpRequest) -> Agent:
        """The agent in the path."""
        agent = self.agents.get(request.params["agent"])
        if agent is None:
            raise no_such_path()
        return agent

    def sign_in(self, request: HttpRequest) -> Caller:
        """The caller. Raises Unauthenticated, Overloaded."""
        return self.authenticator.authenticate(request.headers)

    def principal(self, caller: Caller, tenant: str | None) -> Principal:
        """The caller in the tenant that the request names."""
        return self.authenticator.enter_tenant(caller.principal, tenant) if tenant else caller.principal


def no_such_path() -> MethodNotFound:
    """The error for a path that no route has."""
    return MethodNotFound("There is no such path.")


Endpoint = Callable[[Api, "HttpRequest"], Response]


API: Final = "a2a_serverless.api"
"""The key of the application's ``Api`` in a scope."""


async def respond(endpoint: Endpoint, scope: Scope, receive: Receive) -> Response:
    """The answer of an endpoint, which may block: a server with an event loop runs it in a thread (``Api.run``)."""
    api: Api = scope[API]
    request = read_request(scope, await read_body(receive, LIMITS.body))
    return await api.run(partial(endpoint, api, request)) if api.run else endpoint(api, request)


class Responder:
    """An endpoint as an ASGI application."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await respond(self._endpoint, scope, receive)
        await response(scope, receive, send)
