"""What to offer for a mere topic: questions to answer and material to collect. No facts, for we know none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from a2a_serverless.domain.writing import Outline, Section, language_of, slugs

if TYPE_CHECKING:
    from a2a_serverless.domain.writing import Language

Approach: TypeAlias = Literal["subject", "method", "history", "comparison"]
Plan: TypeAlias = "tuple[tuple[str, tuple[str, ...]], ...]"

_DEFAULT_SECTIONS: Final = 5
_CLUES: Final[tuple[tuple[Approach, re.Pattern[str]], ...]] = (
    ("comparison", re.compile(r"\b(?:vs\.?|versus|compar\w+|differences?)\b|对比|比较|区别|差异|还是", re.IGNORECASE)),
    ("history", re.compile(r"\b(?:history|origins?|evolution|timeline)\b|历史|起源|演变|由来|发展史", re.IGNORECASE)),
    (
        "method",
        re.compile(
            r"^how\s+to\b|^how\s+(?:can|do|should)\s+(?:i|we|you)\b|\bguide\b|如何|怎么|怎样|指南|教程", re.IGNORECASE
        ),
    ),
)
_PLANS: Final[dict[tuple[Language, Approach], Plan]] = {
    ("en", "subject"): (
        (
            "What it is",
            (
                "What is “{topic}” about, in one sentence, and what does it leave out?",
                "Which terms does a reader have to know first?",
                "Collect: a definition from a source that the reader will trust.",
            ),
        ),
        (
            "Why it matters",
            (
                "Who is affected by it, and how?",
                "What would be missing without it?",
                "Collect: one number that shows its size, with its year and its source.",
            ),
        ),
        (
            "How it works",
            (
                "What are its main parts, and what does each of them do?",
                "In which order do things happen, from the first step to the last?",
                "Collect: one picture or diagram that replaces a page of text.",
            ),
        ),
        (
            "Examples",
            (
                "Which real case shows it best?",
                "Which case went wrong, and why?",
                "Collect: names, places and dates for each case.",
            ),
        ),
        (
            "Limits and open questions",
            (
                "Where does it not apply, or fail?",
                "What do people who know it disagree about?",
                "What would change the picture in the next years?",
            ),
        ),
        (
            "What to do next",
            (
                "What should a reader do, decide or read after this text?",
                "Collect: two or three sources to read on.",
            ),
        ),
    ),
    ("en", "method"): (
        (
            "Goal and prerequisites",
            (
                "“{topic}”: what will the reader have at the end?",
                "What must be known, owned or installed before the first step?",
                "How long does it take, and what does it cost?",
            ),
        ),
        (
            "The steps",
            (
                "What is the shortest list of steps that works?",
                "How does the reader see after each step that it worked?",
                "Collect: the exact commands, amounts or settings of each step.",
            ),
        ),
        (
            "When it goes wrong",
            (
                "Which mistakes do beginners make most often?",
                "How is each of them noticed and undone?",
                "What must never be done?",
            ),
        ),
        (
            "Other ways",
            (
                "Which other ways lead to the same goal?",
                "When is each of them the better choice?",
            ),
        ),
        (
            "What to do next",
            (
                "What does a reader who has finished want to do next?",
                "Collect: two or three sources to read on.",
            ),
        ),
    ),
    ("en", "history"): (
        (
            "Before it began",
            (
                "What was there before, and what was wrong with it?",
                "Which need or discovery started “{topic}”?",
                "Collect: the earliest date that a source supports.",
            ),
        ),
        (
            "Beginnings",
            (
                "Who took the first steps, where and when?",
                "What did people at the time think of it?",
                "Collect: one quotation from that time.",
            ),
        ),
        (
            "Turning points",
            (
                "Which three to five events changed its course?",
                "What was different after each of them?",
                "Collect: date, place and source for each event.",
            ),
        ),
        (
            "Where it stands today",
            (
                "What is left of its beginnings, and what has gone?",
                "Who shapes it now?",
                "Collect: one number for today and one for the past to set beside it.",
            ),
        ),
        (
            "What it teaches",
            (
                "Which pattern in its history repeats itself?",
                "What do historians disagree about?",
            ),
        ),
    ),
    ("en", "comparison"): (
        (
            "What is compared",
            (
                "What exactly stands on each side of “{topic}”?",
                "For whom, and for which purpose, is the comparison made?",
                "Collect: version, year or model of each side.",
            ),
        ),
        (
            "What they share",
            (
                "Which problem do both sides solve?",
                "Where does the choice make no difference?",
            ),
        ),
        (
            "Where they differ",
            (
                "Which three differences matter most to the reader?",
                "How was each difference measured, and by whom?",
                "Collect: a table with one row for each difference.",
            ),
        ),
        (
            "Costs and risks",
            (
                "What does each side cost at first, and what does it cost to keep?",
                "How hard is it to change sides later?",
            ),
        ),
        (
            "Which to choose",
            (
                "For which reader is the one side right, and for which the other?",
                "What new fact would change the answer?",
            ),
        ),
    ),
    ("zh", "subject"): (
        (
            "是什么",
            (
                "用一句话说，“{topic}”讲的是什么，不包括什么？",
                "读者需要先了解哪些术语？",
                "待收集：一个读者信得过的来源给出的定义。",
            ),
        ),
        (
            "为什么重要",
            (
                "它影响哪些人，怎样影响？",
                "如果没有它，会缺少什么？",
                "待收集：一个能说明其规模的数字，连同年份和来源。",
            ),
        ),
        (
            "如何运作",
            (
                "它由哪些主要部分组成，各起什么作用？",
                "从第一步到最后一步，过程的顺序是怎样的？",
                "待收集：一张能代替一页文字的图。",
            ),
        ),
        (
            "实例",
            (
                "哪个真实的例子最能说明它？",
                "有没有失败的例子，原因是什么？",
                "待收集：每个例子的人名、地点和日期。",
            ),
        ),
        (
            "局限与未解的问题",
            (
                "它在哪些情况下不适用或会失效？",
                "内行的人在哪些问题上意见不一？",
                "今后几年，什么会改变现状？",
            ),
        ),
        (
            "下一步",
            (
                "读完之后，读者应当做什么、决定什么或再读什么？",
                "待收集：两三个可供延伸阅读的来源。",
            ),
        ),
    ),
    ("zh", "method"): (
        (
            "目标与准备",
            (
                "“{topic}”：做完之后，读者会得到什么？",
                "开始之前需要了解、拥有或安装什么？",
                "需要多少时间和费用？",
            ),
        ),
        (
            "步骤",
            (
                "最短的可行步骤有哪些？",
                "每一步之后，读者怎样知道自己做对了？",
                "待收集：每一步的具体命令、用量或设置。",
            ),
        ),
        (
            "出错的时候",
            (
                "初学者最常犯哪些错误？",
                "怎样发现并纠正这些错误？",
                "有什么是绝对不能做的？",
            ),
        ),
        (
            "其他途径",
            (
                "还有哪些途径可以达到同样的目标？",
                "什么情况下该选择哪一种？",
            ),
        ),
        (
            "下一步",
            (
                "完成之后，读者接下来会想做什么？",
                "待收集：两三个可供延伸阅读的来源。",
            ),
        ),
    ),
    ("zh", "history"): (
        (
            "开端之前",
            (
                "在那之前是什么样子，有什么不足？",
                "哪种需要或发现促成了“{topic}”？",
                "待收集：有来源支持的最早日期。",
            ),
        ),
        (
            "起步",
            (
                "最早由谁、在何时何地迈出第一步？",
                "当时的人怎样看待它？",
                "待收集：一段当时的原话。",
            ),
        ),
        (
            "转折点",
            (
                "哪三到五件事改变了它的走向？",
                "每件事之后有什么不同？",
                "待收集：每件事的日期、地点和来源。",
            ),
        ),
        (
            "今天的面貌",
            (
                "起步时的东西还剩下什么，消失了什么？",
                "如今由谁左右它的发展？",
                "待收集：今昔各一个可以对照的数字。",
            ),
        ),
        (
            "启示",
            (
                "它的历史中有什么规律在重演？",
                "研究者在哪些问题上意见不一？",
            ),
        ),
    ),
    ("zh", "comparison"): (
        (
            "比较什么",
            (
                "“{topic}”的双方各指什么？",
                "这一比较是为谁、为什么目的而做？",
                "待收集：双方的版本、年份或型号。",
            ),
        ),
        (
            "共同之处",
            (
                "双方解决的是哪个共同的问题？",
                "在哪些方面选谁都一样？",
            ),
        ),
        (
            "不同之处",
            (
                "对读者最要紧的三点不同是什么？",
                "每一点不同是谁、怎样测量出来的？",
                "待收集：一张表，每行一点不同。",
            ),
        ),
        (
            "成本与风险",
            (
                "双方的起步成本和长期成本各是多少？",
                "以后要换到另一方有多难？",
            ),
        ),
        (
            "如何选择",
            (
                "哪类读者适合这一方，哪类适合另一方？",
                "出现什么新情况会改变结论？",
            ),
        ),
    ),
}


def scaffold(topic: str, sections: int | None) -> Outline:
    """An outline whose points are questions to answer; at most ``sections`` of them (None: five)."""
    language = language_of(topic)
    plan = _PLANS[language, _approach(topic)][: max(1, sections or _DEFAULT_SECTIONS)]
    ids = slugs(title for title, _ in plan)
    points = [tuple(question.format(topic=topic.rstrip("?？")) for question in questions) for _, questions in plan]
    titles = [title for title, _ in plan]
    return Outline(topic[:1].upper() + topic[1:], language, tuple(map(Section, ids, titles, points)))


def _approach(topic: str) -> Approach:
    return next((approach for approach, clue in _CLUES if clue.search(topic)), "subject")
