"""The text model that needs no model: it arranges what it is given and says so. It never adds a fact.

An outline names the parts of the source and quotes their key sentences; a section is such a part again, shortened when
it is long; a summary is the sentences that the rest of the text is closest to. The same input gives the same words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.builtin.choosing import digest, key_points, shortened
from a2a_serverless.adapters.builtin.language import terms
from a2a_serverless.adapters.builtin.markdown import plain, running
from a2a_serverless.adapters.builtin.notices import notice, origin_of
from a2a_serverless.adapters.builtin.reading import Reading, study, topic
from a2a_serverless.adapters.builtin.salience import similarity, vectors
from a2a_serverless.adapters.builtin.scaffold import scaffold
from a2a_serverless.domain.writing import Outline, Section, language_of, slugs

if TYPE_CHECKING:
    from a2a_serverless.adapters.builtin.notices import Origin
    from a2a_serverless.adapters.builtin.structure import Unit
    from a2a_serverless.domain.writing import Language

_NOT_MENTIONED: Final = {"en": "*The given text says nothing about this.*", "zh": "*所给文本没有提到这一点。*"}
_NO_SENTENCES: Final = {"en": "The text has no sentences to summarise.", "zh": "文本中没有可供摘要的句子。"}
_ENDS: Final = tuple(".!?…。！？；;:：")
_NEAR_ENOUGH: Final = 0.08


class BuiltinText:
    """Outlines, sections and summaries from the given text alone, in English or Chinese."""

    async def outline(self, source: str, *, sections: int | None = None) -> Outline:
        return await asyncio.to_thread(_outline, source, sections)

    async def opening(self, outline: Outline, source: str) -> str:
        return await asyncio.to_thread(_opening, outline, source)

    async def section(self, outline: Outline, section: Section, source: str) -> str:
        return await asyncio.to_thread(_section, outline, section, source)

    async def summary(self, text: str, *, sentences: int = 3) -> str:
        return await asyncio.to_thread(_summary, text, sentences)


def _outline(source: str, sections: int | None) -> Outline:
    if named := topic(source):
        return scaffold(named, sections)
    reading = study(source, sections)
    points = [key_points(part.units) for part in reading.parts]
    titles = [part.title for part in reading.parts]
    return Outline(reading.title, reading.language, tuple(map(Section, slugs(titles), titles, points)))


def _opening(outline: Outline, source: str) -> str:
    origin = _origin(outline, source)
    return f"# {outline.title}\n\n{notice(origin, outline.language, outline.title)}\n\n"


def _origin(outline: Outline, source: str) -> Origin:
    """Where the words come from: an outline with a source that says nothing about it has only its own."""
    if not outline.sections:
        return "text" if source.strip() else "nothing"
    named = topic(source)
    if named is not None:
        own = {section.id for section in scaffold(named, None).sections}
        return "outline" if own.isdisjoint(section.id for section in outline.sections) else "topic"
    shares = _shares(outline, source) if source.strip() else {}
    return "text" if any(shares.get(section.id) for section in outline.sections) else "outline"


def _section(outline: Outline, section: Section, source: str) -> str:
    origin = _origin(outline, source)
    units = _shares(outline, source).get(section.id, ()) if origin == "text" else ()
    body = _written(shortened(units)) or _listed(section.points, "- [ ] " if origin == "topic" else "- ")
    return f"## {section.title}\n\n{body or _NOT_MENTIONED[outline.language]}\n\n"


def _listed(points: Sequence[str], bullet: str) -> str:
    return "\n".join(bullet + point for point in points)


@lru_cache(maxsize=4)  # asked for once for every section
def _shares(outline: Outline, source: str) -> dict[str, Sequence[Unit]]:
    """By section id: the part that it was named for, or what comes nearest to a section that somebody else planned."""
    for most in (None, len(outline.sections)):
        own = _units_by_id(study(source, most))
        if all(section.id in own for section in outline.sections):
            return own
    return _nearest(outline, source) | _units_by_id(study(source, None))


def _units_by_id(reading: Reading) -> dict[str, Sequence[Unit]]:
    ids = slugs(part.title for part in reading.parts)
    return {slug: part.units for slug, part in zip(ids, reading.parts, strict=True)}


def _nearest(outline: Outline, source: str) -> dict[str, Sequence[Unit]]:
    """Every unit of the source under the section whose title and points it is most similar to, if it is to any."""
    units = [unit for part in study(source, None).parts for unit in part.units]
    wanted = [terms("\n".join((section.title, *section.points))) for section in outline.sections]
    of = vectors([*wanted, *(unit.terms for unit in units)])
    shares: dict[str, list[Unit]] = {section.id: [] for section in outline.sections}
    for unit, vector in zip(units, of[len(wanted) :], strict=True):
        near = [similarity(vector, other) for other in of[: len(wanted)]]
        if max(near) >= _NEAR_ENOUGH:
            shares[outline.sections[near.index(max(near))].id].append(unit)
    return {**shares}


def _written(units: Sequence[Unit]) -> str:
    """The units as Markdown, those of one paragraph or list together."""
    blocks = (list(group) for _, group in groupby(units, key=lambda unit: unit.block))
    return "\n\n".join(_block(block) for block in blocks)


def _block(units: Sequence[Unit]) -> str:
    first = units[0]
    if first.kind == "heading":
        return f"{'#' * min(2 + first.level, 6)} {first.text}"
    if first.kind == "sentence":
        return running(unit.text for unit in units)
    return "\n".join(unit.text for unit in units)


def _summary(text: str, sentences: int) -> str:
    """A scaffold has nothing to sum up but that it is one."""
    if found := next((line for line in text.splitlines() if origin_of(line) == "topic"), None):
        return plain(found.removeprefix("> "))
    reading = study(text, None)
    units = [unit for part in reading.parts for unit in part.units]
    chosen = digest(units, max(1, sentences), reading.title)
    return running(_ended(unit.words, reading.language) for unit in chosen) or _NO_SENTENCES[language_of(text)]


def _ended(words: str, language: Language) -> str:
    """A list item has no full stop, but in running text it needs one."""
    return words if words.rstrip("\"'”’」』）)").endswith(_ENDS) else words + ("。" if language == "zh" else ".")
