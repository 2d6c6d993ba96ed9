"""Erases a task, a context or an owner: everything that is stored of it, in the tables and the bucket.

A running task is canceled first. Nothing of a task is erased until ``RUN_LEASE_MS`` after its end: by then its worker
has noticed and writes nothing more. The head is erased last, because tasks are found by it. So erasure is resumable
and idempotent.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import head as heads
from a2a_serverless.domain.contents import UPLOADS, file_of
from a2a_serverless.domain.errors import FieldViolation, InvalidParams, TaskNotCancelable, TaskNotFound
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.head import RUN_LEASE_MS
from a2a_serverless.domain.model import Json, JsonObject, Principal, TaskKey
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


@dataclass(frozen=True, slots=True)
class ErasureScope:
    """What to erase: a task, all tasks of a context, or an owner with everything, API keys included."""

    principal: Principal
    context_id: str | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """An operator's request to the eraser: to erase, or with ``dry_run`` only to count."""

    scope: ErasureScope
    dry_run: bool = False

    def to_json(self) -> JsonObject:
        """The request as JSON; ``parse_request`` reads it."""
        said: JsonObject = {
            "tenant": self.scope.principal.tenant,
            "owner": self.scope.principal.owner,
            "dryRun": self.dry_run,
        }
        if self.scope.context_id is not None:
            said["context"] = self.scope.context_id
        return said if self.scope.task is None else said | {"task": self.scope.task}


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """How much was erased, or would be. ``later`` counts tasks that are left for the next request."""

    tasks: int = 0
    items: int = 0
    blobs: int = 0
    api_keys: int = 0
    later: int = 0

    def to_json(self) -> JsonObject:
        """The result as JSON; ``parse_result`` reads it."""
        said: JsonObject = {"tasks": self.tasks, "items": self.items, "blobs": self.blobs}
        return said | {"apiKeys": self.api_keys, "later": self.later}

    def __add__(self, other: ErasureResult) -> ErasureResult:
        """The sum of both results."""
        return ErasureResult(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


def parse_request(wanted: Json) -> ErasureRequest:
    """Reads a request from JSON. Raises InvalidParams for wrong or empty members, so no typo erases a whole owner."""
    named = {name: value for name, value in wanted.items() if name != "dryRun"} if isinstance(wanted, dict) else {}
    texts = {name: value for name, value in named.items() if isinstance(value, str) and value}
    if texts != named or not {"tenant", "owner"} <= texts.keys() <= {"tenant", "owner", "context", "task"}:
        raise InvalidParams("Name tenant and owner, and the context or the task if not all of the owner's is meant.")
    scope = ErasureScope(Principal(texts["tenant"], texts["owner"]), texts.get("context"), texts.get("task"))
    if scope.context_id and scope.task:
        raise InvalidParams("Name the context or the task, not both.")
    dry_run = wanted.get("dryRun", False) if isinstance(wanted, dict) else False
    if not isinstance(dry_run, bool):
        raise InvalidParams(violations=(FieldViolation("dryRun", "is true or false"),))
    return ErasureRequest(scope, dry_run)


def parse_result(answer: JsonObject) -> ErasureResult:
    """Reads what ``ErasureResult.to_json`` wrote."""
    counts = [answer.get(name) for name in ("tasks", "items", "blobs", "apiKeys", "later")]
    return ErasureResult(*(count if isinstance(count, int) else 0 for count in counts))


def run_request(erasure: ErasureService, order: ErasureRequest) -> ErasureResult:
    """Counts, or erases for ``ERASE_LIMIT_MS`` at most; ``later`` says how many tasks are left for the next request."""
    if order.dry_run:
        return count(erasure, order.scope)
    return erase(erasure, order.scope, erasure.clock.now() + ERASE_LIMIT_MS)


def count(erasure: ErasureService, scope: ErasureScope) -> ErasureResult:
    """Counts what ``erase`` would erase, except idempotency records, uploads and callback addresses. Writes nothing."""
    keys = list(_tasks(erasure, scope))
    blobs = [name for place in _blob_prefixes(erasure, scope, keys) for name in erasure.blobs.list_names(place)]
    found = ErasureResult(len(keys), sum(map(erasure.erasure_store.count_items, keys)), len(blobs))
    if not _is_owner(scope):
        return found
    return found + ErasureResult(
        items=erasure.erasure_store.count_owner_items(scope.principal), api_keys=len(_keys_of(erasure, scope.principal))
    )


def erase(erasure: ErasureService, scope: ErasureScope, until: int) -> ErasureResult:
    """Erases what need not wait, until the time ``until`` (ms) at most; ``later`` counts the tasks that are left.

    Tasks are erased while they are listed: an owner may have so many that the list alone takes longer than that.
    """
    done = ErasureResult(api_keys=_revoke(erasure, scope.principal)) if _is_owner(scope) else ErasureResult()
    met: set[TaskKey] = set()  # a task that was canceled just now is listed again at the end
    for key in _tasks(erasure, scope):
        if key in met:
            continue
        met.add(key)
        over = erasure.clock.now() >= until
        done += ErasureResult(later=1) if over or not _is_safe_to_erase(erasure, key) else _erase_task(erasure, key)
    if done.later or not _is_owner(scope):
        return done
    return done + _erase_owner(erasure, scope.principal)


def erase_all(ask: Callable[[], ErasureResult], sleep: Callable[[float], None]) -> ErasureResult:
    """Repeats ``ask`` until no task is left, with ``PAUSE_S`` in between. Returns the sum of the results."""
    done = ErasureResult(later=1)
    while done.later:
        again = ask()
        done = replace(done, later=0) + again
        if again.later:
            sleep(PAUSE_S)
    return done


def _tasks(erasure: ErasureService, scope: ErasureScope) -> Iterator[TaskKey]:
    if scope.task is not None:
        key = scope.principal.key(scope.task)
        if erasure.erasure_store.count_items(key):
            yield key
        return
    after, more = None, True
    while more:
        found, after = erasure.erasure_store.list_tasks(scope.principal, scope.context_id, after)
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
    return head.fence == 0 or erasure.clock.now() >= head.status_at + RUN_LEASE_MS


def _erase_task(erasure: ErasureService, key: TaskKey) -> ErasureResult:
    for cursor in erasure.store.list_cursors(key):
        close(erasure.store, erasure.clock, key, cursor.config_id)
    receipts, callbacks, uploads = _related_names(erasure, key)
    items = erasure.erasure_store.erase_related(key, receipts, callbacks)
    places = [*uploads, erasure.place(key.tenant, key.owner, key.task)]
    blobs = sum(_erase_blobs(erasure, place) for place in places)
    own = erasure.erasure_store.erase_task(key)
    return ErasureResult(1 if own else 0, items + own, blobs)


def _related_names(erasure: ErasureService, key: TaskKey) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """The idempotency records of a task's messages, its callback addresses, and the names of the uploads in it.

    All empty if the log cannot be read because its blobs are gone: an earlier try has come that far.
    """
    snapshot = erasure.log.read_head(key)
    with suppress(RuntimeError):
        if snapshot:
            values = [step.value for name, step in erasure.log.read_steps(key).items() if name.startswith(PREFIX)]
            urls = [value.get("url") for value in values if isinstance(value, dict)]
            incoming = [event.incoming for event in _statuses(erasure, key, snapshot.last) if event.incoming]
            receipts = [(snapshot.head.agent, one.message.message_id) for one in incoming]
            uploads = erasure.place(key.tenant, key.owner, UPLOADS)
            files = [file_of(part) for one in incoming for part in one.message.parts]
            named = [f"{uploads}{file.sha256}" for file in files if file and file.place == UPLOADS]
            return receipts, [url.rpartition("/")[2] for url in urls if isinstance(url, str)], named
    return [], [], []


def _statuses(erasure: ErasureService, key: TaskKey, last: int) -> Iterator[StatusEvent]:
    for event in erasure.log.read(key, 0, last):
        if isinstance(event, StatusEvent):
            yield event


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


def _erase_owner(erasure: ErasureService, principal: Principal) -> ErasureResult:
    blobs = _erase_blobs(erasure, erasure.place(principal.tenant, principal.owner))
    return ErasureResult(items=erasure.erasure_store.erase_owner(principal), blobs=blobs)


def _keys_of(erasure: ErasureService, principal: Principal) -> list[str]:
    return [key.digest for key in erasure.api_keys.list_all() if key.principal == principal]


def _blob_prefixes(erasure: ErasureService, scope: ErasureScope, keys: list[TaskKey]) -> list[str]:
    if _is_owner(scope):
        return [erasure.place(scope.principal.tenant, scope.principal.owner)]
    return [erasure.place(key.tenant, key.owner, key.task) for key in keys]


def _is_owner(scope: ErasureScope) -> bool:
    return scope.context_id is None and scope.task is None
