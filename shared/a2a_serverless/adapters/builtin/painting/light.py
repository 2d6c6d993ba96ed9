"""The light of a scene: what the time of day and the weather do to the sky, the sea and every colour in between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.builtin.painting.canvas import INK, WIDTH, Point, Rgb, Stops, lighter, mix

if TYPE_CHECKING:
    from a2a_serverless.domain.scene_words import Colour, Time, Weather
    from a2a_serverless.domain.scenes import Scene

HORIZON: Final = 430
COLOURS: Final[dict[Colour, Rgb]] = {
    "red": (206, 32, 38),
    "maroon": (122, 22, 38),
    "orange": (238, 120, 28),
    "gold": (214, 164, 46),
    "yellow": (246, 206, 50),
    "green": (42, 140, 74),
    "teal": (24, 148, 148),
    "sky blue": (120, 186, 232),
    "blue": (34, 92, 196),
    "navy": (22, 42, 92),
    "purple": (118, 58, 160),
    "pink": (238, 130, 170),
    "brown": (124, 78, 44),
    "black": (34, 36, 42),
    "grey": (132, 138, 146),
    "white": (246, 244, 238),
}


@dataclass(frozen=True, slots=True)
class Light:
    """``sky`` and ``sea`` run from top to bottom; ``ambient`` is white in plain daylight; ``source`` is sun or moon.

    ``dimmed`` is how much of it the weather hides (0 to 1); ``lamps`` says that people have lit theirs.
    """

    sky: Stops
    sea: Stops
    ambient: Rgb
    glint: Rgb
    source: Point
    radius: float
    disc: Rgb
    cloud: tuple[Rgb, Rgb]
    dimmed: float = 0.0
    lamps: bool = False

    def on(self, colour: Rgb) -> Rgb:
        """What a colour looks like in this light."""
        return _lit(colour, self.ambient)

    def far(self, colour: Rgb, distance: float) -> Rgb:
        """A colour seen from far away: ``distance`` (0 to 1) of the haze above the horizon in it."""
        return mix(self.on(colour), self.sky[-1][1], distance)


_LIGHTS: Final[dict[Time, Light]] = {
    "dawn": Light(
        sky=((0.0, (84, 122, 184)), (0.45, (168, 190, 222)), (0.75, (246, 208, 190)), (1.0, (255, 232, 200))),
        sea=((0.0, (238, 208, 190)), (0.25, (150, 172, 196)), (1.0, (42, 84, 122))),
        ambient=(255, 238, 226),
        glint=(255, 236, 206),
        source=(250, 372),
        radius=34,
        disc=(255, 240, 205),
        cloud=((255, 226, 214), (196, 178, 200)),
    ),
    "day": Light(
        sky=((0.0, (38, 116, 200)), (0.55, (118, 182, 232)), (1.0, (216, 238, 250))),
        sea=((0.0, (128, 190, 216)), (0.2, (58, 142, 186)), (1.0, (10, 62, 104))),
        ambient=(255, 255, 255),
        glint=(255, 255, 246),
        source=(800, 128),
        radius=42,
        disc=(255, 250, 224),
        cloud=((255, 255, 255), (190, 208, 226)),
    ),
    "sunset": Light(
        sky=(
            (0.0, (36, 38, 88)),
            (0.35, (104, 62, 122)),
            (0.62, (208, 92, 108)),
            (0.85, (248, 152, 92)),
            (1.0, (255, 214, 142)),
        ),
        sea=((0.0, (250, 180, 118)), (0.14, (190, 104, 106)), (0.5, (94, 60, 104)), (1.0, (28, 26, 60))),
        ambient=(255, 206, 178),
        glint=(255, 214, 140),
        source=(730, 398),
        radius=46,
        disc=(255, 232, 170),
        cloud=((255, 176, 130), (122, 74, 122)),
    ),
    "night": Light(
        sky=((0.0, (5, 11, 32)), (0.6, (15, 34, 74)), (1.0, (42, 72, 116))),
        sea=((0.0, (44, 76, 120)), (0.2, (22, 48, 88)), (1.0, (4, 13, 34))),
        ambient=(142, 158, 206),
        glint=(220, 230, 255),
        source=(780, 132),
        radius=40,
        disc=(242, 242, 230),
        cloud=((92, 108, 148), (30, 42, 76)),
        lamps=True,
    ),
}
# How grey the sky gets, how dark everything, how much of the sun is hidden.
_WEATHERS: Final[dict[Weather, tuple[float, float, float]]] = {
    "clear": (0.0, 0.0, 0.0),
    "cloudy": (0.35, 0.08, 0.45),
    "rain": (0.65, 0.2, 1.0),
    "storm": (0.8, 0.42, 1.0),
    "fog": (0.6, 0.02, 0.75),
    "snow": (0.6, 0.05, 0.9),
}
_SKY_SHARE: Final = 0.62
_SEA_SHARE: Final = 0.66


def _lit(colour: Rgb, light: Rgb) -> Rgb:
    red, green, blue = (round(a * b / 255) for a, b in zip(colour, light, strict=True))
    return red, green, blue


def plain_daylight() -> Light:
    """A fine day."""
    return _LIGHTS["day"]


def light_of(scene: Scene) -> Light:
    """The light that everything in the scene is painted in."""
    light = _LIGHTS[scene.time]
    if scene.find("lighthouse"):
        light = replace(light, source=(WIDTH - light.source[0] - 60, light.source[1]))
    if scene.sky:
        light = replace(light, sky=_tinted(light.sky, COLOURS[scene.sky], _SKY_SHARE))
    if scene.sea:
        light = replace(light, sea=_tinted(light.sea, COLOURS[scene.sea], _SEA_SHARE))
    return _weathered(light, scene.weather)


def _tinted(stops: Stops, colour: Rgb, share: float) -> Stops:
    return [(place, mix(stop, _lit(colour, lighter(stop, 0.55)), share)) for place, stop in stops]


def _weathered(light: Light, weather: Weather) -> Light:
    grey, dark, dimmed = _WEATHERS[weather]

    def changed(colour: Rgb) -> Rgb:
        level = round(sum(colour) / 3)
        clouded = mix(colour, (level, level + (255 - level) // 40, min(255, level + 8)), grey)
        return mix(clouded, INK, dark)

    def all_of(stops: Stops) -> Stops:
        return [(place, changed(colour)) for place, colour in stops]

    top, bottom = light.cloud
    return replace(
        light,
        sky=all_of(light.sky),
        sea=all_of(light.sea),
        ambient=mix(changed(light.ambient), light.ambient, 0.4),
        cloud=(changed(top), changed(bottom)),
        dimmed=dimmed,
        lamps=light.lamps or weather in {"storm", "fog"},
    )
