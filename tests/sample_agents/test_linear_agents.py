"""The agents read outlines and answers in time in proportion to their length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless import Part
from sample_agents.orchestrator import joined
from sample_agents.writing import outline_from_json, slugs
from tests.growth import MOST, growth

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json


def test_the_ids_of_equal_titles_are_made_in_linear_time() -> None:
    assert slugs(["A", "A 2", "A", "A"]) == ["a", "a-2", "a-3", "a-4"]
    assert growth(slugs, lambda length: ["Equal"] * length, 10_000) < MOST


def test_the_ids_that_an_outline_brings_and_those_that_are_made_do_not_meet() -> None:
    sections: list[Json] = [
        {"title": "A"},
        {"id": "a", "title": "A"},
        {"title": "A"},
        {"id": "a-3", "title": "A"},
        {"title": "B"},
    ]
    found = outline_from_json({"title": "T", "sections": sections})
    assert [section.id for section in found.sections] == ["a-2", "a", "a-4", "a-3", "b"]


def test_the_chunks_of_a_called_agents_text_are_joined_in_linear_time() -> None:
    assert joined([Part(text="a"), Part(text="b"), Part(data=1), Part(text="c")]) == [
        Part(text="ab"),
        Part(data=1),
        Part(text="c"),
    ]
    assert growth(joined, lambda length: [Part(text="x" * 500)] * length, 5_000) < MOST
