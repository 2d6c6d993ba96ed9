"""The notifier's dependencies, and its metrics of webhooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.cursors import Cursor, CursorState
from a2a_serverless.ports.tracing import NULL_TRACER
from a2a_serverless.services.circuit_breakers import ChallengeLimiter, CircuitBreakers
from a2a_serverless.services.memory_budget import MemoryBudget

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.system import Clock, Ids, Metrics, Queues, Sealer, Sender, Signer
    from a2a_serverless.ports.tracing import Tracer
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.stores import ContentStore
    from a2a_serverless.store.task_log import TaskLog

PAGE_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DeliveryContext:
    """The notifier's dependencies. ``issuer`` is the deployment's base URL; ``chance`` returns numbers in [0, 1).

    It reads pages of ``page_bytes`` bytes of events.
    """

    log: TaskLog
    store: PushStore
    queues: Queues
    sender: Sender
    signer: Signer
    sealer: Sealer
    clock: Clock
    ids: Ids
    issuer: str
    chance: Callable[[], float]
    breakers: CircuitBreakers
    metrics: Metrics
    enforce_ownership: bool = True
    contents: ContentStore | None = None
    challenges: ChallengeLimiter = field(default_factory=ChallengeLimiter)
    tracer: Tracer = NULL_TRACER
    memory: MemoryBudget = field(default_factory=MemoryBudget)
    page_bytes: int = PAGE_BYTES


def count_exhausted(context: DeliveryContext, key: TaskKey, cursor: Cursor) -> None:
    """Counts a webhook that was given up."""
    if cursor.state is CursorState.EXHAUSTED:
        count(context, key, "DeliveryExhausted", cursor.config_id)


def count(context: DeliveryContext, key: TaskKey, name: str, config_id: str) -> None:
    """Counts one event of the metric ``name`` for a webhook."""
    context.metrics.count(name, tenant=key.tenant, owner=key.owner, task=key.task, config=config_id)
