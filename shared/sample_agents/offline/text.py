"""The offline writer: a text model that only rearranges the given text, and says so. It never adds a fact.

It answers only the prompts of ``sample_agents.prompts``. An outline names the parts of the source and quotes their key
sentences. A section is such a part again, shortened if it is long. A summary consists of the sentences that have most
in common with the rest of the text.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from sample_agents.offline.choosing import best, point
from sample_agents.offline.pictures import answer_about_picture
from sample_agents.offline.questions import questions_about, topic_of
from sample_agents.offline.reading import NOTICE, Block, Part, item_text, read_document
from sample_agents.offline.sentences import joined, plain, terms
from sample_agents.prompts import SUMMARY_SENTENCES, ReadPrompt, read_prompt

if TYPE_CHECKING:
    from sample_agents.writing import Language

_UNKNOWN: Final = (
    "The offline generator cannot answer this: it only arranges texts that it is given. "
    "离线生成器无法回答：它只会编排所给的文本。"
)
_NOT_MENTIONED: Final[dict[Language, str]] = {
    "en": "*The given text says nothing about this.*",
    "zh": "*所给文本没有提到这一点。*",
}
_NO_SENTENCES: Final[dict[Language, str]] = {
    "en": "The text has no sentences to summarise.",
    "zh": "文本中没有可供摘要的句子。",
}
_MOST_POINTS: Final = 3
_UNITS_PER_POINT: Final = 3
_KEPT_WHOLE: Final = 14
_MOST_KEPT: Final = 30
_LONGEST_BLOCK: Final = 8_000
_SHARED: Final = 2
_FULL_STOPS: Final = tuple(".!?…。！？；;")


class OfflineText:
    """Answers from the prompt alone, in English or Chinese."""

    notice = NOTICE

    async def complete(self, prompt: str) -> str:
        return await asyncio.to_thread(answer, prompt)

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        yield await self.complete(prompt)


def answer(text: str) -> str:
    """The answer to a prompt."""
    prompt = read_prompt(text)
    find = _ANSWERS.get(prompt.value("Task")) if prompt else None
    return find(prompt) if prompt and find else _UNKNOWN


def _outline(prompt: ReadPrompt) -> str:
    topic = topic_of(prompt.material)
    if topic:
        return json.dumps(questions_about(topic), ensure_ascii=False)
    document = read_document(prompt.material)
    sections = [{"title": part.title, "points": _points(part)} for part in document.parts]
    return json.dumps({"title": document.title, "sections": sections}, ensure_ascii=False)


def _points(part: Part) -> list[str]:
    """The key sentences of a part."""
    units = _units(part.blocks)
    return [point(units[place]) for place in best(units, min(_MOST_POINTS, len(units) // _UNITS_PER_POINT + 1))]


def _units(blocks: Sequence[Block]) -> list[str]:
    return [item_text(unit) if block.kind == "list" else unit for block in blocks for unit in block.units()]


def _section(prompt: ReadPrompt) -> str:
    """The source's part with the section's title, else its sentences about the section's points, else the points."""
    title, points = prompt.value("Section"), prompt.values("Point")
    if topic_of(prompt.material):
        return _listed(points, "- [ ] ") or _NOT_MENTIONED[prompt.language]
    parts = read_document(prompt.material).parts
    part = next((part for part in parts if part.title == title), None)
    body = _shortened(part.blocks) if part else _said_of(f"{title}\n" + "\n".join(points), parts)
    return body or _listed(points, "- ") or _NOT_MENTIONED[prompt.language]


def _listed(points: Sequence[str], bullet: str) -> str:
    return "\n".join(bullet + each for each in points)


def _said_of(wanted: str, parts: Sequence[Part]) -> str:
    """The source's sentences that share most terms with a section of the client's outline, as one paragraph."""
    about = frozenset(terms(wanted))
    units = [unit for part in parts for unit in _units(part.blocks)]
    near = [unit for unit in units if len(about.intersection(terms(unit))) >= _SHARED]
    return joined(near[place] for place in best(near, _KEPT_WHOLE, wanted))


def _shortened(blocks: Sequence[Block]) -> str:
    """A short part unchanged; the key sentences of a long one. Long tables and code are left out."""
    kept = [block for block in blocks if block.units() or len(block.text) <= _LONGEST_BLOCK]
    units = [unit for block in kept for unit in block.units()]
    if len(units) <= _KEPT_WHOLE:
        return "\n\n".join(map(_markdown, kept))
    chosen = frozenset(best(units, min(_MOST_KEPT, max(_KEPT_WHOLE, len(units) * 3 // 5))))
    return "\n\n".join(filter(None, _with_chosen(kept, chosen)))


def _with_chosen(blocks: Sequence[Block], chosen: frozenset[int]) -> Iterator[str]:
    """The blocks with only the chosen units; ``chosen`` has indexes over the units of all blocks."""
    number = 0
    for block in blocks:
        units = block.units()
        kept = [unit for place, unit in enumerate(units, number) if place in chosen]
        number += len(units)
        if not units:
            yield _markdown(block)
        else:
            yield joined(kept) if block.kind == "paragraph" else "\n".join(kept)


def _markdown(block: Block) -> str:
    return f"### {block.text}" if block.kind == "heading" else block.text


def _summary(prompt: ReadPrompt) -> str:
    document = read_document(prompt.material)
    units = [plain(unit) for part in document.parts for unit in _units(part.blocks)]
    chosen = (units[place] for place in best(units, SUMMARY_SENTENCES, document.title))
    stop = "。" if document.language == "zh" else "."
    ended = (words if words.endswith(_FULL_STOPS) else words + stop for words in chosen)
    return joined(ended) or _NO_SENTENCES[prompt.language]


def _picture(prompt: ReadPrompt) -> str:
    answer = answer_about_picture(prompt.material, prompt.value("Current picture"))
    return json.dumps(answer, ensure_ascii=False)


_ANSWERS: Final[dict[str, Callable[[ReadPrompt], str]]] = {
    "outline": _outline,
    "section": _section,
    "summary": _summary,
    "picture": _picture,
}
