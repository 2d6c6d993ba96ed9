"""How webhooks stand, as JSON: our own addition to the protocol, the same for every version. No secret is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.protocol.strict_json import given
from a2a_serverless.protocol.timestamps import to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.push import Attempt, WebhookStatus


def print_standings(standings: Sequence[WebhookStatus]) -> JsonObject:
    """The delivery log of a task."""
    listed: list[Json] = [print_standing(one) for one in standings]
    return {"deliveries": listed}


def print_standing(one: WebhookStatus) -> JsonObject:
    """One webhook: who it is, whether its owner is known, how far it is, and its newest attempts, oldest first."""
    config, cursor = one.config, one.cursor
    attempts: list[Json] = [print_attempt(attempt) for attempt in one.attempts]
    return given(
        {
            "id": config.config_id,
            "url": config.url,
            "version": config.wire,
            "createdAt": to_text(config.created_at),
            "hasToken": config.token is not None,
            "hasCredentials": config.credentials is not None,
            "verification": cursor.verification.value,
            "state": cursor.state.value,
            "deliveredUpTo": cursor.position,
            "lastEvent": one.last,
            "failuresInARow": cursor.attempt,
            "failingSince": _moment(cursor.failing_since),
            "nextAttemptAt": _moment(cursor.next_at) if cursor.state == "active" else None,
            "attempts": attempts,
        }
    )


def print_attempt(attempt: Attempt) -> JsonObject:
    """One POST. Event 0 is the challenge."""
    return given(
        {
            "eventNumber": attempt.n,
            "attempt": attempt.k,
            "at": to_text(attempt.at),
            "milliseconds": attempt.ms,
            "status": attempt.status,
            "error": attempt.error,
            "address": attempt.address,
            "keyId": attempt.kid,
            "nextAttemptAt": None if attempt.next_at is None else to_text(attempt.next_at),
        }
    )


def _moment(at: int) -> str | None:
    return to_text(at) if at else None
