"""The table of states, read as the picture that it is."""

from __future__ import annotations

import pytest

from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.domain.states import CHUNKS, INTERRUPTED, NEXT, RUNNABLE, TERMINAL, check, check_chunk
from a2a_serverless.protocol.v1 import TaskState

# A row for the state before, a column for the state after; "x" may follow.
PICTURE = """
                submitted working input-required auth-required completed failed canceled rejected
nothing         x         .       .              .             .         .      .        .
submitted       x         x       .              .             .         x      x        x
working         .         x       x              x             x         x      x        x
input-required  .         x       .              .             .         x      x        .
auth-required   .         x       .              .             .         x      x        .
completed       .         .       .              .             .         .      .        .
failed          .         .       .              .             .         .      .        .
canceled        .         .       .              .             .         .      .        .
rejected        .         .       .              .             .         .      .        .
"""
BEFORE = (None, *TaskState)
PAIRS = [(before, after) for before in BEFORE for after in TaskState]


def drawn() -> dict[TaskState | None, frozenset[TaskState]]:
    head, *rows = [line.split() for line in PICTURE.strip().splitlines()]
    columns = [TaskState(name) for name in head]
    return {
        None if name == "nothing" else TaskState(name): frozenset(
            after for after, mark in zip(columns, marks, strict=True) if mark == "x"
        )
        for name, *marks in rows
    }


def is_allowed(before: TaskState | None, after: TaskState) -> bool:
    try:
        check(before, after)
    except IllegalTransition:
        return False
    return True


def test_the_table_of_transitions_is_equal_to_the_drawing() -> None:
    assert drawn() == NEXT


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_status_is_allowed_exactly_where_the_picture_has_a_mark(before: TaskState | None, after: TaskState) -> None:
    assert is_allowed(before, after) is (after in drawn()[before])


@pytest.mark.parametrize("ended", sorted(TERMINAL))
def test_rule_02_no_state_may_follow_a_terminal_state(ended: TaskState) -> None:
    assert not any(is_allowed(ended, after) for after in TaskState)


@pytest.mark.parametrize("open_state", sorted(set(TaskState) - TERMINAL))
def test_a_task_that_has_not_ended_can_be_canceled_and_can_fail(open_state: TaskState) -> None:
    assert NEXT[open_state] >= {TaskState.CANCELED, TaskState.FAILED}


def test_every_state_can_be_reached_from_nothing() -> None:
    reached: set[TaskState] = set()
    coming: set[TaskState | None] = {None}
    while coming:
        following = {after for before in coming for after in NEXT[before]}
        coming = set(following - reached)
        reached |= following
    assert reached == set(TaskState)


def test_every_state_is_of_exactly_one_kind() -> None:
    kinds = [TERMINAL, INTERRUPTED, RUNNABLE]
    assert sorted(state for kind in kinds for state in kind) == sorted(TaskState)


@pytest.mark.parametrize("state", BEFORE)
def test_chunks_are_written_only_while_the_task_works(state: TaskState | None) -> None:
    if state in CHUNKS:
        check_chunk(state)
    else:
        with pytest.raises(IllegalTransition, match=f"may not follow {state or 'nothing'}"):
            check_chunk(state)
    assert {TaskState.WORKING} == CHUNKS


def test_a_refusal_says_what_may_not_follow_what() -> None:
    with pytest.raises(IllegalTransition, match="working may not follow completed"):
        check(TaskState.COMPLETED, TaskState.WORKING)
    with pytest.raises(IllegalTransition, match="completed may not follow nothing"):
        check(None, TaskState.COMPLETED)
