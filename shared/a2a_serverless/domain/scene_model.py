"""A picture before it is painted: what is in it, how that travels as a data part, and how it is called in words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, cast, get_args

from a2a_serverless.domain.errors import FieldViolation, InvalidParams
from a2a_serverless.domain.scene_words import Colour, Kind, Time, Waves, Weather
from a2a_serverless.domain.writing import Language, language_of

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject

MOST_ALIKE: Final = 5
_MOST_THINGS: Final = len(get_args(Kind))
_LONGEST_WORDS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Thing:
    """Something in the picture. ``accent`` is its second colour (sails, stripes); without a colour it looks natural."""

    kind: Kind
    colour: Colour | None = None
    accent: Colour | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Scene:
    """What is to be painted. When nothing in ``words`` can be, ``is_known`` is false and they stand for themselves."""

    words: str
    is_known: bool = True
    things: tuple[Thing, ...] = ()
    time: Time = "day"
    weather: Weather = "clear"
    waves: Waves = "gentle"
    sea: Colour | None = None
    sky: Colour | None = None

    @property
    def language(self) -> Language:
        """The language that it was asked for in."""
        return language_of(self.words)

    def find(self, kind: Kind) -> Thing | None:
        """The thing of that kind, if the picture has one."""
        return next((thing for thing in self.things if thing.kind == kind), None)


def file_name(scene: Scene) -> str:
    """The name of its picture. Refining a scene does not change it."""
    return f"{scene.things[0].kind if scene.things else 'seascape' if scene.is_known else 'words'}_image.png"


def scene_to_json(scene: Scene) -> JsonObject:
    """Every field by its name; ``scene_from_json`` reads it back."""
    things: list[Json] = [{field.name: getattr(thing, field.name) for field in fields(thing)} for thing in scene.things]
    return {field.name: getattr(scene, field.name) for field in fields(scene)} | {"things": things}


def scene_from_json(value: Json) -> Scene:
    """The scene in a data part; raises ``InvalidParams`` that names the first bad field. Only ``words`` is required."""
    found = _object(value, "scene")
    words, is_known, things = found.get("words"), found.get("is_known", True), found.get("things", [])
    if not isinstance(words, str) or len(words) > _LONGEST_WORDS:
        raise _refused("words", f"must be a text of at most {_LONGEST_WORDS} characters")
    if not isinstance(is_known, bool):
        raise _refused("is_known", "must be true or false")
    if not isinstance(things, list) or len(things) > _MOST_THINGS:
        raise _refused("things", f"must be a list of at most {_MOST_THINGS} things")
    return Scene(
        words,
        is_known=is_known,
        things=tuple(_thing(item, f"things[{index}]") for index, item in enumerate(things)),
        time=cast("Time", _one_of(found, "time", get_args(Time), "day")),
        weather=cast("Weather", _one_of(found, "weather", get_args(Weather), "clear")),
        waves=cast("Waves", _one_of(found, "waves", get_args(Waves), "gentle")),
        sea=_colour(found, "sea"),
        sky=_colour(found, "sky"),
    )


def _thing(value: Json, path: str) -> Thing:
    found = _object(value, path)
    count = found.get("count", 1)
    if isinstance(count, bool) or not isinstance(count, int | float) or count not in range(1, MOST_ALIKE + 1):
        raise _refused(f"{path}.count", f"must be a whole number from 1 to {MOST_ALIKE}")
    kind = cast("Kind", _one_of(found, "kind", get_args(Kind), None, path))
    return Thing(kind, _colour(found, "colour", path), _colour(found, "accent", path), int(count))


def _colour(found: JsonObject, name: str, path: str = "") -> Colour | None:
    if found.get(name) is None:
        return None
    return cast("Colour", _one_of(found, name, get_args(Colour), None, path))


def _one_of(found: JsonObject, name: str, allowed: tuple[str, ...], default: str | None, path: str = "") -> str:
    value = found.get(name, default)
    if not isinstance(value, str) or value not in allowed:
        raise _refused(f"{path}.{name}".lstrip("."), f"must be one of {', '.join(allowed)}")
    return value


def _object(value: Json, path: str) -> JsonObject:
    if not isinstance(value, dict):
        raise _refused(path, "must be an object")
    return value


def _refused(path: str, description: str) -> InvalidParams:
    violation = FieldViolation(path, description)
    return InvalidParams(f"The scene cannot be read: {path} {description}.", violations=(violation,))
