"""Erases a task, a context or an owner: everything that is stored of it, in the table and beside it.

A task that runs is canceled first, and nothing of a task is erased before ``LEASE_MS`` have passed since it ended:
whoever ran it has noticed by then, and writes nothing more. Its head goes last, because the head is how it is found. So
whoever is interrupted starts again and goes on, and who starts again once nothing is left erases nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import head as heads
from a2a_serverless.domain.contents import UPLOADS, file_of
from a2a_serverless.domain.errors import FieldViolation, InvalidParams, TaskNotCancelable, TaskNotFound
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.head import LEASE_MS
from a2a_serverless.domain.model import Principal
from a2a_serverless.services.callbacks import PREFIX
from a2a_serverless.services.changes import change
from a2a_serverless.services.push import close

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.domain.model import Json, JsonObject, TaskKey
    from a2a_serverless.ports import ApiKeys, Blobs, Clock, Ids, PushStore, Remains, TaskLog

ERASES_MS: Final = 15_000
PAUSE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Rubber:
    """What erasing needs. ``place`` is what the names of a task's, or an owner's, blobs begin with."""

    log: TaskLog
    store: PushStore
    remains: Remains
    blobs: Blobs
    api_keys: ApiKeys
    clock: Clock
    ids: Ids
    place: Callable[..., str]


@dataclass(frozen=True, slots=True)
class Scope:
    """What is to be erased: a task, all tasks of a context, or an owner with everything, API keys included."""

    who: Principal
    context_id: str | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What an operator asks of the eraser: to erase, or with ``dry_run`` only to count."""

    scope: Scope
    dry_run: bool = False

    def told(self) -> JsonObject:
        """The same as JSON; ``order_of`` reads it."""
        said: JsonObject = {"tenant": self.scope.who.tenant, "owner": self.scope.who.owner, "dryRun": self.dry_run}
        if self.scope.context_id is not None:
            said["context"] = self.scope.context_id
        return said if self.scope.task is None else said | {"task": self.scope.task}


