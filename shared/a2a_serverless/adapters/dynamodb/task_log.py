"""The log, the webhooks and the public documents in one DynamoDB table (key design: ARCHITECTURE.md, storage).

A retried write must recognise its own earlier try, which may have succeeded: an event carries the append id of its
writer, a configuration its incarnation, and a head or cursor that already has its new value counts as written.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.dynamodb import items, keys, log_format
from a2a_serverless.adapters.dynamodb.snapshots import SnapshotStore
from a2a_serverless.domain.challenges import ChallengeState
from a2a_serverless.domain.circuit_breaker import FORGET_MS
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.events import StatusEvent, contiguous
from a2a_serverless.domain.head import Head, HeadSnapshot
from a2a_serverless.domain.push import close_cursor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from a2a_serverless.adapters.dynamodb.items import Item
    from a2a_serverless.adapters.dynamodb.payloads import PayloadStore
    from a2a_serverless.adapters.dynamodb.table import Action, Table, WriteConflict
    from a2a_serverless.domain.circuit_breaker import OpenBreaker
    from a2a_serverless.domain.events import ArtifactEvent, Event
    from a2a_serverless.domain.head import Change
    from a2a_serverless.domain.model import Json, Principal, Task, TaskKey
    from a2a_serverless.domain.push import Attempt, Cursor, PushConfig
    from a2a_serverless.ports.tasks import DueItem, IdempotencyRecord, NewTask, StepResult, TaskEntry

REREADS: Final = 5
DAY_S: Final = 86_400


class DynamoTaskLog:
    """``ports.TaskLog``. Texts over the inline limit of ``payloads`` are stored as blobs, outside the table."""

    def __init__(self, table: Table, payloads: PayloadStore) -> None:
        self._table = table
        self._payloads = payloads
        self._snapshots = SnapshotStore(payloads)

    def create(self, opening: NewTask) -> IdempotencyRecord | None:
        head, receipt = opening.head, opening.idempotency
        keys.check_readable(head.key.tenant, head.key.owner, head.key.task)
        actions = [
            self._table.put_new(self._event_item(head.key, opening.event, head.expires)),
            self._table.put_new(_head_item(head)),
            *self._idempotency_actions(head, receipt),
            *(
                action
                for config, cursor in opening.pushes
                for action in _config_actions(self._table, head, config, cursor)
            ),
        ]
        refusal = self._table.write(*actions)
        if refusal is None or self._is_own(head.key, opening.event, refusal):
            return None
        standing = receipt and (
            _existing_idempotency(refusal, 2) or self.find_idempotency(head.key, receipt.agent, receipt.message_id)
        )
        if standing is None:
            raise RuntimeError("there is a task with this id already")
        return standing

    def find_idempotency(self, key: TaskKey, agent: str, message_id: str) -> IdempotencyRecord | None:
        item = self._table.get(keys.receipt(key, agent, message_id), keys.RECEIPT)
        return items.idempotency_of(item) if item else None

    def read_head(self, key: TaskKey) -> HeadSnapshot | None:
        for _ in range(1 + REREADS):
            found = list(self._table.query_range(keys.task(key), keys.EVENTS, keys.HEAD, limit=2, newest_first=True))
            if not found or found[0]["sk"]["S"] != keys.HEAD:
                return None
            head = items.head_of(found[0])
            if not any(_has_moved_head(head, item) for item in found[1:]):
                return HeadSnapshot(head, max([head.n, *(keys.event_number(item["sk"]["S"]) for item in found[1:])]))
        raise Overloaded

    def read_log(self, key: TaskKey) -> tuple[Head, list[Event]] | None:
        found = list(self._table.query_range(keys.task(key), keys.EVENTS, keys.HEAD))
        if not found or found[-1]["sk"]["S"] != keys.HEAD:
            return None
        head = items.head_of(found.pop())
        return head, self._matching(head, 0, contiguous(0, self._events(found)))

    def read_task(self, key: TaskKey) -> tuple[Head, Task] | None:
        # Newest first: one query finds the head, and stops reading pages at the event of the snapshot.
        found = self._table.query_range(keys.task(key), keys.EVENTS, keys.HEAD, newest_first=True)
        top = next(found, None)
        if top is None or top["sk"]["S"] != keys.HEAD:
            return None
        head = items.head_of(top)
        replayed = self._snapshots.start_replay(head, keys.LAST)
        later = takewhile(lambda item: keys.event_number(item["sk"]["S"]) > replayed.n, found)
        events = contiguous(replayed.n, self._events(reversed([*later])))
        return head, replayed.after(self._matching(head, replayed.n, events))

    def read_task_at(self, head: Head, n: int) -> Task:
        replayed = self._snapshots.start_replay(head, n)
        return replayed.after(self.read(head.key, replayed.n, n - replayed.n) if replayed.n < n else [])

    def store_snapshot(self, key: TaskKey) -> str:
        read = self.read_task(key)
        return self._snapshots.store(key, read[1]) if read else ""

    def read(self, key: TaskKey, after: int, limit: int = 200) -> list[Event]:
        found = self._table.query_range(keys.task(key), keys.event(after + 1), keys.event(keys.LAST), limit=limit)
        return contiguous(after, self._events(found))

    def append(self, change: Change, receipt: IdempotencyRecord | None = None) -> bool:
        before, after = items.head_item(change.before), items.head_item(change.after)
        refusal = self._table.write(
            self._table.put_new(self._event_item(change.before.key, change.event, change.after.expires)),
            self._table.update(_head_place(change.before), before, after, {"rev": before.get("rev")}),
            *self._idempotency_actions(change.after, receipt),
        )
        return refusal is None or self._is_own(change.before.key, change.event, refusal)

    def append_chunk(self, key: TaskKey, event: ArtifactEvent, expires: int) -> bool:
        refusal = self._table.write(self._table.put_new(self._event_item(key, event, expires)))
        return refusal is None or self._is_own(key, event, refusal)

    def update_head(self, before: Head, after: Head) -> bool:
        place, old, new = _head_place(before), items.head_item(before), items.head_item(after)
        refusal = self._table.write(self._table.update(place, old, new, {"rev": old.get("rev")}))
        if refusal is None:
            return True
        found = self._found(place, refusal)
        return found is not None and items.head_of(found) == after

    def read_steps(self, key: TaskKey) -> Mapping[str, StepResult]:
        found = self._table.query_prefix(keys.task(key), keys.STEPS)
        return {item["name"]["S"]: self._step(item) for item in found}

    def store_step(self, key: TaskKey, name: str, result: StepResult, expires: int) -> StepResult:
        place = (keys.task(key), keys.step(name))
        body = self._payloads.store(key, log_format.dump_step(result))
        item = items.make_item(*place, expires, {"name": {"S": name}, **body})
        refusal = self._table.write(self._table.put_new(item))
        found = self._found(item, refusal) if refusal else None
        return self._step(found) if found else result

    def store_callback(self, callback: str, key: TaskKey, call: str, expires: int) -> None:
        said = {"task": {"S": keys.path(key.tenant, key.owner, key.task)}, "call": {"S": call}}
        self._table.write(self._table.put(items.make_item(keys.callback(callback), keys.CALL, expires, said)))

    def find_callback(self, callback: str) -> tuple[TaskKey, str] | None:
        item = self._table.get(keys.callback(callback), keys.CALL)
        if item is None:
            return None
        known = items.readable(item)
        return keys.key_of_path(known["task"]["S"]), known["call"]["S"]

    def list_due(self, shard: int, until: int) -> Iterator[DueItem]:
        return map(items.due_of, self._table.query_due(str(shard), keys.moment(until)))

    def postpone(self, due: DueItem, now: int) -> None:
        item = self._table.get(*due.item_key)
        at = item and item.get("due_at")
        if item and at and at["S"] <= keys.moment(now):
            self._table.write(self._table.update(item, item, item | items.postpone_item(item, now), {"due_at": at}))

    def _matching(self, head: Head, after: int, events: list[Event]) -> list[Event]:
        """The events after ``after``, up to the head: a query may see only one half of a transaction."""
        for _ in range(REREADS):
            last = after + len(events)
            if last >= head.n:
                later = (event.n for event in events if isinstance(event, StatusEvent) and event.n > head.n)
                return events[: next(later, last + 1) - 1 - after]
            events += self.read(head.key, last)
        raise Overloaded

    def _events(self, found: Iterable[Item]) -> Iterable[Event]:
        for item in found:
            text = self._payloads.fetch(items.readable(item))
            yield log_format.load_event(text, keys.event_number(item["sk"]["S"]), item["by"]["S"])

    def _step(self, item: Item) -> StepResult:
        return log_format.load_step(self._payloads.fetch(items.readable(item)))

    def _event_item(self, key: TaskKey, event: Event, expires: int) -> Item:
        body = self._payloads.store(key, log_format.dump_event(event))
        if "body" not in body:  # what read_head must know of an event whose text is not in the item
            body |= {"status": {"BOOL": isinstance(event, StatusEvent)}, "fence": {"N": str(event.fence)}}
        return items.make_item(keys.task(key), keys.event(event.n), expires, {"by": {"S": event.append_id}, **body})

    def _idempotency_actions(self, head: Head, receipt: IdempotencyRecord | None) -> list[Action]:
        if receipt is None:
            return []
        pk = keys.receipt(head.key, receipt.agent, receipt.message_id)
        return [self._table.put_new(items.make_item(pk, keys.RECEIPT, head.expires, items.idempotency_item(receipt)))]

    def _is_own(self, key: TaskKey, event: Event, refusal: WriteConflict) -> bool:
        found = refusal.found[0] or self._table.get(keys.task(key), keys.event(event.n))
        return found is not None and bool(found["by"]["S"] == event.append_id)

    def _found(self, place: Item, refusal: WriteConflict) -> Item | None:
        return refusal.found[0] or self._table.get(place["pk"]["S"], place["sk"]["S"])


def _has_moved_head(head: Head, item: Item) -> bool:
    """Whether the event has moved the head, which means that the head that was read is out of date.

    A query may see only one half of a transaction. A status event moves the head. An artifact chunk comes after the
    status event with which its run took the lease, so a chunk with a newer fence proves a newer head.
    """
    n = keys.event_number(item["sk"]["S"])
    if n <= head.n:
        return False
    known = items.readable(item)
    if "body" in known:
        event = log_format.load_event(known["body"]["S"], n, known["by"]["S"])
        return isinstance(event, StatusEvent) or event.fence > head.fence
    # An item of an earlier release lacks these fields: it is taken for a chunk, as nearly all events of that size are.
    return "status" in known and (known["status"]["BOOL"] or int(known["fence"]["N"]) > head.fence)


class DynamoTaskIndex:
    """``ports.TaskIndex`` over the two list indexes."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def list_page(
        self, principal: Principal, context_id: str | None, after: str | None, since: int, limit: int
    ) -> tuple[list[TaskEntry], str | None]:
        owner = keys.path(principal.tenant, principal.owner)
        index, held = "by_owner", ("own", owner)
        if context_id is not None:
            index, held = "by_context", ("own_ctx", f"{owner}/{keys.part(context_id)}")
        # The entry at ``after`` comes along and is dropped; one entry more shows whether there is a next page.
        found = self._table.query_newest(index, held, keys.moment(since), after or keys.NEWEST, limit + 2)
        entries = [entry for entry in map(items.entry_of, found) if entry.position != after]
        return entries[:limit], entries[limit - 1].position if len(entries) > limit else None


