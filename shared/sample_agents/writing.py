"""Shared by the writing agents: the outline, which is sent as a data part, and functions on texts.

A client may send an outline that it wrote or changed itself, so every field is checked.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, cast

from pydantic import BaseModel, Field, StringConstraints

from a2a_serverless.protocol.protojson import read_model

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject

Language: TypeAlias = Literal["en", "zh"]
Words: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

EXAMPLES: Final = (
    "# Bees in the city\n\n## Where a hive stands\n\nBees live well in cities: parks flower until October. \
A hive needs morning sun, shelter from the wind, and water nearby.\n\n## How to begin\n\nBegin with two hives. If one \
colony dies in its first winter, the other one shows how a healthy colony looks. In August the honey is taken.\n",
    "# 城市里的蜜蜂\n\n## 蜂箱放在哪里\n\n蜜蜂在城市里生活得很好：公园一直开花到十月。\
蜂箱需要早晨的阳光、避风的地方和附近的水源。\n\n## 如何开始\n\n\
从两个蜂箱开始。一个蜂群可能在第一个冬天死去，另一个能显示健康的蜂群是什么样子。八月取蜜。\n",
)
"""A text in English and one in Chinese, from which each writing agent makes something without a model, too."""

_HAN: Final = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_WORD: Final = re.compile(r"[^\W\d_\u3400-\u9fff]+")
_TAG: Final = re.compile(r"<(?=[a-zA-Z/!?])")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})")
_MOST_ITEMS: Final = 500


class Section(BaseModel, frozen=True):
    """A section to write."""

    title: Words
    points: tuple[Words, ...] = Field((), max_length=_MOST_ITEMS)


class Outline(BaseModel, frozen=True):
    """The plan of a document, in reading order."""

    title: Words
    sections: list[Section] = Field(min_length=1, max_length=_MOST_ITEMS)

    @property
    def language(self) -> Language:
        """The language of the titles."""
        return language_of("\n".join([self.title, *(section.title for section in self.sections)]))


def language_of(text: str) -> Language:
    """Chinese when ``text`` has more Han characters than words of other scripts, English otherwise."""
    han = sum(1 for _ in _HAN.finditer(text))
    return "zh" if han > sum(1 for _ in _WORD.finditer(text)) else "en"


def without_html(markdown: str) -> str:
    """The Markdown with all HTML tags outside of fenced code escaped, so that no page executes untrusted HTML."""
    lines, fence = list[str](), ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if line.strip().startswith(fence) and not line.strip().strip(fence[0]) else fence
        elif mark:
            fence = mark[1]
        lines.append(line if fence or mark else _TAG.sub("&lt;", line))
    return "\n".join(lines)


def object_in(answer: str) -> Json:
    """The JSON object in a model's answer, with any text around it; None when there is none."""
    try:
        return cast("Json", json.loads(answer[answer.find("{") : answer.rfind("}") + 1]))
    except ValueError:
        return None


def outline_to_json(outline: Outline) -> JsonObject:
    """``{"title", "sections": [{"title", "points"}]}``; ``outline_from_json`` reads it back."""
    return outline.model_dump(mode="json")


def outline_from_json(value: Json) -> Outline:
    """The outline in a data part; raises ``InvalidParams`` that names the invalid fields. Only titles are required."""
    return read_model(Outline, value)
