"""Parses documents, Markdown or plain text, into a title and parts. It never fails and takes linear time."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final, TypeVar

from sample_agents.offline.sentences import is_han, joined, plain, sentences
from sample_agents.writing import Language, language_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

T = TypeVar("T")

_MOST_PARTS: Final = 24
_MOST_CUT_PARTS: Final = 8
_SENTENCES_PER_PART: Final = 8
_MOST_WORDS: Final = 9
_MOST_HAN: Final = 18
# A block is fenced code, a heading, a list item, or the lines up to an empty one.
_BEGIN: Final = r"#{1,6}[ \t]|```|[ \t]{0,12}(?:[-*+•]|\d{1,3}[.)])[ \t]"
_BLOCK: Final = re.compile(
    rf"^(?:```(?:.|\n)*?(?:\n```[ \t]*$|\Z)|#{{1,6}}[ \t].*|.*\S.*(?:\n(?!{_BEGIN}).*\S.*)*)", re.MULTILINE
)
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(?=\S)")
_BULLET: Final = re.compile(r"\A[ \t]{0,12}(?:[-*+•]|\d{1,3}[.)]) (?:\[ \] )?")
_OTHER: Final = ("```", "|", ">", "<", "    ", "\t")  # code, tables, quotes, HTML
_OVERVIEW: Final[dict[Language, str]] = {"en": "Overview", "zh": "概述"}


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a document as Markdown. ``level`` is that of a heading, 0 for anything else."""

    text: str
    level: int = 0

    def units(self) -> list[str]:
        """The sentences of a paragraph, or a list item without its bullet; none for other blocks."""
        if self.level or self.text.startswith(_OTHER):
            return []
        return sentences(_BULLET.sub("", self.text, count=1))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document under its own title."""

    title: str
    blocks: tuple[Block, ...]

    def units(self) -> list[str]:
        """The sentences and list items."""
        return [unit for block in self.blocks for unit in block.units()]


def read_document(source: str) -> tuple[str, list[Part]]:
    """The text's title and parts: by its headings, or of similar length when it has none, or too many."""
    language = language_of(source)
    blocks = [_block(match[0]) for match in _BLOCK.finditer(source)]
    heading = next((block for block in blocks if block.level), None)
    rest = [block for block in blocks if block is not heading]
    levels = [block.level for block in rest if block.level]
    few = 0 < levels.count(min(levels, default=0)) <= _MOST_PARTS
    parts = _by_heading(rest, min(levels), language) if few else _cut(rest, language)
    title = heading.text.lstrip("# ") if heading else _first_words(rest)
    return title or _OVERVIEW[language], [*_renamed(parts)]


def _block(text: str) -> Block:
    heading = _HEADING.match(text)
    if heading:
        return Block(heading[1] + " " + plain(text[heading.end() :].rstrip("# ")), len(heading[1]))
    return Block(text if text.startswith(_OTHER) else joined(line.strip() for line in text.split("\n")))


def _first_words(blocks: Iterable[Block]) -> str:
    """The first words of the first sentence of some blocks."""
    units = (plain(unit) for block in blocks for unit in block.units())
    words = next(filter(None, units), "").rstrip(".。!！?？;；:：")
    if is_han(words):
        words = re.split("[，；：]", words, maxsplit=1)[0]
        return words if len(words) <= _MOST_HAN else f"{words[:_MOST_HAN]}…"
    few = words.split(" ", _MOST_WORDS)
    return " ".join(few[:_MOST_WORDS]) + ("…" if len(few) > _MOST_WORDS else "")


def _by_heading(blocks: list[Block], level: int, language: Language) -> list[Part]:
    sections: list[tuple[str, list[Block]]] = [(_OVERVIEW[language], [])]
    for block in blocks:
        if block.level == level:
            sections.append((block.text.lstrip("# "), []))
        else:
            sections[-1][1].append(block)
    return [Part(title, tuple(inner)) for title, inner in sections if inner or title != _OVERVIEW[language]]


def _cut(blocks: list[Block], language: Language) -> list[Part]:
    """Parts of similar length, each with its own first words as title; the first is an overview."""
    units = [unit for block in blocks for unit in block.units()]
    number = min(len(units) // _SENTENCES_PER_PART + 1, _MOST_CUT_PARTS)
    if len(blocks) == 1 and number > 1:  # a text in one paragraph
        blocks = [Block(joined(group)) for group in _groups(units, number)]
    groups = _groups(blocks, number)
    titles = (_OVERVIEW[language], *map(_first_words, groups[1:]))
    return [Part(title or _OVERVIEW[language], tuple(group)) for title, group in zip(titles, groups, strict=False)]


def _groups(items: Sequence[T], most: int) -> list[Sequence[T]]:
    size = max(1, ceil(len(items) / most))
    return [items[first : first + size] for first in range(0, len(items), size)]


def _renamed(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts; a title that is already used gets a number."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts[part.title] += 1
        yield part if counts[part.title] == 1 else replace(part, title=f"{part.title} ({counts[part.title]})")
