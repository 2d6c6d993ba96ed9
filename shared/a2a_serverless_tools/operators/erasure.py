"""Erases a task, a context or an owner: everything that is stored of it, in the tables and the bucket.

A running task is canceled first. Nothing of a task that ran is erased until ``ERASE_AFTER_MS`` after its end: by then
the lease of its last run, and every write that began in it, are over. A later write is refused
(``store.task_log``). The head is erased last, because tasks are found by it. So whoever was interrupted starts
again, and several may erase at once: what one has erased the other does not find.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain import decisions
from a2a_serverless.domain.call_records import OpenedCall
from a2a_serverless.domain.contents import UPLOADS, file_of
from a2a_serverless.domain.errors import TaskNotCancelable, TaskNotFound
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.model import path
from a2a_serverless.domain.outside_events import event_digest
from a2a_serverless.domain.record_names import EVENT, call_of
from a2a_serverless.domain.schedules import SCHEDULE
from a2a_serverless.domain.values import conversation
from a2a_serverless.services.retries import METADATA_KEY
from a2a_serverless.services.task_changes import change_task
from a2a_serverless.services.webhooks import close

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.model import JsonObject, Principal, TaskKey
    from a2a_serverless.domain.new_task import IdempotencyRecord, RequestKind
    from a2a_serverless.ports.system import BlobStore, Clock, Ids
    from a2a_serverless.store.api_keys import ApiKeyStore
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.task_log import TaskLog
    from a2a_serverless_tools.operators.erasure_store import ErasureStore

ERASE_AFTER_MS: Final = 120_000


@dataclass(frozen=True, slots=True)
class ErasureService:
    """The dependencies of erasure."""

    log: TaskLog
    store: PushStore
    erasure_store: ErasureStore
    blobs: BlobStore
    api_keys: ApiKeyStore
    clock: Clock
    ids: Ids


class ErasureScope(NamedTuple):
    """What is erased: a task, a context, or without both the owner with its API keys."""

    principal: Principal
    context: str | None = None
    task: str | None = None

    @property
    def is_owner(self) -> bool:
        """Whether all of the owner is erased."""
        return self.context is None and self.task is None


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is stored, or was erased: tasks, items of the table, objects of the bucket, API keys."""

    tasks: int = 0
    items: int = 0
    blobs: int = 0
    api_keys: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


class Progress(NamedTuple):
    """What is erased so far. ``left`` tasks wait until the time ``until`` (ms), 0 if none does."""

    erased: Counts
    left: int = 0
    until: int = 0


def count(erasure: ErasureService, scope: ErasureScope) -> Counts:
    """Counts what ``erase`` would erase, except idempotency records, uploads and callback addresses. Writes nothing."""
    keys = list(_tasks(erasure, scope))
    of_tasks = [] if scope.is_owner else [_blobs_of(key) for key in keys]  # an owner's place has its tasks'
    places = [*of_tasks, *_shared_places(scope)]
    return Counts(
        tasks=len(keys),
        items=sum(map(erasure.erasure_store.count_items, keys)) + _count_shared(erasure, scope),
        blobs=sum(1 for place in places for _ in erasure.blobs.list_names(place)),
        api_keys=len(_keys_of(erasure, scope)),
    )


def erase(erasure: ErasureService, scope: ErasureScope, report: Callable[[Progress], None]) -> Counts:
    """Erases the scope and returns how much that was; calls ``report`` after each task, and before it waits.

    It waits until each task that ran may be erased, then looks again: an owner may have started others meanwhile. Of
    two erasures at once both may count the same items.
    """
    counts = Counts(api_keys=_revoke(erasure, scope))
    while True:
        met: set[TaskKey] = set()  # a task that was canceled just now is listed again at the end
        times: list[int] = []
        for key in _tasks(erasure, scope):
            if key in met:
                continue
            met.add(key)
            may_at = _end(erasure, key)
            if may_at > erasure.clock.now():
                times.append(may_at)
                continue
            counts += _erase_task(erasure, key)
            report(Progress(counts))
        if not times:
            return counts + _erase_shared(erasure, scope)
        until = max(times)
        report(Progress(counts, len(times), until))
        erasure.clock.sleep(max(0, until - erasure.clock.now()) / 1000)


def _tasks(erasure: ErasureService, scope: ErasureScope) -> Iterator[TaskKey]:
    if scope.task is not None:
        key = scope.principal.key(scope.task)
        if erasure.erasure_store.count_items(key):
            yield key
        return
    after, more = None, True
    while more:
        tasks, after = erasure.erasure_store.list_tasks(scope.principal, scope.context, after)
        yield from tasks
        more = after is not None


