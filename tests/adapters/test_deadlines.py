"""A peer that sends a few bytes now and then holds nobody who asks it for something longer than the deadline.

All ask by one transport, whose tests have such a peer at every place of an answer (``tests/http_client``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.adapters.callback_verifier import SignedCallbackVerifier
from a2a_serverless.adapters.oidc import fetch_document
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.client import Client, ClientRequest, ClientResponse, discover, open_request
from a2a_serverless.client import ResponseTimeout as SilentPeer
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.model import Principal
from a2a_serverless.testing.memory import MemoryStores
from a2a_serverless.testing.simulated_loop import START
from tests.adapters.strangers import DRIPS, ENOUGH, serve
from tests.adapters.test_callback_verifier import THEIRS, expected, signed

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

pytestmark = pytest.mark.enable_socket

ME = Caller(Principal("acme", "alice"))


def hurried(call: ClientRequest) -> AbstractContextManager[ClientResponse]:
    """The real transport, for people with little time."""
    assert not call.waits
    return open_request(replace(call, seconds=0.5))


def proves(url: str) -> None:
    verifier = SignedCallbackVerifier(MemoryStores(lambda: START), lambda: START, hurried)
    verifier.verify(signed(THEIRS, url), expected(url))


def reads_keys(url: str) -> None:
    assert fetch_document(url, seconds=0.5)


ASKING: dict[str, tuple[Callable[[str], object], type[Exception]]] = {
    "an issuer for its keys": (reads_keys, AssertionError),
    "an agent elsewhere for its keys": (proves, Overloaded),
    "an address for a card": (lambda url: discover(url, hurried), SilentPeer),
    "an agent for a task": (lambda url: Client(url, hurried).get("task"), SilentPeer),
    "an agent elsewhere for its card": (
        lambda url: A2ARemoteAgents({}, {"far": url}, transport=hurried).card("far"),
        AgentCallFailed,
    ),
    "a sibling for a task": (
        lambda url: A2ARemoteAgents({"far": url}, transport=hurried).get(ME, "far", "t"),
        AgentCallFailed,
    ),
    "a sibling to cancel": (
        lambda url: A2ARemoteAgents({"far": url}, transport=hurried).cancel(ME, "far", "t"),
        AgentCallFailed,
    ),
}


@pytest.mark.parametrize("what", ASKING)
def test_a_deadline_ends_a_request_to_a_peer_that_never_ends_its_answer(what: str) -> None:
    ask, failure = ASKING[what]
    with serve(DRIPS["body"]) as peer:
        with pytest.raises(failure):
            ask(f"http://127.0.0.1:{peer.port}")
        assert peer.hung_up.wait(60)
        assert peer.written < ENOUGH
        assert len(peer.requests) == 1
