"""The guards of the library that the models need: without each of them a model has a counterexample."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from tests.model.edits import edited

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARY = "a2a_serverless"


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard, the model that needs it, its module in the library, its text there, and what stands there without it.

    ``other`` is a second text of the module and what stands for it: one guard does what the other would.
    """

    says: str
    model: str
    module: str
    text: str
    without: str
    other: tuple[str, str] = ("", "")

    @contextmanager
    def removed(self) -> Iterator[None]:
        """Runs the library without the guard."""
        module = f"{LIBRARY}.{self.module}"
        source = inspect.getsource(import_module(module))
        for text, without in ((self.text, self.without), self.other):
            assert not text or source.count(text) == 1, f"{self.module} has not this text, once: {text}"
            source = source.replace(text, without) if text else source
        with edited(module, source) as names:
            assert names, f"no function of {self.module} has changed"
            yield


WRITERS, READERS = "log and head: writers", "log and head: readers"
SEND, ANSWER = "log: a repeated send", "log: a repeated answer"
DYING, CHUNK, HANDED = "lease: a run that dies or is late", "lease: a late chunk", "lease: a run that hands over"
CALLBACK, MESSAGE = "waiting: a callback", "waiting: a message"
LOST = "waiting: a lost callback"
DELIVERIES, LATE = "webhook: deliveries", "webhook: a notifier that dies or is late"
DELETION, REPLACEMENT = "webhook: deletion", "webhook: replacement"
FIRST_RING, ROTATION = "key ring: the first", "key ring: two rotators"
PUBLICATION = "key ring: a rotation and a publication"
DEAD_ROTATOR = "key ring: a rotator that dies"
TASK_LOG, PUSH, HEAD = "store.task_log", "store.push_store", "domain.head"

