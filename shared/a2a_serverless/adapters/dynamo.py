"""The log, the webhooks and the public documents on one DynamoDB table (key design: ARCHITECTURE.md, storage).

A retried write must find out whether an earlier try of its own stands in its way: events carry their author's append
id, configurations their incarnation, and a head or cursor that already is what it should become is done.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters import items, keys, stored
from a2a_serverless.adapters.folds import Folds
from a2a_serverless.domain.breaker import FORGET_MS
from a2a_serverless.domain.challenges import Asked
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.events import StatusEvent, contiguous
from a2a_serverless.domain.head import Head, Look
from a2a_serverless.domain.push import closed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from a2a_serverless.adapters.bodies import Bodies
    from a2a_serverless.adapters.items import Item
    from a2a_serverless.adapters.table import Action, Refusal, Table
    from a2a_serverless.domain.breaker import Trip
    from a2a_serverless.domain.events import ArtifactEvent, Event
    from a2a_serverless.domain.head import Change
    from a2a_serverless.domain.model import Json, Principal, Task, TaskKey
    from a2a_serverless.domain.push import Attempt, Cursor, PushConfig
    from a2a_serverless.ports import Due, Entry, Opening, Receipt, StepResult

CATCH_UPS: Final = 5
DAY_S: Final = 86_400


class DynamoTaskLog:
    """``ports.TaskLog``. Texts over the inline limit of ``bodies`` lie outside the table."""

    def __init__(self, table: Table, bodies: Bodies) -> None:
        self._table = table
        self._bodies = bodies
        self._folds = Folds(bodies)

    def create(self, opening: Opening) -> Receipt | None:
        head, receipt = opening.head, opening.receipt
        keys.check_readable(head.key.tenant, head.key.owner, head.key.task)
        actions = [
            self._table.put_new(self._event_item(head.key, opening.event, head.expires)),
            self._table.put_new(_head_item(head)),
            *self._receipt_actions(head, receipt),
            *(
                action
                for config, cursor in opening.pushes
                for action in _config_actions(self._table, head, config, cursor)
            ),
        ]
        refusal = self._table.write(*actions)
        if refusal is None or self._is_own(head.key, opening.event, refusal):
            return None
        standing = receipt and (_found_receipt(refusal, 2) or self.receipt(head.key, receipt.agent, receipt.message_id))
        if standing is None:
            raise RuntimeError("there is a task with this id already")
        return standing

    def receipt(self, key: TaskKey, agent: str, message_id: str) -> Receipt | None:
        item = self._table.get(keys.receipt(key, agent, message_id), keys.RECEIPT)
        return items.receipt_of(item) if item else None

    def look(self, key: TaskKey) -> Look | None:
        for _ in range(1 + CATCH_UPS):
            found = list(self._table.between(keys.task(key), keys.EVENTS, keys.HEAD, limit=2, newest_first=True))
            if not found or found[0]["sk"]["S"] != keys.HEAD:
                return None
            head = items.head_of(found[0])
            if not any(_moved(head, item) for item in found[1:]):
                return Look(head, max([head.n, *(keys.event_number(item["sk"]["S"]) for item in found[1:])]))
        raise Overloaded

    def load(self, key: TaskKey) -> tuple[Head, list[Event]] | None:
        found = list(self._table.between(keys.task(key), keys.EVENTS, keys.HEAD))
        if not found or found[-1]["sk"]["S"] != keys.HEAD:
            return None
        head = items.head_of(found.pop())
        return head, self._matching(head, 0, contiguous(0, self._events(found)))

    def task(self, key: TaskKey) -> tuple[Head, Task] | None:
        # From the newest on, so that one query finds the head first and ends, page by page, where the fold does.
        found = self._table.between(keys.task(key), keys.EVENTS, keys.HEAD, newest_first=True)
        top = next(found, None)
        if top is None or top["sk"]["S"] != keys.HEAD:
            return None
        head = items.head_of(top)
        folded = self._folds.begin(head, keys.LAST)
        later = takewhile(lambda item: keys.event_number(item["sk"]["S"]) > folded.n, found)
        events = contiguous(folded.n, self._events(reversed([*later])))
        return head, folded.after(self._matching(head, folded.n, events))

    def task_at(self, head: Head, n: int) -> Task:
        folded = self._folds.begin(head, n)
        return folded.after(self.read(head.key, folded.n, n - folded.n) if folded.n < n else [])

    def keep_fold(self, key: TaskKey) -> str:
        read = self.task(key)
        return self._folds.keep(key, read[1]) if read else ""

    def read(self, key: TaskKey, after: int, limit: int = 200) -> list[Event]:
        found = self._table.between(keys.task(key), keys.event(after + 1), keys.event(keys.LAST), limit=limit)
        return contiguous(after, self._events(found))

    def append(self, change: Change, receipt: Receipt | None = None) -> bool:
        before, after = items.head_item(change.before), items.head_item(change.after)
        refusal = self._table.write(
            self._table.put_new(self._event_item(change.before.key, change.event, change.after.expires)),
            self._table.update(_head_place(change.before), before, after, {"rev": before.get("rev")}),
            *self._receipt_actions(change.after, receipt),
        )
        return refusal is None or self._is_own(change.before.key, change.event, refusal)

    def append_chunk(self, key: TaskKey, event: ArtifactEvent, expires: int) -> bool:
        refusal = self._table.write(self._table.put_new(self._event_item(key, event, expires)))
        return refusal is None or self._is_own(key, event, refusal)

    def touch(self, before: Head, after: Head) -> bool:
        place, old, new = _head_place(before), items.head_item(before), items.head_item(after)
        refusal = self._table.write(self._table.update(place, old, new, {"rev": old.get("rev")}))
        if refusal is None:
            return True
        found = self._found(place, refusal)
        return found is not None and items.head_of(found) == after

    def steps(self, key: TaskKey) -> Mapping[str, StepResult]:
        found = self._table.beginning(keys.task(key), keys.STEPS)
        return {item["name"]["S"]: self._step(item) for item in found}

    def keep_step(self, key: TaskKey, name: str, result: StepResult, expires: int) -> StepResult:
        place = (keys.task(key), keys.step(name))
        body = self._bodies.store(key, stored.step_text(result))
        item = items.placed(*place, expires, {"name": {"S": name}, **body})
        refusal = self._table.write(self._table.put_new(item))
        found = self._found(item, refusal) if refusal else None
        return self._step(found) if found else result

    def keep_callback(self, callback: str, key: TaskKey, call: str, expires: int) -> None:
        said = {"task": {"S": keys.path(key.tenant, key.owner, key.task)}, "call": {"S": call}}
        self._table.write(self._table.put(items.placed(keys.callback(callback), keys.CALL, expires, said)))

    def callback(self, callback: str) -> tuple[TaskKey, str] | None:
        item = self._table.get(keys.callback(callback), keys.CALL)
        if item is None:
            return None
        known = items.readable(item)
        return keys.key_of_path(known["task"]["S"]), known["call"]["S"]

    def due(self, shard: int, until: int) -> Iterator[Due]:
        return map(items.due_of, self._table.due(str(shard), keys.moment(until)))

    def put_off(self, due: Due, now: int) -> None:
        item = self._table.get(*due.place)
        at = item and item.get("due_at")
        if item and at and at["S"] <= keys.moment(now):
            self._table.write(self._table.update(item, item, item | items.put_off(item, now), {"due_at": at}))

    def _matching(self, head: Head, after: int, events: list[Event]) -> list[Event]:
        """The events after ``after`` of the head: a query may see one half of a transaction and not yet the other."""
        for _ in range(CATCH_UPS):
            last = after + len(events)
            if last >= head.n:
                later = (event.n for event in events if isinstance(event, StatusEvent) and event.n > head.n)
                return events[: next(later, last + 1) - 1 - after]
            events += self.read(head.key, last)
        raise Overloaded

    def _events(self, found: Iterable[Item]) -> Iterable[Event]:
        for item in found:
            text = self._bodies.fetch(items.readable(item))
            yield stored.event_of(text, keys.event_number(item["sk"]["S"]), item["by"]["S"])

    def _step(self, item: Item) -> StepResult:
        return stored.step_of(self._bodies.fetch(items.readable(item)))

    def _event_item(self, key: TaskKey, event: Event, expires: int) -> Item:
        body = self._bodies.store(key, stored.event_text(event))
        if "body" not in body:  # what a look has to know of an event whose text is not in the item
            body |= {"status": {"BOOL": isinstance(event, StatusEvent)}, "fence": {"N": str(event.fence)}}
        return items.placed(keys.task(key), keys.event(event.n), expires, {"by": {"S": event.by}, **body})

    def _receipt_actions(self, head: Head, receipt: Receipt | None) -> list[Action]:
        if receipt is None:
            return []
        pk = keys.receipt(head.key, receipt.agent, receipt.message_id)
        return [self._table.put_new(items.placed(pk, keys.RECEIPT, head.expires, items.receipt_item(receipt)))]

    def _is_own(self, key: TaskKey, event: Event, refusal: Refusal) -> bool:
        found = refusal.found[0] or self._table.get(keys.task(key), keys.event(event.n))
        return found is not None and bool(found["by"]["S"] == event.by)

    def _found(self, place: Item, refusal: Refusal) -> Item | None:
        return refusal.found[0] or self._table.get(place["pk"]["S"], place["sk"]["S"])


def _moved(head: Head, item: Item) -> bool:
    """Whether the event has moved the head, so that this head is an older one.

    A query may see one half of a transaction and not yet the other. A status moves the head; a chunk stands behind the
    status with which its run took the task.
    """
    n = keys.event_number(item["sk"]["S"])
    if n <= head.n:
        return False
    known = items.readable(item)
    if "body" in known:
        event = stored.event_of(known["body"]["S"], n, known["by"]["S"])
        return isinstance(event, StatusEvent) or event.fence > head.fence
    # An item that an earlier release wrote does not say: its event is a chunk, as nearly all are that are so long.
    return "status" in known and (known["status"]["BOOL"] or int(known["fence"]["N"]) > head.fence)


class DynamoTaskIndex:
    """``ports.TaskIndex`` over the two list indexes."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def page(
        self, who: Principal, context_id: str | None, after: str | None, since: int, limit: int
    ) -> tuple[list[Entry], str | None]:
        owner = keys.path(who.tenant, who.owner)
        index, held = "by_owner", ("own", owner)
        if context_id is not None:
            index, held = "by_context", ("own_ctx", f"{owner}/{keys.part(context_id)}")
        # The one at ``after`` itself comes along and is dropped; one more tells whether there is a next page.
        found = self._table.newest(index, held, keys.moment(since), after or keys.NEWEST, limit + 2)
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
        kept = self.config(before.key, config.config_id)
        return kept is not None and kept.incarnation == config.incarnation

    def close_config(self, key: TaskKey, before: Cursor) -> bool:
        after = closed(before)
        refusal = self._table.write(
            self._table.delete(_place(key, keys.push(before.config_id)), {"incarnation": {"S": before.incarnation}}),
            _move_action(self._table, key, before, after),
        )
        return refusal is None or self.cursor(key, before.config_id) == after

    def config(self, key: TaskKey, config_id: str) -> PushConfig | None:
        item = self._table.get(keys.task(key), keys.push(config_id))
        return items.config_of(item) if item else None

    def configs(self, key: TaskKey) -> list[PushConfig]:
        found = map(items.config_of, self._table.beginning(keys.task(key), keys.PUSHES))
        return sorted(found, key=lambda config: config.config_id)

    def cursors(self, key: TaskKey) -> list[Cursor]:
        found = map(items.cursor_of, self._table.beginning(keys.task(key), keys.CURSORS))
        return sorted(found, key=lambda cursor: cursor.config_id)

    def cursor(self, key: TaskKey, config_id: str) -> Cursor | None:
        item = self._table.get(keys.task(key), keys.cursor(config_id))
        return items.cursor_of(item) if item else None

    def move(self, key: TaskKey, before: Cursor, after: Cursor) -> bool:
        refusal = self._table.write(_move_action(self._table, key, before, after))
        if refusal is None:
            return True
        found = refusal.found[0]
        return (items.cursor_of(found) if found else self.cursor(key, before.config_id)) == after

    def remove(self, key: TaskKey, config_id: str, incarnation: str) -> None:
        held = {"incarnation": {"S": incarnation}}
        places = [_place(key, sk) for sk in (keys.push(config_id), keys.cursor(config_id))]
        self._table.write(*(self._table.delete(place, held) for place in places))

    def record(self, key: TaskKey, attempt: Attempt, expires: int) -> None:
        sk = keys.attempt(attempt.config_id, attempt.n, attempt.k, attempt.at)
        self._table.write(self._table.put(items.placed(keys.task(key), sk, expires, items.attempt_item(attempt))))

    def attempts(self, key: TaskKey) -> list[Attempt]:
        found = map(items.attempt_of, self._table.beginning(keys.task(key), keys.ATTEMPTS))
        return sorted(found, key=lambda attempt: (attempt.config_id, attempt.at, attempt.n, attempt.k))

    def admit(self, key: TaskKey, day: int, limit: int) -> bool:
        place = {"pk": {"S": keys.owner(key)}, "sk": {"S": keys.webhooks(day)}}
        return self._table.write(self._table.count(place, "used", limit, expires=(day + 2) * DAY_S)) is None

    def asked(self, key: TaskKey, host: str) -> Asked:
        item = self._table.get(keys.owner(key), keys.asked(host))
        return items.asked_of(item) if item else Asked()

    def keep_asked(self, key: TaskKey, host: str, before: Asked, after: Asked, expires: int) -> bool:
        old, new = items.asked_item(before), items.asked_item(after)
        item = items.placed(keys.owner(key), keys.asked(host), expires, new)
        held = {name: old.get(name) for name in items.names_of(before)}
        ends = {"expires": item["expires"]}
        fresh = before == Asked()
        action = self._table.put_new(item) if fresh else self._table.update(item, old, new | ends, held)
        return self._table.write(action) is None or self.asked(key, host) == after

    def exhausted(self, limit: int = 100, since: int = 0) -> list[tuple[TaskKey, str]]:
        found = self._table.due(keys.EXHAUSTED, keys.NEWEST, limit, since=keys.moment(since))
        rows = [(keys.task_key(item["pk"]["S"]), keys.cursor_config(item["sk"]["S"])) for item in found]
        return [(key, config_id) for key, config_id in rows if config_id is not None]


