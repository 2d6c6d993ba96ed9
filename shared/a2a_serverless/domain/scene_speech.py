"""Scenes in words, English and Chinese: what a picture shows, and what has to be asked before it can be changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2a_serverless.domain.scene_model import Scene, Thing
    from a2a_serverless.domain.scene_words import Colour, Kind
    from a2a_serverless.domain.writing import Language


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """What has to be asked before a scene can be changed.

    ``refine`` of the same scene with the request and the answer in one text, in this order, then knows what to do.
    """

    question: str
    choices: tuple[str, ...] = ()


# Singular, plural, Chinese, the Chinese measure word. What has no plural is not counted.
_NAMES: Final[dict[Kind, tuple[str, str, str, str]]] = {
    "sailboat": ("sailboat", "sailboats", "帆船", "艘"),
    "lighthouse": ("lighthouse", "lighthouses", "灯塔", "座"),
    "island": ("island", "islands", "小岛", "座"),
    "mountains": ("mountains", "", "群山", ""),
    "whale": ("whale", "whales", "鲸鱼", "头"),
    "birds": ("gull", "gulls", "海鸥", "只"),
    "sun": ("sun", "", "太阳", ""),
    "moon": ("moon", "", "月亮", ""),
    "clouds": ("clouds", "", "云", ""),
    "rainbow": ("rainbow", "", "彩虹", ""),
}
_ACCENTS: Final[dict[Kind, tuple[str, str]]] = {"sailboat": ("sails", "帆"), "lighthouse": ("stripes", "条纹")}
_ARTICLES: Final[dict[Kind, str]] = {"sun": "the ", "moon": "the ", "rainbow": "a "}
_ALONE: Final = frozenset({"sun", "moon", "rainbow"})
_LONGEST_QUOTE: Final = 80
_PLACES: Final[dict[Kind, str]] = {"lighthouse": "by", "mountains": "by", "whale": "in", "island": "in"}
_OVER: Final[tuple[Kind, ...]] = ("birds", "sun", "moon", "clouds", "rainbow")
_COLOURS: Final[dict[Colour, str]] = {
    "red": "红色",
    "maroon": "深红色",
    "orange": "橙色",
    "gold": "金色",
    "yellow": "黄色",
    "green": "绿色",
    "teal": "青色",
    "sky blue": "浅蓝色",
    "blue": "蓝色",
    "navy": "深蓝色",
    "purple": "紫色",
    "pink": "粉色",
    "brown": "棕色",
    "black": "黑色",
    "grey": "灰色",
    "white": "白色",
}
_SETTINGS: Final = {
    "dawn": ("at dawn", "黎明的"),
    "day": ("", ""),
    "sunset": ("at sunset", "日落时的"),
    "night": ("at night", "夜里的"),
    "clear": ("", ""),
    "cloudy": ("under a cloudy sky", "多云的"),
    "rain": ("in the rain", "雨中的"),
    "storm": ("in a storm", "暴风雨中的"),
    "fog": ("in the fog", "雾中的"),
    "snow": ("in the snow", "雪中的"),
}
_NUMBERS: Final = ("", "a", "two", "three", "four", "five")
_HAN_NUMBERS: Final = ("", "一", "两", "三", "四", "五")
_OFFERED: Final[tuple[Colour, ...]] = ("red", "blue", "green", "yellow", "white", "black")


def describe(scene: Scene, language: Language | None = None) -> str:
    """One sentence that says what is in the picture, in the language of the request unless another is given."""
    language = language or scene.language
    if not scene.is_known:
        return _describe_words(scene, language)
    return _describe_chinese(scene) if language == "zh" else _describe_english(scene)


def _describe_words(scene: Scene, language: Language) -> str:
    words = scene.words if len(scene.words) <= _LONGEST_QUOTE else f"{scene.words[:_LONGEST_QUOTE]}…"
    subjects = _listing(_names(language), language)
    if language == "zh":
        return f"“{words}”的抽象卡片。内置画师只会画海面上的{subjects}。"
    return f"An abstract card for “{words}”. The built-in painter knows only the sea with {subjects}."


def _describe_english(scene: Scene) -> str:
    things = sorted(scene.things, key=lambda thing: thing.kind in _OVER)
    named = [_english(thing) for thing in things]
    sea = f"{_article(scene.sea)} {scene.sea} sea" if scene.sea else "the sea"
    first = f"{named[0]} {_place(things[0])} {sea}" if named else sea
    sky = f"under {_article(scene.sky)} {scene.sky} sky" if scene.sky else ""
    rest = f"with {_listing(named[1:], 'en')}" if named[1:] else ""
    words = [first, _SETTINGS[scene.time][0], _SETTINGS[scene.weather][0], sky, rest]
    text = " ".join(filter(None, words))
    return f"{text[0].upper()}{text[1:]}."


def _place(thing: Thing) -> str:
    return "over" if thing.kind in _OVER else _PLACES.get(thing.kind, "on")


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _english(thing: Thing) -> str:
    singular, plural, *_ = _NAMES[thing.kind]
    colour = f"{thing.colour} " if thing.colour else ""
    accent = f" with {thing.accent} {_ACCENTS[thing.kind][0]}" if thing.accent and thing.kind in _ACCENTS else ""
    if not plural:
        return f"{_ARTICLES.get(thing.kind, '')}{colour}{singular}"
    if thing.count > 1:
        return f"{_NUMBERS[thing.count]} {colour}{plural}{accent}"
    return f"{_article(colour or singular)} {colour}{singular}{accent}"


def _describe_chinese(scene: Scene) -> str:
    named = [_chinese(thing) for thing in sorted(scene.things, key=lambda thing: thing.kind in _OVER)]
    sea = f"{_COLOURS[scene.sea]}的海面" if scene.sea else "海面"
    sky = f"{_COLOURS[scene.sky]}的天空下，" if scene.sky else ""
    setting = f"{sky}{_SETTINGS[scene.time][1]}{_SETTINGS[scene.weather][1]}"
    first = f"{setting}{sea}上的{named[0]}" if named else f"{setting}{sea}"
    rest = f"，还有{_listing(named[1:], 'zh')}" if named[1:] else ""
    return f"{first}{rest}。"


def _chinese(thing: Thing) -> str:
    *_, name, measure = _NAMES[thing.kind]
    count = f"{_HAN_NUMBERS[thing.count]}{measure}" if measure else ""
    colour = _COLOURS[thing.colour] if thing.colour else ""
    accent = ""
    if thing.accent and thing.kind in _ACCENTS:
        accent = f"（{_COLOURS[thing.accent]}{_ACCENTS[thing.kind][1]}）"
    return f"{count}{colour}{name}{accent}"


def _listing(names: Sequence[str], language: Language) -> str:
    comma, last = ("、", "和") if language == "zh" else (", ", " and ")
    return last.join(filter(None, (comma.join(names[:-1]), names[-1])))


def _names(language: Language) -> list[str]:
    if language == "zh":
        return [name[2] for name in _NAMES.values()]
    return [name[1] or f"{_ARTICLES.get(kind, '')}{name[0]}" for kind, name in _NAMES.items()]


def not_there(kind: Kind, language: Language, *, to_hide: bool) -> Ambiguity:
    """The request changes or hides something that the picture does not have."""
    singular, plural, chinese, _ = _NAMES[kind]
    if language == "zh":
        return Ambiguity(
            f"画面中没有{chinese}。{'要改什么？' if to_hide else '要添加吗？'}", () if to_hide else (f"添加{chinese}",)
        )
    missing = f"There {'is' if singular in _ALONE else 'are'} no {plural or singular} in the picture."
    if to_hide:
        return Ambiguity(f"{missing} What should change?")
    return Ambiguity(f"{missing} Should I add {_alone(kind)}?", (f"add {_alone(kind)}",))


def which(kinds: Sequence[Kind], language: Language) -> Ambiguity:
    """The request says "it", which may be several things, or none."""
    choices = [_definite(kind, language) for kind in kinds] or (
        ["海", "天空"] if language == "zh" else ["the sea", "the sky"]
    )
    if language == "zh":
        return Ambiguity(f"您指的是{'还是'.join(choices)}？", tuple(choices))
    return Ambiguity(f"Which one do you mean: {' or '.join(choices)}?", tuple(choices))


def which_colour(kinds: Sequence[Kind], language: Language) -> Ambiguity:
    """The request asks for another colour and names none."""
    of = _definite(kinds[0], language) if kinds else ("画面" if language == "zh" else "it")
    if language == "zh":
        return Ambiguity(f"{of}要改成什么颜色？", tuple(_COLOURS[colour] for colour in _OFFERED))
    return Ambiguity(f"Which colour should {of} have?", _OFFERED)


def what_change(kinds: Sequence[Kind], language: Language) -> Ambiguity:
    """The request changes nothing that is known here."""
    of = _definite(kinds[0], language) if kinds else ("画面" if language == "zh" else "the picture")
    things = _listing(_names(language), language)
    if language == "zh":
        return Ambiguity(f"{of}要怎么改？内置画师可以改变颜色、时间、天气和海浪，也可以添加或去掉{things}。")
    return Ambiguity(
        f"What should change about {of}? The built-in painter can change colours, time of day, weather and waves, "
        f"and add or remove {things}."
    )


def _definite(kind: Kind, language: Language) -> str:
    return _NAMES[kind][2] if language == "zh" else f"the {_NAMES[kind][0]}"


def _alone(kind: Kind) -> str:
    singular, plural, *_ = _NAMES[kind]
    article = _ARTICLES.get(kind, "") if not plural else f"{_article(singular)} "
    return f"{article}{singular}"