GUARDS = (
    Guard(
        "a status is appended only if the head is as it was read",
        MESSAGE,
        TASK_LOG,
        'Update(_head_place(change.before), before, after, {"rev": before.get("rev")})',
        "Update(_head_place(change.before), before, after, {})",
    ),
    Guard(
        "a chunk is appended only if its number is free",
        WRITERS,
        TASK_LOG,
        "refusal = self._table.write(PutNew(chunk), *fence.checks())",
        "refusal = self._table.write(Put(chunk), *fence.checks())",
    ),
    Guard(
        "a status whose answer was lost is recognised",
        WRITERS,
        TASK_LOG,
        "return refusal is None or self._is_own(change.before.key, change.event, refusal)",
        "return refusal is None",
    ),
    Guard(
        "a chunk whose answer was lost is recognised",
        WRITERS,
        TASK_LOG,
        "return refusal is None or self._is_own(head.key, event, refusal)",
        "return refusal is None",
    ),
    Guard(
        "an ended task takes no message",
        WRITERS,
        HEAD,
        "    if head.is_terminal:\n        raise UnsupportedOperation",
        "    if False:\n        raise UnsupportedOperation",
    ),
    Guard(
        "an ended task takes nothing from its run",
        WRITERS,
        HEAD,
        "if head.fence != fence or head.is_terminal:",
        "if head.fence != fence:",
    ),
    Guard(
        "a head that a newer event has moved is read again",
        READERS,
        TASK_LOG,
        "if not any(_has_moved_head(head, item) for item in found[1:]):",
        "if True:",
    ),
    Guard("a log that is behind its head is read again", READERS, TASK_LOG, "if last >= head.n:", "if True:"),
    Guard(
        "events after the head are cut off",
        READERS,
        TASK_LOG,
        "return events[: next(later, last + 1) - 1 - after]",
        "return events",
    ),
    Guard(
        "a send makes its idempotency record only once",
        SEND,
        TASK_LOG,
        "return [PutNew(items.make_item(pk, keys.RECEIPT, head.expires, items.record_item(record)))]",
        "return [Put(items.make_item(pk, keys.RECEIPT, head.expires, items.record_item(record)))]",
    ),
    Guard(
        "a leased task is not taken",
        DYING,
        HEAD,
        "    if head.is_leased(now) and head.holder != by:\n        raise AlreadyLeased\n",
        "",
    ),
    Guard(
        "a run with an old fence writes no status and no lease",
        DYING,
        HEAD,
        "if head.fence != fence or head.is_terminal:",
        "if head.is_terminal:",
    ),
    Guard(
        "a step's first result stays",
        DYING,
        TASK_LOG,
        "self._table.write(PutNew(item), *fence.checks(), *_count",
        "self._table.write(Put(item), *fence.checks(), *_count",
    ),
    Guard(
        "a run after one that was lost takes the number of its late chunk",
        CHUNK,
        "engine.lease",
        "(head.is_held_by_another(by) or not status.fence)",
        "not status.fence",
    ),
    Guard(
        "a leased task is due when its lease expires",
        DYING,
        HEAD,
        "due_at=min(_due_soon(head, now), until),",
        "due_at=None,",
    ),
    Guard(
        "a head that changed is not overwritten",
        CALLBACK,
        TASK_LOG,
        'update = Update(place, old, new, {"rev": old.get("rev")})',
        "update = Update(place, old, new, {})",
    ),
    Guard(
        "a run suspends only if nothing has woken it since",
        CALLBACK,
        HEAD,
        "    if check_fence(head, fence).wake != seen:\n        raise WakeCounterChanged\n",
        "",
    ),
    Guard(
        "a callback counts",
        CALLBACK,
        HEAD,
        "return head._replace(wake=head.wake + 1, parked=False, wake_at=0, due_at=due_at, rings=0, rev=head.rev + 1)",
        "return head._replace(parked=False, wake_at=0, due_at=due_at, rings=0, rev=head.rev + 1)",
    ),
    Guard(
        "a callback ends the suspension",
        CALLBACK,
        HEAD,
        "return head._replace(wake=head.wake + 1, parked=False, wake_at=0, due_at=due_at, rings=0, rev=head.rev + 1)",
        "return head._replace(wake=head.wake + 1, due_at=due_at, rings=0, rev=head.rev + 1)",
    ),
    Guard(
        "a callback enqueues its task",
        CALLBACK,
        "services.callbacks",
        "if update_head(service.log, key, decide):",
        "if update_head(service.log, key, decide) and not key:",
    ),
    Guard(
        "a suspended task can run when its time has come",
        LOST,
        HEAD,
        "(not self.parked or (self.wake_at != 0 and self.wake_at <= now))",
        "not self.parked",
    ),
    Guard(
        "a leased webhook is not delivered",
        DELIVERIES,
        "services.deliver",
        "if max(cursor.lease_until, cursor.next_at) > now:",
        "if cursor.next_at > now:",
    ),
    Guard(
        "a cursor that changed is not moved",
        DELIVERIES,
        PUSH,
        "return Update(place, old, new, {name: old.get(name) for name in items.names_of(before)})",
        "return Update(place, old, new, {})",
    ),
    Guard(
        "a message that meets a lease is enqueued again, and who releases the lease looks for newer events",
        DELIVERIES,
        "services.deliver",
        "if snapshot and snapshot.last > after.position else",
        "if False else",
        ("            _enqueue_at(self.context, self._message, wait_until)\n", "            pass\n"),
    ),
    Guard(
        "a request begins only under a lease that outlasts it",
        LATE,
        "services.delivery_attempts",
        "while not delivery.covers_attempt(self.cursor, now := self._context.clock.now()):",
        "while not (now := self._context.clock.now()):",
    ),
    Guard(
        "a deletion waits for the lease",
        DELETION,
        "services.webhooks",
        "elif cursor.lease_until > clock.now():",
        "elif False:",
    ),
    Guard(
        "a replacement waits for the attempt under way",
        REPLACEMENT,
        "services.webhooks",
        "    _wait_for_attempt(webhooks.store, webhooks.clock, key, retry_on_conflict(attempt))",
        "    retry_on_conflict(attempt)",
    ),
    Guard(
        "a replacement takes over the lease",
        REPLACEMENT,
        "domain.delivery",
        "if replaced is None or replaced.lease_until <= now:",
        "if True:",
    ),
    Guard(
        "a replacement replaces the cursor that it has read",
        REPLACEMENT,
        PUSH,
        "return Update(place, old, new, {name: old.get(name) for name in items.names_of(before)})",
        "return Update(place, old, new, {})",
    ),
    Guard(
        "two rotators choose the same id for the next version",
        FIRST_RING,
        "adapters.key_ring_secret",
        'following = sha256(f"after {version}".encode()).hexdigest()',
        'following = sha256(f"after {version} {ring.current.kid}".encode()).hexdigest()',
    ),
    Guard(
        "the ring that was stored meanwhile is published",
        PUBLICATION,
        "services.key_rotation",
        "        if latest != ring:\n",
        "        if False:\n",
    ),
    Guard(
        "a key is promoted only after it has been public",
        ROTATION,
        "domain.key_ring",
        "    if now < promotable_at(ring, waits, listed_at):\n",
        "    if False:\n",
    ),
    Guard(
        "the wait begins with the publication",
        DEAD_ROTATOR,
        "domain.key_ring",
        "return max(ring.next.made_at, listed_at) + waits.publish_ms",
        "return ring.next.made_at + waits.publish_ms",
    ),
    Guard(
        "a key that no longer signs stays public",
        ROTATION,
        "domain.key_ring",
        "return KeyRing(ring.next, fresh, (retired, *previous), promoted_at=now)",
        "return KeyRing(ring.next, fresh, previous, promoted_at=now)",
    ),
)
