"""The offline writer takes time in proportion to the text that it reads, whatever the text is made of."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from sample_agents.offline.sentences import plain, sentences
from sample_agents.offline.text import answer
from sample_agents.prompts import outline_prompt, picture_prompt, section_prompt, summary_prompt
from sample_agents.writing import Outline, Section, without_html
from tests.growth import MOST, growth

if TYPE_CHECKING:
    from collections.abc import Callable

    from sample_agents.prompts import Prompt

_SALT: Final = count()  # what is read is remembered, so each text is another one
PLAN: Final = Outline(title="T", sections=[Section(title="Keepers", points=("A keeper sails by the wind.",))])
PIECES: Final = (
    "Ships sail by the wind. ",
    "Ships sail by the wind.\n\n",
    "风帆的历史很长。",
    "Mr. ",
    "e.g. ",
    "... ",
    "?! ",
    "。",
    "a",
    "a-",
    "a\n",
    "# a\n",
    "a\n==\n\n",
    "- item\n",
    "1. ",
    "```\n",
    "~~~",
    "> a\n",
    "| a |\n",
    "[",
    "![",
    "[a](",
    "[a][",
    "_a",
    "**",
    "`",
    "\\",
    "<a ",
    "<!--",
    "\t",
    "    \n",
)
PROMPTS: Final[dict[str, Callable[[str], Prompt]]] = {
    "outline": outline_prompt,
    "section": lambda source: section_prompt(PLAN, PLAN.sections[0], source),
    "summary": summary_prompt,
    "picture": lambda source: picture_prompt(source, "A sailboat on the sea."),
}


def repeated(piece: str) -> Callable[[int], str]:
    return lambda length: f"{next(_SALT)} " + piece * (length // len(piece))


@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_every_task_is_linear_in_its_material(piece: str) -> None:
    def work(source: str) -> None:
        for prompt in PROMPTS.values():
            answer(prompt(source).render())

    assert growth(work, repeated(piece), 12_000) < MOST


@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_reading_sentences_and_markdown_takes_linear_work(piece: str) -> None:
    for work in (sentences, plain, without_html):
        assert growth(work, repeated(piece), 50_000) < MOST
