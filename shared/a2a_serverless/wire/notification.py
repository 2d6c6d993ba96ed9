"""The bytes of a webhook (specification 4.3.3; 0.3: 9.5), in the version that the webhook was registered in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_serverless.domain.model import Task
from a2a_serverless.wire import v0_3, v1
from a2a_serverless.wire.document import dumps

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.push import WireVersion


@dataclass(frozen=True, slots=True)
class Body:
    """What is POSTed; ``version`` belongs into the ``A2A-Version`` header."""

    content_type: str
    version: WireVersion
    content: bytes


def notification(version: WireVersion, item: Task | Event, task_id: str, context_id: str) -> Body:
    """1.0: a StreamResponse with the snapshot or the event. 0.3: the full task, so ``item`` has to be one."""
    if version == "1.0":
        return Body("application/a2a+json", "1.0", dumps(v1.stream_item(item, task_id, context_id)))
    if not isinstance(item, Task):
        raise TypeError("a 0.3 webhook gets the full task")
    return Body("application/json", "0.3", dumps(v0_3.DIALECT.print_task(item)))
