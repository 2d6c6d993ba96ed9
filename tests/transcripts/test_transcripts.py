"""What clients, webhooks and the store see of each kind of act is what was recorded, but for what is meant to differ.

``differences.toml`` lists by row, with its reason, what differs since the recording. ``make transcripts`` records anew:
then the table is empty.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.transcripts.agents import PLAYS
from tests.transcripts.compare import Difference, differences, missing, read_table, unlisted
from tests.transcripts.play import play
from tests.transcripts.record import RECORDED, path_of

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = read_table()


@cache
def since_recorded(name: str) -> Sequence[Difference]:
    return [*differences(name, json.loads(path_of(name).read_text()), play(name))]


@pytest.mark.parametrize("name", PLAYS)
def test_a_play_differs_from_its_recording_only_where_the_table_says(name: str) -> None:
    assert [*map(str, unlisted(since_recorded(name), ROWS))] == []


@pytest.mark.parametrize("name", PLAYS)
def test_each_difference_in_the_table_is_a_difference_of_its_play(name: str) -> None:
    assert missing(name, since_recorded(name), ROWS) == []


def test_every_play_has_its_recording_and_every_row_its_plays() -> None:
    assert {*RECORDED.iterdir()} == {path_of(name) for name in PLAYS}
    assert {name for row in ROWS for name in row.plays} <= PLAYS.keys()


def test_a_difference_is_found_wherever_it_is_and_a_new_member_of_a_list_is_one() -> None:
    then = {"same": 1, "list": [{"a": 1}, {"b": 2}], "gone": None}
    now = {"same": 1, "list": [{"a": 1}, {"c": 3}, {"b": 2.5}]}
    assert [(one.path, one.then, one.now) for one in differences("p", then, now)] == [
        ("/gone", "null", "absent"),
        ("/list/1/b", "2", "absent"),
        ("/list/1/c", "absent", "3"),
        ("/list/2", "absent", '{"b": 2.5}'),
    ]
