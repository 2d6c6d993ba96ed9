"""Picture descriptions in words: turns a request into a description, or into a question to the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sample_agents.offline.scene_words import IN_CHINESE, MOST_READ
from sample_agents.offline.scenes import Request, Scene, Thing, changed, read_request, scene_of
from sample_agents.writing import language_of

if TYPE_CHECKING:
    from sample_agents.writing import Language

# English with its article; the Chinese words before the name.
_NAMES: Final = {
    "sailboat": ("a sailboat", "一艘"),
    "lighthouse": ("a lighthouse", "一座"),
    "gulls": ("gulls", "几只"),
}
_ACCENTS: Final = {"sailboat": "sails", "lighthouse": "stripes"}
_PLACES: Final = {"sailboat": "on", "lighthouse": "by", "gulls": "over"}
_SETTING_LIST: Final = "dawn=at dawn,sunset=at sunset,night=at night,rain=in the rain,storm=in a storm,fog=in the fog"
_SETTINGS: Final = dict(entry.split("=") for entry in _SETTING_LIST.split(","))
_WHAT: Final[dict[Language, str]] = {
    "en": "What should change about the picture? The offline painter can change colours, time of day and weather, and "
    "add or remove a sailboat, a lighthouse and gulls.",
    "zh": "画面要怎么改？离线画师可以改变颜色、时间和天气，也可以添加或去掉帆船、灯塔和海鸥。",
}


def answer_about_picture(request: str, current: str) -> dict[str, str]:
    """``name``, ``prompt`` and ``description`` of the requested picture, or a ``question`` to the client."""
    before, language, wish = scene_of(current), language_of(request), read_request(request)
    if before and (question := _question(before, wish, language)):
        return {"question": question}
    after = changed(before, wish) if before else scene_of(request)
    if after is None:
        words = " ".join(f"{current} {request}".split())[:MOST_READ]
        return {"name": "words", "prompt": words, "description": words}
    name = after.things[0].kind if after.things else "seascape"
    return {"name": name, "prompt": describe(after, "en"), "description": describe(after, language)}


def describe(scene: Scene, language: Language) -> str:
    """One sentence with everything that the picture shows; ``scene_of`` reads it back."""
    things = sorted(scene.things, key=lambda thing: [*_NAMES].index(thing.kind))
    return _in_chinese(scene, things) if language == "zh" else _in_english(scene, things)


def _in_english(scene: Scene, things: Sequence[Thing]) -> str:
    sea = _noun("a sea" if scene.sea else "the sea", scene.sea)
    words = [
        f"{_english(things[0])} {_PLACES[things[0].kind]} {sea}" if things else sea,
        _SETTINGS.get(scene.time, ""),
        _SETTINGS.get(scene.weather, ""),
        f"under {_noun('a sky', scene.sky)}" if scene.sky else "",
    ]
    text = " ".join(filter(None, words))
    rest = f", with {_listing([*map(_english, things[1:])], ', ', ' and ')}" if things[1:] else ""
    return f"{text[0].upper()}{text[1:]}{rest}."


def _english(thing: Thing) -> str:
    words = _noun(_NAMES[thing.kind][0], thing.colour)
    return f"{words} with {thing.accent} {_ACCENTS[thing.kind]}" if thing.accent and thing.kind in _ACCENTS else words


def _noun(name: str, colour: str) -> str:
    """A name with its colour before the noun, and the matching article."""
    article, _, noun = name.rpartition(" ")
    if article == "a" and colour[:1] in "aeiou" and colour:
        article = "an"
    return " ".join(filter(None, (article, colour, noun)))


def _in_chinese(scene: Scene, things: Sequence[Thing]) -> str:
    setting = "".join(IN_CHINESE[name] for name in (scene.time, scene.weather) if name in _SETTINGS)
    water = "的".join(filter(None, (setting, IN_CHINESE.get(scene.sea, ""), "海面")))
    shown = f"上有{_listing([*map(_chinese, things)], '、', '和')}" if things else ""
    sky = f"，天空是{IN_CHINESE[scene.sky]}的" if scene.sky else ""
    return f"{water}{shown}{sky}。"


def _chinese(thing: Thing) -> str:
    accent = f"（{IN_CHINESE[thing.accent]}{IN_CHINESE[_ACCENTS[thing.kind]]}）" if thing.accent else ""
    return f"{_NAMES[thing.kind][1]}{IN_CHINESE.get(thing.colour, '')}{IN_CHINESE[thing.kind]}{accent}"


def _listing(names: Sequence[str], comma: str, last: str) -> str:
    return last.join(filter(None, (comma.join(names[:-1]), names[-1])))


def _question(scene: Scene, wish: Request, language: Language) -> str:
    """The question to ask before the scene can be changed; empty when everything is clear."""
    meant = [_definite(kind, language) for kind in scene.subjects] or [
        _definite(part, language) for part in ("sea", "sky")
    ]
    if len(meant) > 1 and any(not tint.target for tint in wish.tints):
        return (
            f"您指的是{'还是'.join(meant)}？" if language == "zh" else f"Which one do you mean: {' or '.join(meant)}?"
        )
    if wish.asks_colour and not wish.tints:
        of = next((_definite(kind, language) for kind in wish.shown), meant[0])
        return f"{of}要改成什么颜色？" if language == "zh" else f"Which colour should {of} have?"
    return "" if wish.tints or changed(scene, wish) != scene else _WHAT[language]


def _definite(name: str, language: Language) -> str:
    return IN_CHINESE[name] if language == "zh" else f"the {name}"
