"""The words of picture requests, English and Chinese, and their meanings in a scene."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

# Role and value, then their words; the first Chinese word is the name. English plurals need no entry.
_TABLE: Final = """
kind sailboat: sailboat, sail boat, sailing boat, sailing ship, boat, yacht, dinghy, ship, vessel, 帆船, 小船, 游艇, 船
kind lighthouse: lighthouse, light house, beacon, 灯塔
kind gulls: gull, seagull, sea gull, bird, seabird, 海鸥, 海鸟, 飞鸟, 小鸟, 鸟
part hull: hull, 船身, 船体
part sails: sail, mainsail, 船帆, 风帆, 帆
part stripes: stripe, band, 条纹
part sea: sea, ocean, water, lake, bay, harbour, harbor, waves, coast, seaside, 海面, 大海, 海洋, 海上, 海边, 海, 湖
part sky: sky, background, 天空, 背景
colour red: red, scarlet, 红色, 大红, 红
colour maroon: maroon, dark red, crimson, 深红色, 暗红色, 深红
colour orange: orange, 橙色, 橘色
colour gold: gold, golden, 金色, 金黄色
colour yellow: yellow, 黄色, 黄
colour green: green, 绿色, 绿
colour teal: teal, turquoise, cyan, 青色
colour sky blue: light blue, sky blue, pale blue, 浅蓝色, 天蓝色
colour blue: blue, 蓝色, 蓝
colour navy: navy, navy blue, dark blue, 深蓝色
colour purple: purple, violet, 紫色, 紫
colour pink: pink, magenta, 粉色, 粉红色
colour brown: brown, 棕色, 褐色
colour black: black, 黑色, 黑
colour grey: grey, gray, silver, 灰色, 银色
colour white: white, cream, 白色, 白
time dawn: dawn, sunrise, daybreak, 黎明, 日出, 清晨
time day: day, daytime, noon, midday, morning, afternoon, 白天, 中午, 正午
time sunset: sunset, dusk, evening, twilight, 日落时, 日落, 黄昏, 傍晚, 夕阳, 晚霞
time night: night, midnight, starry, star, moonlight, moon, 夜里, 夜晚, 夜间, 晚上, 深夜, 星空, 月亮, 夜
weather clear: clear, sunny, cloudless, 晴朗, 晴天, 晴
weather rain: rain, rainy, raining, 雨中, 下雨, 雨天, 雨
weather storm: storm, stormy, thunderstorm, rough, 暴风雨中, 暴风雨, 风暴, 雷雨, 汹涌
weather fog: fog, foggy, mist, misty, haze, 雾中, 大雾, 雾
verb add: add, include, put, with, also, 添加, 加上, 增加, 加, 画上, 还要, 还有
verb remove: remove, delete, erase, without, no, take away, get rid of, hide, 去掉, 删除, 删掉, 移除, 不要, 没有
word colour: colour, color, recolour, recolor, 颜色, 换色
former colour: from, instead of, rather than, not, 而不是
"""
MOST_READ: Final = 2_000
_CLAUSE_END: Final = frozenset(".;,!?。；，！？\n")


@dataclass(frozen=True, slots=True)
class Mention:
    """A known word in a text: its role and value, its position, and its clause."""

    role: str
    value: str
    start: int
    end: int
    clause: int


def _entries() -> list[tuple[str, str, list[str]]]:
    lines = (line.partition(": ") for line in _TABLE.strip().split("\n"))
    return [(*meaning.split(" ", 1), words.split(", ")) for meaning, _, words in lines]  # type: ignore[misc]


IN_CHINESE: Final = {value: next(word for word in words if not word.isascii()) for _, value, words in _entries()}
_MEANINGS: Final = {word: (role, value) for role, value, words in _entries() for word in words}
_LONGEST_FIRST: Final = sorted(_MEANINGS, key=lambda word: (-len(word), word))
_WORD: Final = re.compile(
    rf"(?<![a-z])({'|'.join(word for word in _LONGEST_FIRST if word.isascii())})(?:e?s)?(?![a-z])"
    rf"|({'|'.join(word for word in _LONGEST_FIRST if not word.isascii())})"
)


def normalised(text: str) -> str:
    """The beginning of a request in the form that ``mentions`` reads."""
    return text[:MOST_READ].replace("-", " ").lower()


def mentions(text: str) -> list[Mention]:
    """The known words of a normalised request, in order; of overlapping ones, the longest."""
    clauses = [0, *accumulate(character in _CLAUSE_END for character in text)]
    return [
        Mention(*_MEANINGS[word[1] or word[2]], word.start(), word.end(), clauses[word.start()])
        for word in _WORD.finditer(text)
    ]
