"""Parses documents, Markdown or plain text, into a title and parts. It never fails and takes linear time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias, TypeVar

from sample_agents.offline.sentences import is_han, joined, plain, sentences
from sample_agents.writing import Language, language_of

T = TypeVar("T")
Kind: TypeAlias = Literal["heading", "paragraph", "list", "other"]

NOTICE: Final[dict[Language, str]] = {
    "en": "Arranged by the offline generator from what it was given; no language model was used.",
    "zh": "本文由离线生成器根据所给内容编排而成，未使用语言模型。",
}
_MOST_PARTS: Final = 24
_MOST_CUT_PARTS: Final = 8
_SENTENCES_PER_PART: Final = 8
_MOST_WORDS: Final = 9
_MOST_HAN: Final = 18
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufeff]")
_FENCE: Final = re.compile(r" {0,3}(```|~~~)")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(?=\S)")
_UNDERLINE: Final = re.compile(r"(?:={2,}|-{2,})$")
_DROPPED: Final = re.compile(r" {0,3}(?:(?:[-*_] {0,3}){3,}$|\[[^\[\]]{1,100}\]: )")  # rules and link definitions
_BULLET: Final = re.compile(r"[ \t]{0,12}(?:[-*+•] |\d{1,3}[.)] |\d{1,2}、)(?:\[[ xX]\] )?")
_ENDED: Final = re.compile(r"[.!?…。！？；;:：,，、][\"'”’」』）)*_]{0,3}$")
_OVERVIEW: Final[dict[Language, str]] = {"en": "Overview", "zh": "概述"}
_UNTITLED: Final[dict[Language, str]] = {"en": "Untitled", "zh": "未命名"}


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a document as Markdown: a heading, a paragraph, a list, or other content (code, a table, a quote)."""

    kind: Kind
    text: str
    level: int = 0

    def units(self) -> list[str]:
        """The sentences of a paragraph or the items of a list; none for other blocks."""
        if self.kind == "paragraph":
            return sentences(self.text)
        return self.text.split("\n") if self.kind == "list" else []


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document under its own title."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed text."""

    title: str
    language: Language
    parts: tuple[Part, ...]


@lru_cache(maxsize=4)  # each section of a document reads the same source
def read_document(source: str) -> Document:
    """The text's parts: by its headings, or of similar length when it has none."""
    blocks = [block for lines in _groups(_CONTROL.sub("", source).splitlines()) for block in _block(lines)]
    language = language_of("\n".join(block.text for block in blocks))
    title, blocks = _without_title(blocks)
    cut = _by_heading if any(block.kind == "heading" for block in blocks) else _cut
    parts = tuple(_renamed(_merged(cut(blocks, language))))
    return Document(title or _first_words(blocks) or _UNTITLED[language], language, parts)


def item_text(item: str) -> str:
    """A list item without its bullet."""
    return _BULLET.sub("", item, count=1)


def _groups(lines: Sequence[str]) -> Iterator[list[str]]:
    """Groups of lines that belong together: a fenced block, a heading, or the lines between empty lines."""
    group, fence = list[str](), ""
    for line in lines:
        mark = _FENCE.match(line)
        if fence:
            group.append(line)
            if line.strip() == fence:
                yield group
                group, fence = [], ""
        elif mark or not line.strip() or _begins_block(group, line):
            yield group
            group, fence = [line] if line.strip() else [], mark[1] if mark else ""
        else:
            group.append(line)
    yield [*group, fence] if fence else group


def _begins_block(group: Sequence[str], line: str) -> bool:
    """Whether a line ends the block before it although it is not empty."""
    before = group[0] if group else ""
    return bool(_HEADING.match(line) or _HEADING.match(before) or (_BULLET.match(line) and not _BULLET.match(before)))


def _block(lines: list[str]) -> Iterator[Block]:
    """The blocks in a group of lines; without rules, and without notices of how the text was made."""
    first, texts = lines[0] if lines else "", [line.strip() for line in lines]
    if heading := _HEADING.match(first):
        yield Block("heading", plain(first[heading.end() :].rstrip("# ")), len(heading[1]))
    elif len(lines) == 2 and _UNDERLINE.match(texts[1]):  # noqa: PLR2004 - the heading and its underline
        yield Block("heading", plain(first), 1 if texts[1].startswith("=") else 2)
    elif _BULLET.match(first):
        yield Block("list", "".join(f"\n{line}" if _BULLET.match(line) else f" {line.strip()}" for line in lines)[1:])
    elif _FENCE.match(first) or first.startswith(("    ", "\t", "|", ">", "<")):
        yield from () if first[2:] in NOTICE.values() else [Block("other", "\n".join(lines))]
    elif lines and not _DROPPED.match(first):
        is_apart = all(_ENDED.search(text[-5:]) for text in texts)  # each line is a sentence, as in a dialogue
        yield from (Block("paragraph", text) for text in (texts if is_apart else [joined(texts)]))


