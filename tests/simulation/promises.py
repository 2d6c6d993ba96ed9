"""What must hold at the end of each simulation. ``broken`` returns what does not, by promise."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from a2a_serverless.domain.cursors import CursorState
from a2a_serverless.domain.decisions import RUN_RENEWAL_MS
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.notifications import notification_id
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.store import items, keys
from tests.faults.journeys import may_be_left_out
from tests.simulated import NEVER
from tests.simulation.deployment import BASE_URL, ME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.push_configs import PushConfig
    from tests.simulation.deployment import Posted
    from tests.simulation.scenarios import Play, Webhook

MOST_RUNS: Final = 12
MOST_MESSAGES: Final = {"WorkMessage": 60, "DeliveryMessage": 400}  # apart from those that look whether a run lives

LOOKS: Final = 1.2  # some messages are doubled
MOST_HOPS: Final = {"WorkMessage": 16, "DeliveryMessage": 40}
"""From function to function, where no store fails: a run that meets a failure hands its task over."""


class Breach(NamedTuple):
    """What shows that a promise is broken: a key of ``PROMISES``, or ``client`` for what a client got."""

    promise: str
    text: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.text}"


def broken(play: Play) -> list[Breach]:
    """The promises that a simulation broke."""
    play.simulation.faults.weather.until = 0
    return [Breach(promise, text) for promise, check in PROMISES.items() for text in check(play)]


class _Raw:
    """The table as it is, without the calls of a simulation."""

    def __init__(self, play: Play) -> None:
        self._table = play.simulation.table.calm()
        self.partitions = play.simulation.items.partitions

    @property
    def tasks(self) -> list[str]:
        return [keys.task_key(pk).task for pk, rows in self.partitions.items() if keys.HEAD in rows]

    def head(self, task: str) -> Head:
        return items.head_of(self.partitions[keys.task(ME.key(task))][keys.HEAD])

    def events(self, task: str) -> list[Event]:
        rows = self.partitions[keys.task(ME.key(task))]
        return list(self._table._events(rows[sk] for sk in sorted(rows) if sk.startswith(keys.EVENTS)))  # noqa: SLF001

    def calls(self, task: str) -> Iterator[dict[str, Any]]:
        """What is known of the task's calls: of all that is stored by steps, what may be that."""
        for sk, row in self.partitions[keys.task(ME.key(task))].items():
            known = self._table._step(row).value if sk.startswith(keys.STEPS) else None  # noqa: SLF001
            if isinstance(known, dict):
                yield known

    def cursors(self, task: str) -> list[Cursor]:
        return list(self._table.list_cursors(ME.key(task)))

    def configs(self, task: str) -> dict[str, PushConfig]:
        return {config.config_id: config for config in self._table.list_configs(ME.key(task))}

    def text(self, task: str, name: str) -> str:
        text = ""
        for event in self.events(task):
            if isinstance(event, ArtifactEvent) and event.artifact.name in {name, None}:
                text = (text if event.append else "") + event.artifact.text()
        return text


def _tasks(play: Play) -> Iterator[str]:
    raw = _Raw(play)
    for one in play.story.expected:
        head = raw.head(one.task)
        if head.state is not one.state and not (one.state is TaskState.CANCELED and head.is_terminal):
            if head.state is not TaskState.FAILED or not play.may_fail(calls=one.agent == "parent"):
                yield f"{one.task} of {one.agent} is {head.state}, not {one.state}"
            continue
        wanted = raw.text(one.task, "said") if one.text == "=said" else one.text
        if head.state is TaskState.COMPLETED and wanted is not None and raw.text(one.task, "document") != wanted:
            yield f"{one.task} of {one.agent} says {raw.text(one.task, 'document')!r}, not {wanted!r}"


def _parents(play: Play) -> Iterator[str]:
    """A caller goes on soon after it was told that its call has ended, and not by its hourly look."""
    raw, told = _Raw(play), dict[str, int]()
    for posted in play.simulation.seen.posted:
        if _is_of_call(posted.url) and posted.accepted and raw.events(posted.task)[-1].n == posted.n:
            told.setdefault(posted.url, posted.ended)
    for one in play.story.expected:
        if one.agent != "parent":
            continue
        head = raw.head(one.task)
        for call in raw.calls(one.task):
            at = told.get(str(call.get("url")))
            if at and head.status_at > at + 40 * 60_000:
                yield f"{one.task} went on {(head.status_at - at) // 1000} s after its call had ended"


def _logs(play: Play) -> Iterator[str]:
    raw = _Raw(play)
    for task in raw.tasks:
        events = raw.events(task)
        if [event.n for event in events] != [*range(1, len(events) + 1)]:
            yield f"the log of {task} has gaps: {[event.n for event in events]}"
        ends = [event.n for event in events if isinstance(event, StatusEvent) and event.state in TERMINAL]
        if ends != [len(events)]:
            yield f"{task} has {len(events)} events and ends at {ends}"
        fences = [event.fence for event in events if event.fence]
        if fences != sorted(fences):
            yield f"{task} has events of an overtaken run: {fences}"


def _children(play: Play) -> Iterator[str]:
    raw = _Raw(play)
    for task in raw.tasks:
        head = raw.head(task)
        if head.state is not TaskState.CANCELED:
            continue
        for call in raw.calls(task):
            if isinstance(call.get("task"), str):
                child = raw.head(call["task"])
                if child.state is TaskState.COMPLETED and child.status_at > head.status_at + 5 * 60_000:
                    yield f"{child.key.task} worked on after its caller {task} was canceled"


