"""The task as of one event after another, whatever of the log is at hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.domain.replay import replay
from a2a_serverless.services.notifications import TaskReplayer
from a2a_serverless.testing.memory import MemoryStores
from tests.contract.backends import NOW
from tests.contract.tasks import KEY, chunk, head_of, taken, writer
from tests.faults.plans import Count, Frail

LAST = 9


def long_table() -> MemoryStores:
    table = MemoryStores(lambda: NOW)
    taken(table)
    for n in range(3, LAST + 1):
        table.append_chunk(writer(), chunk(n, append=n > 3))
    return table


TABLE = long_table()
LOG = TABLE.read(KEY, 0)


@given(st.lists(st.tuples(st.integers(1, LAST), st.integers(0, LAST - 1), st.integers(1, LAST)), max_size=6))
def test_any_moment_is_told_as_it_was_whatever_was_read_and_told_before(told: list[tuple[int, int, int]]) -> None:
    replayer = TaskReplayer(TABLE, head_of(TABLE))
    for n, after, count in told:
        assert replayer.at(n, LOG[after : after + count]) == replay(KEY.task, "context", LOG[:n])


def test_a_log_is_read_once_however_many_of_its_moments_are_told() -> None:
    count = Count()
    replayer = TaskReplayer(Frail(TABLE, "table", count), head_of(TABLE))  # type: ignore[arg-type]
    for n in range(5, LAST + 1):
        replayer.at(n, LOG[4:])
    assert count.calls == ["table.read_task_at"]


def test_a_log_that_is_at_hand_from_its_beginning_is_not_read_again() -> None:
    count = Count()
    replayer = TaskReplayer(Frail(TABLE, "table", count), head_of(TABLE))  # type: ignore[arg-type]
    for n in range(1, LAST + 1):
        replayer.at(n, LOG)
    assert count.calls == []
