"""Verifies the callbacks that called agents send, with the verifier of our webhook receiver.

This is the one module that uses ``a2a_webhook_receiver``, which knows nothing of this library. It is imported with the
first callback, so that no other request pays for it. Agents of this deployment always sign, so an unsigned callback
from such an agent is refused. A remote agent need not sign. A signature in our form on its callback is checked with the
keys published beside the agent's address. Without such a signature the token of the call is enough, as A2A intends.
Either way a callback only triggers a resume: the task's state is then read from the agent.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from a2a_serverless.domain.errors import Overloaded

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.client import Transport
    from a2a_serverless.ports.agents import ExpectedCallback, IncomingNotification
    from a2a_serverless.store.stores import Publications
    from a2a_webhook_receiver.jwks import JwksCache

JWKS: Final = "jwks"
JWKS_PATH: Final = "/.well-known/jwks.json"
CALLBACKS: Final = "/callbacks/"
FETCH_SECONDS: Final = 5.0
HTTP_OK: Final = 200
ISSUERS: Final = 100


class SignedCallbackVerifier:
    """``ports.CallbackVerifier``. Our own key set comes from ``public``, others over ``transport``; ``now`` in ms."""

    def __init__(self, public: Publications, now: Callable[[], int], transport: Transport | None = None) -> None:
        self._public = public
        self._now = now
        self._transport = transport
        self._cache = lru_cache(ISSUERS)(self._make_cache)

    def verify(self, incoming: IncomingNotification, call: ExpectedCallback) -> str | None:
        """See ``ports.CallbackVerifier``. An agent's issuer is its address without the name: ``{issuer}/{agent}``."""
        from a2a_serverless.ports.agents import InvalidCallback
        from a2a_webhook_receiver.errors import KeysUnavailable
        from a2a_webhook_receiver.errors import Refused as Unbelieved
        from a2a_webhook_receiver.expectations import Expectation, digest
        from a2a_webhook_receiver.verifier import VerifiedChallenge, read_envelope, verify

        issuer, now = issuer_of(call.address), self._now()
        ours = call.url.startswith(issuer + CALLBACKS)
        headers = incoming.headers.items()
        try:
            kid = read_envelope(headers).kid
        except Unbelieved as error:
            if ours:
                raise InvalidCallback(error.code) from error
            return None  # no signature in our form
        expectation = Expectation("call", now + 1, call.task, digest(call.token))
        try:
            keys = self._cache(issuer, ours).keys_for(kid, now)
            proven = verify(
                headers, incoming.body, keys, now, issuer=issuer, audience=call.url, expectations=[expectation]
            )
        except KeysUnavailable as error:
            raise Overloaded("The keys of the called agent cannot be fetched. Try again.") from error
        except Unbelieved as error:
            raise InvalidCallback(error.code) from error
        return proven.challenge if isinstance(proven, VerifiedChallenge) else None

    def _make_cache(self, issuer: str, ours: bool) -> JwksCache:  # noqa: FBT001 - a part of the cache's key
        from a2a_webhook_receiver.jwks import JwksCache

        return JwksCache(self._own if ours else lambda: self._fetched(issuer))

    def _own(self) -> bytes:
        """The key set that we publish; empty before the first key rotation."""
        document = self._public.get_document(JWKS)
        return str(document["body"]).encode() if isinstance(document, dict) else b""

    def _fetched(self, issuer: str) -> bytes:
        from a2a_serverless.http_client import open_request
        from a2a_serverless.http_client.transport import ClientRequest, Unreachable
        from a2a_webhook_receiver.keys import MAX_BYTES
        from a2a_webhook_receiver.outbound import Unreachable as NoKeys

        transport = self._transport or open_request
        call = ClientRequest(issuer + JWKS_PATH, {"Accept": "application/json"}, seconds=FETCH_SECONDS)
        try:
            with transport(call) as answer:
                status, body = answer.status, answer.body.read(MAX_BYTES + 1)
        except Unreachable as error:
            raise NoKeys(error.why) from error
        if status != HTTP_OK:
            raise NoKeys(f"HTTP {status}")
        return body


def issuer_of(address: str) -> str:
    """The issuer of an agent's webhooks: its address without the last part of the path, and without the query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').rpartition('/')[0]}"
