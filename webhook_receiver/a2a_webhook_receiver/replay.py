"""Replay memory: a stolen token has no effect, and a notification that was handled is not handled again.

It stores three things, each for a limited time:

* a **jti** belongs to one attempt; with other content it is a replay and is refused;
* a **notification id** belongs to all attempts of one notification; once settled, further attempts are duplicates;
* the **last event number** of a (task, config): a smaller one is late; it is accepted and marked.

A notification is claimed from its first attempt until it is settled. After a crash the claim expires and the next
attempt is handled: at least once, and twice only if the crash came between handling and settling, or if handling took
longer than ``CLAIM``.
"""

from dataclasses import dataclass
from typing import Protocol

from a2a_webhook_receiver.verifier import CLOCK_SKEW, VerifiedNotification

CLAIM = 60_000
"""Milliseconds for which one attempt may handle a notification before another may take over."""
REMEMBER = 7 * 86_400_000
"""Milliseconds for which a notification id is stored: longer than its sender retries (two days) or redrives by hand."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a store needs to know about one attempt. After ``jti_expires`` (ms since the epoch) the token is invalid."""

    jti: str
    jti_expires: int
    fingerprint: str
    task_id: str
    config_id: str
    notification_id: str
    event_number: int


@dataclass(frozen=True, slots=True)
class Admitted:
    """Claimed until ``claim`` (ms since the epoch). ``late``: a later event of its configuration came before it."""

    late: bool
    claim: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The notification was handled before."""


class ReplayStore(Protocol):
    """Replay memory that all instances of the receiver share."""

    def admit(self, sighting: Sighting, now: int) -> Admitted | Duplicate:
        """Claims a notification for one attempt. Raises Replayed, or StillWorking while another one has it."""

    def settle(self, sighting: Sighting, admitted: Admitted) -> None:
        """Marks a claimed notification as handled: every further attempt is a duplicate."""

    def release(self, sighting: Sighting, admitted: Admitted) -> None:
        """Gives the claim back: the next attempt may handle the notification."""


def sighting_of(notification: VerifiedNotification) -> Sighting:
    """The fields of a notification that identify it and its attempt."""
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
