"""Heads, events, steps, idempotency records and callbacks of tasks in DynamoDB (keys: docs/storage.md).

A retried write must recognise its own earlier try, which may have succeeded: an event carries the append id of its
writer, a configuration its incarnation, and a head or cursor that already has its new value counts as written.
"""

from __future__ import annotations

from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.events import StatusEvent, contiguous, count_messages, events_shown, outline
from a2a_serverless.domain.head import CurrentHead, Head
from a2a_serverless.domain.model import DAY_MS, check_readable, key_of_path, path
from a2a_serverless.domain.new_task import IdempotencyRecord, LastTick, TickConflict
from a2a_serverless.store import items, keys
from a2a_serverless.store.fence import Fence
from a2a_serverless.store.snapshots import SnapshotStore
from a2a_serverless.store.stored_forms import dump_event, dump_step, load_event, load_step
from a2a_serverless.store.table import Count, Delete, Put, PutNew, Update

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.decisions import Change
    from a2a_serverless.domain.events import ArtifactEvent, Event
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.new_task import NewTask, RequestKind
    from a2a_serverless.domain.push_configs import PushConfig
    from a2a_serverless.domain.step_results import NamedResult, StepResult
    from a2a_serverless.domain.timeline import StepTime
    from a2a_serverless.protocol.v1 import Task
    from a2a_serverless.store.items import DueItem, Item, WriteConflict
    from a2a_serverless.store.payloads import Admit, PayloadStore
    from a2a_serverless.store.table import Action, Table

REREADS: Final = 5
UNLIMITED: Final = 10**18
WEBHOOK_DAYS: Final = 30
STEP_NUMBERS: Final = ("began", "ended", "fence", "seen")


class TaskPart(NamedTuple):
    """A task as it was asked for, its head, and about how many bytes of stored text were read for it."""

    head: Head
    task: Task
    size: int