def _end(erasure: ErasureService, key: TaskKey) -> int:
    """Cancels the task if it is running; returns since when (ms) no worker can still write, 0 if none ever ran."""
    snapshot = erasure.log.read_head(key)
    if snapshot is None:
        return 0
    head, by = snapshot.head, erasure.ids.new()
    with suppress(TaskNotCancelable, TaskNotFound):
        change_task(
            erasure.log, key, head.agent, lambda snapshot: decisions.cancel(snapshot, now=erasure.clock.now(), by=by)
        )
    record = erasure.log.read_head(key)
    return record.head.status_at + ERASE_AFTER_MS if record and record.head.fence else 0


def _erase_task(erasure: ErasureService, key: TaskKey) -> Counts:
    while cursors := erasure.store.list_cursors(key):  # a client may register others meanwhile
        for cursor in cursors:
            close(erasure.store, erasure.clock, key, cursor.config_id)
    records, callbacks, uploads = _related_names(erasure, key)
    items = erasure.erasure_store.erase_related(key, records, callbacks)
    places = [*uploads, _blobs_of(key)]
    blobs = sum(_erase_blobs(erasure, place) for place in places)
    own = erasure.erasure_store.erase_task(key)
    return Counts(tasks=1 if own else 0, items=items + own, blobs=blobs)


def _related_names(erasure: ErasureService, key: TaskKey) -> tuple[list[IdempotencyRecord], list[str], list[str]]:
    """The idempotency records of a task's messages, its callback addresses, and the names of the uploads in it.

    All empty if the log cannot be read because its blobs are gone: an earlier try has come that far.
    """
    snapshot = erasure.log.read_head(key)
    with suppress(RuntimeError):
        if snapshot:
            steps = erasure.log.read_steps(key)
            calls = {call.opened for call in map(call_of, steps) if call and call.opened in steps}
            callbacks = [OpenedCall.of(steps[name].value).callback for name in sorted(calls)]
            callbacks += [event_digest(str(steps[name].value)) for name in steps if name.startswith(EVENT)]
            events = erasure.log.read(key, 0, snapshot.last)
            incoming = [event.incoming for event in events if isinstance(event, StatusEvent) and event.incoming]
            receipts = (erasure.log.find_idempotency(key, snapshot.head.agent, *one) for one in _request_ids(incoming))
            records = [one for one in receipts if one and one.task == key.task]
            uploads = f"{path(key.tenant, key.owner, UPLOADS)}/"
            files = [file_of(part) for one in incoming for part in one.message.parts]
            upload_names = [f"{uploads}{file.sha256}" for file in files if file and file.place == UPLOADS]
            return records, callbacks, upload_names
    return [], [], []


def _request_ids(incoming: Iterable[Incoming]) -> Iterator[tuple[str, RequestKind]]:
    """The ids of the requests that may have made or continued a task."""
    for one in incoming:
        metadata: JsonObject = one.metadata or {}
        yield one.message.message_id, "tick" if SCHEDULE in metadata else "message"
        if isinstance(retry := metadata.get(METADATA_KEY), dict):
            yield str(retry.get("requestId")), "retry"


def _erase_blobs(erasure: ErasureService, place: str) -> int:
    names = list(erasure.blobs.list_names(place))
    for name in names:
        erasure.blobs.delete(name)
    return len(names)


def _revoke(erasure: ErasureService, scope: ErasureScope) -> int:
    """Revokes the API keys of an owner that is erased, so that it can send nothing new. Returns how many."""
    keys = _keys_of(erasure, scope)
    for digest in keys:
        erasure.api_keys.revoke(digest)
    return len(keys)


def _erase_shared(erasure: ErasureService, scope: ErasureScope) -> Counts:
    """Erases what belongs to no single task: of an owner, or of a conversation."""
    blobs, items = sum(_erase_blobs(erasure, place) for place in _shared_places(scope)), 0
    if scope.is_owner:
        items = erasure.erasure_store.erase_owner(scope.principal)
    if scope.context:
        items = erasure.erasure_store.erase_context(scope.principal, scope.context)
    return Counts(items=items, blobs=blobs)


def _count_shared(erasure: ErasureService, scope: ErasureScope) -> int:
    if scope.is_owner:
        return erasure.erasure_store.count_owner_items(scope.principal)
    return erasure.erasure_store.count_context_items(scope.principal, scope.context) if scope.context else 0


def _shared_places(scope: ErasureScope) -> list[str]:
    """The prefixes of the names of all blobs of an owner, or of those of a conversation."""
    tenant, owner = scope.principal.tenant, scope.principal.owner
    if scope.context:
        return [_blobs_of(conversation(tenant, owner, scope.context))]
    return [f"{path(tenant, owner)}/"] if scope.is_owner else []


def _blobs_of(key: TaskKey) -> str:
    """The prefix of the names of a task's, or a conversation's, blobs."""
    return f"{path(*key)}/"


def _keys_of(erasure: ErasureService, scope: ErasureScope) -> list[str]:
    """The digests of the API keys of an owner that is erased."""
    if not scope.is_owner:
        return []
    return [key.digest for key in erasure.api_keys.list_all() if key.principal == scope.principal]
