"""How webhooks are resolved and sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.outbound import Outcome
    from a2a_serverless.domain.url_policy import WebhookTarget


class Resolver(Protocol):
    """Resolves host names when a webhook is registered."""

    def check(self, target: WebhookTarget) -> None:
        """Raises UrlNotAllowed for a forbidden address, NameUnresolved if the name has no address now."""


class Sender(Protocol):
    """Sends requests to clients' URLs; no other code does."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        """One POST. Network and receiver errors do not raise; they are in the outcome."""