class TaskLog:
    """The tasks and their logs. All reads are strongly consistent; expired tasks do not exist.

    Texts over the inline limit of ``payloads`` are stored as blobs, outside the table.
    """

    def __init__(self, table: Table, payloads: PayloadStore) -> None:
        self._table = table
        self._payloads = payloads
        self._snapshots = SnapshotStore(payloads)

    def create(self, opening: NewTask) -> IdempotencyRecord | None:
        """Returns None if all is written, also by an earlier try; else the idempotency record that exists already.

        Raises TickConflict if ``opening.last_tick`` is not the schedule's last tick any more.
        """
        head, record = opening.head, opening.idempotency
        check_readable(head.key.tenant, head.key.owner, head.key.task)
        actions = [
            PutNew(self._event_item(head.key, opening.event, head.expires)),
            PutNew(items.make_item(keys.task(head.key), keys.HEAD, head.expires, items.head_item(head))),
            *self._idempotency_actions(head, record),
            *self._config_actions(head, opening.pushes),
            *self._tick_actions(opening),
        ]
        refusal = self._table.write(*actions)
        if refusal is None or self._is_own(head.key, opening.event, refusal):
            return None
        standing = record and (
            _existing_idempotency(refusal, 2)
            or self.find_idempotency(head.key, record.agent, record.message_id, record.kind)
        )
        if standing is None and opening.tick:
            raise TickConflict
        if standing is None:
            raise RuntimeError("there is a task with this id already")
        return standing

    def find_idempotency(
        self, key: TaskKey, agent: str, message_id: str, kind: RequestKind = "message"
    ) -> IdempotencyRecord | None:
        """The idempotency record of an earlier request, or None. Only tenant and owner of ``key`` are used."""
        item = self._table.get(keys.idempotency(key, agent, message_id, kind), keys.RECEIPT)
        return items.record_of(IdempotencyRecord, item) if item else None

    def find_last_tick(self, key: TaskKey, agent: str, schedule: str) -> LastTick | None:
        """The last tick of a schedule that started a task, or None. Only tenant and owner of ``key`` are used."""
        item = self._table.get(keys.owner(key), keys.tick(agent, schedule))
        return items.record_of(LastTick, item) if item else None

    def read_head(self, key: TaskKey) -> CurrentHead | None:
        """The head and the last event number from one query; the head is never older than that event."""
        for _ in range(1 + REREADS):
            newest = list(self._table.query_range(keys.task(key), keys.EVENTS, keys.HEAD, limit=2, newest_first=True))
            if not newest or newest[0]["sk"]["S"] != keys.HEAD:
                return None
            head = items.head_of(newest[0])
            # A decision over the older head would be refused; a chunk after it would stand behind a cancel.
            # tests/adapters/test_task_log.py: test_rule_01_a_look_at_an_older_head_and_what_moved_it_is_taken_again
            if not any(_has_moved_head(head, item) for item in newest[1:]):
                return CurrentHead(head, max([head.n, *(keys.event_number(item["sk"]["S"]) for item in newest[1:])]))
        raise Overloaded

    def read_log(self, key: TaskKey) -> tuple[Head, list[Event]] | None:
        """The head and the whole log: the events from 1 without a gap."""
        rows = list(self._table.query_range(keys.task(key), keys.EVENTS, keys.HEAD))
        if not rows or rows[-1]["sk"]["S"] != keys.HEAD:
            return None
        head = items.head_of(rows.pop())
        return head, self._matching(head, 0, contiguous(0, self._events(rows)))

    def read_task(self, key: TaskKey) -> tuple[Head, Task] | None:
        """The head and the current task, by a replay of the log; a long log is replayed from its last snapshot."""
        part = self.read_part(key, None, artifacts=True)
        return part and (part.head, part.task)

    def read_part(self, key: TaskKey, history: int | None, *, artifacts: bool) -> TaskPart | None:
        """As ``read_task``, with at most the ``history`` latest messages (None is all), and with or without artifacts.

        Big content is read only if the arguments include it.
        """
        # Newest first: one query finds the head, and stops reading pages at the event of the snapshot.
        rows = self._table.query_range(keys.task(key), keys.EVENTS, keys.HEAD, newest_first=True)
        top = next(rows, None)
        if top is None or top["sk"]["S"] != keys.HEAD:
            return None
        head = items.head_of(top)
        replay, size = self._snapshots.start_replay(head, keys.LAST, history=history is None, artifacts=artifacts)
        start = replay.n
        later = [*takewhile(lambda item: keys.event_number(item["sk"]["S"]) > start, rows)][::-1]
        outlines = {keys.event_number(item["sk"]["S"]): item for item in later if "outline" in item}
        events = self._matching(head, start, contiguous(start, self._events(later, outlines=True)))
        if history and start and count_messages(events) < history:
            whole_task = self.read_part(key, None, artifacts=artifacts)
            return whole_task and whole_task._replace(task=whole_task.task.limited(history))
        whole = events_shown(events, history, artifacts=artifacts) & outlines.keys() if outlines else set()
        events = [self._event(outlines[event.n]) if event.n in whole else event for event in events]
        size += sum(_size(item, whole=n in whole) for n, item in enumerate(later, start + 1))
        return TaskPart(head, replay.after(events).limited(history, artifacts=artifacts), size)

    def read_task_at(self, head: Head, n: int, admit: Admit | None = None) -> Task:
        """The task as of event ``n``, which must have been read before. ``head`` may be of any moment.

        ``admit`` must not return False here.
        """
        replay, _ = self._snapshots.start_replay(head, n, admit=admit)
        return replay.after(self.read(head.key, replay.n, n - replay.n, admit) if replay.n < n else [])

    def store_snapshot(self, key: TaskKey) -> str:
        """Stores a snapshot of the current task, idempotently; returns the reference for ``Head.snapshot``."""
        current = self.read_task(key)
        return self._snapshots.store(key, current[1]) if current else ""

    def read(self, key: TaskKey, after: int, limit: int = 200, admit: Admit | None = None) -> list[Event]:
        """The events after number ``after`` without a gap: at most ``limit``, until ``admit`` refuses one."""
        rows = self._table.query_range(keys.task(key), keys.event(after + 1), keys.event(keys.LAST), limit=limit)
        if admit:
            rows = takewhile(lambda item: admit(_size(item, whole="blob" in item)), rows)
        return contiguous(after, self._events(rows))

    def read_outline(self, key: TaskKey, n: int) -> Event | None:
        """Event ``n``; of one with big content the outline. None if there is no such event."""
        item = self._table.get(keys.task(key), keys.event(n))
        return self._event(item, outline="outline" in item) if item else None

    def append(self, change: Change, record: IdempotencyRecord | None = None, *steps: NamedResult) -> bool:
        """Appends a status event and updates the head. False on a conflict: read the head again and decide again.

        ``steps`` are results that have never been stored, and are stored with it.
        """
        before, after = items.head_item(change.before), items.head_item(change.after)
        refusal = self._table.write(
            PutNew(self._event_item(change.before.key, change.event, change.after.expires)),
            Update(_head_place(change.before), before, after, {"rev": before.get("rev")}),
            *self._idempotency_actions(change.after, record),
            *self._step_actions(change.after, steps),
        )
        return refusal is None or self._is_own(change.before.key, change.event, refusal)

    def append_chunk(self, head: Head, event: ArtifactEvent) -> bool:
        """Appends an artifact chunk of the run with the lease in ``head``. False as in ``append``.

        This and the next two are one conditional put while that lease lasts. After it they write only if the stored
        head has the run's fence.
        """
        fence = Fence(self._table, head)
        if fence.is_lost():
            return False
        chunk = self._event_item(head.key, event, head.expires)
        refusal = self._table.write(PutNew(chunk), *fence.checks())
        return refusal is None or self._is_own(head.key, event, refusal)

    def update_head(self, before: Head, after: Head, *steps: NamedResult) -> bool:
        """Updates the head without an event (lease, due time). ``steps`` and False are as in ``append``."""
        place, old, new = _head_place(before), items.head_item(before), items.head_item(after)
        update = Update(place, old, new, {"rev": old.get("rev")})
        refusal = self._table.write(update, *self._step_actions(after, steps))
        if refusal is None:
            return True
        head_item = self._stored_item(place, refusal)
        if head_item is None or items.head_of(head_item) != after:
            return False
        # Another writer may have made an equal change, with other results: this run's results would be lost.
        # tests/contract/test_task_log.py: test_a_result_is_stored_with_the_change_of_the_head_or_not_at_all
        return all(self.read_step(after.key, name) == result for name, result in steps)

    def read_steps(self, key: TaskKey) -> Mapping[str, StepResult]:
        """The results of all steps that have finished."""
        rows = self._table.query_prefix(keys.task(key), keys.STEPS)
        return {item["name"]["S"]: self._step(item) for item in rows}

    def read_step(self, key: TaskKey, name: str) -> StepResult | None:
        """The result that is stored under this name, or None."""
        item = self._table.get(keys.task(key), keys.step(name))
        return self._step(item) if item else None

    def has_step(self, key: TaskKey, name: str) -> bool:
        """Whether a result is stored under this name. Its content is not loaded."""
        return self._table.get(keys.task(key), keys.step(name)) is not None

    def has_any_step(self, key: TaskKey, names: Iterable[str]) -> bool:
        """Whether a result is stored under any of these names, at most 100, by one call. No content is loaded."""
        return self._table.has_any(keys.task(key), *map(keys.step, names))

    def list_step_times(self, key: TaskKey, limit: int) -> list[StepTime]:
        """When the task's steps ran, at most ``limit``, in no order."""
        rows = self._table.query_prefix(keys.task(key), keys.STEPS, "name", "began", "ended", "error", "expires")
        return [items.step_time_of(item) for item in islice(rows, limit)]

    def list_steps(self, key: TaskKey, after: str, limit: int) -> list[NamedResult]:
        """At most ``limit`` results in a fixed order, after the one whose name is ``after``; "" is the beginning."""
        first = f"{keys.step(after)}!" if after else keys.STEPS  # "!" sorts before any character
        rows = self._table.query_range(keys.task(key), first, f"{keys.STEPS}\x7f", limit=limit)
        return [(item["name"]["S"], self._step(item)) for item in rows]

    def store_step(
        self, head: Head, name: str, result: StepResult, *, of_run: bool = True, spent: int = 0
    ) -> StepResult | None:
        """Stores a step's result unless a result is stored already, and returns the stored one.

        None if the run does not have the task any more. Without ``of_run``: None if there is no such task. If it stores
        the result, it adds ``spent`` (micro-USD) to what the owner has spent on this day (UTC), in one transaction.
        """
        fence = Fence(self._table, head, of_run=of_run)
        if fence.is_lost():
            return None
        item = self._step_item(head, name, result)
        refusal = self._table.write(PutNew(item), *fence.checks(), *_count_spent(head.key, result.ended_at, spent))
        if refusal is None:
            return result
        step_item = self._stored_item(item, refusal)
        return self._step(step_item) if step_item else None

    def remove_step(self, head: Head, name: str, fence: int) -> bool:
        """Removes the result that the run with this fence stored; False if this run does not have the task any more."""
        place = items.make_place(keys.task(head.key), keys.step(name))
        refusal = self._table.write(Delete(place, {"fence": {"N": str(fence)}}), Fence(self._table, head).check)
        return refusal is None

    def read_spent(self, key: TaskKey, now: int) -> int:
        """What the owner's tasks have spent on the day (UTC) of ``now`` (ms), in micro-USD."""
        item = self._table.get(keys.owner(key), f"{keys.SPENT}{now // DAY_MS}")
        return int(item["used"]["N"]) if item else 0

    def store_callback(self, head: Head, callback: str, record: str, *steps: NamedResult) -> bool:
        """Stores to which record of the run's task a callback address belongs, and ``steps``, as in ``append``.

        Idempotent. False as in ``append``.
        """
        fence = Fence(self._table, head)
        if fence.is_lost():
            return False
        place_of_call = {"task": {"S": path(*head.key)}, "call": {"S": record}}
        item = items.make_item(keys.callback(callback), keys.CALL, head.expires, place_of_call)
        refusal = self._table.write(Put(item), *self._step_actions(head, steps), *fence.checks())
        return refusal is None or any(self.read_step(head.key, name) == result for name, result in steps)

    def count_request(self, callback: str, minute: int, limit: int) -> bool:
        """Counts a request to a callback address in a minute since the epoch; False if there were ``limit`` before."""
        place = items.make_place(keys.callback(callback), keys.minute(minute))
        return self._table.write(Count(place, "used", limit, (minute + 2) * 60)) is None

    def note_webhook(self, origin: str, now: int) -> None:
        """Stores that a webhook of an agent at this origin has come. It is known for ``WEBHOOK_DAYS`` days."""
        if not self.has_webhook_come(origin):
            item = items.make_item(keys.host(origin), keys.WEBHOOK, (now + WEBHOOK_DAYS * DAY_MS) // 1000, {})
            self._table.write(Put(item))

    def has_webhook_come(self, origin: str) -> bool:
        """Whether a webhook of an agent at this origin has come."""
        return self._table.get(keys.host(origin), keys.WEBHOOK) is not None

    def find_callback(self, callback: str) -> tuple[TaskKey, str] | None:
        """The task and its record that a callback address belongs to, or None."""
        item = self._table.get(keys.callback(callback), keys.CALL)
        if item is None:
            return None
        record = items.readable(item)
        return key_of_path(record["task"]["S"]), record["call"]["S"]

    def list_due(self, shard: int, until: int) -> Iterator[DueItem]:
        """The items due by ``until`` (ms) in one of ``SHARDS`` shards, oldest first, eventually consistent."""
        return map(items.due_of, self._table.query_due(str(shard), keys.moment(until)))

    def list_unfinished(self) -> Iterator[TaskKey]:
        """The tasks that have not ended, of all owners: each is due some day. Some of them may have ended just now."""
        for shard in range(keys.SHARDS):
            yield from (due.key for due in self.list_due(shard, keys.LAST_MOMENT) if due.key and not due.config_id)

    def postpone(self, due: DueItem, now: int) -> None:
        """Delays an unreadable item that is due at ``now`` (ms): by a minute, doubled each time, up to an hour."""
        item = self._table.get(*due.item_key)
        at = item and item.get("due_at")
        if item and at and at["S"] <= keys.moment(now):
            self._table.write(Update(item, item, item | items.postpone_item(item, now), {"due_at": at}))

    def _matching(self, head: Head, after: int, events: list[Event]) -> list[Event]:
        """The events after ``after``, up to the head: a query may see only one half of a transaction."""
        for _ in range(REREADS):
            last = after + len(events)
            # The head may be newer than the events of the query: then the task would show a status that it has left.
            # tests/adapters/test_task_log.py: test_a_log_that_is_read_before_its_last_event_shows_is_read_again
            if last >= head.n:
                later = (event.n for event in events if isinstance(event, StatusEvent) and event.n > head.n)
                # Or older: a status after ``head.n`` belongs to a head that this reader has not seen.
                # test_a_log_that_is_read_with_an_older_head_ends_where_that_head_ends
                return events[: next(later, last + 1) - 1 - after]
            events += self.read(head.key, last)
        raise Overloaded

    def _events(self, found: Iterable[Item], *, outlines: bool = False) -> Iterator[Event]:
        for item in found:
            yield self._event(item, outline=outlines and "outline" in item)

    def _event(self, item: Item, *, outline: bool = False) -> Event:
        record = items.readable(item, items.EVENT_VERSION)
        text = record["outline"]["S"] if outline else self._payloads.fetch(record)
        return load_event(text, keys.event_number(item["sk"]["S"]), item["by"]["S"])

    def _step(self, item: Item) -> StepResult:
        return load_step(self._payloads.fetch(items.readable(item)), *items.numbers_of(item, *STEP_NUMBERS))

    def _step_item(self, head: Head, name: str, result: StepResult) -> Item:
        body = self._payloads.store(head.key, dump_step(result))
        numbers = zip(STEP_NUMBERS, (result.began_at, result.ended_at, result.fence, result.seen), strict=True)
        known = {name: {"N": str(number)} for name, number in numbers if number}
        error = {"error": {"S": result.error}} if result.error else {}
        attributes = {"name": {"S": name}, **known, **error, **body}
        return items.make_item(keys.task(head.key), keys.step(name), head.expires, attributes)

    def _step_actions(self, head: Head, steps: Iterable[NamedResult]) -> list[Action]:
        return [PutNew(self._step_item(head, name, result)) for name, result in steps]

    def _event_item(self, key: TaskKey, event: Event, expires: int) -> Item:
        body = self._payloads.store(key, dump_event(event))
        if "body" not in body:
            body |= {"outline": {"S": dump_event(outline(event))}}
        attributes = {"by": {"S": event.append_id}, **body, "v": {"N": str(items.EVENT_VERSION)}}
        return items.make_item(keys.task(key), keys.event(event.n), expires, attributes)

    def _idempotency_actions(self, head: Head, record: IdempotencyRecord | None) -> list[Action]:
        if record is None:
            return []
        pk = keys.idempotency(head.key, record.agent, record.message_id, record.kind)
        return [PutNew(items.make_item(pk, keys.RECEIPT, head.expires, items.record_item(record)))]

    def _config_actions(self, head: Head, pushes: Iterable[tuple[PushConfig, Cursor]]) -> list[Action]:
        if not pushes:
            return []
        from a2a_serverless.store.push_store import config_actions

        return [action for config, cursor in pushes for action in config_actions(head, config, cursor)]

    def _tick_actions(self, opening: NewTask) -> list[Action]:
        head, tick, last = opening.head, opening.tick, opening.last_tick
        if tick is None:
            return []
        place = keys.owner(head.key), keys.tick(head.agent, tick.schedule)
        item = items.make_item(*place, head.expires, items.record_item(tick))
        if last is None:
            return [PutNew(item)]
        after = {name: value for name, value in item.items() if name not in {"pk", "sk"}}
        return [Update(item, {}, after, {"task": {"S": last.task}})]

    def _is_own(self, key: TaskKey, event: Event, refusal: WriteConflict) -> bool:
        event_item = refusal.items[0] or self._table.get(keys.task(key), keys.event(event.n))
        # A retry of a write whose answer was lost must not look like a conflict: the caller would append it again.
        # tests/contract/test_task_log.py: test_an_append_that_is_tried_again_counts_as_success_and_is_there_once
        return event_item is not None and bool(event_item["by"]["S"] == event.append_id)

    def _stored_item(self, place: Item, refusal: WriteConflict) -> Item | None:
        return refusal.items[0] or self._table.get(place["pk"]["S"], place["sk"]["S"])


def _count_spent(key: TaskKey, now: int, spent: int) -> list[Action]:
    place = items.make_place(keys.owner(key), f"{keys.SPENT}{now // DAY_MS}")
    return [Count(place, "used", UNLIMITED, (now // DAY_MS + 2) * DAY_MS // 1000, by=spent)] if spent else []


def _has_moved_head(head: Head, item: Item) -> bool:
    """Whether the event has moved the head, so that the head in memory is out of date.

    A query may see only one half of a transaction. A status event moves the head. An artifact chunk comes after the
    change with which its run took the lease, so a chunk with a newer fence proves a newer head.
    """
    n = keys.event_number(item["sk"]["S"])
    if n <= head.n:
        return False
    record = items.readable(item, items.EVENT_VERSION)
    event = load_event(record["body" if "body" in record else "outline"]["S"], n, record["by"]["S"])
    return isinstance(event, StatusEvent) or event.fence > head.fence


def _size(item: Item, *, whole: bool) -> int:
    """The size of an event's text: of its item, and of its blob if it is read whole."""
    text = len(item["body" if "body" in item else "outline"]["S"])
    return text + (int(item["size"]["N"]) if whole else 0)


def _head_place(head: Head) -> Item:
    return items.make_place(keys.task(head.key), keys.HEAD)


def _existing_idempotency(refusal: WriteConflict, action: int) -> IdempotencyRecord | None:
    record_item = refusal.items[action]
    return items.record_of(IdempotencyRecord, record_item) if record_item else None
