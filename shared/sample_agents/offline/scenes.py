"""Scenes of the sea in words: reads a scene from a request, changes it, and describes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from sample_agents.writing import language_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sample_agents.writing import Language

Scene: TypeAlias = dict[str, str]
"""The colour of each thing in the picture, empty for its natural one, and ``time``: day, sunset or night."""

MOST_READ: Final = 2_000
SUBJECTS: Final = {"sailboat": "一艘", "lighthouse": "一座"}  # with the Chinese words before the name
# A colour begins with its code. The first Chinese word is the one for descriptions. English plurals need no entry.
_TABLE: Final = """
sailboat: sailboat, sailing boat, sailing ship, boat, ship, yacht, 帆船, 船
lighthouse: lighthouse, 灯塔
sea: sea, ocean, water, seaside, 海面, 大海, 海洋, 海
sky: sky, background, 天空, 背景
day: day, daytime, noon, morning, afternoon, 白天, 中午
sunset: sunset, dusk, evening, twilight, 日落时, 日落, 黄昏, 傍晚, 夕阳
night: night, midnight, moonlight, star, 夜里, 夜晚, 晚上, 夜
red: #ce2026, red, 红色, 红
orange: #ee781c, orange, 橙色
yellow: #f6ce32, yellow, gold, golden, 黄色, 金色
green: #2a8c4a, green, 绿色, 绿
blue: #225cc4, blue, 蓝色, 蓝
purple: #763aa0, purple, violet, 紫色
pink: #ee82aa, pink, 粉色, 粉红色
black: #22242a, black, 黑色
white: #f6f4ee, white, 白色, 白
"""
_ROWS: Final = {value: words.split(", ") for value, _, words in (row.partition(": ") for row in _TABLE.split("\n"))}
COLOURS: Final = {value: words[0] for value, words in _ROWS.items() if words[0].startswith("#")}
_MEANINGS: Final = {word: value for value, words in _ROWS.items() for word in words if word}
_IN_CHINESE: Final = {value: next((word for word in words if not word.isascii()), "") for value, words in _ROWS.items()}
_LONGEST_FIRST: Final = sorted(_MEANINGS, key=len, reverse=True)
_WORD: Final = re.compile(
    rf"(?<![a-z])({'|'.join(word for word in _LONGEST_FIRST if word.isascii())})s?(?![a-z])"
    rf"|({'|'.join(word for word in _LONGEST_FIRST if not word.isascii())})"
)
_CLAUSE: Final = re.compile(r"[.;,!?。；，！？\n]|\band\b")
_THINGS: Final = (*SUBJECTS, "sea", "sky")
_TIMES: Final = ("day", "sunset", "night")
_WHAT: Final[dict[Language, str]] = {
    "en": "What should change about the picture? The offline painter can change colours and the time of day, and add "
    "a sailboat or a lighthouse.",
    "zh": "画面要怎么改？离线画师可以改变颜色和时间，也可以添加帆船或灯塔。",
}
_NOT_SHOWN: Final[dict[Language, str]] = {
    "en": "The picture shows no {}. Say what to add, or refer to another picture.",
    "zh": "图片里没有{}。请说明要添加什么，或指明另一幅图片。",
}


def answer_about_picture(request: str, current: str) -> dict[str, str]:
    """``name``, ``prompt`` and ``description`` of the requested picture, or a ``question`` to the client."""
    before, language = scene_of(current), language_of(request)
    after = _changed(before, request) if before else scene_of(request)
    if after is None:
        words = " ".join(f"{current} {request}".split())[:MOST_READ]
        return {"name": "words", "prompt": words, "description": words}
    if before and (strange := _strangers(before, request)):
        return {"question": _NOT_SHOWN[language].format(strange[0] if language == "en" else _IN_CHINESE[strange[0]])}
    if before and _in_english(after) == _in_english(before):
        return {"question": _WHAT[language]}
    name = next((subject for subject in SUBJECTS if subject in after), "sea")
    prompt = _in_english(after)
    return {"name": name, "prompt": prompt, "description": _in_chinese(after) if language == "zh" else prompt}


def _strangers(scene: Scene, request: str) -> list[str]:
    """The subjects of which a request speaks as if the picture showed them."""
    words = [word for word, value in _MEANINGS.items() if value in SUBJECTS and value not in scene]
    named = re.compile(rf"\bthe (?:[a-z]+ )?({'|'.join(words)})\b|把[^，。]*?({'|'.join(words)})[^，。]*?[改换变涂]")
    return [_MEANINGS[match[1] or match[2]] for match in named.finditer(request.lower())] if words else []


def scene_of(text: str) -> Scene | None:
    """The scene that a text describes; None when it names nothing that can be painted."""
    scene = _changed({"time": "day"}, text)
    return scene if {"sea", *SUBJECTS}.intersection(scene) else None


def _changed(scene: Scene, request: str) -> Scene:
    """The scene with what a request names. A colour for "it" is the subject's, or the sky's when there is none."""
    copy = dict(scene)
    for clause in _CLAUSE.split(request[:MOST_READ].lower()):
        words = [(_MEANINGS[word[1] or word[2]], word) for word in _WORD.finditer(clause)]
        for value, _ in words:
            if value in _TIMES:
                copy["time"] = value
            elif value in _THINGS:
                copy.setdefault(value, "")
        for target, colour in _tints(words):
            copy[target or next((subject for subject in SUBJECTS if subject in copy), "sky")] = colour
    return copy


def _tints(words: Sequence[tuple[str, re.Match[str]]]) -> Iterator[tuple[str, str]]:
    """Each colour in a clause with its thing: the one right behind it, else the last before it; empty for "it"."""
    for index, (colour, word) in enumerate(words):
        if colour in COLOURS:
            behind = [thing for thing, at in words[index + 1 :] if thing in _THINGS and at.start() <= word.end() + 1]
            before = [thing for thing, _ in words[:index] if thing in _THINGS]
            before.sort(key=lambda thing: thing != "sea")  # in "the boat on the sea", the sea is only a place
            yield (behind or before[-1:] or [""])[0], colour


def _in_english(scene: Scene) -> str:
    """One sentence with everything that the picture shows; ``scene_of`` reads it back."""
    nouns = " and ".join(_noun(scene, subject) for subject in SUBJECTS if subject in scene)
    sea = _noun(scene, "sea") if scene.get("sea") else "the sea"
    words = f"{nouns} {'on' if 'sailboat' in scene else 'by'} {sea}" if nouns else sea
    words += "" if scene["time"] == "day" else f" at {scene['time']}"
    words += f" under {_noun(scene, 'sky')}" if scene.get("sky") else ""
    return f"{words[0].upper()}{words[1:]}."


def _noun(scene: Scene, thing: str) -> str:
    return f"{'an' if scene[thing] == 'orange' else 'a'} {scene[thing]} {thing}".replace("  ", " ")


def _in_chinese(scene: Scene) -> str:
    colours = {thing: _IN_CHINESE[colour] for thing, colour in scene.items() if colour in COLOURS}
    time = "" if scene["time"] == "day" else f"{_IN_CHINESE[scene['time']]}的"
    names = [f"{one}{colours.get(each, '')}{_IN_CHINESE[each]}" for each, one in SUBJECTS.items() if each in scene]
    phrase = f"上有{'和'.join(names)}" if names else ""
    sky = f"，天空是{colours['sky']}的" if "sky" in colours else ""
    return f"{time}{colours.get('sea', '')}海面{phrase}{sky}。"