def _first_words(blocks: Iterable[Block]) -> str:
    """The first words of the first sentence of some blocks."""
    units = (unit for block in blocks for unit in block.units())
    words = next(filter(None, (plain(item_text(unit)) for unit in units)), "").rstrip(".。!！?？;；:：")
    if is_han(words):
        words = re.split("[，；：]", words, maxsplit=1)[0]
        return words if len(words) <= _MOST_HAN else f"{words[:_MOST_HAN]}…"
    few = words.split(" ", _MOST_WORDS)
    return " ".join(few[:_MOST_WORDS]) + ("…" if len(few) > _MOST_WORDS else "")


def _without_title(blocks: list[Block]) -> tuple[str, list[Block]]:
    """The document's title (the first heading, if no other has its level; else empty), and the blocks without it."""
    headings = [block for block in blocks if block.kind == "heading"]
    top = min((block.level for block in headings), default=0)
    if not headings or headings[0].level != top or sum(block.level == top for block in headings) > 1:
        return "", blocks
    return headings[0].text, [block for block in blocks if block is not headings[0]]


def _by_heading(blocks: list[Block], language: Language) -> list[Part]:
    """The parts below the headings of the highest level that occurs more than once."""
    levels = Counter(block.level for block in blocks if block.kind == "heading")
    level = min((level for level, number in levels.items() if number > 1), default=min(levels))
    found: list[tuple[str, list[Block]]] = [(_OVERVIEW[language], [])]
    for block in blocks:
        if block.kind == "heading" and block.level <= level:
            found.append((block.text, []))
        else:
            found[-1][1].append(block)
    parts = [Part(title, tuple(inner)) for title, inner in found]
    return [part for part in parts if any(block.kind != "heading" for block in part.blocks)] or parts[1:]


def _cut(blocks: list[Block], language: Language) -> list[Part]:
    """Parts of similar length, each with its own first words as title; the first is an overview."""
    number = min(sum(len(block.units()) or 1 for block in blocks) // _SENTENCES_PER_PART + 1, _MOST_CUT_PARTS)
    if len(blocks) == 1:  # a text in one paragraph
        units = blocks[0].units() or [blocks[0].text]
        put = joined if blocks[0].kind == "paragraph" else "\n".join
        groups = [[replace(blocks[0], text=put(group))] for group in _even(units, [*map(len, units)], number)]
    else:
        groups = _even(blocks, [len(block.text) for block in blocks], number)
    titles = (_OVERVIEW[language], *map(_first_words, groups[1:]))
    return [Part(title, tuple(group)) for title, group in zip(titles, groups, strict=False)]


def _even(items: list[T], sizes: Sequence[int], most: int) -> list[list[T]]:
    """The items, in order, in at most ``most`` groups of similar size."""
    groups: list[list[T]] = [[] for _ in range(most)]
    total, before = sum(sizes) + 1, 0
    for item, size in zip(items, sizes, strict=True):
        groups[(before + size // 2) * most // total].append(item)
        before += size
    return [group for group in groups if group]


def _merged(parts: list[Part]) -> Iterator[Part]:
    """At most ``_MOST_PARTS`` parts: neighbours are merged, with their titles as headings inside."""
    sizes = [sum(len(block.text) for block in part.blocks) + 1 for part in parts]
    for first, *others in _even(parts, sizes, _MOST_PARTS) if len(parts) > _MOST_PARTS else ([part] for part in parts):
        inner = (block for part in others for block in (Block("heading", part.title, 3), *part.blocks))
        yield Part(first.title, (*first.blocks, *inner))


def _renamed(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts; a title that is already used gets a number."""
    seen: Counter[str] = Counter()
    for part in parts:
        seen[part.title] += 1
        yield part if seen[part.title] == 1 else replace(part, title=f"{part.title} ({seen[part.title]})")
