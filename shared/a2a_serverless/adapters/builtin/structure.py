"""The parts of a document: by its headings when it has some, otherwise where its subject changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Final, Literal, TypeAlias

from a2a_serverless.adapters.builtin.language import is_han, sentences, terms
from a2a_serverless.adapters.builtin.markdown import Block, item_text, plain, running
from a2a_serverless.adapters.builtin.segments import boundaries

UnitKind: TypeAlias = Literal["sentence", "turn", "item", "code", "table", "quote", "heading"]

MOST_PARTS: Final = 24
_MOST_TOPICS: Final = 12
_SENTENCES_PER_TOPIC: Final = 8
_LONGEST_HEADING: Final = 80
_LONGEST_HAN_HEADING: Final = 30
_NO_HEADING_END: Final = tuple(".!?…。！？；;:：,，、|")
_FEWEST_IMPLIED: Final = 2
_LATEST_TITLE: Final = 3
_QUOTE_MARK: Final = re.compile(r"^\s*>[ \t]?", re.MULTILINE)
_LABEL_HAN: Final = 12
_LABEL_LATIN: Final = 30
_LABEL: Final = re.compile(r"[^:：]{1,30}[:：]")


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest piece that is kept or left out: ``text`` as Markdown, ``words`` without it.

    Units of one ``block`` stood in one paragraph or list. ``terms`` say what prose is about; the rest has none.
    """

    kind: UnitKind
    text: str
    words: str
    block: int
    level: int = 0
    terms: tuple[str, ...] = ()

    @property
    def is_prose(self) -> bool:
        """Whether it may stand for the text around it."""
        return self.kind in {"sentence", "turn", "item", "quote"}

    @property
    def said(self) -> str:
        """The words without the name of the speaker."""
        return _LABEL.sub("", self.words, count=1) if self.kind == "turn" else self.words


@dataclass(frozen=True, slots=True)
class TextPart:
    """A stretch of the document. ``title`` is its heading; empty when it has none."""

    title: str
    units: tuple[Unit, ...]


def with_headings(blocks: Sequence[Block]) -> list[Block]:
    """The blocks, with lines that only look like headings made some when the text marks none."""
    if sum(1 for block in blocks if block.kind == "heading") > 1:
        return [*blocks]
    heads = _implied_headings(blocks)
    return [
        Block("heading", plain(block.text), 1 if index == 0 else 2) if index in heads else block
        for index, block in enumerate(blocks)
    ]


def with_turns(blocks: Sequence[Block]) -> list[Block]:
    """The blocks, with paragraphs made turns when most of them begin with the name of somebody who speaks again."""
    labels = _labels(blocks)
    turns = {index for index, block in enumerate(blocks) if block.kind == "paragraph" and _is_label(block, labels)}
    if 2 * len(turns) < len(blocks):
        return [*blocks]
    return [replace(block, kind="turn") if index in turns else block for index, block in enumerate(blocks)]


def without_title(blocks: Sequence[Block]) -> tuple[str, list[Block]]:
    """The title that stands over everything (empty when none does), and the blocks without it."""
    first = next((index for index, block in enumerate(blocks) if block.kind == "heading"), None)
    if first is None or not _is_title(blocks, first):
        return "", [*blocks]
    title = blocks[first].text
    return title, [block for index, block in enumerate(blocks) if index != first and plain(block.text) != title]


def parts_of(blocks: Sequence[Block], most: int | None) -> list[TextPart]:
    """The parts in reading order, at most ``most`` (None: as many as the text suggests).

    Parts without content are left out, unless the text is nothing but headings.
    """
    found = [*_by_heading(blocks)]
    parts = [part for part in found if _says_something(part)] or [part for part in found if part.title]
    if len(parts) > 1:
        return _gathered(parts, min(most or MOST_PARTS, MOST_PARTS))
    return [piece for part in parts for piece in _by_topic(part, most)]


def _implied_headings(blocks: Sequence[Block]) -> set[int]:
    labels = _labels(blocks)
    likely = [_could_head(block) and not _is_label(block, labels) for block in blocks]
    inner = {i for i, (now, then) in enumerate(pairwise(likely)) if i and now and not then}
    if len(inner) < _FEWEST_IMPLIED or 2 * len(inner) > len(blocks):
        inner = set()
    return inner | ({0} if likely[:1] == [True] and len(blocks) > 1 else set())


def _could_head(block: Block) -> bool:
    if block.kind not in {"paragraph", "list"} or "\n" in block.text:
        return False
    text = plain(block.text)
    words = item_text(text)
    longest = _LONGEST_HAN_HEADING if any(map(is_han, words)) else _LONGEST_HEADING
    letter = next((character for character in words if character.isalpha()), "")
    return 1 < len(words) <= longest and not text.endswith(_NO_HEADING_END) and letter != "" and not letter.islower()


