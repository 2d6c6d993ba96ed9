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
    slugs,
)

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

WORDS = st.text(min_size=1, max_size=20).map(str.strip).filter(bool)
SECTIONS = st.lists(
    st.builds(Section, id=WORDS, title=WORDS, points=st.lists(WORDS, max_size=3).map(tuple)),
    max_size=6,
    unique_by=lambda section: section.id,
)


@given(st.builds(Outline, title=WORDS, language=st.sampled_from(["en", "zh"]), sections=SECTIONS.map(tuple)))
@settings(deadline=None)
def test_an_outline_comes_back_as_it_went(outline: Outline) -> None:
    assert outline_from_json(outline_to_json(outline)) == outline


@given(st.lists(st.text(max_size=80), max_size=30))
@settings(deadline=None)
def test_ids_are_unique_and_never_empty(titles: list[str]) -> None:
    ids = slugs(titles)
    assert len(set(ids)) == len(titles)
    assert all(ids)


def test_an_id_can_be_read() -> None:
    assert slugs(["How it works!", "How it works?", "任务的生命周期", "…"]) == [
        "how-it-works",
        "how-it-works-2",
        "任务的生命周期",
        "section",
    ]


def test_an_outline_by_hand_needs_only_titles() -> None:
    assert outline_from_json({"title": "灯塔", "sections": [{"title": "光"}, {"title": "光"}]}) == Outline(
        "灯塔", "zh", (Section("光", "光"), Section("光-2", "光"))
    )


def test_an_id_that_is_made_gives_way_to_one_that_was_given() -> None:
    outline = outline_from_json({"title": "T", "sections": [{"title": "A"}, {"id": "a", "title": "B"}]})
    assert [section.id for section in outline.sections] == ["a-2", "a"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, "outline"),
        ([], "outline"),
        ({}, "title"),
        ({"title": " ", "sections": []}, "title"),
        ({"title": "T"}, "sections"),
        ({"title": "T", "sections": ["A"]}, "sections[0]"),
        ({"title": "T", "sections": [{"title": "A"}, {"title": 1}]}, "sections[1].title"),
        ({"title": "T", "sections": [{"title": "A", "id": ""}]}, "sections[0].id"),
        ({"title": "T", "sections": [{"title": "A", "id": "a"}, {"title": "B", "id": "a"}]}, "sections[1].id"),
        ({"title": "T", "sections": [{"title": "A", "points": [1]}]}, "sections[0].points[0]"),
        ({"title": "T", "sections": [{"title": "A", "points": "x"}]}, "sections[0].points"),
        ({"title": "T", "sections": [{"title": "A"}] * 501}, "sections"),
        ({"title": "T", "sections": [], "language": "fr"}, "language"),
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
