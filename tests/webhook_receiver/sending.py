"""A sender and a receiver for tests: real modules, an issuer whose keys are at hand, a clock that is told the time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from a2a_webhook_receiver.body import Content
from a2a_webhook_receiver.expectations import Expectation, digest
from a2a_webhook_receiver.inbox import Inbox
from a2a_webhook_receiver.jwks import JwksCache
from a2a_webhook_receiver.outbound import Unreachable
from a2a_webhook_receiver.receive import Receiver, WebhookRequest
from a2a_webhook_receiver.relay_inbox import InboxRelay
from a2a_webhook_receiver.settings import Settings, read_settings
from a2a_webhook_receiver.store_sqlite import SqliteStore
from vectors.cases import (
    AUDIENCE,
    CURRENT,
    ISSUER,
    KEY_SET,
    NOW,
    STATUS_UPDATE,
    TASK,
    TOKEN,
    good_claims,
    good_header,
    good_headers,
)
from vectors.forge import make_token, to_json

EXPECTED = Expectation(id="e-1", expires=NOW + 86_400_000, task_id=TASK, token_digest=digest(TOKEN))
JWKS = to_json(KEY_SET)


@dataclass
class Clock:
    """Tells the time that it is set to."""

    now: int = NOW

    def __call__(self) -> int:
        return self.now


class NoTasks:
    """A TaskSource whose agent is never there."""

    def fetch(self, agent_url: str, task_id: str) -> Content:
        raise Unreachable(f"{agent_url} has no {task_id}")


def signed(
    body: object = STATUS_UPDATE, *, now: int = NOW, challenge: bool = False, **claims: object
) -> WebhookRequest:
    """A good request about ``body`` but for the changes to its claims; the same jti for the same event and attempt."""
    raw = body if isinstance(body, bytes) else to_json(body)
    times = {"iat": now // 1000, "exp": now // 1000 + 300}
    header = good_header(typ="a2a-challenge+jwt") if challenge else good_header()
    token = make_token(header, good_claims(raw, **(times | claims)), CURRENT)
    return WebhookRequest(tuple(good_headers(token)), raw)


def event(
    number: int, *, attempt: int = 1, body: object = STATUS_UPDATE, now: int = NOW, **claims: object
) -> WebhookRequest:
    """The request of one attempt to deliver event ``number``."""
    identity = {"eventNumber": number, "notificationId": f"n-{number}", "jti": f"j-{number}-{attempt}"}
    return signed(body, now=now, challenge=False, **(identity | claims))


@contextmanager
def receiving(*expectations: Expectation, **changes: Any) -> Iterator[Receiver]:
    """A receiver with a store in memory that expects ``expectations``."""
    store, inbox = SqliteStore(":memory:"), Inbox(first=1)
    for expectation in expectations:
        store.add(expectation)
    receiver = Receiver(
        issuer=ISSUER,
        audience=AUDIENCE,
        keys=JwksCache(lambda: JWKS),
        expectations=store,
        replays=store,
        tasks=NoTasks(),
        relays=(InboxRelay(inbox),),
        inbox=inbox,
        clock=Clock(),
    )
    try:
        yield replace(receiver, **changes)
    finally:
        store.close()


def settings_for(**environment: str) -> Settings:
    return read_settings({"ISSUER": ISSUER, "AUDIENCE": AUDIENCE} | environment)
