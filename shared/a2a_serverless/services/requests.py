"""What the operations for clients work with: their dependencies, and the sender of a request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.ports.tracing import NULL_TRACER, Tracer

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.decisions import TaskLifetime
    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.domain.push_configs import WebhookEvents
    from a2a_serverless.ports.agents import InlineRunner
    from a2a_serverless.ports.system import Clock, Ids, Metrics, Queues, Sealer
    from a2a_serverless.protocol.versions import ProtocolVersion
    from a2a_serverless.services.listing import TaskLister
    from a2a_serverless.services.streams import OffLoop
    from a2a_serverless.services.webhooks import Webhooks
    from a2a_serverless.store.stores import ContentStore, Publications
    from a2a_serverless.store.task_log import TaskLog


class TaskService(NamedTuple):
    """The dependencies of the operations for clients. A blocking send waits ``blocking_ms`` at most.

    ``webhooks``, ``lister`` and ``callback_sealer`` are functions, because most requests need none of them: their
    modules are imported at the first call. So is ``inline_runner``. It returns the runner of an agent inside the
    request, or None for a queued agent.
    """

    log: TaskLog
    publications: Publications
    queues: Queues
    clock: Clock
    ids: Ids
    webhooks: Callable[[], Webhooks]
    lister: Callable[[], TaskLister]
    callback_sealer: Callable[[], Sealer]
    life: TaskLifetime
    blocking_ms: int
    idempotent: bool = True
    off_loop: OffLoop = asyncio.to_thread
    inline_runner: Callable[[str], InlineRunner | None] = lambda _: None
    metrics: Metrics = NULL_METRICS
    contents: ContentStore | None = None
    tracer: Tracer = NULL_TRACER


class TaskRetry(NamedTuple):
    """A request to repeat ``task`` from ``step`` ("" is the step that failed), which is recognised by id and digest.

    ``origin`` is the first task of those that repeat each other.
    """

    request_id: str
    digest: str
    task: str
    step: str
    origin: str


class RequestContext(NamedTuple):
    """The sender of a request, the agent and the version.

    ``trace`` is the request's trace (``domain/trace.py``), ``extensions`` are the URIs of the extensions that it names.
    ``time_left_ms`` is the time for the request; None means without a limit. With ``answers_by_context`` a message
    without a taskId answers the one open question of its context. With ``retry`` the new task repeats another one.
    ``webhook_events`` are the events of which a webhook of the request is notified; None is the deployment's setting.
    """

    principal: Principal
    agent: str
    version: ProtocolVersion
    caller: Caller | None = None
    trace: str = ""
    extensions: tuple[str, ...] = ()
    time_left_ms: int | None = None
    answers_by_context: bool = False
    retry: TaskRetry | None = None
    webhook_events: WebhookEvents | None = None

    def key(self, task_id: str) -> TaskKey:
        """The key of one of the principal's tasks."""
        return self.principal.key(task_id)
