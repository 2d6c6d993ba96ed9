"""Outlines as they travel, and the language of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_serverless.domain.errors import InvalidParams
from sample_agents.writing import (
    Outline,
    Section,
    language_of,
    outline_from_json,
    outline_to_json,
)

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

WORDS = st.text(min_size=1, max_size=20).map(str.strip).filter(bool)
SECTIONS = st.lists(
    st.builds(Section, title=WORDS, points=st.lists(WORDS, max_size=3).map(tuple)), min_size=1, max_size=6
)


@given(st.builds(Outline, title=WORDS, sections=SECTIONS))
@settings(deadline=None)
def test_an_outline_comes_back_as_it_went(outline: Outline) -> None:
    assert outline_from_json(outline_to_json(outline)) == outline


def test_an_outline_by_hand_needs_only_titles() -> None:
    outline = outline_from_json({"title": "灯塔", "sections": [{"title": " 光 ", "by": "hand"}, {"title": "光"}]})
    assert outline == Outline(title="灯塔", sections=[Section(title="光"), Section(title="光")])
    assert outline.language == "zh"


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"sections": [{"title": "A"}]}, "title"),
        ({"title": " ", "sections": [{"title": "A"}]}, "title"),
        ({"title": "T"}, "sections"),
        ({"title": "T", "sections": ["A"]}, "sections[0]"),
        ({"title": "T", "sections": [{"title": "A"}, {"title": 1}]}, "sections[1].title"),
        ({"title": "T", "sections": []}, "sections"),
        ({"title": "T", "sections": [{"title": "A", "points": [1]}]}, "sections[0].points[0]"),
        ({"title": "T", "sections": [{"title": "A", "points": "x"}]}, "sections[0].points"),
        ({"title": "T", "sections": [{"title": "A"}] * 501}, "sections"),
    ],
)
def test_a_bad_outline_is_refused_by_the_name_of_its_first_bad_field(value: Json, field: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        outline_from_json(value)
    assert [violation.field for violation in refused.value.violations] == [field]
    assert field in str(refused.value)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("Only words", "en"),
        ("只有汉字", "zh"),
        ("使用 Lambda 的智能体", "zh"),
        ("The sign 灯 means a lamp", "en"),
    ],
)
def test_the_language_is_that_of_most_of_the_text(text: str, language: str) -> None:
    assert language_of(text) == language
