"""The offline writer's outline for a topic without a text: questions to answer. It knows no facts, and says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sample_agents.offline.sentences import is_han
from sample_agents.writing import language_of

if TYPE_CHECKING:
    from sample_agents.writing import Language

_MOST_WORDS: Final = 14
_MOST_HAN: Final = 30
_LONGEST: Final = 200
_REQUEST: Final = re.compile(
    r"^(?:please )?(?:(?:can|could) you )?(?:write|outline|draft|plan|explain)(?: me| us)?"
    r"(?: (?:an?|the)(?: \w{1,12})? (?:outline|document|text|article|guide|report))?(?: (?:about|on|for|of|to))? ",
    re.IGNORECASE,
)
_HAN_BEFORE: Final = re.compile(
    r"请?(?:[帮给为]我)?(?:(?:写|列|拟|起草|生成)(?:一[篇份个])?)?(?:关于|有关|为|介绍)?[“《\"]?"
)
_HAN_DOCUMENT: Final = re.compile("提纲|大纲|文档|文章|报告|指南")
_HAN_AFTER: Final = re.compile(rf"[”》\"]?的?(?:列|写|拟)?(?:一[个份篇])?(?:{_HAN_DOCUMENT.pattern})?[。！]?$")
_TITLE: Final[dict[Language, str]] = {"en": "{}: questions to answer", "zh": "{}：待回答的问题"}
# One section per line: its title, then questions.
_SECTIONS: Final[dict[Language, str]] = {
    "en": """
What it is | What is “{}” about, in one sentence? | What does it leave out? | Which terms must a reader know first?
Why it matters | Who is affected by it, and how? | Which number shows its size, from which year and source?
How it works | What are its main parts, and what does each of them do? | In which order do things happen?
Examples | Which real case shows it best? | Which case went wrong, and why?
Limits and open questions | Where does it not apply, or fail? | What do people who know it disagree about?
""",
    "zh": """
是什么 | 用一句话说，“{}”讲的是什么，不包括什么？ | 读者需要先了解哪些术语？
为什么重要 | 它影响哪些人，怎样影响？ | 哪个数字能说明其规模，出自哪一年、哪个来源？
如何运作 | 它由哪些主要部分组成，各起什么作用？ | 过程的顺序是怎样的？
实例 | 哪个真实的例子最能说明它？ | 有没有失败的例子，原因是什么？
局限与未解的问题 | 它在哪些情况下不适用或会失效？ | 内行的人在哪些问题上意见不一？
""",
}


def topic_of(source: str) -> str | None:
    """The topic when ``source`` is one line that only names a topic; None for a text."""
    line = source.strip().lstrip("# ")
    is_chinese = any(map(is_han, line[: _MOST_HAN + 1]))
    if not line or "\n" in line or len(line) > _LONGEST:
        return None
    request = (_HAN_DOCUMENT if is_chinese else _REQUEST).search(line)
    if not request and line.endswith((".", "!", "。", "！", "；")):
        return None
    topic = _without_chinese_request(line) if is_chinese else _REQUEST.sub("", line, count=1).strip(' .!"“”')
    is_short = len(topic) <= _MOST_HAN if is_chinese else len(topic.split()) <= _MOST_WORDS
    return topic if topic and is_short else None


def _without_chinese_request(line: str) -> str:
    end = _HAN_AFTER.search(line, max(0, len(line) - 12))
    kept = line[: end.start()] if end else line
    begin = _HAN_BEFORE.match(kept)
    return kept[begin.end() :] if begin else kept


def questions_about(topic: str) -> dict[str, object]:
    """An outline whose points are questions, as JSON."""
    language = language_of(topic)
    rows = [line.format(topic.rstrip("?？")).split(" | ") for line in _SECTIONS[language].strip().split("\n")]
    sections = [{"title": title, "points": questions} for title, *questions in rows]
    return {"title": _TITLE[language].format(topic[:1].upper() + topic[1:]), "sections": sections}
