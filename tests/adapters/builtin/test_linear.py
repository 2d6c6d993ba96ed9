"""Reading a caller's text takes time in proportion to its length, whatever the text is made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless.adapters.builtin.choosing import shortened
from a2a_serverless.adapters.builtin.html import without_html
from a2a_serverless.adapters.builtin.language import sentences
from a2a_serverless.adapters.builtin.markdown import plain, read
from a2a_serverless.adapters.builtin.structure import Unit
from a2a_serverless.adapters.builtin.text import BuiltinText
from tests.growth import MOST, growth

if TYPE_CHECKING:
    Shape = Callable[[int], str]

_SALT: Final = count()


def repeated(piece: str) -> Shape:
    return lambda length: piece * (length // len(piece))


def between(opening: str, closing: str) -> Shape:
    """All of one before all of the other."""
    return lambda length: opening * (length // 2 // len(opening)) + closing * (length // 2 // len(closing))


def deeper(line: str) -> Shape:
    """Lines, each one step deeper than the one before."""

    def shape(length: int) -> str:
        steps = int((2 * length / len(line.partition("{}")[2])) ** 0.5)
        return "\n".join(line.replace("{}", "  " * (step % 200)) for step in range(steps * 4))[:length]

    return shape


def numbered(piece: str) -> Shape:
    """The piece with a number that is different each time."""
    return lambda length: "".join(piece.replace("{}", str(number)) for number in range(length // (len(piece) + 3)))


ABBREVIATIONS: Final = ("Mr. ", "U.S. ", "e.g. ", "No. 1 ", "A. ", "Dr. Mr. vs. ", "a.b.", "... ", "?! ", "。", "；")
TAGS: Final = (
    "<script",
    "<script>",
    "<script></script",
    "<style></style ",
    "</script",
    "<!--",
    "<!-- --",
    "<h1>a",
    "<h1",
    "<a href=",
    "<b><i>",
    "<",
    "<x@",
)
MARKS: Final = ("[", "![", "[![](", "[a][", "[a](", "](", "(", "（", "*a ", "**a", "_a ", "~~", "`", "``a", "\\", "\"'")
LINES: Final = (
    "# Equal\n\nOne sentence.\n\n",
    "# Equal\n",
    "- a\n",
    "- a\n```\n",
    "> a\n",
    "    a.\n",
    "1. a:\n\n",
    "a|b\n-|-\n",
    "a\n===\n",
    "```\n",
    "[a]: http://x y\n",
    "Tom: yes.\n",
    "a,\n",
    "{\n",
    "\n",
    "---\n",
)
RUNS: Final = ("x", "  ", "\t", "-", "|-", ":-", "word ", "灯塔", "灯塔。", "\u3000", "e\u0301", "\U00020000", "ﬁ")
SHAPES: Final[dict[str, Shape]] = {
    **{repr(piece): repeated(piece) for piece in (*ABBREVIATIONS, *TAGS, *MARKS, *LINES, *RUNS)},
    "script that closes nothing": lambda length: "<script>" + "</script" * (length // 8),
    "brackets in brackets": between("[", "]"),
    "parentheses in parentheses": between("(", ")"),
    "marks in marks": between("**_", "_**"),
    "list in list": deeper("{}- a"),
    "quote in quote": deeper("{}> a"),
    "a table's long rule": lambda length: "a|b\n" + "-|" * (length // 2) + "x",
    "announcements": repeated("This leads up to it: "),
    "different words": numbered("w{} "),
    "different sentences": numbered("The thing{} stands on island{}. "),
    "different headings": numbered("# Head {}\n\nA text.\n\n"),
    "a space and a letter": lambda length: "a." + " " * length + "b",
}


def salted(shape: Shape) -> Shape:
    """Not the same text twice: what was read last is remembered."""
    return lambda length: f"{shape(length)}\n\nText number {next(_SALT)}."


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_summarising_is_linear(shape: Shape) -> None:
    def work(text: str) -> object:
        return asyncio.run(BuiltinText().summary(text))

    assert growth(work, salted(shape), 12_500) < MOST


@pytest.mark.parametrize("piece", ["Mr. ", "<script></script", "# Equal\n\nOne sentence.\n\n", "灯塔。", "- a\n"])
def test_outlining_and_writing_a_section_is_linear(piece: str) -> None:
    async def both(text: str) -> None:
        outline = await BuiltinText().outline(text)
        await BuiltinText().section(outline, outline.sections[-1], text)

    assert growth(lambda text: asyncio.run(both(text)), salted(repeated(piece)), 12_500) < MOST


@pytest.mark.parametrize("piece", ABBREVIATIONS)
def test_finding_the_ends_of_sentences_is_linear(piece: str) -> None:
    assert growth(sentences, repeated(piece), 100_000) < MOST


@pytest.mark.parametrize("shape", [*map(repeated, TAGS), SHAPES["script that closes nothing"]])
def test_taking_html_out_is_linear(shape: Shape) -> None:
    assert growth(lambda text: without_html([text]), shape, 100_000) < MOST


@pytest.mark.parametrize("piece", [*MARKS, *TAGS])
def test_taking_marks_out_is_linear(piece: str) -> None:
    assert growth(plain, repeated(piece), 50_000) < MOST


@pytest.mark.parametrize("piece", [*LINES, *RUNS])
def test_finding_blocks_is_linear(piece: str) -> None:
    assert growth(read, repeated(piece), 50_000) < MOST


def test_shortening_a_block_of_announcements_is_linear() -> None:
    def units(length: int) -> list[Unit]:
        return [Unit("sentence", "This leads to it:", "This leads to it:", 1, terms=("lead",))] * length

    assert growth(shortened, units, 2_000) < MOST
