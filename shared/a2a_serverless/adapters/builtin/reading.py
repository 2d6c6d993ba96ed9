"""What a source turns out to be once it is read: a topic, or a text with parts that have names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from a2a_serverless.adapters.builtin.markdown import Block, plain, read
from a2a_serverless.adapters.builtin.notices import origin_of
from a2a_serverless.adapters.builtin.phrases import names
from a2a_serverless.adapters.builtin.structure import TextPart, parts_of, with_headings, with_turns, without_title
from a2a_serverless.adapters.builtin.topics import topic_of, without_request
from a2a_serverless.domain.writing import Language, language_of

_UNTITLED: Final = {"en": "Untitled", "zh": "未命名"}
_OVERVIEW: Final = {"en": ("Overview", "Introduction", "At a glance"), "zh": ("概述", "引言", "概览")}
_NUMBERED: Final = {"en": "Part {}", "zh": "第{}部分"}


@dataclass(frozen=True, slots=True)
class Reading:
    """A text that was read. Every part has a title of its own; an empty source has no parts."""

    title: str
    language: Language
    parts: tuple[TextPart, ...]


@lru_cache(maxsize=4)  # every section of a document reads the same source
def topic(source: str) -> str | None:
    """The topic when ``source`` is no more than that."""
    blocks = read(source).blocks
    return topic_of(blocks[0].text) if len(blocks) == 1 and blocks[0].kind in {"heading", "paragraph"} else None


@lru_cache(maxsize=4)
def study(source: str, most_parts: int | None) -> Reading:
    """Reads ``source`` as a text, without notices of ours. Asked for as many parts as it has it gives the same."""
    document = read(without_request(source))
    own = [block for block in document.blocks if not origin_of(block.text) and block.text != document.title]
    headline, blocks = without_title(with_turns(with_headings(own)))
    language = language_of(_prose(blocks) or headline)
    parts = parts_of(blocks, most_parts)
    title = headline or document.title or next(iter(names(["\n".join(map(_said, parts))], language)), "")
    return Reading(title or _UNTITLED[language], language, tuple(_named(parts, language)))


def _prose(blocks: list[Block]) -> str:
    return "\n".join(plain(block.text) for block in blocks if block.kind in {"paragraph", "turn", "list"})


def _said(part: TextPart) -> str:
    return "\n".join(unit.said for unit in part.units if unit.is_prose)


def _named(parts: list[TextPart], language: Language) -> list[TextPart]:
    """The parts with titles: their headings, or an overview before the first heading, or what they are about."""
    headings = [part.title for part in parts]
    if len(parts) == 1 or any(headings):
        overview = next(name for name in _OVERVIEW[language] if name not in headings[:2])
        return [replace(part, title=part.title or overview) for part in parts]
    found = names([*map(_said, parts)], language)
    titles = [name or _NUMBERED[language].format(number) for number, name in enumerate(found, 1)]
    return [replace(part, title=title) for part, title in zip(parts, titles, strict=True)]
