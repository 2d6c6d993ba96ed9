from __future__ import annotations

from dataclasses import fields, replace
from enum import StrEnum
from inspect import signature
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.domain import decisions
from a2a_serverless.domain.challenges import ChallengeState
from a2a_serverless.domain.circuit_breaker import OpenBreaker
from a2a_serverless.domain.cursors import Cursor, CursorState
from a2a_serverless.domain.events import Incoming
from a2a_serverless.domain.head import CurrentHead, Head
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.new_task import IdempotencyRecord
from a2a_serverless.domain.push_configs import Attempt, PushConfig
from a2a_serverless.protocol.v1 import Message, Part, Role, TaskState
from a2a_serverless.store import items, keys, push_store
from tests.contract.schema import table_schema

KEY = TaskKey("tenant", "owner", "task")
NOW = 1_790_000_000_000
LIFE = decisions.TaskLifetime(max_life_ms=7 * 86_400_000, retention_ms=30 * 86_400_000)
INCOMING = Incoming(Message(message_id="m", role=Role.USER, parts=(Part(text="hello"),)))
LISTS = {"by_owner", "by_context"}
HEAD = Head(KEY, "agent", "context", TaskState.WORKING, 3, 1, 2, 9, 10)
CURSOR = Cursor("hook", "first")

