"""What the runs of a process need: the stores, the agents, and the other parts that the adapters are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.engine.acts import no_secret
from a2a_serverless.engine.observer import RunObserver
from a2a_serverless.engine.store_guard import guard_store
from a2a_serverless.engine.task_files import INLINE_FILES, TaskFiles
from a2a_serverless.ports.tracing import NULL_TRACER
from a2a_serverless.services.pauses import Pauses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.agent import (
        Agent,
    )
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.engine.calls import AgentRegistry
    from a2a_serverless.ports.system import Ids, Metrics, Queues, Sealer
    from a2a_serverless.ports.tracing import Tracer
    from a2a_serverless.store.stores import TaskIndex
    from a2a_serverless.store.task_log import TaskLog
    from a2a_serverless.store.value_store import ValueStore


class RunOutcome(Enum):
    """The end of a run. It is not stored: the log says what remains to be done."""

    ENDED = "ended"
    WAITING = "waiting"
    HANDED_OVER = "handed over"
    LEASE_LOST = "lease lost"
    NOTHING_TO_DO = "nothing to do"
    LEASED = "leased"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The dependencies of a run. ``now`` returns ms.

    ``send_to_dead_letters`` gets the queue message of a task that was given up, or of a late tick; ``on_error`` gets an
    agent's exception, and the reference that the client reads in its place ("" if it reads a reason). ``read_secret``
    returns the agents' secret of a name; ``callback_sealer`` seals those that the api opens. ``is_replaced`` is
    true once newer code runs the agents: then this code's runs hand over. ``tracer`` records the spans of runs and
    the spans in them. ``prices`` are USD for a million of each amount, by model. ``pauses`` are the agents and owners
    of which nothing may run; ``owner_usd`` is the most that an owner may spend on a day (UTC), 0 for no bound.
    ``worker`` is the name of this process, "" for none, ``code`` the digest of the agents' code, "" if it is not known.
    ``observe`` returns the observer of a task's next run.
    """

    log: TaskLog
    index: TaskIndex
    queues: Queues
    ids: Ids
    now: Callable[[], int]
    agents: Mapping[str, Agent]
    registry: AgentRegistry
    values: ValueStore
    callback_sealer: Sealer
    metrics: Metrics = NULL_METRICS
    send_to_dead_letters: Callable[[QueueMessage], None] = lambda _: None
    files: TaskFiles = INLINE_FILES
    on_error: Callable[[TaskKey, BaseException, str], None] = lambda *_: None
    is_replaced: Callable[[], bool] = lambda: False
    read_secret: Callable[[str], str] = no_secret
    tracer: Tracer = NULL_TRACER
    prices: Usage = field(default_factory=dict)
    pauses: Pauses = field(default_factory=Pauses)
    owner_usd: int = 0
    worker: str = ""
    code: str = ""
    observe: Callable[[TaskKey], RunObserver] = lambda _: RunObserver()


def guard_stores(engine: Engine) -> Engine:
    """The engine with its stores wrapped: their failed calls raise StoreFailed."""
    files = replace(engine.files, contents=engine.files.contents and guard_store(engine.files.contents))
    log, index, queues = guard_store(engine.log), guard_store(engine.index), guard_store(engine.queues)
    values, sealer = guard_store(engine.values), guard_store(engine.callback_sealer)
    engine = replace(engine, files=files, callback_sealer=sealer, pauses=guard_store(engine.pauses))
    return replace(engine, log=log, index=index, queues=queues, values=values)