class DynamoHosts:
    """``ports.HostBoard``."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def tripped(self, host: str) -> Trip | None:
        item = self._table.get(keys.host(host), keys.TRIP)
        return items.trip_of(item) if item else None

    def trip(self, host: str, trip: Trip) -> None:
        expires = (trip.until + FORGET_MS) // 1000
        self._table.write(self._table.put(items.placed(keys.host(host), keys.TRIP, expires, items.trip_item(trip))))


class DynamoPublications:
    """``ports.Publications``. Public documents never expire."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def publish(self, name: str, document: Json) -> None:
        body = {"body": {"S": stored.document_text(document)}}
        self._table.write(self._table.put(items.placed(keys.PUBLIC, keys.document(name), None, body)))

    def published(self, name: str) -> Json:
        item = self._table.get(keys.PUBLIC, keys.document(name))
        return stored.document_of(items.readable(item)["body"]["S"]) if item else None


def _place(key: TaskKey, sk: str) -> Item:
    return {"pk": {"S": keys.task(key)}, "sk": {"S": sk}}


def _head_place(head: Head) -> Item:
    return _place(head.key, keys.HEAD)


def _head_item(head: Head) -> Item:
    return items.placed(keys.task(head.key), keys.HEAD, head.expires, items.head_item(head))


def _config_actions(
    table: Table, head: Head, config: PushConfig, cursor: Cursor, replaced: Cursor | None = None
) -> list[Action]:
    keys.check_readable(config.config_id)
    pk, shard = keys.task(head.key), keys.shard(head.key)
    new = items.placed(pk, keys.cursor(cursor.config_id), head.expires, items.cursor_item(shard, cursor))
    return [
        table.put_new(
            items.placed(pk, keys.push(config.config_id), head.expires, items.config_item(config)), "incarnation"
        ),
        _move_action(table, head.key, replaced, cursor) if replaced else table.put_new(new),
    ]


def _move_action(table: Table, key: TaskKey, before: Cursor, after: Cursor) -> Action:
    """An action: the cursor changes, if it is ``before`` in every field."""
    place, shard = _place(key, keys.cursor(before.config_id)), keys.shard(key)
    old, new = items.cursor_item(shard, before), items.cursor_item(shard, after)
    return table.update(place, old, new, {name: old.get(name) for name in items.names_of(before)})


def _found_receipt(refusal: Refusal, action: int) -> Receipt | None:
    found = refusal.found[action]
    return items.receipt_of(found) if found else None
