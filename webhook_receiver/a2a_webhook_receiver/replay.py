"""What came before: so that a stolen token does nothing, and a notification has its effect once.

Three memories, all of them bounded in time:

* a **jti** belongs to one attempt; with another content it is a replay, and refused;
* a **notification id** belongs to all attempts of one notification; once settled, another attempt is a duplicate;
* the **last event number** of a (task, config): a smaller one is late, kept but not news.

Between its first sight and its settlement a notification is claimed. A crash leaves the claim to lapse, and the next
attempt has the effect: at least once, and twice only when the crash came between effect and settlement.
"""

from dataclasses import dataclass
from typing import Protocol

from a2a_webhook_receiver.verifier import CLOCK_SKEW, VerifiedNotification

CLAIM = 60_000
"""Milliseconds that one attempt may work on a notification before another may take over."""
REMEMBER = 7 * 86_400_000
"""Milliseconds that a notification id is remembered: longer than its sender tries (two days) or redrives by hand."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a store needs to know about one attempt. From ``jti_expires`` (ms since the epoch) nobody accepts it."""

    jti: str
    jti_expires: int
    fingerprint: str
    task_id: str
    config_id: str
    notification_id: str
    event_number: int


@dataclass(frozen=True, slots=True)
class Admitted:
    """Ours to handle, until ``claim`` (ms since the epoch). ``late``: a later event of its config was here before."""

    late: bool
    claim: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Handled before."""


class ReplayStore(Protocol):
    """Shared by all instances of the receiver."""

    def admit(self, sighting: Sighting, now: int) -> Admitted | Duplicate:
        """Claims a notification for one attempt. Raises Replayed, or StillWorking while another attempt holds it."""

    def settle(self, sighting: Sighting, admitted: Admitted) -> None:
        """The effect has happened: every further attempt is a duplicate."""

    def release(self, sighting: Sighting, admitted: Admitted) -> None:
        """The effect has not happened: the next attempt may have it."""


def sighting_of(notification: VerifiedNotification) -> Sighting:
    """The parts of a notification that tell it from others."""
    claims, subject = notification.claims, notification.subject
    return Sighting(
        jti=claims.jti,
        jti_expires=claims.expires_at + 2 * CLOCK_SKEW,
        fingerprint=f"{claims.body_sha256} {subject.config_id} {subject.notification_id}",
        task_id=subject.task_id,
        config_id=subject.config_id,
        notification_id=subject.notification_id,
        event_number=subject.event_number,
    )
