"""The sea: rows of waves that grow towards the viewer, and the road of light below the sun or the moon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, pi, sin
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.builtin.painting.canvas import HEIGHT, WIDTH, Point, Surface, at, chance, darker, mix
from a2a_serverless.adapters.builtin.painting.light import HORIZON, Light

if TYPE_CHECKING:
    from a2a_serverless.domain.scene_words import Waves

_ROWS: Final = 24
_HEIGHTS: Final[dict[Waves, float]] = {"calm": 0.35, "gentle": 1.0, "rough": 2.4}
_GLINTS: Final = 900
_ON_THE_ROAD: Final = 0.7


@dataclass(frozen=True, slots=True)
class Row:
    """A row of waves: the height of its crest in the picture, and how near it is (0 at the horizon, 1)."""

    number: int
    crest: float
    nearness: float


def paint_water(surface: Surface, light: Light) -> None:
    """The sea without waves, from the horizon down."""
    surface.backdrop(light.sea, HORIZON, HEIGHT)
    surface.glow((light.source[0], HORIZON + 4), 260, light.glint, round(90 * (1 - light.dimmed)))
    _paint_glints(surface, light)


def paint_waves(surface: Surface, light: Light, waves: Waves, between: tuple[float, float]) -> None:
    """The rows whose crests lie between two heights in the picture, far ones first."""
    for row in _rows():
        if between[0] <= row.crest < between[1]:
            _paint_row(surface, light, waves, row)


def _rows() -> Iterator[Row]:
    for number in range(_ROWS):
        nearness = (number + 0.6) / _ROWS
        yield Row(number, HORIZON + (HEIGHT + 10 - HORIZON) * nearness**1.65, nearness)


def _paint_row(surface: Surface, light: Light, waves: Waves, row: Row) -> None:
    line = [*_line(waves, row)]
    colour = at(light.sea, (row.crest - HORIZON) / (HEIGHT - HORIZON))
    below = [(x, y + 10 + 60 * row.nearness) for x, y in reversed(line)]
    stops = ((0.0, mix(colour, light.sky[-1][1], 0.2)), (0.5, colour), (1.0, darker(colour, 0.1)))
    surface.shade([*line, *below], stops, alpha=110)
    _paint_crests(surface, light, line, row, foam=waves == "rough")


def _line(waves: Waves, row: Row) -> Iterator[Point]:
    height = _HEIGHTS[waves] * (0.5 + 9 * row.nearness**1.5)
    length = 46 + 330 * row.nearness
    shift = chance(row.number).uniform(0, 2 * pi)
    for x in range(-8, WIDTH + 9, 4):
        phase = 2 * pi * x / length + shift
        yield x, row.crest + height * (0.6 * sin(phase) + 0.28 * sin(2.3 * phase + 1) + 0.12 * sin(5.1 * phase + 2))


def _paint_crests(surface: Surface, light: Light, line: Sequence[Point], row: Row, *, foam: bool) -> None:
    """Short crescents of light along the waves: long and thick ones near, with foam on them in a rough sea."""
    random = chance(row.number + 100)
    place = random.randrange(12)
    while place < len(line) - 4:
        length = random.randint(3, 6 + round(22 * row.nearness))
        crest = line[place : place + length]
        thick = (0.5 + 2.6 * row.nearness) * random.uniform(0.5, 1.2) * (1.8 if foam else 1)
        under = [(x, y + thick * sin(pi * step / max(1, len(crest) - 1))) for step, (x, y) in enumerate(crest)]
        surface.polygon([*crest, *reversed(under)], light.glint, random.randint(40, 120) + (60 if foam else 0))
        place += length + random.randint(4, 10 + round(34 * row.nearness))


def _paint_glints(surface: Surface, light: Light) -> None:
    """Short strokes of light: many below the sun or the moon, few elsewhere."""
    random = chance(3)
    strength = 1 - 0.85 * light.dimmed
    for _ in range(_GLINTS):
        nearness = random.random() ** 1.4
        width = 30 + 190 * nearness
        on_the_road = random.random() < _ON_THE_ROAD
        x = random.gauss(light.source[0], width) if on_the_road else random.uniform(0, WIDTH)
        closeness = exp(-(((x - light.source[0]) / (width * 1.1)) ** 2))
        stroke = (2 + 15 * nearness) * random.uniform(0.5, 1.5), 0.35 + 1.1 * nearness
        place = x, HORIZON + 3 + (HEIGHT - HORIZON) * nearness
        surface.ellipse(place, stroke, light.glint, round((26 + 150 * closeness) * strength))
