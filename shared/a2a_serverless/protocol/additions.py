"""Our additions to the protocol, the same for every version: deliveries, uploads, callbacks.

No answer contains a secret of a webhook.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema

from a2a_serverless.domain.contents import LARGEST
from a2a_serverless.domain.events import StatusEvent, event_size
from a2a_serverless.domain.progress import percent_of
from a2a_serverless.protocol.protojson import Ident, Metadata, OptionalIdent, ProtoModel, Timestamp, violation
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.push_configs import WebhookStatus
    from a2a_serverless.domain.timeline import TaskTimeline

_SHA256: Final = re.compile("[0-9a-f]{64}")


# --- deliveries ------------------------------------------------------------------------------------------------------


class Shown(ProtoModel):
    """A model that reads its fields from the attributes of a stored object. An alias is the name of an attribute."""

    model_config = ConfigDict(from_attributes=True)


class DeliveryAttempt(Shown):
    """One POST. Event 0 is the challenge."""

    event_number: int = Field(validation_alias="n")
    attempt: int = Field(validation_alias="k")
    at: Timestamp
    milliseconds: int = Field(validation_alias="ms")
    status: int | None = None
    error: str | None = None
    address: str | None = None
    key_id: str | None = Field(None, validation_alias="kid")
    next_attempt_at: Timestamp = Field(None, validation_alias="next_at")


class HostPause(ProtoModel):
    """A host that gets no request until ``until``, because it did not answer ``unanswered`` requests."""

    until: Timestamp
    unanswered: int


class Delivery(ProtoModel):
    """One webhook: its configuration, whether its URL is verified, its progress, its latest attempts, oldest first."""

    task: str | None = None
    id: str
    url: str
    version: Literal["1.0", "0.3"]
    created_at: Timestamp
    has_token: bool
    has_credentials: bool
    events: str
    verification: str
    state: str
    host_paused: HostPause | None = None
    delivered_up_to: int
    last_event: int
    failures_in_a_row: int
    failing_since: Timestamp = None
    next_attempt_at: Timestamp = None
    attempts: tuple[DeliveryAttempt, ...]

    @classmethod
    def of(cls, status: WebhookStatus, task: str | None = None) -> Self:
        """The stored status of a webhook. ``task`` is the task's name in the operator's commands."""
        config, cursor = status.config, status.cursor
        is_active = cursor.state == "active"
        pause = HostPause(until=cursor.next_at, unanswered=cursor.unanswered) if cursor.unanswered else None
        return cls(
            task=task,
            id=config.config_id,
            url=config.url,
            version=config.version,
            created_at=config.created_at,
            has_token=config.token is not None,
            has_credentials=config.credentials is not None,
            events=config.events,
            verification=cursor.verification.value,
            state=cursor.state.value,
            host_paused=pause if is_active else None,
            delivered_up_to=cursor.position,
            last_event=status.last,
            failures_in_a_row=cursor.attempt,
            failing_since=cursor.failing_since or None,
            next_attempt_at=(cursor.next_at or None) if is_active else None,
            attempts=status.attempts,
        )


class Deliveries(ProtoModel):
    """The webhooks of a task, or all webhooks that were given up."""

    deliveries: tuple[Delivery, ...]


# --- the timeline of a task -------------------------------------------------------------------------------------------


class TimelineSpan(Shown):
    """A part of the task's time; without ``ended_at`` it goes on. ``error`` is the kind of error of a failed step.

    A run that is over has a ``reason``. One that died ended between ``last_write_at`` and ``ended_at``.
    """

    kind: str
    name: str = ""
    began_at: Timestamp
    ended_at: Timestamp = None
    error: str = ""
    reason: str | None = None
    last_write_at: Timestamp = None


class TimelineState(Shown):
    """A time in which clients saw the task in a state; without ``ended_at`` it goes on."""

    state: str
    began_at: Timestamp
    ended_at: Timestamp = None


class TimelineEarlierRuns(Shown):
    """How many runs have no span of their own, and how long the task was queued, in them, and suspended."""

    runs: int
    queued_milliseconds: int = Field(validation_alias="queued_ms")
    run_milliseconds: int = Field(validation_alias="run_ms")
    suspended_milliseconds: int = Field(validation_alias="suspended_ms")


class TimelineEvent(ProtoModel):
    """One event of the log: a state, or a chunk of an artifact. ``bytes`` is the approximate size of its parts.

    ``run`` is the number of the run that wrote the event. The client or the deployment wrote an event without it.
    ``percent`` is how far the task was, if its progress message said that.
    """

    event_number: int
    at: Timestamp
    run: int | None = None
    state: str | None = None
    percent: float | None = None
    artifact_id: str | None = None
    artifact_name: str | None = None
    bytes: int

    @classmethod
    def of(cls, event: Event) -> Self:
        """The event without its contents."""
        members = {"event_number": event.n, "at": event.at, "run": event.fence or None, "bytes": event_size(event)}
        if isinstance(event, StatusEvent):
            percent = percent_of(event.message.metadata if event.message else None)
            return cls(**members, state=event.state.value, percent=percent)
        return cls(**members, artifact_id=event.artifact.artifact_id, artifact_name=event.artifact.name)


class TimelineWait(Shown):
    """An open wait of a suspended task; without ``until`` it has no end of its own."""

    kind: str
    name: str = ""
    since: Timestamp
    until: Timestamp = None


class Timeline(ProtoModel):
    """The spans of a task's time. That of a long log covers its beginning, up to the last of ``events``.

    ``usage`` is the usage of each model, as of the last status in ``events``, ``budget`` what it has ``spent`` and its
    ``bounds``, if it has any. A suspended task has ``waits``: the first twenty, and the number of ``more_waits``.
    What goes on has no end at ``as_of``. Runs before the last twenty are summed as ``earlier_runs``. ``states`` are
    what clients saw.
    """

    task_id: str
    context_id: str
    state: str
    created_at: Timestamp
    status_at: Timestamp
    as_of: Timestamp
    last_event: int
    spans: tuple[TimelineSpan, ...]
    earlier_runs: TimelineEarlierRuns | None = None
    states: tuple[TimelineState, ...]
    events: tuple[TimelineEvent, ...]
    deliveries: tuple[Delivery, ...]
    usage: Metadata = None
    budget: Metadata = None
    waits: tuple[TimelineWait, ...] = ()
    more_waits: int = 0

    @classmethod
    def of(cls, timeline: TaskTimeline) -> Self:
        """The timeline as an object of the answer."""
        head = timeline.current.head
        return cls(
            task_id=head.key.task,
            context_id=head.context_id,
            state=head.state.value,
            created_at=head.created_at,
            status_at=head.status_at,
            as_of=timeline.as_of,
            last_event=timeline.current.last,
            spans=timeline.spans,
            earlier_runs=timeline.earlier_runs,
            states=timeline.states,
            events=tuple(map(TimelineEvent.of, timeline.events)),
            deliveries=tuple(map(Delivery.of, timeline.webhooks)),
            usage=timeline.usage,
            budget=timeline.budget,
            waits=head.open_waits.waits,
            more_waits=head.open_waits.more,
        )


# --- retries ----------------------------------------------------------------------------------------------------------


class RetryRequest(ProtoModel):
    """``POST /{agent}/tasks/{taskId}/retry``: a new task that repeats a failed one.

    ``request_id`` is the client's, as a message id: a repeated request makes no second task. Without ``from_step`` it
    goes on from the step that failed.
    """

    request_id: Ident
    from_step: OptionalIdent = None
    task_push_notification_config: TaskPushNotificationConfig | None = None


# --- uploads and callbacks -------------------------------------------------------------------------------------------


def _digest(value: object) -> str:
    if isinstance(value, str) and _SHA256.fullmatch(value):
        return value
    raise violation("must be the SHA-256 of the content, 64 hex digits in lower case")


def _size(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST:
        return value
    raise violation(f"must be the number of bytes, from 1 to {LARGEST}")


class UploadRequest(ProtoModel):
    """``POST /{agent}/uploads``: a file that is too big for a message."""

    sha256: Annotated[str, PlainValidator(_digest), WithJsonSchema({"type": "string", "pattern": _SHA256.pattern})]
    size: Annotated[int, PlainValidator(_size), WithJsonSchema({"type": "integer", "maximum": LARGEST})]


class UploadTarget(ProtoModel):
    """Where to PUT the content, and the headers that have to go along."""

    url: str
    headers: dict[str, str]


class UploadedPart(ProtoModel):
    """The part that names the content in a message."""

    url: str


class UploadResponse(ProtoModel):
    """The answer to an upload request."""

    upload: UploadTarget
    part: UploadedPart


class CallbackResponse(ProtoModel):
    """The answer to a callback: the challenge, if it was one."""

    challenge: str | None = None
