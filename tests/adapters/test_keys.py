from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2a_serverless.domain.model import NAME_LIMIT, TaskKey, check_readable, path
from a2a_serverless.store import keys
from a2a_serverless.store.keys import SHARDS

names = st.text(max_size=30)
task_keys = st.builds(TaskKey, names, names, names)
LONG = "x" * (NAME_LIMIT + 1)


@given(task_keys)
@example(TaskKey("a/b", "%2F", "\ud800"))
def test_a_task_is_read_back_from_its_partition(key: TaskKey) -> None:
    assert keys.task_key(keys.task(key)) == key


@given(task_keys, task_keys)
def test_two_tasks_never_share_a_partition(one: TaskKey, other: TaskKey) -> None:
    assert (keys.task(one) == keys.task(other)) == (one == other)


@given(st.lists(names, min_size=1), st.lists(names, min_size=1))
def test_two_lists_of_names_never_make_the_same_path(one: list[str], other: list[str]) -> None:
    assert (path(*one) == path(*other)) == (one == other)


def test_a_partition_names_its_task() -> None:
    assert keys.task_key("TASK#t/o%2F1/x") == TaskKey("t", "o/1", "x")


@pytest.mark.parametrize("pk", ["SENT#t/o/a/m", "PUBLIC", "TASK#t/o", "TASK#t/o/x/y", "TASK#t/o/sha256=00", ""])
def test_a_partition_key_of_no_task_is_refused(pk: str) -> None:
    with pytest.raises(ValueError, match="not a task's"):
        keys.task_key(pk)


def test_a_key_is_never_longer_than_dynamodb_and_s3_allow() -> None:
    most = "é" * 1000
    key = TaskKey(most, most, most)
    assert len(keys.task(key)) <= 1024
    assert len(keys.idempotency(key, most, most)) <= 2048
    assert len(keys.attempt(most, keys.LAST, 99_999, keys.LAST)) <= 1024
    assert len(path("x" * 300, "x" * 300, "x" * 300)) + 65 <= 1024


def test_an_id_that_could_not_be_read_back_is_refused() -> None:
    check_readable("x" * NAME_LIMIT, "é" * (NAME_LIMIT // 6))
    with pytest.raises(ValueError, match="301 characters is too long"):
        check_readable("short", LONG)


@given(st.integers(1, keys.LAST - 1))
def test_events_sort_by_number_between_the_first_and_the_head(n: int) -> None:
    assert keys.EVENTS < keys.event(n) < keys.event(n + 1) < keys.HEAD
    assert keys.event_number(keys.event(n)) == n


def test_no_item_but_events_lies_between_the_events_and_the_head() -> None:
    others = [keys.step("s"), keys.push("p"), keys.cursor("c"), keys.attempt("c", 1, 1, 1)]
    assert not [sk for sk in others if keys.EVENTS <= sk <= keys.HEAD]


@given(st.integers(0, 10**14), st.integers(0, 10**14))
def test_moments_sort_like_their_numbers(one: int, other: int) -> None:
    assert (keys.moment(one) < keys.moment(other)) == (one < other)


@given(task_keys)
def test_a_task_has_one_shard(key: TaskKey) -> None:
    assert 0 <= keys.shard(key) < SHARDS
    assert keys.shard(key) == keys.shard(TaskKey("", "", key.task))


def test_tasks_spread_over_all_shards() -> None:
    assert {keys.shard(TaskKey("t", "o", f"task-{number}")) for number in range(200)} == set(range(SHARDS))


def test_a_cursor_names_its_configuration_and_other_items_do_not() -> None:
    assert keys.cursor_config(keys.cursor("a/b#é")) == "a/b#é"
    assert keys.cursor_config(keys.HEAD) is None
