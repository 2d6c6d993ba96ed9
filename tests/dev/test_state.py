"""The file in which ``dev`` keeps what it has: what a process has written, the next one reads."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.store.items import make_place
from a2a_serverless.store.table import Put, PutNew
from a2a_serverless_tools.local.state import (
    FORM,
    ITEMS,
    MESSAGES,
    State,
    StateInUse,
    StateKeyRing,
    StateQueues,
    StateUnreadable,
)
from tests.contract.backends import NOW, Store, in_file
from tests.releases.story import READS, RING, write
from tests.world import ME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FIRST, SECOND = WorkMessage(ME.key("first")), WorkMessage(ME.key("second"))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[], State]]:
    """Opens the file, and closes what was opened before, as the end of a process does."""
    states: list[State] = []

    def open_file() -> State:
        for state in states:
            state.close()
        states.append(State(tmp_path / "state.db"))
        return states[-1]

    yield open_file
    states[-1].close()


@pytest.fixture
def written(opened: Callable[[], State]) -> Store:
    """A store that another process has written."""
    write(in_file(opened()))
    return in_file(opened())


@pytest.mark.parametrize("name", READS)
def test_every_kind_of_item_is_there_again(written: Store, name: str) -> None:
    read, expected = READS[name]
    assert read(written) == expected


def test_a_write_that_is_refused_leaves_nothing_in_the_file(opened: Callable[[], State]) -> None:
    state = opened()
    table: Any = in_file(state).index._table  # noqa: SLF001 - the table under the stores
    one, two = ({**make_place("p", sk), "text": {"S": sk}} for sk in ("one", "two"))
    assert table.write(Put(one)) is None
    assert table.write(Put(two), PutNew(one)) is not None
    assert len(state.read(ITEMS)) == 1


def test_dev_reads_no_item_again_that_was_erased_or_has_expired(opened: Callable[[], State]) -> None:
    table: Any = in_file(opened()).index._table  # noqa: SLF001 - the table under the stores
    for sk, expires in {"erased": NOW + 60_000, "expired": NOW - 1000, "live": NOW + 60_000}.items():
        table.write(Put({**make_place("p", sk), "expires": {"N": str(expires // 1000)}}))
    table.erase([make_place("p", "erased")])
    state = opened()
    in_file(state)
    assert [name for name, _ in state.read(ITEMS)] == ['["p", "live"]']


def test_a_message_that_was_taken_comes_again_until_its_handling_has_ended(opened: Callable[[], State]) -> None:
    now = [NOW]

    def queues(state: State) -> StateQueues:
        return StateQueues(state, lambda: now[0], lambda: None)

    first = queues(opened())
    first.enqueue(FIRST)
    first.enqueue(FIRST, 60)
    first.enqueue(SECOND)
    assert (first.pop(), first.pop(), first.pop()) == (FIRST, SECOND, None)
    first.finish(SECOND, is_handled=True)
    state = opened()
    second = queues(state)
    assert second.waiting == [(NOW, FIRST), (NOW + 60_000, FIRST)]
    assert second.pop() == FIRST
    second.finish(FIRST, is_handled=False)
    assert [due for due, _ in second.waiting] == [NOW + 60_000, NOW + 90_000]
    now[0] += 90_000
    while (message := second.pop()) is not None:
        second.finish(message, is_handled=True)
    assert state.read(MESSAGES) == []


def test_dev_loads_the_key_ring_that_it_saved_before(opened: Callable[[], State]) -> None:
    assert StateKeyRing(opened()).save(RING, None)
    assert StateKeyRing(opened()).load() == RING


def test_one_process_has_a_file_at_a_time(tmp_path: Path) -> None:
    first = State(tmp_path / "state.db")
    for fresh in (False, True):
        with pytest.raises(StateInUse):
            State(tmp_path / "state.db", fresh=fresh)
    first.close()
    State(tmp_path / "state.db").close()


@pytest.mark.parametrize(("form", "whose"), [(0, "an older"), (FORM - 1, "an older"), (FORM + 1, "a newer")])
def test_a_file_of_another_form_is_refused_and_forgotten_on_request(tmp_path: Path, form: int, whose: str) -> None:
    file = tmp_path / "state.db"
    state = State(file)
    state.write(ITEMS, [("name", b"content")])
    state.close()
    other = sqlite3.connect(file)
    other.execute(f"PRAGMA user_version = {form}")
    other.close()
    for _ in range(2):
        with pytest.raises(StateUnreadable, match=f"tasks of {whose} `dev`: its form is {form}"):
            State(file)
    state = State(file, fresh=True)
    assert state.read(ITEMS) == []
    state.close()
    State(file).close()


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE other (name TEXT)")
    other.close()
    with pytest.raises(StateUnreadable):
        State(file)
    other = sqlite3.connect(file)
    assert other.execute("SELECT name FROM sqlite_schema").fetchall() == [("other",)]
    other.close()