def _labels(blocks: Sequence[Block]) -> Counter[str]:
    return Counter(match.group() for block in blocks if (match := _LABEL.match(block.text)))


def _is_label(block: Block, labels: Counter[str]) -> bool:
    """Whether the line begins with the name of somebody who speaks more than once."""
    match = _LABEL.match(block.text)
    return match is not None and labels[match.group()] > 1


def _is_title(blocks: Sequence[Block], first: int) -> bool:
    others = [block.level for block in blocks[first + 1 :] if block.kind == "heading"]
    return min(others) > blocks[first].level if others else first <= _LATEST_TITLE


def _says_something(part: TextPart) -> bool:
    return any(unit.kind != "heading" for unit in part.units)


def _by_heading(blocks: Sequence[Block]) -> Iterator[TextPart]:
    levels = Counter(block.level for block in blocks if block.kind == "heading")
    repeated = [level for level, count in levels.items() if count > 1]
    level = min(repeated or levels, default=0)
    title, units = "", list[Unit]()
    for number, block in enumerate(blocks):
        if block.kind == "heading" and block.level <= level:
            yield TextPart(title, tuple(units))
            title, units = block.text, []
        else:
            units.extend(_units(block, number, level))
    yield TextPart(title, tuple(units))


def _units(block: Block, number: int, level: int) -> Iterator[Unit]:
    for unit in _pieces(block, number, level):
        yield replace(unit, terms=tuple(terms(unit.said))) if unit.is_prose else unit


def _pieces(block: Block, number: int, level: int) -> Iterator[Unit]:
    if block.kind == "paragraph":
        yield from (Unit("sentence", text, plain(text), number) for text in sentences(block.text))
    elif block.kind == "list":
        yield from (Unit("item", item, _lead(item_text(item)), number) for item in block.items)
    elif block.kind == "quote":
        yield Unit("quote", block.text, _lead(_QUOTE_MARK.sub("", block.text)), number)
    elif block.kind == "turn":
        yield Unit("turn", block.text, plain(block.text), number)
    else:
        yield Unit(block.kind, block.text, block.text, number, max(1, block.level - level))


def _lead(text: str) -> str:
    """What a list item or a quotation says first: its first sentence, and the next when that is only a label."""
    lead = ""
    for sentence in sentences(plain(text.partition("```")[0].partition("\n\n")[0])):
        lead = running([lead, sentence])
        if len(lead) >= (_LABEL_HAN if is_han(lead[0]) else _LABEL_LATIN):
            break
    return lead


def _gathered(parts: list[TextPart], most: int) -> list[TextPart]:
    """Neighbours put together until ``most`` are left, of similar size; their titles stay as headings inside."""
    if len(parts) <= most:
        return parts
    sizes = [*accumulate(sum(len(unit.text) for unit in part.units) + 1 for part in parts)]
    groups: list[list[TextPart]] = [[] for _ in range(most)]
    for number, part in enumerate(parts):
        groups[_group(number, sizes, most)].append(part)
    return [_merged(group) for group in groups if group]


def _group(number: int, sizes: list[int], most: int) -> int:
    middle = (sizes[number] + (sizes[number - 1] if number else 0)) / 2
    return min(int(most * middle / sizes[-1]), most - 1)


def _merged(parts: list[TextPart]) -> TextPart:
    if len(parts) == 1:
        return parts[0]
    titles = [part.title for part in parts if part.title]
    title = f"{titles[0]} – {titles[-1]}" if len(titles) > 1 else "".join(titles)
    return TextPart(title, tuple(unit for part in parts for unit in _demoted(part)))


def _demoted(part: TextPart) -> Iterator[Unit]:
    if part.title and part.units:
        yield Unit("heading", part.title, part.title, -1 - part.units[0].block, 1)
    for unit in part.units:
        yield replace(unit, level=unit.level + 1) if unit.kind == "heading" else unit


def _by_topic(part: TextPart, most: int | None) -> Iterator[TextPart]:
    units = part.units
    wanted = min(most or _topics(len(units)), MOST_PARTS)
    gaps = [index for index in range(1, len(units)) if _may_cut(units[index - 1], units[index])]
    if len(gaps) < wanted // 2:
        gaps = [index for index in range(1, len(units)) if units[index].kind == "sentence"]
    cuts = boundaries([unit.terms for unit in units], gaps, wanted)
    for begin, end in pairwise([0, *cuts, len(units)]):
        yield TextPart(part.title if not cuts else "", units[begin:end])


def _topics(units: int) -> int:
    return max(1, min(round(units / _SENTENCES_PER_TOPIC), _MOST_TOPICS))


def _may_cut(before: Unit, after: Unit) -> bool:
    """A paragraph that announces what follows stays with it, and so does a heading."""
    announced = before.kind == "heading" or before.text.endswith((":", "："))
    return before.block != after.block and after.kind in {"sentence", "turn", "heading"} and not announced
