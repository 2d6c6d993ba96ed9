"""The attempts to deliver to one webhook: a token for each attempt, a POST, and its record."""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import notifications, trace
from a2a_serverless.domain.circuit_breaker import host_of
from a2a_serverless.domain.cursors import POST_DEADLINE_MS
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.domain.push_configs import Attempt
from a2a_serverless.services.circuit_breakers import HostBusy
from a2a_serverless.services.notifications import reading
from a2a_serverless.services.webhooks import sealing_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.push_configs import PushConfig
    from a2a_serverless.ports.system import Signed
    from a2a_serverless.protocol.notification_bodies import NotificationBody
    from a2a_serverless.services.cursor_lease import CursorLease
    from a2a_serverless.services.delivery_context import DeliveryContext

logger = logging.getLogger(__name__)

NOTIFICATION_TYP: Final = "a2a-notification+jwt"
CHALLENGE_TYP: Final = "a2a-challenge+jwt"
JWT_HEADER: Final = "X-A2A-Notification-JWT"
TOKEN_HEADER: Final = "X-A2A-Notification-Token"  # noqa: S105 - a name, not a token
CHALLENGE: Final = 0  # in place of an event's number
SLOT_WAIT_MS: Final = 2_000
SLOT_POLL_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of one POST, its beginning (ms), its trace, and the id of the key that signed it (None: not sent)."""

    outcome: Outcome
    at: int
    kid: str | None
    trace: str = ""

    @property
    def was_reset(self) -> bool:
        """Whether the connection of an earlier request was reset before an answer. The POST may have arrived."""
        outcome = self.outcome
        return outcome.status is None and outcome.reused and outcome.error is OutboundError.RESET


class Attempts:
    """The attempts to deliver to the webhook ``config`` while this notifier has its ``lease``."""

    def __init__(self, context: DeliveryContext, head: Head, config: PushConfig, lease: CursorLease) -> None:
        self._context, self._head, self._config, self._lease = context, head, config, lease
        self.host = host_of(config.url)

    def post(self, n: int, body: NotificationBody) -> AttemptResult:
        """POSTs the notification of event ``n``, or the challenge (``CHALLENGE``), with a new token.

        Raises CircuitOpen or HostBusy at the host's limits, CursorLost, TooLittleTime, and Unreadable.
        """
        context = self._context
        jti = context.ids.new()
        signed, post_trace = self._sign(n, body.content, jti), trace.child_of(self._head.trace, jti)
        with reading():
            headers = self._headers(body, signed)
            if post_trace:
                headers[trace.HEADER] = post_trace
        with self._reserve_host():
            # Last before the POST: signing, headers and the wait for the host may have used up the lease.
            # tests/services/test_deliver.py: test_rule_08_a_slow_challenge_leaves_the_first_notification_a_whole_lease
            self._lease.extend()
            at = context.clock.now()
            outcome = context.sender.post(self._config.url, headers, body.content, POST_DEADLINE_MS)
        # A kept connection that the host has closed since says nothing about the host: its breaker must not open.
        # tests/services/test_deliver.py: test_a_kept_connection_that_was_closed_says_nothing_about_the_host
        if not (outcome.status is None and outcome.reused):
            context.breakers.learn(self.host, outcome, context.clock.now())
        return AttemptResult(outcome, at, signed.kid, post_trace)

    def record(self, n: int, result: AttemptResult, next_at: int | None) -> None:
        """Stores the attempt for the webhook's owner, and reports it: log line, metrics, span."""
        context, cursor, outcome = self._context, self._lease.cursor, result.outcome
        attempt = Attempt(
            config_id=cursor.config_id,
            n=n,
            k=cursor.attempt + 1,
            at=result.at,
            ms=outcome.elapsed_ms,
            status=outcome.status,
            address=outcome.address,
            error=outcome.error and outcome.error.value,
            kid=result.kid,
            next_at=next_at,
        )
        context.store.record_attempt(self._head.key, attempt, self._head.expires)
        self._log(attempt, accepted=outcome.accepted)
        if context.tracer.is_on and result.trace:
            from a2a_serverless.domain.spans import delivery_span

            span = delivery_span(self._head, attempt, result.trace, self.host, accepted=outcome.accepted)
            context.tracer.record(span)

    def _sign(self, n: int, content: bytes, jti: str) -> Signed:
        config, signer, issuer = self._config, self._context.signer, self._context.issuer
        now = self._context.clock.now()
        if n == CHALLENGE:
            claims = notifications.challenge_claims(config, content, issuer=issuer, now=now, jti=jti)
            return signer.sign(CHALLENGE_TYP, claims)
        claims = notifications.notification_claims(self._head.key, config, n, content, issuer=issuer, now=now, jti=jti)
        return signer.sign(NOTIFICATION_TYP, claims)

    def _headers(self, body: NotificationBody, signed: Signed) -> dict[str, str]:
        """The headers. ``Authorization`` has the client's credentials, if any; the JWT then has its own header."""
        config, sealer = self._config, self._context.sealer
        sealing = sealing_context(self._head.key, config.config_id)
        headers = {"Content-Type": body.content_type, "A2A-Version": config.version}
        if config.token is not None:
            headers[TOKEN_HEADER] = sealer.open(config.token, sealing)
        if config.credentials is None:
            return headers | {"Authorization": f"Bearer {signed.token}"}
        own = f"{config.scheme} {sealer.open(config.credentials, sealing)}"
        return headers | {"Authorization": own, JWT_HEADER: signed.token}

    @contextmanager
    def _reserve_host(self) -> Iterator[None]:
        """Reserves one of the host's request slots; waits at most ``SLOT_WAIT_MS``, then raises HostBusy."""
        clock = self._context.clock
        until = clock.now() + SLOT_WAIT_MS
        with ExitStack() as slots:
            while True:
                try:
                    slots.enter_context(self._context.breakers.request_slot(self.host, clock.now()))
                    break
                except HostBusy:
                    if clock.now() >= until:
                        raise
                clock.sleep(SLOT_POLL_S)
            yield

    def _log(self, attempt: Attempt, *, accepted: bool) -> None:
        """Writes the log line and the metrics of a POST: ids, numbers, the kind of error. A URL may hold secrets."""
        ids: dict[str, str | int] = {"task": self._head.key.task, "config": attempt.config_id, "event": attempt.n}
        answer = {"status": attempt.status, "error": attempt.error, "ms": attempt.ms, "kid": attempt.kid}
        extra = {**ids, "attempt": attempt.k, **answer, "trace": trace.trace_id(self._head.trace)}
        logger.info("webhook tried", extra=extra)
        if accepted and attempt.n:
            self._context.metrics.record({"DeliverySuccess": 1, "DeliveryAttempts": attempt.k}, **ids)
        else:
            self._context.metrics.record({"DeliverySuccess": int(accepted)}, **ids)
