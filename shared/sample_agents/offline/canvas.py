"""Drawing for the offline painter: polygons, gradients and glows on a Pillow image, in the picture's own coordinates.

Everything is drawn twice as large as it is delivered and reduced at the end, which smooths every edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from itertools import pairwise
from random import Random
from typing import Final, TypeAlias

from PIL import Image, ImageDraw

Point: TypeAlias = "tuple[float, float]"
Rgb: TypeAlias = "tuple[int, int, int]"
Stops: TypeAlias = "Sequence[tuple[float, Rgb]]"

WIDTH: Final = 1024
HEIGHT: Final = 768
SCALE: Final = 2
WHITE: Final = (255, 255, 255)
INK: Final = (6, 10, 24)
_RIM: Final = 178  # the value of Pillow's radial gradient in the middle of its edges
_STEPS: Final = 20


def chance(seed: int) -> Random:
    """A random number generator that gives the same numbers every time."""
    return Random(seed)  # noqa: S311 - nothing here is a secret


def mix(first: Rgb, second: Rgb, share: float) -> Rgb:
    """A mix of ``first`` with ``share`` (0 to 1) of ``second``."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def at(stops: Stops, place: float) -> Rgb:
    """The colour of a gradient at ``place``."""
    for (start, first), (end, second) in pairwise(stops):
        if place <= end:
            return mix(first, second, max(0.0, (place - start) / (end - start)))
    return stops[-1][1]


def curve(numbers: str) -> list[Point]:
    """The points of cubic Bezier curves: x and y of a start, then of two control points and an end for each curve."""
    points = list(zip(*[map(float, numbers.split())] * 2, strict=True))
    line = points[:1]
    for first in range(0, len(points) - 1, 3):
        a, b, c, d = points[first : first + 4]
        for t in (step / _STEPS for step in range(1, _STEPS + 1)):
            p, q, r, s = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            line.append((p * a[0] + q * b[0] + r * c[0] + s * d[0], p * a[1] + q * b[1] + r * c[1] + s * d[1]))
    return line


def gradient(size: tuple[int, int], stops: Stops) -> Image.Image:
    """An opaque image of ``size`` pixels with the stops from top (0) to bottom (1)."""
    column = b"".join(bytes(at(stops, row / max(1, size[1] - 1))) for row in range(size[1]))
    return Image.frombytes("RGB", (1, size[1]), column).resize(size)


class Canvas:
    """An image to draw on. With ``ground`` it is transparent, with that colour at soft edges."""

    def __init__(self, size: Point = (WIDTH, HEIGHT), scale: float = SCALE, ground: Rgb | None = None) -> None:
        pixels = round(size[0] * scale), round(size[1] * scale)
        self.image = Image.new("RGB", pixels) if ground is None else Image.new("RGBA", pixels, (*ground, 0))
        self.scale = scale
        self.origin: Point = (0.0, 0.0)
        self._draw = ImageDraw.Draw(self.image, "RGBA")

    def moved(self, origin: Point, scale: float = 1.0) -> Canvas:
        """The same canvas with another coordinate system, by its origin and scale."""
        inner = copy(self)
        inner.origin, inner.scale = self.pixel(origin), self.scale * scale
        return inner

    def pixel(self, point: Point) -> Point:
        """The pixel at a point."""
        return self.origin[0] + point[0] * self.scale, self.origin[1] + point[1] * self.scale

    def polygon(self, points: Iterable[Point], colour: Rgb, alpha: int = 255) -> None:
        self._draw.polygon([self.pixel(point) for point in points], (*colour, alpha))

    def line(self, points: Iterable[Point], colour: Rgb, width: float, alpha: int = 255) -> None:
        pixels = [self.pixel(point) for point in points]
        self._draw.line(pixels, (*colour, alpha), max(1, round(width * self.scale)), joint="curve")

    def ellipse(self, centre: Point, radius: Point, colour: Rgb, alpha: int = 255) -> None:
        (x, y), (rx, ry) = self.pixel(centre), (radius[0] * self.scale, radius[1] * self.scale)
        self._draw.ellipse([(x - rx, y - ry), (x + rx, y + ry)], (*colour, alpha))

    def shade(self, points: Iterable[Point], stops: Stops, *, across: bool = False, alpha: int = 255) -> None:
        """Draws a polygon filled with a gradient over its own height, or over its width with ``across``."""
        pixels = [self.pixel(point) for point in points]
        left, top = (int(min(axis)) for axis in zip(*pixels, strict=True))
        right, bottom = (int(max(axis)) + 1 for axis in zip(*pixels, strict=True))
        size = max(1, right - left), max(1, bottom - top)
        mask = Image.new("L", size)
        ImageDraw.Draw(mask).polygon([(x - left, y - top) for x, y in pixels], alpha)
        fill = gradient(size[::-1], stops).transpose(Image.Transpose.TRANSPOSE) if across else gradient(size, stops)
        self.image.paste(fill, (left, top), mask)

    def glow(self, centre: Point, radius: float, colour: Rgb, alpha: int) -> None:
        """Draws light that fades from the centre to nothing at ``radius``."""
        side = max(2, round(2 * radius * self.scale))
        falling = Image.radial_gradient("L").resize((side, side), Image.Resampling.BICUBIC)
        mask = falling.point([round(alpha * max(0.0, 1 - value / _RIM) ** 2) for value in range(256)])
        x, y = self.pixel(centre)
        self.image.paste(colour, (round(x - side / 2), round(y - side / 2)), mask)