def _webhooks(play: Play) -> Iterator[str]:
    raw = _Raw(play)
    accepted: dict[tuple[str, str], list[Posted]] = defaultdict(list)
    for posted in sorted(play.simulation.seen.posted, key=lambda one: one.begun):
        if posted.accepted:
            accepted[posted.task, posted.config_id].append(posted)
    for task in raw.tasks:
        events, configs = raw.events(task), raw.configs(task)
        for cursor in raw.cursors(task):
            config = configs.get(cursor.config_id)
            if config and _is_of_call(config.url) and play.players.erased_tasks:
                continue  # its caller may be erased
            got = [one.n for one in accepted[task, cursor.config_id] if config and _is_of(one, task, config)]
            yield from _heard(task, cursor, config, events, got)


def _is_of_call(url: str) -> bool:
    """Whether the webhook is that of a task that called this one."""
    return url.startswith(f"{BASE_URL}/callbacks/")


def _is_of(posted: Posted, task: str, config: PushConfig) -> bool:
    return posted.notification_id == notification_id(ME.key(task), config, posted.n)


def _heard(
    task: str, cursor: Cursor, config: PushConfig | None, events: list[Event], heard: list[int]
) -> Iterator[str]:
    name = f"webhook {cursor.config_id} of {task}"
    if config is None or cursor.state is not CursorState.ACTIVE:
        if cursor.state is not CursorState.CLOSED:
            yield f"{name} is {cursor.state}"
        return
    if heard != sorted(heard):
        yield f"{name} heard {heard}"
    skipped = may_be_left_out(events, config.version, config.events)
    missing = {event.n for event in events if event.n >= cursor.start} - skipped - {*heard}
    if missing:
        yield f"{name} missed {sorted(missing)}"
    if cursor.position != len(events):
        yield f"{name} is at {cursor.position} of {len(events)}"


def _crowded(play: Play) -> Iterator[str]:
    by_config: dict[tuple[str, str], list[Posted]] = defaultdict(list)
    for posted in play.simulation.seen.posted:
        by_config[posted.task, posted.config_id].append(posted)
    for (task, config_id), posts in by_config.items():
        for one, other in pairwise(sorted(posts, key=lambda posted: posted.begun)):
            if other.begun < one.ended:
                yield f"two POSTs at once to {config_id} of {task}: n={one.n} and n={other.n} at {other.begun}"


def _late_posts(play: Play) -> Iterator[str]:
    """A POST to a URL after the answer to the request that removed it, and not registered again since."""
    changes = play.story.webhooks
    for posted in play.simulation.seen.posted:
        mine = [one for one in changes if (one.task, one.config_id) == (posted.task, posted.config_id)]
        added = [one for one in mine if one.url == posted.url]
        ended = [one for one in mine if one.url != posted.url and one.done and one.done < posted.begun]
        if added and any(one.asked > max(other.done or NEVER for other in added) for one in ended):
            yield f"a POST to {posted.url} of {posted.task} n={posted.n} after it was deleted or replaced"


def _kept_webhooks(play: Play) -> Iterator[str]:
    """A webhook that was registered is there, unless somebody deleted or replaced it after that was asked for."""
    raw = _Raw(play)
    for one in play.story.webhooks:
        rivals = [
            other
            for other in play.story.webhooks
            if other is not one and (other.task, other.config_id) == (one.task, one.config_id)
        ]
        if one.deletes or not one.done or any(_may_end(other, one) for other in rivals):
            continue
        if one.task in play.players.erased_tasks:
            continue
        if one.config_id not in {cursor.config_id for cursor in raw.cursors(one.task)}:
            yield f"webhook {one.config_id} ({one.url}) of {one.task} is gone"


def _may_end(other: Webhook, one: Webhook) -> bool:
    """Whether ``other`` may have ended ``one``: it was asked for after that."""
    return other.asked >= one.asked


def _quiet(play: Play) -> Iterator[str]:
    simulation = play.simulation
    waiting = simulation.queue.waiting
    if waiting:
        yield f"messages for ever: {waiting[0][1]}"
    due = simulation.items.next_due()
    if due != NEVER:
        yield f"something is due for ever, next in {(due - simulation.scheduler.now) // 1000} s"
    for (kind, task), count in simulation.seen.handled.items():
        looks = LOOKS * simulation.seen.worked_ms[task] // RUN_RENEWAL_MS if kind == "WorkMessage" else 0
        if count > MOST_MESSAGES[kind] + looks:
            yield f"{count} {kind}s for {task}"
    for kind, hops in simulation.seen.hops.items():
        if hops > MOST_HOPS[kind] + simulation.faults.failures:
            yield f"{kind}s went through {hops} functions"
    for task, count in simulation.seen.runs.items():
        if count > MOST_RUNS + 2 * simulation.faults.deaths + simulation.faults.failures:
            yield f"{count} runs of {task}"


PROMISES: Final[dict[str, Callable[[Play], Iterable[str]]]] = {
    "functions": lambda play: play.simulation.seen.wrong,
    "clients": lambda play: play.story.wrong,
    "tasks": _tasks,
    "callers": _parents,
    "logs": _logs,
    "called tasks": _children,
    "webhooks": _webhooks,
    "one post": _crowded,
    "late posts": _late_posts,
    "kept webhooks": _kept_webhooks,
    "quiet": _quiet,
    "programs": lambda play: play.players.broken(),
}
