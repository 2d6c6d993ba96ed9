"""What the built-in generator says about itself, once in each document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from a2a_serverless.domain.writing import Language

Origin: TypeAlias = Literal["text", "topic", "outline", "nothing"]

_NOTICES: Final[dict[tuple[Origin, Language], str]] = {
    ("text", "en"): "Arranged from the given text by the built-in generator; no language model was used.",
    ("text", "zh"): "本文由内置生成器根据所给文本编排而成，未使用语言模型。",
    ("topic", "en"): "A scaffold, not an article: the built-in generator knows no facts about “{}”. "
    "It lists questions to answer and material to collect.",
    ("topic", "zh"): "这是提纲，不是文章：内置生成器并不掌握关于“{}”的事实，只列出待回答的问题和待收集的材料。",
    ("outline", "en"): "Laid out from the outline alone by the built-in generator; no language model was used.",
    ("outline", "zh"): "本文由内置生成器仅按大纲排列而成，未使用语言模型。",
    ("nothing", "en"): "No text was given, so there is nothing to arrange.",
    ("nothing", "zh"): "没有收到文本，因此没有可编排的内容。",
}


_BEGINNINGS: Final = {"> " + text.partition("{}")[0]: origin for (origin, _), text in _NOTICES.items()}


def notice(origin: Origin, language: Language, topic: str) -> str:
    """A quoted paragraph of Markdown that says where the words below come from."""
    return "> " + _NOTICES[origin, language].format(topic)


def origin_of(paragraph: str) -> Origin | None:
    """What ``paragraph`` says about the origin of a document; None when it is no notice of ours."""
    if not paragraph.startswith("> "):
        return None
    return next((origin for beginning, origin in _BEGINNINGS.items() if paragraph.startswith(beginning)), None)
