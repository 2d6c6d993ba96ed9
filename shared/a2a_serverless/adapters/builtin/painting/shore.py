"""What rises out of the sea: mountains on the horizon, an island with palms, a lighthouse on its rocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import cos, pi, sin
from random import Random
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.builtin.painting.canvas import (
    WHITE,
    WIDTH,
    Point,
    Rgb,
    Surface,
    chance,
    darker,
    lighter,
    mix,
    outline,
)
from a2a_serverless.adapters.builtin.painting.light import COLOURS, HORIZON, Light

if TYPE_CHECKING:
    from a2a_serverless.domain.scenes import Thing

_SLATE: Final = (86, 104, 132)
_SNOW_LINE: Final = HORIZON - 138
_RANGES: Final = ((2, 260, 0.6, True), (9, 120, 0.34, False))

_SAND: Final = (232, 208, 158)
_LEAF: Final = (46, 122, 62)
_TRUNK: Final = (122, 88, 58)
_COCONUT: Final = (92, 62, 38)
_BEACH: Final = outline((-160, 4), ((-80, -34), (70, -30), (160, 4)), ((80, 12), (-80, 12), (-160, 4)))
_PALMS: Final = ((-70, 120, -34), (-26, 152, 22), (22, 108, 44))

_ROCKS: Final = ((96, 88, 84), (58, 54, 60))
_GRASS: Final = (92, 132, 66)
_IRON: Final = (52, 56, 66)
_ROOF: Final = (150, 34, 36)
_PANE: Final = (196, 220, 232)
_LIT_PANE: Final = (255, 240, 190)
_BANDS: Final = 5
_LAMP: Final = (0, -230)
_DOOR: Final = ((-7, 2), (-7, -20), (0, -27), (7, -20), (7, 2))
_GALLERY: Final = ((-31, -204), (31, -204), (28, -212), (-28, -212))
_LANTERN: Final = ((-14, -212), (14, -212), (14, -246), (-14, -246))
_DOME: Final = outline((-19, -245), ((-14, -268), (14, -268), (19, -245)))


def paint_mountains(surface: Surface, thing: Thing, light: Light) -> None:
    """Two ranges, the far one higher, paler and with snow on its peaks."""
    rock = COLOURS[thing.colour] if thing.colour else _SLATE
    for seed, height, haze, snowy in _RANGES:
        ridge = [*_ridge(seed, height)]
        foot = [(WIDTH + 10, HORIZON + 1), (-10, HORIZON + 1)]
        surface.shade([*ridge, *foot], ((0.0, light.far(rock, haze)), (1.0, light.far(rock, haze + 0.28))))
        for peak in _peaks(ridge) if snowy else ():
            hem = [(x, _SNOW_LINE - 8 + 9 * sin(x / 5)) for x, _ in reversed(peak)]
            surface.polygon([*peak, *hem], light.far(WHITE, 0.25), 210)


def _ridge(seed: int, height: float) -> Iterator[Point]:
    """Sharp peaks of several sizes on each other, never down to the water."""
    random = chance(seed)
    waves = [(random.uniform(0, pi), 118 / 1.85**octave, 0.62**octave) for octave in range(6)]
    whole = sum(part for *_, part in waves)
    for x in range(-10, WIDTH + 11, 3):
        rise = sum(part * (1 - abs(sin(x / length + shift))) for shift, length, part in waves) / whole
        yield x, HORIZON - height * (0.12 + 0.88 * rise)


def _peaks(ridge: Sequence[Point]) -> Iterator[list[Point]]:
    """The stretches of a ridge above the snow line."""
    peak: list[Point] = []
    for point in (*ridge, (WIDTH, HORIZON)):
        if point[1] < _SNOW_LINE:
            peak.append(point)
        elif peak:
            yield peak
            peak = []


def paint_island(surface: Surface, thing: Thing, light: Light, at: Point, scale: float) -> None:
    """Sand, bushes and three palms, 320 wide; ``at`` is the middle of its shore."""
    here = surface.moved(at, scale)
    sand = light.on(COLOURS[thing.colour] if thing.colour else _SAND)
    leaf = light.on(_LEAF)
    here.ellipse((0, 5), (168, 9), light.glint, 90)
    here.shade(_BEACH, ((0.0, sand), (1.0, mix(sand, light.on(_TRUNK), 0.4))))
    random = chance(4)
    for _ in range(26):
        place = random.uniform(-1, 1)
        size = random.uniform(9, 20) * (1.15 - abs(place))
        stops = ((0.0, mix(leaf, light.glint, 0.18)), (1.0, darker(leaf, 0.45)))
        here.shade_ellipse((74 * place - 20, -22), (size * 1.3, size), stops)
    for x, height, lean in _PALMS:
        _paint_palm(here.moved((x, -16), height), light, lean / height)


def _paint_palm(here: Surface, light: Light, lean: float) -> None:
    """A palm 1 high whose crown stands ``lean`` to the right of its foot."""
    trunk = light.on(_TRUNK)
    bark = outline(
        (-0.05, 0),
        ((-0.05, -0.5), (lean * 0.5, -0.8), (lean, -1)),
        (lean + 0.03, -1),
        ((lean * 0.5 + 0.05, -0.8), (0.05, -0.5), (0.05, 0)),
    )
    here.shade(bark, ((0.0, lighter(trunk, 0.12)), (1.0, darker(trunk, 0.35))))
    crown = here.moved((lean, -1), 0.42)
    for number in range(9):
        turn = pi * (0.06 + 0.11 * number)
        _paint_frond(crown, light, -cos(turn), sin(turn), dark=number % 2 == 1)
    for x in (-0.03, 0.03):
        here.ellipse((lean + x, -0.97), (0.03, 0.03), light.on(_COCONUT))


def _paint_frond(crown: Surface, light: Light, across: float, up: float, *, dark: bool) -> None:
    """A leaf that rises and hangs over, 1 long."""
    leaf = light.on(_LEAF)
    rise = -(0.2 + 0.35 * up)
    tip = across, 0.28 + 0.3 * abs(across) - 0.5 * up
    shape = outline(
        (0, 0),
        ((across * 0.35, rise), (across * 0.8, rise), tip),
        ((across * 0.75, rise + 0.2), (across * 0.3, rise + 0.16), (0, 0)),
    )
    crown.polygon(shape, darker(leaf, 0.35) if dark else mix(leaf, light.glint, 0.1))


def paint_lighthouse(surface: Surface, thing: Thing, light: Light, at: Point, scale: float) -> None:
    """A striped tower on rocks, 275 high; ``at`` is the middle of its foot."""
    here = surface.moved(at, scale)
    if light.lamps:
        for way in (-1, 1):
            wedge = ((0, -230), (way * 900, -330), (way * 900, -150), (0, -224))
            here.beam(wedge, 820 / scale, _LIT_PANE, 190)
    _paint_rocks(here, light)
    _paint_tower(here, thing, light)
    _paint_lantern(here, light)


def _paint_rocks(here: Surface, light: Light) -> None:
    random = chance(6)
    for row, rise in ((0.0, 26), (0.5, 14), (1.0, 0)):
        for step in range(13):
            place = (step - 6 + row) / 6.5
            size = random.uniform(22, 34) * (1.25 - 0.75 * abs(place))
            corners = [_corner(random, step, size) for step in range(7)]
            grey = light.on(mix(*_ROCKS, random.random()))
            rock = here.moved((140 * place, 34 - rise * (1 - abs(place))))
            rock.shade(corners, ((0.0, lighter(grey, 0.16)), (0.5, grey), (1.0, darker(grey, 0.6))))
    grass = light.on(_GRASS)
    here.shade_ellipse((0, 4), (62, 12), ((0.0, grass), (1.0, darker(grass, 0.5))))
    for _ in range(60):
        spray = 160 * random.uniform(-1.1, 1.1), random.uniform(44, 58)
        here.ellipse(spray, (random.uniform(5, 16), 1.6), light.glint, 130)


def _corner(random: Random, step: int, size: float) -> Point:
    turn = 2 * pi * (step + random.uniform(-0.3, 0.3)) / 7
    return size * cos(turn), 0.8 * size * sin(turn)


def _paint_tower(here: Surface, thing: Thing, light: Light) -> None:
    stripe, wall = _tower_colours(thing)
    for band in range(_BANDS):
        colour = light.on(wall if band % 2 else stripe)
        low, high = band / _BANDS, (band + 1) / _BANDS
        corners = [_wall(low, -1), _wall(high, -1), _wall(high, 1), _wall(low, 1)]
        round_ = ((0.0, darker(colour, 0.38)), (0.3, colour), (0.55, lighter(colour, 0.16)), (1.0, darker(colour, 0.5)))
        here.shade(corners, round_, across=True)
    here.polygon(_DOOR, light.on(_IRON))
    for height in (78, 122, 166):
        here.ellipse((0, -height), (3.6, 5.6), light.on(_IRON))


def _tower_colours(thing: Thing) -> tuple[Rgb, Rgb]:
    """Stripes and wall. One colour alone makes the stripes, on white; a white tower has pale grey ones."""
    if thing.colour and thing.accent:
        return COLOURS[thing.accent], COLOURS[thing.colour]
    stripe = thing.accent or thing.colour or "red"
    return (mix(WHITE, COLOURS["grey"], 0.35) if stripe == "white" else COLOURS[stripe]), COLOURS["white"]


def _wall(share: float, way: int) -> Point:
    return way * (34 - 13 * share), -206 * share


def _paint_lantern(here: Surface, light: Light) -> None:
    iron, roof = light.on(_IRON), light.on(_ROOF)
    here.polygon(_GALLERY, iron)
    for step in range(9):
        here.line([(-30 + 7.5 * step, -212), (-30 + 7.5 * step, -223)], iron, 1.1)
    here.line([(-30, -223), (30, -223)], iron, 1.4)
    here.polygon(_LANTERN, _LIT_PANE if light.lamps else light.on(_PANE))
    for x in (-14, -5, 5, 14):
        here.line([(x, -212), (x, -246)], iron, 1.4)
    here.shade(_DOME, ((0.0, lighter(roof, 0.25)), (1.0, roof)))
    here.line([(0, -260), (0, -276)], iron, 1.6)
    here.ellipse((0, -262), (3.4, 3.4), iron)
    if light.lamps:
        here.glow(_LAMP, 90, _LIT_PANE, 220)
