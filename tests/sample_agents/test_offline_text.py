"""The offline writer: it arranges what it is given, English and Chinese, says so, and adds nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_agents.offline.sentences import joined, plain, sentences, terms
from sample_agents.offline.text import OfflineText
from sample_agents.prompts import Prompt, outline_prompt, section_prompt, summary_prompt
from sample_agents.writing import Outline, Section, outline_from_json

ROOT = Path(__file__).parents[2]
DEMO = (ROOT / "examples/demo.md").read_text()
CHINESE = (ROOT / "examples/demo.zh.md").read_text()
README = """# Tidepool

Tidepool predicts the tide at a harbour. It needs no network.

## Install

You need Python 3.11 or newer.

```
pip install tidepool

# a comment, no heading
```

## Usage

1. Choose a station
   from the [list](https://tides.example.org/stations).
2. Read the height in metres above chart datum.

| Option | Meaning |
|---|---|
| `datum` | What heights are measured from |

### Accuracy

On open coasts the error is below 10 cm.
"""


def answer(prompt: Prompt) -> str:
    return asyncio.run(OfflineText().complete(prompt.render()))


def outline(source: str) -> Outline:
    planned: Any = json.loads(answer(outline_prompt(source)))
    return outline_from_json(planned)


def section(plan: Outline, title: str, source: str) -> str:
    return answer(section_prompt(plan, next(each for each in plan.sections if each.title == title), source))


def titles(plan: Outline) -> list[str]:
    return [each.title for each in plan.sections]


@pytest.mark.parametrize(
    ("source", "title"),
    [(DEMO, "How lighthouses learned to speak"), (CHINESE, "风帆的历史")],
    ids=["English", "Chinese"],
)
def test_a_text_without_headings_is_cut_into_sections_that_quote_it(source: str, title: str) -> None:
    plan = outline(source)
    assert (plan.title, 3 <= len(plan.sections) <= 8) == (title, True)
    assert len(set(titles(plan))) == len(plan.sections)
    flat = joined(source.split())
    for each in plan.sections:
        assert 1 <= len(each.points) <= 3
        assert all(joined(point.split()) in flat for point in each.points), each.points


def test_a_text_with_headings_keeps_them_with_all_that_stands_below() -> None:
    plan = outline(README)
    assert (plan.title, titles(plan)) == ("Tidepool", ["Overview", "Install", "Usage"])
    assert section(plan, "Install", README).endswith("```\npip install tidepool\n\n# a comment, no heading\n```")
    usage = section(plan, "Usage", README)
    assert usage.startswith("1. Choose a station from the [list](https://tides.example.org/stations).\n\n2. Read")
    assert "| `datum` | What heights are measured from |" in usage
    assert usage.endswith("### Accuracy\n\nOn open coasts the error is below 10 cm.")


def test_every_sentence_of_a_short_text_is_in_its_document_once() -> None:
    plan = outline(DEMO)
    bodies = " ".join(section(plan, title, DEMO) for title in titles(plan))
    for paragraph in DEMO.split("\n\n")[1:]:
        for sentence in sentences(joined(paragraph.split("\n"))):
            assert bodies.count(sentence) == 1


def test_a_text_in_one_paragraph_is_cut_between_sentences() -> None:
    source = " ".join(f"Ship {n} sails by the wind." for n in range(20))
    plan = outline(source)
    bodies = [section(plan, title, source) for title in titles(plan)]
    assert (len(bodies), " ".join(bodies)) == (3, source)


@pytest.mark.parametrize("source", [DEMO, ""])
def test_a_section_that_the_source_does_not_have_is_laid_out_by_its_points(source: str) -> None:
    plan = Outline(title="T", sections=[Section(title="Whales", points=("Size?", "Songs?")), Section(title="Bees")])
    assert section(plan, "Whales", source) == "- [ ] Size?\n- [ ] Songs?"
    assert section(plan, "Bees", source) == "*The given text says nothing about this.*"


@pytest.mark.parametrize(
    ("source", "topic"),
    [
        ("Outline a guide to keeping bees", "Keeping bees"),
        ("Please write a document about tides.", "Tides"),
        ("The history of lighthouses", "The history of lighthouses"),
        ("为“城市养蜂”列一个提纲", "城市养蜂"),
        ("写一篇关于城市养蜂的文档", "城市养蜂"),
    ],
)
def test_a_mere_topic_gets_questions_and_no_facts(source: str, topic: str) -> None:
    plan = outline(source)
    assert plan.title in {f"{topic}: questions to answer", f"{topic}：待回答的问题"}
    points = [point for each in plan.sections for point in each.points]
    assert all(point.endswith(("?", "？")) for point in points)
    body = section(plan, plan.sections[0].title, source)
    assert body.split("\n") == [f"- [ ] {point}" for point in plan.sections[0].points]


def test_more_than_one_sentence_is_a_text_and_no_topic() -> None:
    plan = outline("Ships have sails. Some sink!")
    assert (titles(plan), section(plan, "Overview", "Ships have sails. Some sink!")) == (
        ["Overview"],
        "Ships have sails. Some sink!",
    )


def test_a_summary_is_a_few_sentences_of_the_text_without_markdown() -> None:
    for source, longest in ((DEMO, 500), (CHINESE, 200)):
        summary = answer(summary_prompt(source))
        assert len(sentences(summary)) == 3
        assert len(summary) < longest
    assert answer(summary_prompt("- **Bees**\n- [Hives](https://x.example)")) == "Bees Hives"
    assert answer(summary_prompt("```\ncode\n```")) == "*The given text says nothing about this.*"
    assert answer(summary_prompt("*** 。")) != ""


def test_a_summary_leaves_out_how_the_text_was_made() -> None:
    for notice in OfflineText().notice.values():
        assert notice not in answer(summary_prompt(f"# T\n\n> {notice}\n\nTides rise. Tides fall."))


def test_the_offline_model_says_that_it_cannot_answer_a_question() -> None:
    model = OfflineText()
    said = asyncio.run(model.complete("What is the capital of France?"))
    assert said.startswith("The offline generator only arranges texts")
    assert "offline generator" in model.notice["en"]
    assert "离线生成器" in model.notice["zh"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Argand lit it. It shone.", ["Dr. Argand lit it.", "It shone."]),
        ("J. Smeaton built it in No. 3. Then it burned!", ["J. Smeaton built it in No. 3.", "Then it burned!"]),
        ("It cost 6.2 million, e.g. for steel. Why?", ["It cost 6.2 million, e.g. for steel.", "Why?"]),
        ("“Is it lit?” he asked. Yes.", ["“Is it lit?” he asked.", "Yes."]),
        ("灯塔亮了。船回来了！“真的？”是的。", ["灯塔亮了。", "船回来了！", "“真的？”", "是的。"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_the_offline_model_takes_nouns_as_terms_and_drops_markdown() -> None:
    assert terms("The lighthouses' keepers and a ship's sails") == {"lighthouse", "keeper", "ship", "sail"}
    assert terms("风帆的历史") == {"风帆", "历史"}
    assert plain("a **bold** [link](https://x.example) ![image](y.png) `code`") == "a bold link image code"


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("aB. \n#-*`[]()|>_!?。，风帆<:1\t"), max_size=200))
def test_any_text_gets_an_outline_a_section_and_a_summary(source: str) -> None:
    planned: Any = json.loads(answer(outline_prompt(source)))
    assert isinstance(planned["title"], str)
    assert planned["title"].strip()
    for each in planned["sections"]:
        assert each["title"]
    plan = Outline(title="T", sections=[Section(title="Sails", points=("a",))])
    assert section(plan, "Sails", source)
    assert answer(summary_prompt(source))