times = st.integers(0, 10**14)
task_keys = st.builds(TaskKey, st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
heads = st.from_type(Head).flatmap(lambda head: st.builds(head._replace, key=task_keys, due_at=st.none() | times))
cursors = st.from_type(Cursor).flatmap(lambda cursor: st.builds(replace, st.just(cursor), due_at=st.none() | times))


@given(heads)
def test_a_head_comes_back_as_it_was(head: Head) -> None:
    item = items.make_item(keys.task(head.key), keys.HEAD, head.expires, items.head_item(head))
    assert items.head_of(item) == head


@given(cursors)
def test_a_cursor_comes_back_as_it_was(cursor: Cursor) -> None:
    assert items.record_of(Cursor, items.make_item("pk", "sk", 1, push_store.cursor_item(3, cursor))) == cursor


@given(st.from_type(PushConfig))
def test_a_configuration_comes_back_as_it_was(config: PushConfig) -> None:
    assert items.record_of(PushConfig, items.make_item("pk", "sk", 1, items.record_item(config))) == config


@given(st.from_type(Attempt))
def test_an_attempt_comes_back_as_it_was(attempt: Attempt) -> None:
    assert items.record_of(Attempt, items.make_item("pk", "sk", 1, items.record_item(attempt))) == attempt


@given(st.from_type(IdempotencyRecord))
def test_a_receipt_comes_back_as_it_was(receipt: IdempotencyRecord) -> None:
    assert items.record_of(IdempotencyRecord, items.make_item("pk", "sk", 1, items.record_item(receipt))) == receipt


def test_a_field_with_its_default_is_not_stored() -> None:
    assert set(push_store.cursor_item(0, CURSOR)) == {"config_id", "incarnation"}


def test_a_field_that_an_older_release_did_not_know_has_its_default() -> None:
    item = items.make_item("pk", "sk", 1, {"config_id": {"S": "hook"}, "incarnation": {"S": "first"}})
    assert items.record_of(Cursor, item) == CURSOR


def test_an_item_in_a_later_form_is_refused_in_words() -> None:
    item = items.make_item("pk", "CURSOR#hook", 1, push_store.cursor_item(0, CURSOR)) | {"v": {"N": "3"}}
    with pytest.raises(items.UnknownVersion, match="CURSOR#hook is stored in form 3; this release reads form"):
        items.record_of(Cursor, item)


def test_a_head_is_in_the_due_index_only_while_it_is_due() -> None:
    due = items.head_item(HEAD._replace(due_at=5))
    assert due["due_at"] == {"S": "000000000000005"}
    assert due["due_shard"] == {"S": str(keys.shard(KEY))}
    assert not {"due_at", "due_shard"} & set(items.head_item(HEAD))


def test_a_cursor_is_in_the_due_index_only_while_it_is_due() -> None:
    assert push_store.cursor_item(3, replace(CURSOR, due_at=5))["due_shard"] == {"S": "3"}
    assert "due_shard" not in push_store.cursor_item(3, CURSOR)


def test_the_list_indexes_carry_nothing_that_a_lease_changes() -> None:
    leased = items.head_item(HEAD._replace(lease_until=99, fence=2, wake=1, sweeps_in_a_row=1, rev=9))
    plain = items.head_item(HEAD)
    for name in ("own", "own_ctx", "st", "state", "agent", "expires", "due_shard", "due_at"):
        assert leased.get(name) == plain.get(name)


def test_an_item_lives_until_the_second_in_which_it_expires() -> None:
    item = items.make_item("pk", "sk", 10, {})
    assert items.is_live(item, 9_999)
    assert not items.is_live(item, 10_000)
    assert items.is_live(items.make_item("pk", "sk", None, {}), 10**15)
    assert not items.is_live(None, 0)


def test_the_names_of_a_cursor_are_all_its_fields() -> None:
    assert items.names_of(CURSOR) == [field.name for field in fields(Cursor)]
    assert "due_at" in items.names_of(CURSOR)
    assert CursorState.ACTIVE is CURSOR.state


@pytest.mark.parametrize(
    "kind",
    [Head, Cursor, PushConfig, Attempt, IdempotencyRecord, OpenBreaker, ChallengeState],
    ids=lambda kind: kind.__name__,
)
def test_a_stored_class_has_what_its_items_are_read_by(kind: type) -> None:
    fields = {name: one for name, one in signature(kind, eval_str=True).parameters.items() if name != "key"}
    assert len(fields) > 1, "attrgetter gives no tuple for one name"
    enums = {
        name: one
        for name, one in fields.items()
        if isinstance(one.annotation, type) and issubclass(one.annotation, StrEnum)
    }
    assert all(isinstance(one.default, StrEnum) or (kind, name) == (Head, "state") for name, one in enums.items())


# ---- Which indexes a change of the head writes

SUBMITTED = decisions.submit(KEY, "agent", "context", INCOMING, now=NOW, by="api", life=LIFE, push=False)[0]
TAKEN = decisions.start_run(CurrentHead(SUBMITTED, 1), now=NOW + 200, by="run").after


def _written(before: Head, after: Head) -> set[str]:
    """The indexes of the template that hold an attribute in which the two heads differ."""
    old, new = items.head_item(before), items.head_item(after)
    changed = {name for name in old | new if old.get(name) != new.get(name)}
    return {index["IndexName"] for index in table_schema()["GlobalSecondaryIndexes"] if changed & _attributes(index)}


def _attributes(index: dict[str, Any]) -> set[str]:
    return {key["AttributeName"] for key in index["KeySchema"]} | {*index["Projection"]["NonKeyAttributes"]}


@pytest.mark.parametrize(
    ("after", "indexes"),
    [
        (decisions.renew_lease(TAKEN, 1, now=NOW + 9_000), set()),
        (decisions.mark_children(TAKEN, 1), set()),
        (decisions.mark_push(TAKEN), set()),
        (decisions.set_snapshot(TAKEN, 1, "3 700 digest"), set()),
        (decisions.wake(TAKEN, now=NOW + 9_000), set()),
        (
            decisions.report_status(CurrentHead(TAKEN, 2), 1, TaskState.WORKING, None, now=NOW + 9_000, by="run").after,
            LISTS,
        ),
        (decisions.suspend(TAKEN, 1, TAKEN.wake, now=NOW + 9_000), {"due"}),
        (
            decisions.report_status(
                CurrentHead(TAKEN, 2), 1, TaskState.COMPLETED, None, now=NOW + 9_000, by="run"
            ).after,
            LISTS | {"due"},
        ),
    ],
    ids=["renewal", "call", "webhook", "snapshot", "wake", "progress", "wait", "end"],
)
def test_a_change_of_a_head_writes_only_the_indexes_whose_readers_see_it(after: Head, indexes: set[str]) -> None:
    assert _written(TAKEN, after) == indexes
    assert _written(SUBMITTED, TAKEN) == LISTS
