"""The notifications of a webhook: which one is next, its id, and the claims of its token.

The rules (docs/webhooks.md): a configuration's first notification is a snapshot of the task as of its registration;
then every status change and artifact chunk follows in log order. 0.3 receivers get the whole task at each status change
and finished artifact. A configuration that wants less than "all" events gets no notification of an artifact. An
undelivered ``working`` without a message may be skipped when there is a later status. A cursor that is ``BACKLOG``
events or more behind gets a snapshot instead of them. The snapshot ends at the first status among them that ends the
task or needs its client. That status is always sent as its own notification.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from a2a_serverless.domain.events import ArtifactEvent, Event, StatusEvent
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.protocol.v1 import TaskState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.push_configs import PushConfig

Chunks: TypeAlias = Literal["all", "last", "none"]
"""The chunks of an artifact that are notified: each, only the last one, or none."""
TOKEN_LIFE_S: Final = 300
BACKLOG: Final = 100
SNAPSHOT_LIMIT: Final = 262_144  # bytes: a larger task is sent event by event in any case


@dataclass(frozen=True, slots=True)
class NextNotification:
    """The next notification: event ``n``, or the snapshot at ``n`` without ``event``. ``skipped`` are not sent."""

    n: int
    event: Event | None
    skipped: int = 0


def snapshot_for_backlog(cursor: Cursor, events: Sequence[Event], chunks: Chunks = "all") -> NextNotification | None:
    """A snapshot instead of the pending events; None below ``BACKLOG`` events, or for the first notification.

    Chunks count unless ``chunks`` is "none".
    """
    if cursor.position == 0:
        return None
    pending = [event for event in events if chunks != "none" or isinstance(event, StatusEvent)]
    passed = list(takewhile(lambda event: not requires_notification(event), pending))
    return NextNotification(passed[-1].n, None) if len(passed) >= BACKLOG else None


def requires_notification(event: Event) -> bool:
    """Whether the event needs its own notification: a status that ends the task or needs its client."""
    return isinstance(event, StatusEvent) and event.state in INTERRUPTED | TERMINAL


def find_next(cursor: Cursor, events: Sequence[Event], chunks: Chunks = "all") -> NextNotification | None:
    """The next notification, from the events after the cursor. None without events. Other ``chunks`` are skipped.

    For a cursor at 0, a ``NextNotification`` without an event is the first snapshot. If all events may be skipped,
    it has the last event's number, all of them as ``skipped`` and no event: the cursor just moves.
    """
    if not events:
        return None
    if cursor.position == 0:
        return NextNotification(cursor.start, None)
    last_status = max((event.n for event in events if isinstance(event, StatusEvent)), default=0)
    for skipped, event in enumerate(events):
        if not _may_skip(event, last_status, chunks):
            return NextNotification(event.n, event, skipped)
    return NextNotification(events[-1].n, None, len(events))


def _may_skip(event: Event, last_status: int, chunks: Chunks) -> bool:
    if isinstance(event, ArtifactEvent):
        return chunks == "none" or (chunks == "last" and not event.last_chunk)
    plain = event.state is TaskState.WORKING and event.message is None
    return plain and event.n < last_status


def notification_id(key: TaskKey, config: PushConfig, n: int) -> str:
    """The id of event ``n`` for this incarnation of the configuration; the same for every attempt."""
    text = "\n".join((key.tenant, key.owner, key.task, config.config_id, config.incarnation, str(n)))
    return sha256(text.encode()).hexdigest()[:32]


def notification_claims(  # noqa: PLR0913 - the claims of a token
    key: TaskKey, config: PushConfig, n: int, body: bytes, *, issuer: str, now: int, jti: str
) -> dict[str, str | int]:
    """The claims of a notification's token (RFC 7519; our own are in docs/webhooks.md). Times are in seconds."""
    return challenge_claims(config, body, issuer=issuer, now=now, jti=jti) | {
        "sub": key.task,
        "taskId": key.task,
        "configId": config.config_id,
        "notificationId": notification_id(key, config, n),
        "eventNumber": n,
    }


def challenge_claims(config: PushConfig, body: bytes, *, issuer: str, now: int, jti: str) -> dict[str, str | int]:
    """The claims of an ownership challenge's token; every other token has them too."""
    issued = now // 1000
    return {
        "iss": issuer,
        "aud": config.audience or config.url,
        "iat": issued,
        "exp": issued + TOKEN_LIFE_S,
        "jti": jti,
        "request_body_sha256": sha256(body).hexdigest(),
    }
