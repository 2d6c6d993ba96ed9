"""Starts the tasks of schedules: one task for a tick, however often it is delivered.

A tick's id is made of agent, schedule and time, so a repeated tick meets the idempotency record of the first. Messages
have other records, so no message of a client takes a tick's place. The transaction that makes the task of a schedule
without overlap also replaces the schedule's last tick. So of two ticks at once only one starts a task.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import decisions
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.events import Incoming
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.new_task import IdempotencyRecord, LastTick, NewTask, TickConflict
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.schedules import LATEST_MS, SCHEDULE, SCHEDULED_TIME, format_tick
from a2a_serverless.protocol.v1 import Message, Part, Role

if TYPE_CHECKING:
    from a2a_serverless.domain.decisions import TaskLifetime
    from a2a_serverless.domain.events import StatusEvent
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import JsonObject, TaskKey
    from a2a_serverless.domain.queue_messages import TickMessage
    from a2a_serverless.engine.engine import Engine
    from a2a_serverless.store.task_log import TaskLog

RETRY_S: Final = 60

logger = logging.getLogger(__name__)


class TickOutcome(Enum):
    """What a tick did."""

    STARTED = "started"
    REPEATED = "repeated"
    OVERLAP = "overlap"
    LATE = "late"
    UNKNOWN = "unknown schedule"
    POSTPONED = "postponed"


def handle_tick(engine: Engine, life: TaskLifetime, tick: TickMessage) -> TickOutcome:
    """Starts the task of a tick, or logs and counts why not. A tick that is too old goes to the dead letters.

    If a store fails, the tick comes again in a minute: SQS would deliver it when it is too old.
    """
    try:
        outcome = _start(engine, life, tick)
        if outcome is TickOutcome.LATE:
            engine.send_to_dead_letters(tick)
    except Exception as error:  # noqa: BLE001 - the tick comes again
        logger.error("tick postponed", extra=safe_error_fields(error) | {"schedule": tick.key.task})
        engine.queues.enqueue(tick, RETRY_S)
        return TickOutcome.POSTPONED
    if outcome not in {TickOutcome.STARTED, TickOutcome.REPEATED}:
        ids = {"schedule": tick.key.task, "reason": outcome.value}
        logger.warning("tick skipped", extra=ids)
        engine.metrics.count("TicksSkipped", **ids)
    return outcome


def message_id_of(tick: TickMessage) -> str:
    """The id of the message that starts the task of a tick."""
    return f"schedule/{tick.key.task}/{format_tick(tick.at)}"


def _start(engine: Engine, life: TaskLifetime, tick: TickMessage) -> TickOutcome:
    name, _, schedule_name = tick.key.task.partition("/")
    agent = engine.agents.get(name)
    schedule = next((one for one in agent.schedules if one.name == schedule_name), None) if agent else None
    if schedule is None:
        return TickOutcome.UNKNOWN
    skips, log = schedule.overlap == "skip", engine.log
    last = log.find_last_tick(tick.key, name, schedule_name) if skips else None
    key, message_id = tick.key._replace(task=engine.ids.new()), message_id_of(tick)
    if refusal := _refuse(engine, tick, message_id, last):
        return refusal
    head, event = _submit(engine, life, tick, key, message_id, schedule.text)
    record = IdempotencyRecord(name, message_id, "", key.task, "tick")
    this = LastTick(schedule_name, tick.at, key.task) if skips else None
    try:
        if log.create(NewTask(head, event, record, tick=this, last_tick=last)):
            return TickOutcome.REPEATED
    except TickConflict:
        return TickOutcome.OVERLAP  # with the task of the other tick
    engine.metrics.count("TaskStates", state=head.state, task=key.task)
    engine.queues.enqueue(WorkMessage(key))
    return TickOutcome.STARTED


def _refuse(engine: Engine, tick: TickMessage, message_id: str, last: LastTick | None) -> TickOutcome | None:
    """Why the tick starts no task; None if it does."""
    if engine.log.find_idempotency(tick.key, tick.key.task.partition("/")[0], message_id, "tick"):
        return TickOutcome.REPEATED
    if engine.now() - tick.at > LATEST_MS:
        return TickOutcome.LATE
    if last and (last.at > tick.at or _is_unfinished(engine.log, tick.key._replace(task=last.task))):
        return TickOutcome.OVERLAP
    return None


def _submit(
    engine: Engine, life: TaskLifetime, tick: TickMessage, key: TaskKey, message_id: str, text: str
) -> tuple[Head, StatusEvent]:
    agent, _, schedule = tick.key.task.partition("/")
    context_id = engine.ids.new()
    about = {"message_id": message_id, "context_id": context_id, "task_id": key.task}
    message = Message(role=Role.USER, parts=(Part(text=text),), **about)
    metadata: JsonObject = {SCHEDULE: schedule, SCHEDULED_TIME: format_tick(tick.at)}
    return decisions.submit(
        key,
        agent,
        context_id,
        Incoming(message, metadata=metadata),
        now=engine.now(),
        by=engine.ids.new(),
        life=life,
        push=False,
        caller=Caller(Principal(key.tenant, key.owner)),
    )


def _is_unfinished(log: TaskLog, key: TaskKey) -> bool:
    current = log.read_head(key)
    return current is not None and not current.head.is_terminal
