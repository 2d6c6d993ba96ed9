"""Handles one webhook request: applies the rules of the other modules in order.

``check`` verifies the request, ``begin`` also claims it, ``finish`` fetches its task and calls the relays. A caller may
do work of its own in between: see ``a2a_webhook_receiver.http.verified_notification``.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from a2a_webhook_receiver.errors import UnknownTask, naming
from a2a_webhook_receiver.exchange import WebhookRequest
from a2a_webhook_receiver.expectations import Expectation, Expectations, digest
from a2a_webhook_receiver.inbox import Inbox
from a2a_webhook_receiver.jwks import JwksCache
from a2a_webhook_receiver.preview import view_challenge, view_claims
from a2a_webhook_receiver.replay import Admitted, Duplicate, ReplayStore, Sighting, sighting_of
from a2a_webhook_receiver.subject import Subject
from a2a_webhook_receiver.tasks import Delivery, Relay, TaskSource, with_task
from a2a_webhook_receiver.verifier import (
    VerifiedChallenge,
    VerifiedNotification,
    accept,
    accept_challenge,
    authenticate,
    is_challenge,
    read_envelope,
)

__all__ = [
    "Claimed",
    "Receiver",
    "Repeated",
    "WebhookRequest",
    "begin",
    "check",
    "finish",
    "register_token",
    "release",
    "settle",
]


@dataclass(frozen=True, slots=True)
class Receiver:
    """Everything that a receiver needs. ``clock`` returns milliseconds since the epoch."""

    issuer: str
    audience: str
    keys: JwksCache
    expectations: Expectations
    replays: ReplayStore
    tasks: TaskSource
    relays: tuple[Relay, ...]
    inbox: Inbox
    clock: Callable[[], int]
    expectation_seconds: int = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Claimed:
    """A verified notification that this request has claimed and must handle."""

    notification: VerifiedNotification
    sighting: Sighting
    admitted: Admitted
    received_at: int
    request: WebhookRequest


@dataclass(frozen=True, slots=True)
class Repeated:
    """A genuine notification that was handled before."""

    subject: Subject


def register_token(receiver: Receiver, *, agent_url: str | None = None) -> dict[str, str]:
    """Registers a new token; returns the ``url`` and ``token`` to send as the message's push notification config.

    Call it before the message is sent: a webhook can be faster than the answer. The token is valid for one task, the
    first that comes verified with it, for ``expectation_seconds``. ``agent_url`` is where the task can be fetched.
    """
    token = secrets.token_urlsafe(24)
    expires = receiver.clock() + receiver.expectation_seconds * 1000
    expectation = Expectation(secrets.token_hex(8), expires, token_digest=digest(token), agent_url=agent_url)
    receiver.expectations.add(expectation)
    return {"url": receiver.audience, "token": token}


def check(receiver: Receiver, request: WebhookRequest, now: int) -> VerifiedNotification | VerifiedChallenge:
    """Verifies that the request is genuine and expected. Raises the ``Refused`` that says why not."""
    envelope = read_envelope(request.headers)
    keys = receiver.keys.keys_for(envelope.kid, now)
    authentic = authenticate(envelope, request.body, keys, now, issuer=receiver.issuer, audience=receiver.audience)
    if is_challenge(envelope):
        return accept_challenge(authentic, expected=receiver.expectations.any_open(now))
    presented = authentic.presented
    with naming(authentic.subject):
        expectations = receiver.expectations.find(presented.task_id, presented.token_digest, now)
        notification = accept(authentic, expectations, now)
        if not receiver.expectations.bind(notification.expectation, notification.subject.task_id):
            raise UnknownTask("its token belongs to another task")
    return notification


def begin(receiver: Receiver, request: WebhookRequest) -> Claimed | Repeated | VerifiedChallenge:
    """Verifies and claims a request. Raises ``Refused``."""
    now = receiver.clock()
    webhook = check(receiver, request, now)
    if isinstance(webhook, VerifiedChallenge):
        receiver.inbox.add(now, "challenge", view_challenge(webhook), request)
        return webhook
    sighting = sighting_of(webhook)
    with naming(webhook.subject):
        admitted = receiver.replays.admit(sighting, now)
    if isinstance(admitted, Duplicate):
        receiver.inbox.add(now, "duplicate", view_claims(webhook), request)
        return Repeated(webhook.subject)
    return Claimed(webhook, sighting, admitted, now, request)


def finish(receiver: Receiver, claimed: Claimed) -> Delivery:
    """Fetches the task and calls the relays. If a relay raises, the sender's next attempt is handled again."""
    plain = Delivery(claimed.notification, claimed.received_at, late=claimed.admitted.late, request=claimed.request)
    delivery = with_task(plain, receiver.tasks)
    for relay in receiver.relays:
        relay(delivery)
    return delivery


def settle(receiver: Receiver, claimed: Claimed) -> None:
    """Marks the notification as handled: every further attempt is a duplicate."""
    receiver.replays.settle(claimed.sighting, claimed.admitted)


def release(receiver: Receiver, claimed: Claimed) -> None:
    """Gives the claim back: the next attempt may handle the notification."""
    receiver.replays.release(claimed.sighting, claimed.admitted)
