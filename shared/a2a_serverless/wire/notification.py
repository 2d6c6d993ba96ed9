"""The body of a webhook: a StreamResponse for 1.0 (specification 4.3.3), the whole Task for 0.3 (specification 9.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_serverless.wire import document, v1

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import Task
    from a2a_serverless.domain.push import WireVersion


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of a POST; ``wire`` is the version that they are written in."""

    content_type: str
    wire: WireVersion
    content: bytes


def notification(wire: WireVersion, task_id: str, context_id: str, *, task: Task | None, event: Event | None) -> Body:
    """An event by itself for 1.0; the snapshot ``task`` when there is no event, and always for 0.3."""
    thing = event or task
    if thing is None:
        raise ValueError("a notification tells of an event or of a task")
    return Body("application/a2a+json", wire, document.dumps(v1.stream_item(thing, task_id, context_id)))
