"""Erases a task, a context or an owner: everything that is stored of it, in the tables and the bucket.

A running task is canceled first. Nothing of a task is erased until ``ERASE_AFTER_MS`` after its end: by then the lease
of its last run, and every write that began in it, are over. A later write is refused (``adapters.dynamodb.fence``). The
head is erased last, because tasks are found by it. So erasure is resumable and idempotent.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import head as heads
from a2a_serverless.domain.contents import UPLOADS, file_of
from a2a_serverless.domain.errors import TaskNotCancelable, TaskNotFound
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.model import Principal, TaskKey
from a2a_serverless.domain.values import conversation
from a2a_serverless.protocol.additions import EraseRequest, EraseResponse
from a2a_serverless.services.callbacks import PREFIX
from a2a_serverless.services.task_changes import change_task
from a2a_serverless.services.webhooks import close

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.ports.contents import BlobStore
    from a2a_serverless.ports.delivery import PushStore
    from a2a_serverless.ports.keys import ApiKeyStore
    from a2a_serverless.ports.owners import ErasureStore
    from a2a_serverless.ports.system import Clock, Ids
    from a2a_serverless.ports.tasks import TaskLog

ERASE_LIMIT_MS: Final = 15_000
ERASE_AFTER_MS: Final = 120_000
PAUSE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class ErasureService:
    """The dependencies of erasure. ``place`` returns the prefix of the names of a task's, or an owner's, blobs."""

    log: TaskLog
    store: PushStore
    erasure_store: ErasureStore
    blobs: BlobStore
    api_keys: ApiKeyStore
    clock: Clock
    ids: Ids
    place: Callable[..., str]


def make_response(**counts: int) -> EraseResponse:
    """A response with these counts; the others are 0."""
    return EraseResponse(**dict.fromkeys(EraseResponse.model_fields, 0) | counts)


def run_request(erasure: ErasureService, wanted: EraseRequest) -> EraseResponse:
    """Counts, or erases for ``ERASE_LIMIT_MS`` at most; ``later`` says how many tasks are left for the next request."""
    if wanted.dry_run:
        return count(erasure, wanted)
    return erase(erasure, wanted, erasure.clock.now() + ERASE_LIMIT_MS)


def count(erasure: ErasureService, wanted: EraseRequest) -> EraseResponse:
    """Counts what ``erase`` would erase, except idempotency records, uploads and callback addresses. Writes nothing."""
    keys, owner = list(_tasks(erasure, wanted)), _owner(wanted)
    places = [_blobs_of(erasure, key) for key in keys]
    if owner:
        places = [erasure.place(owner.tenant, owner.owner)]
    if wanted.context:
        places.append(_blobs_of(erasure, conversation(wanted.tenant, wanted.owner, wanted.context)))
    return make_response(
        tasks=len(keys),
        items=sum(map(erasure.erasure_store.count_items, keys)) + _count_shared(erasure, wanted),
        blobs=sum(1 for place in places for _ in erasure.blobs.list_names(place)),
        api_keys=len(_keys_of(erasure, owner)) if owner else 0,
    )


def erase(erasure: ErasureService, wanted: EraseRequest, until: int) -> EraseResponse:
    """Erases what need not wait, until the time ``until`` (ms) at most; ``later`` counts the tasks that are left.

    Tasks are erased while they are listed: an owner may have so many that the list alone takes longer than that.
    """
    owner = _owner(wanted)
    done = make_response(api_keys=_revoke(erasure, owner) if owner else 0)
    met: set[TaskKey] = set()  # a task that was canceled just now is listed again at the end
    for key in _tasks(erasure, wanted):
        if key in met:
            continue
        met.add(key)
        over = erasure.clock.now() >= until
        left = over or not _is_safe_to_erase(erasure, key)
        done = _add(done, make_response(later=1) if left else _erase_task(erasure, key))
    return done if done.later else _add(done, _erase_shared(erasure, wanted))


def erase_all(ask: Callable[[], EraseResponse], sleep: Callable[[float], None]) -> EraseResponse:
    """Repeats ``ask`` until no task is left, with ``PAUSE_S`` in between. Returns the sum of the results."""
    done = ask()
    while done.later:
        sleep(PAUSE_S)
        done = _add(done.model_copy(update={"later": 0}), ask())
    return done


def _add(one: EraseResponse, other: EraseResponse) -> EraseResponse:
    """The sum of both responses."""
    return make_response(**{name: count + getattr(other, name) for name, count in one})


def _tasks(erasure: ErasureService, wanted: EraseRequest) -> Iterator[TaskKey]:
    principal = Principal(wanted.tenant, wanted.owner)
    if wanted.task is not None:
        key = principal.key(wanted.task)
        if erasure.erasure_store.count_items(key):
            yield key
        return
    after, more = None, True
    while more:
        found, after = erasure.erasure_store.list_tasks(principal, wanted.context, after)
        yield from found
        more = after is not None


def _is_safe_to_erase(erasure: ErasureService, key: TaskKey) -> bool:
    """Cancels the task if it is running; true once no worker can still write."""
    snapshot = erasure.log.read_head(key)
    if snapshot is None:
        return True
    head, by = snapshot.head, erasure.ids.new()
    with suppress(TaskNotCancelable, TaskNotFound):
        change_task(
            erasure.log, key, head.agent, lambda snapshot: heads.cancel(snapshot, now=erasure.clock.now(), by=by)
        )
        return head.fence == 0
    return head.fence == 0 or erasure.clock.now() >= head.status_at + ERASE_AFTER_MS


def _erase_task(erasure: ErasureService, key: TaskKey) -> EraseResponse:
    while cursors := erasure.store.list_cursors(key):  # a client may register others meanwhile
        for cursor in cursors:
            close(erasure.store, erasure.clock, key, cursor.config_id)
    records, callbacks, uploads = _related_names(erasure, key)
    items = erasure.erasure_store.erase_related(key, records, callbacks)
    places = [*uploads, _blobs_of(erasure, key)]
    blobs = sum(_erase_blobs(erasure, place) for place in places)
    own = erasure.erasure_store.erase_task(key)
    return make_response(tasks=1 if own else 0, items=items + own, blobs=blobs)


def _related_names(erasure: ErasureService, key: TaskKey) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """The idempotency records of a task's messages, its callback addresses, and the names of the uploads in it.

    All empty if the log cannot be read because its blobs are gone: an earlier try has come that far.
    """
    snapshot = erasure.log.read_head(key)
    with suppress(RuntimeError):
        if snapshot:
            values = [step.value for name, step in erasure.log.read_steps(key).items() if name.startswith(PREFIX)]
            urls = [value.get("url") for value in values if isinstance(value, dict)]
            events = erasure.log.read(key, 0, snapshot.last)
            incoming = [event.incoming for event in events if isinstance(event, StatusEvent) and event.incoming]
            records = [(snapshot.head.agent, one.message.message_id) for one in incoming]
            uploads = erasure.place(key.tenant, key.owner, UPLOADS)
            files = [file_of(part) for one in incoming for part in one.message.parts]
            named = [f"{uploads}{file.sha256}" for file in files if file and file.place == UPLOADS]
            return records, [url.rpartition("/")[2] for url in urls if isinstance(url, str)], named
    return [], [], []


def _erase_blobs(erasure: ErasureService, place: str) -> int:
    names = list(erasure.blobs.list_names(place))
    for name in names:
        erasure.blobs.delete(name)
    return len(names)


def _revoke(erasure: ErasureService, principal: Principal) -> int:
    """Revokes the owner's API keys, so that it can send nothing new. Returns how many."""
    keys = _keys_of(erasure, principal)
    for digest in keys:
        erasure.api_keys.revoke(digest)
    return len(keys)


