"""ListTasks (specification 3.1.4): pages of a caller's tasks, newest status first, from an index.

The index lists the tasks and when their status changed; the tasks themselves are read from their logs. A page reads a
bounded number of index entries, so a filter that few tasks match may give short pages. ``totalSize`` is counted on the
first page, up to ``COUNTED``. The page token is sealed: it is valid only for the same caller and filters.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.errors import FieldViolation, InvalidParams
from a2a_serverless.domain.queries import ListTasks, TaskPage, limit_task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_serverless.domain.model import Principal, Task, TaskState
    from a2a_serverless.ports.keys import Sealer
    from a2a_serverless.ports.tasks import TaskEntry, TaskIndex, TaskLog

COUNTED: Final = 1000
READ: Final = 300


@dataclass(frozen=True, slots=True)
class TaskLister:
    """The dependencies of listing. ``sealer`` encrypts page tokens and detects changed ones."""

    log: TaskLog
    index: TaskIndex
    sealer: Sealer


@dataclass(frozen=True, slots=True)
class _PagePosition:
    """Where a page begins: after position ``after`` of the index. ``total`` was counted on the first page."""

    after: str | None = None
    total: int | None = None


def list_tasks(lister: TaskLister, principal: Principal, agent: str, query: ListTasks) -> TaskPage:
    """Returns one page. Raises InvalidParams for a page token of another caller or other filters."""
    context = _token_context(principal, agent, query)
    place = _place(lister, query.page_token, context)
    limit = COUNTED if place.total is None else READ
    entries, after_last = lister.index.list_page(principal, query.context_id, place.after, query.since or 0, limit)
    matching = [entry for entry in entries if _matches(entry, agent, query)]
    page = matching[: query.page_size]
    total = len(matching) if place.total is None else place.total
    after = page[-1].position if len(matching) > len(page) else after_last
    read = sorted(_read(lister, principal, page, query.state), key=_newness, reverse=True)
    tasks = tuple(limit_task(task, query.history_length, artifacts=query.include_artifacts) for task in read)
    token = "" if after is None else _token(lister, _PagePosition(after, total), context)
    return TaskPage(tasks, query.page_size, total, token, query.include_artifacts)


def _matches(entry: TaskEntry, agent: str, query: ListTasks) -> bool:
    return entry.agent == agent and query.state in {None, entry.state}


def _read(
    lister: TaskLister, principal: Principal, page: Iterable[TaskEntry], state: TaskState | None
) -> Iterator[Task]:
    """Yields the current tasks: the index may be behind. Omits tasks that have expired or left ``state`` since."""
    for entry in page:
        found = lister.log.read_task(principal.key(entry.task))
        if found and state in {None, found[0].state}:
            yield found[1]


def _newness(task: Task) -> tuple[int, str]:
    return task.status.timestamp, task.task_id


def _token_context(principal: Principal, agent: str, query: ListTasks) -> str:
    filters = replace(query, page_token=None, page_size=1, history_length=None, include_artifacts=False)
    return digest(["page", principal.tenant, principal.owner, agent, filters])


def _token(lister: TaskLister, place: _PagePosition, context: str) -> str:
    return lister.sealer.seal(json.dumps([place.after, place.total]), context)


def _place(lister: TaskLister, token: str | None, context: str) -> _PagePosition:
    if not token:
        return _PagePosition()
    try:
        after, total = json.loads(lister.sealer.open(token, context))
    except ValueError:
        bad = FieldViolation("pageToken", "is not a token of an earlier page of this list")
        raise InvalidParams(violations=(bad,)) from None
    return _PagePosition(after, total)
