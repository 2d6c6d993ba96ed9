"""The offline writer: a text model that only rearranges the given text, and says so. It never adds a fact.

It answers only the prompts of ``sample_agents.prompts``. An outline names the parts of the source and quotes their key
sentences. A section is such a part again. A summary consists of the sentences that have most in common with the rest of
the text.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

from sample_agents.offline.questions import questions_about, topic_of
from sample_agents.offline.reading import read_document
from sample_agents.offline.scenes import answer_about_picture
from sample_agents.offline.sentences import best, joined, plain
from sample_agents.prompts import SUMMARY_SENTENCES, Prompt, read_prompt

if TYPE_CHECKING:
    from sample_agents.writing import Language

_UNKNOWN: Final = "The offline generator only arranges texts that it is given. 离线生成器只会编排所给的文本。"
_NOTHING: Final[dict[Language, str]] = {
    "en": "*The given text says nothing about this.*",
    "zh": "*所给文本没有提到这一点。*",
}
_MOST_POINTS: Final = 3
_LONGEST_POINT: Final = 280


class OfflineText:
    """Answers from the prompt alone, in English or Chinese."""

    notice: Final[dict[Language, str]] = {
        "en": "Arranged by the offline generator from what it was given; no language model was used.",
        "zh": "本文由离线生成器根据所给内容编排而成，未使用语言模型。",
    }

    async def complete(self, prompt: str) -> str:
        return await asyncio.to_thread(answer, prompt)


def answer(text: str) -> str:
    """The answer to a prompt."""
    prompt = read_prompt(text)
    if prompt is None:
        return _UNKNOWN
    match prompt.value("Task"):
        case "section":
            return _section(prompt)
        case "summary":
            return _summary(prompt)
        case "picture":
            value: object = answer_about_picture(prompt.material, prompt.value("Current picture"))
        case _:
            value = _outline(prompt.material)
    return json.dumps(value, ensure_ascii=False)


def _outline(source: str) -> dict[str, object]:
    """The parts of a text with their key sentences; questions when there is only a topic."""
    topic = topic_of(source)
    if topic:
        return questions_about(topic)
    title, parts = read_document(source)
    sections = [{"title": part.title, "points": _points(part.units())} for part in parts]
    return {"title": title, "sections": sections}


def _points(units: list[str]) -> list[str]:
    lines = [plain(unit)[:_LONGEST_POINT] for unit in units]
    return best([line for line in lines if line], _MOST_POINTS)


def _section(prompt: Prompt) -> str:
    """The source's part with the section's title, else the points of the section, as a list of what is to be done."""
    parts = {part.title: part for part in read_document(prompt.material)[1]}
    part = parts.get(prompt.value("Section"))
    if part and not topic_of(prompt.material):
        return "\n\n".join(block.text for block in part.blocks)
    return "\n".join(f"- [ ] {point}" for point in prompt.values("Point")) or _NOTHING[prompt.language]


def _summary(prompt: Prompt) -> str:
    _, parts = read_document(prompt.material)
    units = [plain(unit) for part in parts for unit in part.units()]
    return joined(best([unit for unit in units if unit], SUMMARY_SENTENCES)) or _NOTHING[prompt.language]
