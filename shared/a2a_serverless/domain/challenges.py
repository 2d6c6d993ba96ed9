"""Limits the challenges of an owner's webhooks to a host that has never answered. Arithmetic only.

Owners of webhooks decide where our challenges go, so a host that does not want them must get few. Before a host has
answered, an owner can register ``WEBHOOKS`` webhooks for it. ``CHALLENGE_BURST`` challenges are sent without a wait,
the others one at a time after growing waits (``WAITS_S``). The first answer of the host ends the limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

WEBHOOKS: Final = 20
CHALLENGE_BURST: Final = 20
WAITS_S: Final = (30, 120, 600, 1800, 3600, 7200, 14_400, 28_800, 43_200, 72_000)
RECHECK_MS: Final = 600_000
UNANSWERED_S: Final = 86_400  # how long the state is kept after its last change
ANSWERED_S: Final = 30 * 86_400


@dataclass(frozen=True, slots=True)
class ChallengeState:
    """The webhooks that an owner has registered for a host, and the challenges sent to it, before its first answer.

    ``next_at`` (ms) is the time of the next challenge. After an answer nothing is counted any more.
    """

    webhooks: int = 0
    sent: int = 0
    next_at: int = 0
    answered: bool = False


ANSWERED: Final = ChallengeState(answered=True)


def add_webhook(state: ChallengeState) -> ChallengeState | None:
    """The state with one more webhook; None at the limit."""
    return replace(state, webhooks=state.webhooks + 1) if state.webhooks < WEBHOOKS else None


def add_challenge(state: ChallengeState, now: int) -> ChallengeState | None:
    """The state with one more challenge; None when it is too early for another challenge."""
    if now < state.next_at:
        return None
    count = state.sent + 1
    wait_s = WAITS_S[min(count - CHALLENGE_BURST, len(WAITS_S) - 1)] if count >= CHALLENGE_BURST else 0
    return replace(state, sent=count, next_at=now + wait_s * 1000 if wait_s else 0)


def next_check_at(state: ChallengeState, now: int) -> int:
    """The time (ms) of the next check: ``next_at`` or sooner, because another webhook's challenge may be answered."""
    return min(state.next_at, now + RECHECK_MS)
