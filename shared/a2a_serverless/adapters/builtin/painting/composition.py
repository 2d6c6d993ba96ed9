"""Puts a picture together, from the sky to the foreground."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from PIL import Image

from a2a_serverless.adapters.builtin.painting.animals import paint_gulls, paint_whale
from a2a_serverless.adapters.builtin.painting.boat import paint_boat
from a2a_serverless.adapters.builtin.painting.canvas import HEIGHT, WIDTH, Point, Surface
from a2a_serverless.adapters.builtin.painting.light import HORIZON, Light, light_of
from a2a_serverless.adapters.builtin.painting.sea import paint_water, paint_waves
from a2a_serverless.adapters.builtin.painting.shore import paint_island, paint_lighthouse, paint_mountains
from a2a_serverless.adapters.builtin.painting.sky import paint_sky
from a2a_serverless.adapters.builtin.painting.weather import paint_lightning, paint_weather

if TYPE_CHECKING:
    from a2a_serverless.domain.scene_words import Kind
    from a2a_serverless.domain.scenes import Scene, Thing

Place: TypeAlias = "tuple[float, float, float]"

_PAINTERS: Final[dict[Kind, Callable[[Surface, Thing, Light, Point, float], None]]] = {
    "sailboat": paint_boat,
    "lighthouse": paint_lighthouse,
    "island": paint_island,
    "whale": paint_whale,
}
# Where things float (x, waterline, scale), the first of each kind first; and where one goes that has the sea to itself.
_PLACES: Final[dict[Kind, tuple[Place, ...]]] = {
    "sailboat": ((470, 606, 1.0), (770, 520, 0.52), (196, 500, 0.4), (610, 472, 0.24), (330, 462, 0.19)),
    "lighthouse": ((868, 466, 1.0), (110, 446, 0.5), (560, 440, 0.3), (700, 438, 0.24), (330, 436, 0.2)),
    "island": ((180, 456, 0.8), (640, 446, 0.5), (420, 440, 0.34), (800, 440, 0.3), (540, 438, 0.2)),
    "whale": ((208, 672, 0.85), (720, 690, 0.6), (560, 560, 0.4), (300, 520, 0.3), (840, 540, 0.34)),
}
_ALONE: Final[dict[Kind, Place]] = {
    "lighthouse": (690, 524, 1.5),
    "island": (512, 496, 1.7),
    "whale": (500, 620, 1.7),
}


def compose(scene: Scene) -> Image.Image:
    """The picture of a scene that is known, in its final size."""
    light = light_of(scene)
    surface = Surface()
    paint_sky(surface, scene, light)
    if scene.weather == "storm":
        paint_lightning(surface)
    if mountains := scene.find("mountains"):
        paint_mountains(surface, mountains, light)
    paint_water(surface, light)
    row = float(HORIZON)
    for thing, (x, y, scale) in _afloat(scene):
        paint_waves(surface, light, scene.waves, (row, y + 4))
        _PAINTERS[thing.kind](surface, thing, light, (x, y), scale)
        row = y + 4
    paint_waves(surface, light, scene.waves, (row, HEIGHT + 40))
    if gulls := scene.find("birds"):
        paint_gulls(surface, gulls, light)
    paint_weather(surface, scene, light)
    return surface.image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def _afloat(scene: Scene) -> list[tuple[Thing, Place]]:
    """All that stands or swims in the water with its place, the farthest first."""
    things = [thing for thing in scene.things if thing.kind in _PAINTERS]
    alone = len(things) == 1 and things[0].count == 1
    places = [(thing, place) for thing in things for place in _PLACES[thing.kind][: thing.count]]
    if alone:
        places = [(thing, _ALONE.get(thing.kind, place)) for thing, place in places]
    return sorted(places, key=lambda item: item[1][1])
