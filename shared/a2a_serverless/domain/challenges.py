"""How often an owner may have challenges sent to a host that has not answered any of theirs. Arithmetic only.

Whoever registers webhooks decides where our challenges go, so a host that wants none of them gets few, however many
configurations name it: so many webhooks can be registered, so many challenges are sent at once, and then one at a
time, with waits that grow. One answer ends all of that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

WEBHOOKS: Final = 20
CHALLENGE_BURST: Final = 20
WAITS_S: Final = (30, 120, 600, 1800, 3600, 7200, 14_400, 28_800, 43_200, 72_000)
RECHECK_MS: Final = 600_000
UNANSWERED_S: Final = 86_400  # kept so long after it changed last
ANSWERED_S: Final = 30 * 86_400


@dataclass(frozen=True, slots=True)
class ChallengeState:
    """What an owner's webhooks have asked of a host: those registered, and challenges sent, without an answer yet.

    ``next_at`` is when the next challenge may be sent (ms). Once one was answered, nothing is counted any more.
    """

    webhooks: int = 0
    sent: int = 0
    next_at: int = 0
    answered: bool = False


ANSWERED: Final = ChallengeState(answered=True)


def add_webhook(asked: ChallengeState) -> ChallengeState | None:
    """With one more webhook; None when there are enough that wait for an answer."""
    return replace(asked, webhooks=asked.webhooks + 1) if asked.webhooks < WEBHOOKS else None


def add_challenge(asked: ChallengeState, now: int) -> ChallengeState | None:
    """With one more challenge; None when it is not time for it yet."""
    if now < asked.next_at:
        return None
    sent = asked.sent + 1
    wait_s = WAITS_S[min(sent - CHALLENGE_BURST, len(WAITS_S) - 1)] if sent >= CHALLENGE_BURST else 0
    return replace(asked, sent=sent, next_at=now + wait_s * 1000 if wait_s else 0)


def next_check_at(asked: ChallengeState, now: int) -> int:
    """When (ms) to look again: at the next challenge's time, or sooner, for another one may be answered meanwhile."""
    return min(asked.next_at, now + RECHECK_MS)
