"""Outlines, documents and summaries from the given text alone."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_serverless.adapters.builtin.text import BuiltinText
from a2a_serverless.domain.writing import Outline, Section, outline_from_json, outline_to_json
from tests.adapters.builtin.golden import KEPT, SOURCES, written

MODEL = BuiltinText()
LIGHTHOUSES = SOURCES["lighthouses"].read_text(encoding="utf-8")
SAILS = SOURCES["sails"].read_text(encoding="utf-8")

ENGLISH = st.lists(
    st.sampled_from(
        [
            "The lens of a lamp bends light.",
            "Keepers wound the clock every night.",
            "Dr. Smith wrote it down.",
            "Ships kept away from the rocks.",
            "A fog hid the shore.",
            "It has 3.5 tonnes of glass, e.g. prisms.",
        ]
    ),
    min_size=1,
    max_size=6,
).map(" ".join)
CHINESE = st.lists(
    st.sampled_from(
        ["风帆推动船只前进。", "灯塔在夜里发光！", "谁发明了舵？", "古人用竹条把帆分成许多格。", "船舱被隔板分开。"]
    ),
    min_size=1,
    max_size=6,
).map("".join)
HEADING = st.sampled_from(["## Light", "## 风帆", "# Ships and *shores*", "Setext\n------", "### Deep"])
LIST = st.lists(
    st.sampled_from(["one thing", "第二项", "`code` first", "a [link](https://example.org)"]), min_size=1
).map(lambda items: "\n".join(f"- {item}" for item in items))
OTHER = st.sampled_from(["```\nx = 1\n```", "| a | b |\n|---|---|\n| c | d |", "> quoted words.", "<div>tagged</div>"])
DOCUMENT = st.lists(st.one_of(ENGLISH, CHINESE, HEADING, LIST, OTHER), max_size=25).map(
    lambda blocks: "\n\n".join(["The keeper slept. Nobody came.", *blocks])
)


def outline(source: str, sections: int | None = None) -> Outline:
    return asyncio.run(MODEL.outline(source, sections=sections))


def section(plan: Outline, index: int, source: str) -> str:
    return asyncio.run(MODEL.section(plan, plan.sections[index], source))


def opening(plan: Outline, source: str) -> str:
    return asyncio.run(MODEL.opening(plan, source))


def summary(text: str, sentences: int = 3) -> str:
    return asyncio.run(MODEL.summary(text, sentences=sentences))


def letters(text: str) -> str:
    """The text without white space and punctuation, so that Markdown does not matter."""
    return re.sub(r"[\W_]", "", without_addresses(text))


def without_addresses(text: str) -> str:
    return re.sub(r"\]\([^)]*\)|</?div>", "", text)


@pytest.mark.parametrize("name", SOURCES)
def test_a_kept_text_gives_the_kept_outline_document_and_summary(name: str) -> None:
    made = asyncio.run(written(SOURCES[name].read_text(encoding="utf-8")))
    assert made == {ending: (KEPT / f"{name}.{ending}").read_text(encoding="utf-8") for ending in made}


@given(DOCUMENT)
@settings(deadline=None)
def test_every_line_of_a_section_is_the_sources_own(source: str) -> None:
    plan = outline(source)
    given_letters = letters(source)
    for index in range(len(plan.sections)):
        body = without_addresses(section(plan, index, source)).splitlines()[1:]
        pieces = [piece for line in body for piece in re.split(r"(?<=[.!?。！？])", line)]
        assert [piece for piece in pieces if letters(piece) not in given_letters] == []


@given(DOCUMENT)
@settings(deadline=None)
def test_points_and_summaries_quote_the_source(source: str) -> None:
    quoted = [point for part in outline(source).sections for point in part.points]
    pieces = re.split(r"(?<=[.!?。！？])", summary(source))
    assert [piece for piece in [*quoted, *pieces] if letters(piece) not in letters(source)] == []


@given(st.text(max_size=600), st.one_of(st.none(), st.integers(min_value=-1, max_value=40)))
@settings(deadline=None)
def test_any_text_gives_a_document_that_is_well_formed(source: str, sections: int | None) -> None:
    plan = outline(source, sections)
    assert outline_from_json(outline_to_json(plan)) == plan
    document = opening(plan, source) + "".join(section(plan, index, source) for index in range(len(plan.sections)))
    assert document.startswith(f"# {plan.title}\n\n> ")
    assert document.endswith("\n\n")
    assert summary(source)


@given(DOCUMENT, st.integers(min_value=1, max_value=6))
@settings(deadline=None)
def test_there_are_at_most_as_many_sections_as_were_asked_for(source: str, sections: int) -> None:
    assert len(outline(source, sections).sections) <= sections


@given(DOCUMENT, st.integers(min_value=1, max_value=6))
@settings(deadline=None, max_examples=50)
def test_a_section_is_found_again_whatever_number_was_asked_for(source: str, sections: int) -> None:
    plan = outline(source, sections)
    document = "".join(section(plan, index, source) for index in range(len(plan.sections)))
    assert "says nothing about this" not in document


def test_another_process_writes_the_same() -> None:
    code = (
        "import asyncio, sys; from pathlib import Path; from tests.adapters.builtin.golden import SOURCES, written;"
        "print(asyncio.run(written(SOURCES['lighthouses'].read_text(encoding='utf-8'))))"
    )
    runs = [
        subprocess.run(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]


def test_headings_of_the_source_are_the_sections() -> None:
    plan = outline("# Tides\n\nThey rise.\n\n## Spring\n\nHigh.\n\n## Neap\n\nLow.")
    assert plan.title == "Tides"
    assert [part.title for part in plan.sections] == ["Overview", "Spring", "Neap"]


def test_lines_that_look_like_headings_are_headings_in_plain_text() -> None:
    plan = outline("Tides\n\nSpring tides\n\nThey are high.\n\nNeap tides\n\nThey are low. The moon explains it.")
    assert (plan.title, [part.title for part in plan.sections]) == ("Tides", ["Spring tides", "Neap tides"])


def test_a_text_without_headings_is_cut_where_its_subject_changes() -> None:
    assert [part.id for part in outline(SAILS).sections] == [
        part["id"] for part in json.loads((KEPT / "sails.outline.json").read_text(encoding="utf-8"))["sections"]
    ]
    assert outline(LIGHTHOUSES, 3) != outline(LIGHTHOUSES)


def test_too_many_headings_are_gathered_and_stay_inside() -> None:
    source = "\n\n".join(f"## Part {number}\n\nText of part {number} stands here." for number in range(1, 7))
    plan = outline(source, 2)
    assert [part.title for part in plan.sections] == ["Part 1 – Part 3", "Part 4 – Part 6"]
    assert "### Part 2\n\nText of part 2 stands here." in section(plan, 0, source)


def test_a_long_section_is_shortened_and_a_numbered_list_is_not_torn() -> None:
    prose = " ".join(f"The harbour number {number} has a lamp and a keeper." for number in range(60))
    source = f"## One\n\n{prose}\n\n1. Take the lamp of the harbour.\n2. Oil.\n3. Light.\n\n## Two\n\nShort."
    text = section(outline(source), 0, source)
    assert len(text) < len(prose)
    assert ("1. Take" in text) == ("2. Oil" in text) == ("3. Light" in text)


def test_a_shortened_section_announces_only_what_it_still_has_and_keeps_code_beside_its_text() -> None:
    filler = " ".join(f"The harbour number {number} has a lamp and a keeper." for number in range(40))
    kept = "The lamp of the harbour has a keeper, and the keeper of the harbour has this lamp:\n\n```\nlit = True\n```"
    lost = "Unrelated words follow:\n\n- zebra\n- quokka"
    text = section(outline(source := f"## One\n\n{kept}\n\n{filler}\n\n{lost}\n\n## Two\n\nShort."), 0, source)
    assert ("Unrelated words follow:" in text) == ("zebra" in text or "quokka" in text)
    assert ("lit = True" in text) == ("has this lamp" in text)
    assert text.count("The harbour number") < 40


def test_a_point_that_is_too_long_to_quote_is_cut_between_words() -> None:
    (point,) = outline("# T\n\n## A\n\n" + "lamp keeper " * 60 + ".\n\n## B\n\nShort words.").sections[0].points
    assert len(point) <= 281
    assert point.endswith(("lamp…", "keeper…"))


def test_a_document_says_once_that_no_model_was_used() -> None:
    for source, notice in ((LIGHTHOUSES, "no language model was used"), (SAILS, "未使用语言模型")):
        plan = outline(source)
        sections = "".join(section(plan, index, source) for index in range(len(plan.sections)))
        assert opening(plan, source).count(notice) == 1
        assert notice not in sections


@pytest.mark.parametrize(
    ("topic", "language", "question", "admission"),
    [
        ("Write an article about lighthouses", "en", "“lighthouses”", "knows no facts about “Lighthouses”"),
        ("写一篇关于灯塔的文章", "zh", "“灯塔”", "并不掌握关于“灯塔”的事实"),
    ],
)
def test_a_mere_topic_gives_questions_and_admits_that_nothing_is_known(
    topic: str, language: str, question: str, admission: str
) -> None:
    plan = outline(topic)
    assert plan.language == language
    assert question in plan.sections[0].points[0]
    assert admission in opening(plan, topic)
    assert "- [ ] " in section(plan, 0, topic)
    assert admission in summary(opening(plan, topic) + section(plan, 0, topic))


@pytest.mark.parametrize(
    ("topic", "title"),
    [
        ("How to splice a rope", "The steps"),
        ("The history of the compass", "Turning points"),
        ("Steel vs aluminium hulls", "Where they differ"),
        ("指南针的历史", "转折点"),
        ("如何打绳结", "步骤"),
        ("How do tides work?", "How it works"),
    ],
)
def test_the_questions_suit_the_kind_of_topic(topic: str, title: str) -> None:
    assert title in [part.title for part in outline(topic).sections]


def test_an_outline_alone_is_laid_out_and_says_so() -> None:
    plan = Outline("Tides", "en", (Section("spring", "Spring", ("They are high.", "Twice a month.")),))
    assert section(plan, 0, "") == "## Spring\n\n- They are high.\n- Twice a month.\n\n"
    assert "from the outline alone" in opening(plan, "")


@pytest.mark.parametrize("words", ["请根据以下大纲生成文章正文", "Please write the document for this outline."])
def test_a_request_beside_an_outline_is_no_source(words: str) -> None:
    plan = Outline("潮汐", "zh", (Section("大潮", "大潮", ("每月两次。",)),))
    assert section(plan, 0, words) == "## 大潮\n\n- 每月两次。\n\n"
    assert "仅按大纲排列而成" in opening(plan, words)


def test_a_section_that_the_client_planned_gets_what_the_source_says_about_it() -> None:
    plan = Outline(
        "Lights", "en", (Section("x1", "Mercury bath"), Section("x2", "Grace Darling"), Section("x3", "Cheese"))
    )
    assert "bath of mercury" in section(plan, 0, LIGHTHOUSES)
    assert "Grace Darling, the daughter of the keeper" in section(plan, 1, LIGHTHOUSES)
    assert section(plan, 2, LIGHTHOUSES) == "## Cheese\n\n*The given text says nothing about this.*\n\n"


def test_a_section_that_the_client_renamed_keeps_its_text() -> None:
    plan = outline(LIGHTHOUSES)
    renamed = Outline(plan.title, plan.language, (Section(plan.sections[1].id, "Storms"), *plan.sections[2:]))
    assert "Eddystone" in section(renamed, 0, LIGHTHOUSES)


def test_no_text_gives_an_empty_document_that_says_so() -> None:
    plan = outline(" \n ")
    assert plan == Outline("Untitled", "en", ())
    assert "nothing to arrange" in opening(plan, " \n ")


def test_a_summary_has_as_many_sentences_as_asked_in_reading_order() -> None:
    found = [summary(LIGHTHOUSES, count) for count in (1, 2, 5)]
    assert [len(re.findall(r"[.?](?= |$)", text)) for text in found] == [1, 2, 5]
    places = [LIGHTHOUSES.replace("\n", " ").index(sentence) for sentence in re.split(r"(?<=[.?]) ", found[2])]
    assert places == sorted(places)


def test_a_summary_of_a_document_is_not_about_its_notice() -> None:
    plan = outline(LIGHTHOUSES)
    document = opening(plan, LIGHTHOUSES) + section(plan, 0, LIGHTHOUSES)
    assert "language model" not in summary(document, 50)


def test_code_alone_cannot_be_summarised() -> None:
    assert summary("```\nx = 1\n```") == "The text has no sentences to summarise."


def test_a_document_can_be_arranged_again() -> None:
    plan = outline(SAILS)
    document = opening(plan, SAILS) + "".join(section(plan, index, SAILS) for index in range(len(plan.sections)))
    again = outline(document)
    assert (again.title, [part.title for part in again.sections]) == (
        plan.title,
        [part.title for part in plan.sections],
    )
