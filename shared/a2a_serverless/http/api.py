"""What the endpoints work with, and what holds for every request to an agent: who calls, and how often."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import MethodNotFound
from a2a_serverless.http.requests import read_body, read_request
from a2a_serverless.protocol.limits import LIMITS, Limits

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import JsonObject, Principal
    from a2a_serverless.http.authentication import Authenticator
    from a2a_serverless.http.requests import HttpRequest
    from a2a_serverless.ports.agents import CallbackVerifier
    from a2a_serverless.ports.keys import Publications
    from a2a_serverless.protocol.codecs import Binding
    from a2a_serverless.services.rate_limiter import RateLimiter
    from a2a_serverless.services.tasks import TaskService

STREAM_MS: Final = 180_000  # API Gateway does not report a client that has disconnected: its stream runs until then


# Runs a blocking endpoint: at once on Lambda, which serves one request at a time, and in a thread elsewhere.
Run = Callable[[Callable[[], "Response"]], Awaitable["Response"]]


async def at_once(answer: Callable[[], Response]) -> Response:
    """A ``Run`` that blocks."""
    return answer()


@dataclass(frozen=True, slots=True)
class Api:
    """The dependencies of the endpoints.

    Receivers may cache the key set for ``jwks_max_age_s``; a stream lasts ``stream_ms``. ``eraser`` returns the answer
    of the eraser function, and raises TimeoutError if that still runs.
    """

    service: TaskService
    public: Publications
    agents: Mapping[str, Agent]
    authenticator: Authenticator
    verifier: CallbackVerifier
    jwks_max_age_s: int
    stream_ms: int = STREAM_MS
    limits: Limits = LIMITS
    rest_binding: Binding = "rest"
    limiter: RateLimiter | None = None
    eraser: Callable[[JsonObject], JsonObject] | None = None
    origins: tuple[str, ...] = ()
    run: Run = at_once
    base_url: str = ""

    def agent(self, request: HttpRequest) -> Agent:
        """The agent that the path names."""
        agent = self.agents.get(request.params["agent"])
        if agent is None:
            raise no_such_path()
        return agent

    def sign_in(self, request: HttpRequest) -> Caller:
        """The caller. Raises Unauthenticated, TooManyRequests, Overloaded."""
        caller = self.authenticator.authenticate(request.headers)
        if self.limiter:
            self.limiter.admit_request(caller.principal)
        return caller

    def principal(self, caller: Caller, tenant: str | None) -> Principal:
        """The caller in the tenant that the request names."""
        return self.authenticator.enter_tenant(caller.principal, tenant) if tenant else caller.principal


def no_such_path() -> MethodNotFound:
    """The error for a path that no route has."""
    return MethodNotFound("There is no such path.")


Endpoint = Callable[[Api, "HttpRequest"], "Response"]


async def respond(api: Api, endpoint: Endpoint, scope: Scope, receive: Receive) -> Response:
    """The answer of an endpoint, which may block."""
    request = read_request(scope, await read_body(receive, api.limits.body))
    return await api.run(partial(endpoint, api, request))


class Responder:
    """An endpoint as an ASGI application: it answers all verbs, or says which it takes."""

    def __init__(self, api: Api, endpoint: Endpoint) -> None:
        self._api, self._endpoint = api, endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await respond(self._api, self._endpoint, scope, receive)
        await response(scope, receive, send)