@dataclass(frozen=True, slots=True)
class Erased:
    """How much was erased, or would be. ``later``: tasks that ended just now and wait for their time."""

    tasks: int = 0
    items: int = 0
    blobs: int = 0
    api_keys: int = 0
    later: int = 0

    def told(self) -> JsonObject:
        """The same as JSON."""
        said: JsonObject = {"tasks": self.tasks, "items": self.items, "blobs": self.blobs}
        return said | {"apiKeys": self.api_keys, "later": self.later}

    def __add__(self, other: Erased) -> Erased:
        """Both together."""
        return Erased(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


def order_of(wanted: Json) -> Order:
    """An order from its JSON. Raises InvalidParams: nobody erases an owner by leaving something out."""
    named = {name: value for name, value in wanted.items() if name != "dryRun"} if isinstance(wanted, dict) else {}
    texts = {name: value for name, value in named.items() if isinstance(value, str) and value}
    if texts != named or not {"tenant", "owner"} <= texts.keys() <= {"tenant", "owner", "context", "task"}:
        raise InvalidParams("Name tenant and owner, and the context or the task if not all of the owner's is meant.")
    scope = Scope(Principal(texts["tenant"], texts["owner"]), texts.get("context"), texts.get("task"))
    if scope.context_id and scope.task:
        raise InvalidParams("Name the context or the task, not both.")
    dry_run = wanted.get("dryRun", False) if isinstance(wanted, dict) else False
    if not isinstance(dry_run, bool):
        raise InvalidParams(violations=(FieldViolation("dryRun", "is true or false"),))
    return Order(scope, dry_run)


def erased_of(answer: JsonObject) -> Erased:
    """What ``Erased.told`` told."""
    counts = [answer.get(name) for name in ("tasks", "items", "blobs", "apiKeys", "later")]
    return Erased(*(count if isinstance(count, int) else 0 for count in counts))


def obey(rubber: Rubber, order: Order) -> Erased:
    """Counts, or erases for as long as a request may take; ``later`` says how many tasks are left for the next one."""
    if order.dry_run:
        return count(rubber, order.scope)
    return erase(rubber, order.scope, rubber.clock.now() + ERASES_MS)


def count(rubber: Rubber, scope: Scope) -> Erased:
    """What ``erase`` would erase; receipts, uploads and the addresses of calls not counted. Changes nothing."""
    keys = list(_tasks(rubber, scope))
    blobs = [name for place in _places(rubber, scope, keys) for name in rubber.blobs.names(place)]
    found = Erased(len(keys), sum(map(rubber.remains.items, keys)), len(blobs))
    if not _is_owner(scope):
        return found
    return found + Erased(items=rubber.remains.owned(scope.who), api_keys=len(_keys_of(rubber, scope.who)))


def erase(rubber: Rubber, scope: Scope, until: int) -> Erased:
    """Erases until all is done but what has to wait, or until it is ``until`` (ms); ``later`` counts what is left.

    Tasks are erased as they are listed: an owner may have so many that the list alone takes longer than that.
    """
    done = Erased(api_keys=_revoke(rubber, scope.who)) if _is_owner(scope) else Erased()
    met: set[TaskKey] = set()  # one that was canceled just now is listed again at the end
    for key in _tasks(rubber, scope):
        if key in met:
            continue
        met.add(key)
        over = rubber.clock.now() >= until
        done += Erased(later=1) if over or not _ended_long_ago(rubber, key) else _erase_task(rubber, key)
    if done.later or not _is_owner(scope):
        return done
    return done + _erase_owner(rubber, scope.who)


def erase_all(ask: Callable[[], Erased], sleep: Callable[[float], None]) -> Erased:
    """Asks until nothing is left, and waits for what has to wait. Returns what was erased in all."""
    done = Erased(later=1)
    while done.later:
        again = ask()
        done = replace(done, later=0) + again
        if again.later:
            sleep(PAUSE_S)
    return done


def _tasks(rubber: Rubber, scope: Scope) -> Iterator[TaskKey]:
    if scope.task is not None:
        key = scope.who.key(scope.task)
        if rubber.remains.items(key):
            yield key
        return
    after, more = None, True
    while more:
        found, after = rubber.remains.tasks(scope.who, scope.context_id, after)
        yield from found
        more = after is not None


def _ended_long_ago(rubber: Rubber, key: TaskKey) -> bool:
    """Whether nobody can still be at it; cancels a task that has not ended."""
    look = rubber.log.look(key)
    if look is None:
        return True
    head, by = look.head, rubber.ids.new()
    with suppress(TaskNotCancelable, TaskNotFound):
        change(rubber.log, key, head.agent, lambda look: heads.cancel(look, now=rubber.clock.now(), by=by))
        return head.fence == 0
    return head.fence == 0 or rubber.clock.now() >= head.status_at + LEASE_MS


def _erase_task(rubber: Rubber, key: TaskKey) -> Erased:
    for cursor in rubber.store.cursors(key):
        close(rubber.store, rubber.clock, key, cursor.config_id)
    receipts, callbacks, uploads = _beside(rubber, key)
    items = rubber.remains.erase_beside(key, receipts, callbacks)
    places = [*uploads, rubber.place(key.tenant, key.owner, key.task)]
    blobs = sum(_erase_blobs(rubber, place) for place in places)
    own = rubber.remains.erase_task(key)
    return Erased(1 if own else 0, items + own, blobs)


def _beside(rubber: Rubber, key: TaskKey) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """The receipts of a task's messages, the addresses of its calls, and the uploads that came with it.

    A log that cannot be read any more is one whose blobs are gone: an earlier try has come that far.
    """
    look = rubber.log.look(key)
    with suppress(RuntimeError):
        if look:
            values = [step.value for name, step in rubber.log.steps(key).items() if name.startswith(PREFIX)]
            urls = [value.get("url") for value in values if isinstance(value, dict)]
            incoming = [event.incoming for event in _statuses(rubber, key, look.last) if event.incoming]
            receipts = [(look.head.agent, one.message.message_id) for one in incoming]
            uploads = rubber.place(key.tenant, key.owner, UPLOADS)
            files = [file_of(part) for one in incoming for part in one.message.parts]
            named = [f"{uploads}{file.sha256}" for file in files if file and file.place == UPLOADS]
            return receipts, [url.rpartition("/")[2] for url in urls if isinstance(url, str)], named
    return [], [], []


def _statuses(rubber: Rubber, key: TaskKey, last: int) -> Iterator[StatusEvent]:
    for event in rubber.log.read(key, 0, last):
        if isinstance(event, StatusEvent):
            yield event


def _erase_blobs(rubber: Rubber, place: str) -> int:
    names = list(rubber.blobs.names(place))
    for name in names:
        rubber.blobs.delete(name)
    return len(names)


def _revoke(rubber: Rubber, who: Principal) -> int:
    """Revokes the owner's API keys, so that nothing new comes from it."""
    keys = _keys_of(rubber, who)
    for digest in keys:
        rubber.api_keys.revoke(digest)
    return len(keys)


def _erase_owner(rubber: Rubber, who: Principal) -> Erased:
    blobs = _erase_blobs(rubber, rubber.place(who.tenant, who.owner))
    return Erased(items=rubber.remains.erase_owner(who), blobs=blobs)


def _keys_of(rubber: Rubber, who: Principal) -> list[str]:
    return [key.digest for key in rubber.api_keys.all() if key.who == who]


def _places(rubber: Rubber, scope: Scope, keys: list[TaskKey]) -> list[str]:
    if _is_owner(scope):
        return [rubber.place(scope.who.tenant, scope.who.owner)]
    return [rubber.place(key.tenant, key.owner, key.task) for key in keys]


def _is_owner(scope: Scope) -> bool:
    return scope.context_id is None and scope.task is None