class DynamoPushStore:
    """``ports.PushStore``."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def add_config(
        self, before: Head, after: Head, config: PushConfig, cursor: Cursor, replaced: Cursor | None = None
    ) -> bool:
        keys.check_readable(config.config_id)
        old, new = items.head_item(before), items.head_item(after)
        refusal = self._table.write(
            self._table.update(_head_place(before), old, new, {"rev": old.get("rev")}),
            *_config_actions(self._table, after, config, cursor, replaced),
        )
        if refusal is None:
            return True
        kept = self.get_config(before.key, config.config_id)
        return kept is not None and kept.incarnation == config.incarnation

    def close_config(self, key: TaskKey, before: Cursor) -> bool:
        after = close_cursor(before)
        refusal = self._table.write(
            self._table.delete(_place(key, keys.push(before.config_id)), {"incarnation": {"S": before.incarnation}}),
            _move_action(self._table, key, before, after),
        )
        return refusal is None or self.get_cursor(key, before.config_id) == after

    def get_config(self, key: TaskKey, config_id: str) -> PushConfig | None:
        item = self._table.get(keys.task(key), keys.push(config_id))
        return items.config_of(item) if item else None

    def list_configs(self, key: TaskKey) -> list[PushConfig]:
        found = map(items.config_of, self._table.query_prefix(keys.task(key), keys.PUSHES))
        return sorted(found, key=lambda config: config.config_id)

    def list_cursors(self, key: TaskKey) -> list[Cursor]:
        found = map(items.cursor_of, self._table.query_prefix(keys.task(key), keys.CURSORS))
        return sorted(found, key=lambda cursor: cursor.config_id)

    def get_cursor(self, key: TaskKey, config_id: str) -> Cursor | None:
        item = self._table.get(keys.task(key), keys.cursor(config_id))
        return items.cursor_of(item) if item else None

    def move_cursor(self, key: TaskKey, before: Cursor, after: Cursor) -> bool:
        refusal = self._table.write(_move_action(self._table, key, before, after))
        if refusal is None:
            return True
        found = refusal.found[0]
        return (items.cursor_of(found) if found else self.get_cursor(key, before.config_id)) == after

    def remove_config(self, key: TaskKey, config_id: str, incarnation: str) -> None:
        held = {"incarnation": {"S": incarnation}}
        places = [_place(key, sk) for sk in (keys.push(config_id), keys.cursor(config_id))]
        self._table.write(*(self._table.delete(place, held) for place in places))

    def record_attempt(self, key: TaskKey, attempt: Attempt, expires: int) -> None:
        sk = keys.attempt(attempt.config_id, attempt.n, attempt.k, attempt.at)
        self._table.write(self._table.put(items.make_item(keys.task(key), sk, expires, items.attempt_item(attempt))))

    def list_attempts(self, key: TaskKey) -> list[Attempt]:
        found = map(items.attempt_of, self._table.query_prefix(keys.task(key), keys.ATTEMPTS))
        return sorted(found, key=lambda attempt: (attempt.config_id, attempt.at, attempt.n, attempt.k))

    def count_webhook(self, key: TaskKey, day: int, limit: int) -> bool:
        place = {"pk": {"S": keys.owner(key)}, "sk": {"S": keys.webhooks(day)}}
        return self._table.write(self._table.count(place, "used", limit, expires=(day + 2) * DAY_S)) is None

    def get_challenge_state(self, key: TaskKey, host: str) -> ChallengeState:
        item = self._table.get(keys.owner(key), keys.asked(host))
        return items.challenge_state_of(item) if item else ChallengeState()

    def store_challenge_state(
        self, key: TaskKey, host: str, before: ChallengeState, after: ChallengeState, expires: int
    ) -> bool:
        old, new = items.challenge_state_item(before), items.challenge_state_item(after)
        item = items.make_item(keys.owner(key), keys.asked(host), expires, new)
        held = {name: old.get(name) for name in items.names_of(before)}
        ends = {"expires": item["expires"]}
        fresh = before == ChallengeState()
        action = self._table.put_new(item) if fresh else self._table.update(item, old, new | ends, held)
        return self._table.write(action) is None or self.get_challenge_state(key, host) == after

    def list_exhausted(self, limit: int = 100, since: int = 0) -> list[tuple[TaskKey, str]]:
        found = self._table.query_due(keys.EXHAUSTED, keys.NEWEST, limit, since=keys.moment(since))
        rows = [(keys.task_key(item["pk"]["S"]), keys.cursor_config(item["sk"]["S"])) for item in found]
        return [(key, config_id) for key, config_id in rows if config_id is not None]


class DynamoBreakerStore:
    """``ports.BreakerStore``."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get_open_breaker(self, host: str) -> OpenBreaker | None:
        item = self._table.get(keys.host(host), keys.TRIP)
        return items.breaker_of(item) if item else None

    def store_open_breaker(self, host: str, open_breaker: OpenBreaker) -> None:
        expires = (open_breaker.until + FORGET_MS) // 1000
        self._table.write(
            self._table.put(items.make_item(keys.host(host), keys.TRIP, expires, items.breaker_item(open_breaker)))
        )


