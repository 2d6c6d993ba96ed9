"""The offline writer's outline for a topic without a text: questions to answer. It knows no facts, and says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sample_agents.offline.sentences import sentences
from sample_agents.writing import language_of

if TYPE_CHECKING:
    from sample_agents.writing import Language

_LONGEST: Final = 120
_REQUEST: Final[dict[Language, re.Pattern[str]]] = {
    "en": re.compile(
        r"(?:please )?(?:(?:write|outline|draft|plan|explain) )?"
        r"(?:(?:an?|the) (?:outline|document|text|article|guide|report) (?:about|on|for|of|to) )?(.+?)[.!?]*",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"请?(?:[写列]一[篇份个])?[为关于]*[“《]?(.+?)[”》]?的?(?:[写列]一[篇份个])?(?:提纲|大纲|文档|文章|报告|指南)?[。！？]*"
    ),
}
_TITLE: Final[dict[Language, str]] = {"en": "{}: questions to answer", "zh": "{}：待回答的问题"}
# One section per line: its title, then questions.
_SECTIONS: Final[dict[Language, str]] = {
    "en": """
What it is | What is “{}” about, in one sentence? | What does it leave out? | Which terms must a reader know first?
Why it matters | Who is affected by it, and how? | Which number shows its size, from which year and source?
How it works | What are its main parts, and what does each of them do? | In which order do things happen?
Limits and open questions | Where does it not apply, or fail? | What do people who know it disagree about?
""",
    "zh": """
是什么 | 用一句话说，“{}”讲的是什么，不包括什么？ | 读者需要先了解哪些术语？
为什么重要 | 它影响哪些人，怎样影响？ | 哪个数字能说明其规模，出自哪一年、哪个来源？
如何运作 | 它由哪些主要部分组成，各起什么作用？ | 过程的顺序是怎样的？
局限与未解的问题 | 它在哪些情况下不适用或会失效？ | 内行的人在哪些问题上意见不一？
""",
}


def topic_of(source: str) -> str | None:
    """The topic when ``source`` is one short sentence or less; None for a text."""
    line = source.strip()
    if "\n" in line or len(line) > _LONGEST or len(sentences(line)) > 1:
        return None
    topic = _REQUEST[language_of(line)].fullmatch(line)
    return topic[1] if topic else None


def questions_about(topic: str) -> dict[str, object]:
    """An outline whose points are questions, as JSON."""
    language = language_of(topic)
    rows = [line.split(" | ") for line in _SECTIONS[language].format(topic).strip().split("\n")]
    sections = [{"title": title, "points": questions} for title, *questions in rows]
    return {"title": _TITLE[language].format(topic[:1].upper() + topic[1:]), "sections": sections}