def _erase_shared(erasure: ErasureService, wanted: EraseRequest) -> EraseResponse:
    """Erases what belongs to no single task: of an owner, or of a conversation."""
    principal = Principal(wanted.tenant, wanted.owner)
    if _owner(wanted):
        blobs = _erase_blobs(erasure, erasure.place(wanted.tenant, wanted.owner))
        return make_response(items=erasure.erasure_store.erase_owner(principal), blobs=blobs)
    if wanted.context:
        place = _blobs_of(erasure, conversation(wanted.tenant, wanted.owner, wanted.context))
        blobs = _erase_blobs(erasure, place)
        return make_response(items=erasure.erasure_store.erase_context(principal, wanted.context), blobs=blobs)
    return make_response()


def _count_shared(erasure: ErasureService, wanted: EraseRequest) -> int:
    principal = Principal(wanted.tenant, wanted.owner)
    if _owner(wanted):
        return erasure.erasure_store.count_owner_items(principal)
    return erasure.erasure_store.count_context_items(principal, wanted.context) if wanted.context else 0


def _blobs_of(erasure: ErasureService, key: TaskKey) -> str:
    """The prefix of the names of a task's, or a conversation's, blobs."""
    return erasure.place(key.tenant, key.owner, key.task)


def _keys_of(erasure: ErasureService, owner: Principal) -> list[str]:
    return [key.digest for key in erasure.api_keys.list_all() if key.principal == owner]


def _owner(wanted: EraseRequest) -> Principal | None:
    """The owner that is erased with everything, API keys included; None if only a task or a context is."""
    return Principal(wanted.tenant, wanted.owner) if wanted.context is None and wanted.task is None else None
