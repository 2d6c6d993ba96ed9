"""The light of a scene: how time of day and weather change its colours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sample_agents.offline.canvas import INK, WIDTH, Point, Rgb, Stops, mix

if TYPE_CHECKING:
    from sample_agents.offline.scenes import Scene

# Sky and sea from top to bottom / light, glints, sun or moon, clouds and their shadows / x, y and radius of the source.
_TIMES: Final = """
dawn: 547ab8 83a0cd b5c1d9 f6d0be ffe8c8|eed0be c7c0c1 7a95b1 2a547a|ffeee2 ffecce fff0cd ffe2d6 c4b2c8|250 372 34
day: 2674c8 4a92d7 6fb0e5 a2cff0 d8eefa|80bed8 59a3c7 2b76a1 0a3e68|ffffff fffff6 fffae0 ffffff bed0e2|800 128 42
sunset: 242658 553770 a24f72 e77e63 ffd68e|fab476 ca786c 6d4368 1c1a3c|ffceb2 ffd68c ffe8aa ffb082 7a4a7a|730 398 46
night: 050b20 091532 0d1e43 19305a 2a4874|2c4c78 203c66 102548 040d22|8e9ece dce6ff f2f2e6 5c6c94 1e2a4c|780 132 40
"""
_COLOURS: Final = (
    "red=ce2026,maroon=7a1626,orange=ee781c,gold=d6a42e,yellow=f6ce32,green=2a8c4a,teal=189494,sky blue=78bae8,"
    "blue=225cc4,navy=162a5c,purple=763aa0,pink=ee82aa,brown=7c4e2c,black=22242a,grey=848a92,white=f6f4ee"
)
# How grey the sky is, how dark everything is, how much of the sun is hidden.
_WEATHERS: Final = {
    "clear": (0.0, 0.0, 0.0),
    "rain": (0.65, 0.2, 1.0),
    "storm": (0.8, 0.42, 1.0),
    "fog": (0.6, 0.02, 0.75),
}


def rgb(code: str) -> Rgb:
    """The colour of a code such as ``ce2026``."""
    red, green, blue = bytes.fromhex(code)
    return red, green, blue


COLOURS: Final = {name: rgb(code) for name, _, code in (entry.partition("=") for entry in _COLOURS.split(","))}


@dataclass(frozen=True, slots=True)
class Light:
    """``ambient`` is white by day; ``source`` is the sun or the moon; ``hidden`` (0 to 1) is its covered part."""

    sky: Stops
    sea: Stops
    ambient: Rgb
    glint: Rgb
    disc: Rgb
    cloud: tuple[Rgb, Rgb]
    source: Point
    radius: float
    hidden: float = 0.0
    is_dark: bool = False

    def on(self, colour: Rgb) -> Rgb:
        """A colour as it appears in this light."""
        red, green, blue = (round(a * b / 255) for a, b in zip(colour, self.ambient, strict=True))
        return red, green, blue


def light_of(scene: Scene) -> Light:
    """The light of a scene. With a lighthouse, which is at the right, the sun and the moon move aside."""
    light = _light(next(line for line in _TIMES.split("\n") if line.startswith(f"{scene.time}:")))
    if scene.find("lighthouse"):
        light = replace(light, source=(WIDTH - 60 - light.source[0], light.source[1]))
    if scene.sky:
        light = replace(light, sky=_tinted(light.sky, COLOURS[scene.sky]))
    if scene.sea:
        light = replace(light, sea=_tinted(light.sea, COLOURS[scene.sea]))
    dark = scene.time == "night" or scene.weather in {"storm", "fog"}
    return _in_weather(replace(light, is_dark=dark), *_WEATHERS[scene.weather])


def _light(line: str) -> Light:
    sky, sea, colours, source = (part.split() for part in line.partition(": ")[2].split("|"))
    ambient, glint, disc, cloud, shadow = map(rgb, colours)
    x, y, radius = map(float, source)
    return Light(_stops(sky, 1), _stops(sea, 2), ambient, glint, disc, (cloud, shadow), (x, y), radius)


def _stops(codes: list[str], power: int) -> Stops:
    return [((place / (len(codes) - 1)) ** power, rgb(code)) for place, code in enumerate(codes)]


def _tinted(stops: Stops, colour: Rgb) -> Stops:
    return [(place, mix(stop, colour, 0.64)) for place, stop in stops]


def _in_weather(light: Light, grey: float, dark: float, hidden: float) -> Light:
    def changed(colour: Rgb) -> Rgb:
        level = round(sum(colour) / 3)
        return mix(mix(colour, (level, level, min(255, level + 8)), grey), INK, dark)

    return replace(
        light,
        sky=[(place, changed(stop)) for place, stop in light.sky],
        sea=[(place, changed(stop)) for place, stop in light.sea],
        ambient=mix(changed(light.ambient), light.ambient, 0.4),
        cloud=(changed(light.cloud[0]), changed(light.cloud[1])),
        hidden=hidden,
    )
