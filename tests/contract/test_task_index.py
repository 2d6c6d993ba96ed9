"""A caller's tasks, newest status first, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain import decisions
from a2a_serverless.domain.model import Principal, TaskKey
from a2a_serverless.protocol.v1 import TaskState
from tests.contract.backends import NOW
from tests.contract.tasks import EXPIRES, by, moved, opening, seen

if TYPE_CHECKING:
    from a2a_serverless.store.items import TaskEntry
    from a2a_serverless.store.stores import TaskIndex
    from tests.contract.backends import Store

ME = Principal("tenant", "owner")


def _made(store: Store, task: str, at: int = NOW, *, context: str = "context", principal: Principal = ME) -> TaskKey:
    """A task whose status changed at ``at``."""
    new = opening(principal.key(task))
    head = new.head._replace(status_at=at, context_id=context)
    assert store.log.create(new._replace(head=head, event=new.event._replace(at=at))) is None
    return new.head.key


def _listed(store: Store, principal: Principal = ME, context: str | None = None, since: int = 0) -> list[str]:
    entries, after = store.index.list_page(principal, context, None, since, 100)
    assert after is None
    return [entry.task for entry in entries]


def test_a_caller_without_tasks_has_an_empty_page(store: Store) -> None:
    assert store.index.list_page(ME, None, None, 0, 10) == ([], None)
    assert store.index.list_page(ME, "context", None, 0, 10) == ([], None)


@pytest.mark.requirement(13)
def test_the_newest_status_comes_first_and_the_same_moment_by_id_downwards(store: Store) -> None:
    for task, at in (("b", NOW), ("a", NOW), ("old", NOW - 1), ("new", NOW + 1), ("c", NOW)):
        _made(store, task, at)
    assert _listed(store) == ["new", "c", "b", "a", "old"]


def test_an_entry_says_what_a_list_filters_by(store: Store) -> None:
    key = _made(store, "task")
    store.log.append(decisions.start_run(seen(store.log, key), now=NOW + 5, by=by()))
    ((entry,), _) = store.index.list_page(ME, None, None, 0, 10)
    assert (entry.task, entry.agent, entry.state) == ("task", "echo", TaskState.WORKING)


def test_a_new_status_moves_a_task_to_the_front_and_a_lease_does_not(store: Store) -> None:
    first, second = _made(store, "first", NOW), _made(store, "second", NOW + 1)
    head = seen(store.log, first).head
    store.log.update_head(head, moved(head, lease_until=NOW + 99))
    assert _listed(store) == ["second", "first"]
    store.log.append(decisions.start_run(seen(store.log, first), now=NOW + 100, by=by()))
    assert _listed(store) == ["first", "second"]
    assert second.task == "second"


@pytest.mark.requirement(11)
@pytest.mark.parametrize(
    "other", [Principal("tenant", "other"), Principal("other", "owner"), Principal("tenant/owner", "")], ids=repr
)
def test_an_owner_lists_no_tasks_of_another_owner(store: Store, other: Principal) -> None:
    _made(store, "mine")
    _made(store, "theirs", principal=other)
    assert _listed(store) == ["mine"]
    assert _listed(store, other) == ["theirs"]
    assert _listed(store, other, "context") == ["theirs"]


@pytest.mark.requirement(51)
def test_a_context_has_its_own_tasks_only(store: Store) -> None:
    contexts = ["context", "context/", "", "é" * 500, "é" * 501, "own/context"]
    for number, context in enumerate(contexts):
        _made(store, f"task-{number}", context=context)
    for number, context in enumerate(contexts):
        assert _listed(store, context=context) == [f"task-{number}"]
    assert _listed(store, context="other") == []
    assert len(_listed(store)) == len(contexts)


@pytest.mark.requirement(12)
@pytest.mark.parametrize("context", [None, "context"])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 100])
def test_page_after_page_gives_every_task_once_and_then_ends(store: Store, limit: int, context: str | None) -> None:
    tasks = [_made(store, f"task-{number}", NOW + number // 2).task for number in range(7)]
    pages = _pages(store.index, limit, context)
    assert [entry.task for page in pages for entry in page] == sorted(tasks, reverse=True)
    assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert pages[-1]


def test_a_page_goes_on_where_the_last_ended_although_its_last_task_has_moved_since(store: Store) -> None:
    tasks = [_made(store, f"task-{number}", NOW + number) for number in range(4)]
    first, after = store.index.list_page(ME, None, None, 0, 2)
    store.log.append(decisions.start_run(seen(store.log, tasks[2]), now=NOW + 50, by=by()))
    second, _ = store.index.list_page(ME, None, after, 0, 2)
    assert [entry.task for entry in (*first, *second)] == ["task-3", "task-2", "task-1", "task-0"]


def test_a_list_since_a_moment_begins_with_that_moment(store: Store) -> None:
    for number in range(4):
        _made(store, f"task-{number}", NOW + number)
    assert _listed(store, since=NOW + 2) == ["task-3", "task-2"]
    assert _listed(store, since=NOW + 4) == []
    assert _listed(store, since=253_402_300_799_999) == []
    assert len(_listed(store, since=-1)) == 4


def test_an_expired_task_is_not_listed(store: Store) -> None:
    _made(store, "task")
    store.now.ms = EXPIRES * 1000
    assert _listed(store) == []
    assert _listed(store, context="context") == []


def _pages(index: TaskIndex, limit: int, context: str | None) -> list[list[TaskEntry]]:
    entries, after = index.list_page(ME, context, None, 0, limit)
    pages = [entries]
    while after:
        entries, after = index.list_page(ME, context, after, 0, limit)
        pages.append(entries)
    return pages