class DynamoPublications:
    """``ports.Publications``. Public documents never expire."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def publish(self, name: str, document: Json) -> None:
        body = {"body": {"S": log_format.dump_document(document)}}
        self._table.write(self._table.put(items.make_item(keys.PUBLIC, keys.document(name), None, body)))

    def get_document(self, name: str) -> Json:
        item = self._table.get(keys.PUBLIC, keys.document(name))
        return log_format.load_document(items.readable(item)["body"]["S"]) if item else None


def _place(key: TaskKey, sk: str) -> Item:
    return {"pk": {"S": keys.task(key)}, "sk": {"S": sk}}


def _head_place(head: Head) -> Item:
    return _place(head.key, keys.HEAD)


def _head_item(head: Head) -> Item:
    return items.make_item(keys.task(head.key), keys.HEAD, head.expires, items.head_item(head))


def _config_actions(
    table: Table, head: Head, config: PushConfig, cursor: Cursor, replaced: Cursor | None = None
) -> list[Action]:
    keys.check_readable(config.config_id)
    pk, shard = keys.task(head.key), keys.shard(head.key)
    new = items.make_item(pk, keys.cursor(cursor.config_id), head.expires, items.cursor_item(shard, cursor))
    return [
        table.put_new(
            items.make_item(pk, keys.push(config.config_id), head.expires, items.config_item(config)), "incarnation"
        ),
        _move_action(table, head.key, replaced, cursor) if replaced else table.put_new(new),
    ]


def _move_action(table: Table, key: TaskKey, before: Cursor, after: Cursor) -> Action:
    """An action: the cursor becomes ``after``, if every field is still as in ``before``."""
    place, shard = _place(key, keys.cursor(before.config_id)), keys.shard(key)
    old, new = items.cursor_item(shard, before), items.cursor_item(shard, after)
    return table.update(place, old, new, {name: old.get(name) for name in items.names_of(before)})


def _existing_idempotency(refusal: WriteConflict, action: int) -> IdempotencyRecord | None:
    found = refusal.found[action]
    return items.idempotency_of(found) if found else None
