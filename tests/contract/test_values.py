"""Values of tasks and conversations, over every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.decisions import cancel, hand_over, start_run
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.values import StoredText, ValueScope
from a2a_serverless.store import keys
from a2a_serverless.store.payloads import PayloadStore
from a2a_serverless.store.task_log import TaskLog
from a2a_serverless.store.value_store import ValueStore
from a2a_serverless.testing.memory import MemoryBlobStore, MemoryTable
from tests.contract.backends import LIMIT, NOW, Now, Store
from tests.contract.tasks import EXPIRES, KEY, by, created, seen, taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.head import Head
    from a2a_serverless.store.items import Item

SCOPES = [ValueScope(KEY), ValueScope(KEY, "context")]
EACH = pytest.mark.parametrize("scope", SCOPES, ids=["task", "conversation"])


def put(store: Store, head: Head, scope: ValueScope, key: str, text: str = "1", **how: str | None) -> str | None:
    version = by()
    stored = store.values.put_value(head, scope, StoredText(key, text, version), how.get("expected"))
    return "written" if stored == version else stored


def texts(
    store: Store, scope: ValueScope, prefix: str = "", after: str = "", limit: int = 100
) -> list[tuple[str, str]]:
    return [(one.key, one.text) for one in store.values.list_values(scope, prefix, after, limit)]


@EACH
def test_a_value_is_read_as_it_was_written_and_then_replaced_and_deleted(store: Store, scope: ValueScope) -> None:
    head = taken(store.log).head
    for text in ("first", "x" * (LIMIT + 1), "third"):
        assert put(store, head, scope, "key", text) == "written"
        found = store.values.get_value(scope, "key")
        assert found
        assert (found.key, found.text, found.agent) == ("key", text, head.agent)
    assert store.values.delete_value(head, scope, "key", "deleted", None) == "deleted"
    assert store.values.get_value(scope, "key") is None
    assert texts(store, scope) == []
    assert put(store, head, scope, "key", expected="") == "written"


@EACH
def test_a_write_that_expects_another_version_changes_nothing_and_says_which_is_stored(
    store: Store, scope: ValueScope
) -> None:
    head = taken(store.log).head
    assert put(store, head, scope, "key", expected="made-up") == ""
    assert store.values.put_value(head, scope, StoredText("key", "1", "v1"), "") == "v1"
    assert put(store, head, scope, "key", "2", expected="") == "v1"
    assert put(store, head, scope, "key", "2", expected="v0") == "v1"
    assert store.values.delete_value(head, scope, "key", "gone", "v0") == "v1"
    assert texts(store, scope) == [("key", "1")]
    assert store.values.put_value(head, scope, StoredText("key", "x" * (LIMIT + 1), "v2"), "v1") == "v2"
    assert store.values.put_value(head, scope, StoredText("key", "3", "v3"), "v2") == "v3"
    assert texts(store, scope) == [("key", "3")]
    assert store.values.delete_value(head, scope, "key", "gone", "v3") == "gone"
    assert texts(store, scope) == []


@EACH
def test_rule_06_a_run_that_has_lost_its_task_writes_no_value(store: Store, scope: ValueScope) -> None:
    first = taken(store.log)
    assert put(store, first.head, scope, "key") == "written"
    assert store.log.update_head(first.head, hand_over(first.head, 1, now=NOW + 2))
    assert store.log.append(start_run(seen(store.log), now=NOW + 3, by=by()))
    assert put(store, first.head, scope, "key", "late") is None
    assert put(store, first.head, scope, "new", "late") is None
    assert store.values.delete_value(first.head, scope, "key", "late", None) is None
    second = seen(store.log).head
    assert put(store, second, scope, "key", "2") == "written"
    assert store.log.append(cancel(seen(store.log), now=NOW + 4, by=by()))
    assert put(store, second, scope, "key", "late") is None
    assert texts(store, scope) == [("key", "2")]


@EACH
def test_values_are_listed_by_prefix_in_pages_that_miss_nothing(store: Store, scope: ValueScope) -> None:
    head = taken(store.log).head
    names = ["a", "a/1", "a/2", "a/10", "a-b", "A", "ä", "b", "~", "a!"]
    for name in names:
        put(store, head, scope, name, name)
    listed = [key for key, _ in texts(store, scope)]
    assert sorted(listed) == sorted(names)
    paged: list[str] = []
    while page := texts(store, scope, after=paged[-1] if paged else "", limit=3):
        paged += [key for key, _ in page]
    assert paged == listed
    assert {key for key, _ in texts(store, scope, "a/")} == {"a/1", "a/2", "a/10"}
    assert [key for key, _ in texts(store, scope, "a/", after="a/1")] == ["a/10", "a/2"]
    assert texts(store, scope, "c") == []


def test_rule_03_a_value_is_seen_in_its_own_scope_only(store: Store) -> None:
    others = [KEY._replace(task="task-2"), KEY._replace(owner="bob"), KEY._replace(tenant="elsewhere")]
    scopes = [*SCOPES, *map(ValueScope, others), ValueScope(KEY, "context/x"), ValueScope(KEY, "")]
    scopes += [ValueScope(key, "context") for key in others[1:]]
    head = taken(store.log).head
    for number, scope in enumerate(scopes):
        put(store, head, scope, "key", str(number))
    assert [texts(store, scope) for scope in scopes] == [[("key", str(number))] for number in range(len(scopes))]


@EACH
def test_a_value_expires_with_the_task_that_has_written_it(store: Store, scope: ValueScope) -> None:
    head = taken(store.log).head
    put(store, head, scope, "key")
    store.now.ms = EXPIRES * 1000
    assert store.values.get_value(scope, "key") is None
    assert texts(store, scope) == []


def test_the_next_task_of_a_conversation_prolongs_the_life_of_a_value_that_it_replaces(store: Store) -> None:
    scope = SCOPES[1]
    put(store, taken(store.log).head, scope, "key", "1")
    later = TaskKey(KEY.tenant, KEY.owner, "task-2")
    snapshot = created(store.log, later)
    assert store.log.append(start_run(snapshot, now=NOW + 1, by=by()))
    head = seen(store.log, later).head._replace(expires=EXPIRES + 60)
    put(store, head, ValueScope(later, "context"), "key", "2")
    store.now.ms = EXPIRES * 1000 + 1
    assert texts(store, scope) == [("key", "2")]


# ---- Writes whose answers were lost

MUTATIONS: dict[str, Callable[[Store, Head, ValueScope], object]] = {
    "put": lambda store, head, scope: store.values.put_value(head, scope, StoredText("key", "mine", "own"), None),
    "put new": lambda store, head, scope: store.values.put_value(head, scope, StoredText("new", "mine", "own"), ""),
    "replace": lambda store, head, scope: store.values.put_value(head, scope, StoredText("key", "mine", "own"), "v1"),
    "delete": lambda store, head, scope: store.values.delete_value(head, scope, "key", "own", None),
    "delete a version": lambda store, head, scope: store.values.delete_value(head, scope, "key", "own", "v1"),
}


@EACH
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_write_whose_answer_was_lost_is_a_success_when_it_is_repeated(
    store: Store, scope: ValueScope, mutation: str
) -> None:
    head = taken(store.log).head
    store.values.put_value(head, scope, StoredText("key", "1", "v1"), None)
    answers, left = [], []
    for _ in range(2):
        answers.append(MUTATIONS[mutation](store, head, scope))
        left.append(store.values.list_values(scope, "", "", 10))
    assert (answers, left[0]) == (["own", "own"], left[1])


@EACH
@pytest.mark.parametrize(("mutation", "key"), [("put new", "new"), ("replace", "key")])
@pytest.mark.parametrize("other", ["replaces it", "deletes it"])
def test_a_write_whose_answer_was_lost_is_a_success_also_if_another_has_built_on_it(
    store: Store, scope: ValueScope, mutation: str, key: str, other: str
) -> None:
    head = taken(store.log).head
    store.values.put_value(head, scope, StoredText("key", "1", "v1"), None)
    assert MUTATIONS[mutation](store, head, scope) == "own"
    if other == "replaces it":
        assert store.values.put_value(head, scope, StoredText(key, "theirs", "v9"), "own") == "v9"
    else:
        assert store.values.delete_value(head, scope, key, "v9", "own") == "v9"
    before = store.values.list_values(scope, "", "", 10)
    if (mutation, other) != ("put new", "deletes it"):  # there is no value: it is written again
        assert MUTATIONS[mutation](store, head, scope) == "own"
        assert store.values.list_values(scope, "", "", 10) == before


@EACH
@pytest.mark.parametrize("others", [["v8"], ["v8", "v9"]])
@pytest.mark.parametrize("how", ["any", "this"])
def test_a_write_without_a_version_whose_answer_was_lost_overwrites_nothing_when_it_is_repeated(
    store: Store, scope: ValueScope, others: list[str], how: str
) -> None:
    head, last = taken(store.log).head, "own"
    assert MUTATIONS["put"](store, head, scope) == "own"
    for version in others[: 1 if how == "this" else 2]:
        expected = last if how == "this" else None
        assert store.values.put_value(head, scope, StoredText("key", version, version), expected) == version
        last = version
    assert MUTATIONS["put"](store, head, scope) == "own"
    assert texts(store, scope) == [("key", last)]


class RacedTable(MemoryTable):
    """A table in which another writer comes after the next read of a value."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__(now)
        self.others: list[Callable[[], object]] = []

    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        item = super().get(pk, sk, consistent=consistent)
        if sk.startswith(keys.VALUES) and self.others:
            self.others.pop()()
        return item


def test_of_two_writes_without_a_version_none_is_lost_between_the_read_and_the_write_of_the_other() -> None:
    now = Now()
    table, payloads = RacedTable(now), PayloadStore(MemoryBlobStore(), LIMIT)
    values = ValueStore(table, payloads)
    head = taken(TaskLog(table, payloads)).head
    mine, theirs = StoredText("key", "mine", "v1"), StoredText("key", "theirs", "v2")
    table.others.append(lambda: values.put_value(head, SCOPES[0], theirs, None))
    assert values.put_value(head, SCOPES[0], mine, None) is None  # the session tries it again
    assert values.put_value(head, SCOPES[0], mine, None) == "v1"
    assert values.put_value(head, SCOPES[0], theirs, None) == "v2"  # its answer was lost
    found = values.get_value(SCOPES[0], "key")
    assert found
    assert found.text == "mine"
