"""Times that depend on each other hold what ``docs/internals.md`` says of them."""

import pytest

from tests.docs.times import TIMES, Time


@pytest.mark.parametrize("time", TIMES, ids=lambda time: time.place)
def test_a_time_holds_its_relations_to_others(time: Time) -> None:
    assert time.relations
    assert [said for said, holds in time.relations.items() if not holds] == []
