"""Tells a topic ("Write about lighthouses") from a text to work on, and takes the request off both."""

from __future__ import annotations

import re
from typing import Final

from a2a_serverless.adapters.builtin.language import is_han, sentences

_LONGEST_TOPIC: Final = 300
_LONGEST_REQUEST: Final = 200
_MOST_WORDS: Final = 12
_MOST_HAN: Final = 24
_KIND: Final = (
    r"(?:(?:a|an|the|some)\s+)?(?:(?:short|long|brief|detailed|simple|good|new|complete|full|one-page|technical)\s+)*"
    r"(?:document|article|essay|report|outline|text|guide|post|blog post|paper|summary|introduction|overview|"
    r"description|story|draft|piece|page|chapter|tutorial|explanation)s?"
)
_ABOUT: Final = r"(?:about|on|of|for|to|regarding|covering|explaining|describing)\b\s*"
_ENGLISH_REQUEST: Final = re.compile(
    r"(?:(?:hi|hello|hey)[,!]?\s+)?(?:please\s+)?(?:(?:can|could|would|will)\s+you\s+(?:please\s+)?)?"
    r"(?:i\s+(?:want|need|would\s+like)\s+(?:you\s+)?(?:to\s+)?|i'd\s+like\s+(?:you\s+to\s+)?)?"
    r"(?:(?:(?:write|create|generate|make|draft|prepare|produce|compose|outline|summari[sz]e|explain|describe)\b|"
    r"(?:give|tell|teach|show)\s+(?:me|us)\b)\s*(?:(?:me|us)\s+)?"
    rf"(?:{_KIND}\b\s*)?(?:{_ABOUT})?|{_KIND}\s+{_ABOUT})",
    re.IGNORECASE,
)
_HAN_MEASURE: Final = r"(?:一下|一篇|一份|一个|一段|出|篇|份|个|下)"
_HAN_VERB: Final = r"(?:写|生成|创建|撰写|起草|介绍|描述|说明|解释|总结|概述|制作|准备|列出|讲解|讲讲|谈谈|说说)"
_HAN_ABOUT: Final = r"(?:(?:简短|详细|简单|完整)的?)?(?:关于|有关|论述|讲述)"
_HAN_REQUEST: Final = re.compile(
    r"(?:你好[，,！!]?)?(?:"
    rf"(?:请|麻烦|能否|能不能|我想|我要|我需要|你|您|帮我|为我|给我|替我)+{_HAN_VERB}?{_HAN_MEASURE}?(?:{_HAN_ABOUT})?|"
    rf"{_HAN_VERB}(?:{_HAN_MEASURE}(?:{_HAN_ABOUT})?|{_HAN_ABOUT})|{_HAN_ABOUT})"
)
_HAN_KIND: Final = re.compile(r"(?:的?(?:文章|文档|大纲|提纲|报告|短文|作文|说明文|介绍|摘要|总结))?[。！？!?.]*$")
_POINTS_BELOW: Final = re.compile(r"[:：]$")
_ASKS: Final = re.compile(
    r"\b(?:write|create|generate|make|draft|prepare|compose|outline|summari[sz]e|arrange|rewrite|turn)\b|"
    r"写|生成|整理|总结|概括|撰写|摘要|大纲|归纳|改写",
    re.IGNORECASE,
)


def topic_of(text: str) -> str | None:
    """The bare topic when ``text`` only names one or asks for something about it; None when it is a text of its own."""
    line = text.strip().lstrip("#").strip()
    if not line or "\n" in line or len(line) > _LONGEST_TOPIC or len(sentences(line)) > 1:
        return None
    bare = _bare(line)
    return bare if bare != line or _only_names(line) else None


def without_request(source: str) -> str:
    """The text without a first paragraph that only says what to do with it ("Summarise the following text:")."""
    first, _, rest = source.lstrip().partition("\n")
    asks = len(first) <= _LONGEST_REQUEST and _POINTS_BELOW.search(first.strip()) and _ASKS.search(first)
    return rest if asks and rest.strip() else source


def _bare(line: str) -> str:
    """What is left when the request is taken off; the line itself when it requests nothing."""
    match = (_HAN_REQUEST if is_han(line[0]) else _ENGLISH_REQUEST).match(line)
    if match is None:
        return line
    rest = line[match.end() :]
    rest = _HAN_KIND.sub("", rest, count=1) if any(map(is_han, rest)) else rest.rstrip(".!? ")
    return rest.strip(" \"'“”《》") or line


def _only_names(line: str) -> bool:
    if line.endswith(("?", "？")):
        return True
    if any(map(is_han, line)):
        return len(line) <= _MOST_HAN and not line.endswith(("。", "！", "；"))
    return len(line.split()) <= _MOST_WORDS and not line.endswith((".", "!"))
