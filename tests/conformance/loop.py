"""A deployment in one process whose requests go through Lambda's streaming loop, behind a gateway like AWS's."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.http.lambda_proxy import make_gateway_handler
from a2a_serverless.http.runtime import RuntimeApi, make_streaming_handler, serve
from tests.conformance.live import Live, working
from tests.gateway import Behind, gateway
from tests.runtime_api import Invocation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from a2a_serverless.domain.agent import Agent

INSTANCES: Final = 12


@dataclass(frozen=True)
class Looping:
    """What runs: the deployment, and the gateway in front of it."""

    live: Live
    behind: Behind

    @property
    def url(self) -> str:
        return self.behind.gateway.url


@contextmanager
def looping(agents: Sequence[Agent]) -> Iterator[str]:
    """A deployment whose answers are streamed; gives its base URL."""
    with behind_gateway(agents) as run:
        yield run.url


@contextmanager
def behind_gateway(
    agents: Sequence[Agent], *, live_options: dict[str, Any] | None = None, instances: int = INSTANCES, **options: Any
) -> Iterator[Looping]:
    """The same, with more to look at. ``options`` as the gateway takes them."""
    over = threading.Event()
    with gateway(instances, **options) as behind:
        live = Live(agents, behind.gateway.url, **(live_options or {}))

        def instance(address: str) -> None:
            api = RuntimeApi(address)
            handler = make_streaming_handler(live.edge.app, make_gateway_handler(live.edge.app))
            serve(api, handler, lambda: not over.is_set())
            api.close()

        threads = [threading.Thread(target=instance, args=[one.address]) for one in behind.runtimes]
        with working(live):
            for thread in threads:
                thread.start()
            try:
                yield Looping(live, behind)
            finally:
                over.set()
                for _ in threads:  # each waits for one more event
                    behind.waiting.put(Invocation(b"{}"))
                for thread in threads:
                    thread.join()
                assert behind.refused == []
