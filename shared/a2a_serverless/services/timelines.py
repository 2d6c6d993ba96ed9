"""The timeline of a task, for its owner: the beginning of its log, its steps' times and its webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.decisions import periods_at
from a2a_serverless.domain.events import StatusEvent, event_size
from a2a_serverless.domain.timeline import TaskTimeline, make_spans, state_spans
from a2a_serverless.services.task_changes import read_existing_head
from a2a_serverless.services.webhook_statuses import list_statuses

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.task_log import TaskLog

PAGE: Final = 100
EVENTS: Final = 1000
BYTES: Final = 4 * 1024 * 1024
STEPS: Final = 1000


def read_timeline(log: TaskLog, store: PushStore, key: TaskKey, agent: str, now: int) -> TaskTimeline:
    """The timeline of the owner's task: its first events, at most ``EVENTS`` of about ``BYTES``, and ``STEPS`` steps.

    ``now`` is the time (ms) at which it is asked for.

    Raises TaskNotFound.
    """
    current = read_existing_head(log, key, agent)
    events = _first_events(log, key)
    statuses = [event for event in events if isinstance(event, StatusEvent)]
    periods = periods_at(current.head, now)
    written = (event.at for event in events if event.fence)
    spans = make_spans(current.head, periods, log.list_step_times(key, STEPS), written, now)
    states = state_spans(statuses, is_over=current.head.is_terminal and len(events) == current.last)
    usage = next((event.usage for event in reversed(statuses) if event.usage), None)
    budget = next((event.budget for event in reversed(statuses) if event.budget), None)
    webhooks = list_statuses(store, current)
    return TaskTimeline(now, current, events, spans, states, webhooks, periods.earlier, usage, budget)


def _first_events(log: TaskLog, key: TaskKey) -> list[Event]:
    events: list[Event] = []
    size = 0
    while len(events) < EVENTS and size < BYTES:
        page = log.read(key, len(events), PAGE)
        events += page
        size += sum(map(event_size, page))
        if len(page) < PAGE:
            break
    return events
