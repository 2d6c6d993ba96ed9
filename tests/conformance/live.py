"""A deployment in one process and in real time: the real use cases and HTTP servers over the in-memory adapters.

It is the deployment of ``a2a-serverless dev`` with an edge that checks its answers.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless.adapters.service_tokens import ServiceTokenIssuer, ServiceTokenVerifier
from a2a_serverless.domain.access import ApiKey, digest_of
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.http.api import AllowAnonymous, OidcOrApiKey
from a2a_serverless.http.threads import in_threads
from a2a_serverless.protocol.v1_card import ApiKeySecurityScheme, SecurityScheme
from a2a_serverless_tools.local.deployment import LocalDeployment
from a2a_serverless_tools.local.server import Server, listen
from tests.doubles import MemoryApiKeyStore, MemoryServiceTokenSealer
from tests.edge import Edge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Literal

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import Principal
    from a2a_serverless.http.api import Authenticator
    from a2a_serverless.services.key_rotation import KeyRotation

API_KEY: Final = ApiKeySecurityScheme(location="header", name="X-API-Key")


class Live(LocalDeployment):
    """The deployment of ``dev`` at ``base_url``. Webhooks may be anywhere on 127.0.0.1, unchallenged.

    With ``callers`` (by API key) nobody else is let in, and the cards say so. ``others`` are agents elsewhere that may
    be called.
    """

    def __init__(
        self,
        agents: Sequence[Agent],
        base_url: str = "http://127.0.0.1:1",
        *,
        blocking_ms: int = 5_000,
        idempotent: bool = True,
        callers: Mapping[str, Principal] | None = None,
        others: Mapping[str, str] | None = None,
        authenticator: Authenticator | None = None,
        shape: Literal["both", "v1", "v0_3"] = "both",
        **options: Any,
    ) -> None:
        tokens = MemoryServiceTokenSealer()
        self._schemes = {"apiKey": SecurityScheme(api_key_security_scheme=API_KEY)} if callers else {}
        self._authenticator = only(callers, tokens) if callers else authenticator or AllowAnonymous()
        self._shape, self._options = shape, {"stream_ms": 60_000, **options}
        issuer = ServiceTokenIssuer(tokens, SystemClock().now)
        policy = EgressPolicy(local_allow=("127.0.0.1:*", "localhost:*"))
        super().__init__(agents, base_url, policy=policy, ownership=False, others=others, service_tokens=issuer.headers)
        webhooks = replace(self.service.webhooks(), resolver=self.resolver.check)
        self.service = self.service._replace(blocking_ms=blocking_ms, idempotent=idempotent, webhooks=lambda: webhooks)
        self.edge = self.make_api()

    def make_api(self) -> Edge:
        api = {one.name: getattr(made, one.name) for made in [super().make_api()] for one in fields(made)}
        return Edge(**{**api, "authenticator": self._authenticator, "run": None, **self._options})

    @property
    def rotation(self) -> KeyRotation:
        rotation = super().rotation
        return replace(rotation, publisher=replace(rotation.publisher, shape=self._shape, schemes=self._schemes))


def only(callers: Mapping[str, Principal], tokens: MemoryServiceTokenSealer) -> Authenticator:
    """Lets in these callers, by API key, and the agents that they call."""
    keys, now = MemoryApiKeyStore(), SystemClock().now
    for key, principal in callers.items():
        keys.add(ApiKey(digest_of(key), principal, "", now()))
    return OidcOrApiKey(keys.find, service_tokens=ServiceTokenVerifier(tokens, now).find)


@contextmanager
def working(live: Live) -> Iterator[None]:
    """Runs what the platform runs until the block ends."""
    thread = threading.Thread(target=live.dispatch)
    thread.start()
    try:
        yield
    finally:
        live.close()
        thread.join()


@contextmanager
def serving(agents: Sequence[Agent], port: int = 0, stage: str = "", **options: Any) -> Iterator[str]:
    """A deployment that answers on 127.0.0.1; gives its base URL, which ends with the ``stage``."""
    listener = listen(port)
    base_url = f"http://127.0.0.1:{listener.getsockname()[1]}{stage}"
    live = Live(agents, base_url, **options)
    web, faults = watched(replace(live.edge, run=in_threads()).app)
    server = Server(under(stage, web))
    thread = threading.Thread(target=server.run, args=([listener],))
    with working(live), listener:
        thread.start()
        try:
            yield base_url
        finally:
            server.should_exit = True
            thread.join()
    assert faults == [], faults


def under(stage: str, web: Any) -> Any:
    """As behind API Gateway, whose address has a stage that is not in the path of a function's request."""

    async def app(scope: Any, receive: Any, send: Any) -> Any:
        if scope["type"] == "http":
            if not scope["path"].startswith(stage):
                return await Response(status_code=403)(scope, receive, send)
            path, raw = scope["path"].removeprefix(stage), scope["raw_path"].removeprefix(stage.encode())
            scope = {**scope, "path": path or "/", "raw_path": raw or b"/"}
        return await web(scope, receive, send)

    return app


def watched(web: Any) -> tuple[Any, list[Exception]]:
    """The application, and what it raises: uvicorn would make a 500 of an answer that is not as the protocol says."""
    faults: list[Exception] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await web(scope, receive, send)
        except Exception as fault:
            faults.append(fault)
            raise

    return app, faults
