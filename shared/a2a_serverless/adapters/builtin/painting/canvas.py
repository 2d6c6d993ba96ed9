"""The tools of the painter: a large surface in the picture's own coordinates, gradients, glows and outlines.

Everything is drawn ``SCALE`` times as large as it is delivered and made small at the end: that smooths every edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from itertools import pairwise
from math import cos, pi, sin
from random import Random
from typing import Final, TypeAlias

from PIL import Image, ImageChops, ImageDraw, ImageFilter

Point: TypeAlias = "tuple[float, float]"
Curve: TypeAlias = "tuple[Point, Point, Point]"
Rgb: TypeAlias = "tuple[int, int, int]"
Stops: TypeAlias = "Sequence[tuple[float, Rgb]]"

WIDTH: Final = 1024
HEIGHT: Final = 768
SCALE: Final = 2
WHITE: Final = (255, 255, 255)
INK: Final = (6, 10, 24)
_RIM: Final = 178  # of Pillow's radial gradient, in the middle of its edges
_STEPS: Final = 24
_CURVE: Final = 3


def chance(seed: int | bytes) -> Random:
    """Random numbers that are the same every time, for what should look as if it had just happened."""
    return Random(seed)  # noqa: S311 - nothing here is a secret


def mix(first: Rgb, second: Rgb, share: float) -> Rgb:
    """``first`` with ``share`` (0 to 1) of ``second`` in it."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def lighter(colour: Rgb, share: float) -> Rgb:
    """The colour with white in it."""
    return mix(colour, WHITE, share)


def darker(colour: Rgb, share: float) -> Rgb:
    """The colour with shadow in it."""
    return mix(colour, INK, share)


def at(stops: Stops, place: float) -> Rgb:
    """The colour of a gradient at ``place``."""
    for (start, first), (end, second) in pairwise(stops):
        if place <= end:
            return mix(first, second, max(0.0, (place - start) / (end - start)))
    return stops[-1][1]


def plain(colour: Rgb) -> Stops:
    """A gradient that does not change."""
    return ((0.0, colour), (1.0, colour))


def outline(start: Point, *segments: Point | Curve) -> list[Point]:
    """The points of a line that goes on straight to a point, or to a curve's third point as the other two pull it."""
    points = [start]
    for segment in segments:
        first, second = segment[0], segment[1]
        if isinstance(first, tuple) and isinstance(second, tuple) and len(segment) == _CURVE:
            points += _bezier(points[-1], first, second, segment[2])
        elif not isinstance(first, tuple) and not isinstance(second, tuple):
            points.append((first, second))
    return points


def _bezier(start: Point, pull: Point, drag: Point, end: Point) -> Iterable[Point]:
    for step in range(1, _STEPS + 1):
        t = step / _STEPS
        a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
        x, y = (a * p + b * q + c * r + d * s for p, q, r, s in zip(start, pull, drag, end, strict=True))
        yield x, y


def gradient(size: tuple[int, int], stops: Stops) -> Image.Image:
    """An opaque picture of ``size`` pixels with the stops from top (0) to bottom (1)."""
    height = size[1]
    column = b"".join(bytes(at(stops, row / max(1, height - 1))) for row in range(height))
    return Image.frombytes("RGB", (1, height), column).resize(size)


class Surface:
    """Something to paint on. All coordinates and widths are in picture pixels, or in those of ``moved``.

    The picture itself is opaque and blends all that is drawn with an ``alpha``. A sprite is transparent, on a
    ``ground`` that shows at soft edges; Pillow replaces instead of blending there, so only gradients and glows may be
    translucent.
    """

    def __init__(
        self, width: float = WIDTH, height: float = HEIGHT, scale: float = SCALE, *, ground: Rgb | None = None
    ) -> None:
        size = round(width * scale), round(height * scale)
        self.image = Image.new("RGB", size) if ground is None else Image.new("RGBA", size, (*ground, 0))
        self.scale = scale
        self._draw = ImageDraw.Draw(self.image, "RGBA")
        self.origin: Point = (0.0, 0.0)
        self.turn = 0.0

    def moved(self, origin: Point, scale: float = 1.0, turn: float = 0.0) -> Surface:
        """The same surface with coordinates of its own: their origin, their size, and a turn in radians, clockwise."""
        inner = copy(self)
        inner.scale, inner.origin, inner.turn = self.scale * scale, self._pixel(origin), turn
        return inner

    def polygon(self, points: Iterable[Point], colour: Rgb, alpha: int = 255) -> None:
        self._draw.polygon([self._pixel(point) for point in points], (*colour, alpha))

    def line(self, points: Iterable[Point], colour: Rgb, width: float, alpha: int = 255) -> None:
        pixels = [self._pixel(point) for point in points]
        self._draw.line(pixels, (*colour, alpha), max(1, round(width * self.scale)), joint="curve")

    def ellipse(self, centre: Point, radius: Point, colour: Rgb, alpha: int = 255) -> None:
        (x, y), (rx, ry) = self._pixel(centre), (radius[0] * self.scale, radius[1] * self.scale)
        self._draw.ellipse([(x - rx, y - ry), (x + rx, y + ry)], (*colour, alpha))

    def arc(self, centre: Point, radius: float, colour: Rgb, width: float, alpha: int) -> None:
        """The upper half of a circle."""
        (x, y), size = self._pixel(centre), radius * self.scale
        box = (x - size, y - size, x + size, y + size)
        self._draw.arc(box, 180, 360, (*colour, alpha), round(width * self.scale))

    def shade(self, points: Iterable[Point], stops: Stops, *, across: bool = False, alpha: int = 255) -> None:
        """A polygon filled with a gradient over its own height, or ``across`` its width."""
        pixels = [self._pixel(point) for point in points]
        left, top = (int(min(axis)) for axis in zip(*pixels, strict=True))
        right, bottom = (int(max(axis)) + 1 for axis in zip(*pixels, strict=True))
        size = max(1, right - left), max(1, bottom - top)
        mask = Image.new("L", size)
        ImageDraw.Draw(mask).polygon([(x - left, y - top) for x, y in pixels], alpha)
        fill = gradient(size[::-1], stops).transpose(Image.Transpose.TRANSPOSE) if across else gradient(size, stops)
        self._lay(fill, mask, (left, top))

    def shade_ellipse(self, centre: Point, radius: Point, stops: Stops, alpha: int = 255) -> None:
        """An ellipse filled with a gradient from its top to its bottom."""
        (x, y), (rx, ry) = centre, radius
        turns = (2 * pi * step / 48 for step in range(48))
        self.shade([(x + rx * cos(turn), y + ry * sin(turn)) for turn in turns], stops, alpha=alpha)

    def glow(self, centre: Point, radius: float, colour: Rgb, alpha: int) -> None:
        """Light that fades from the centre to nothing at ``radius``."""
        side = max(2, round(2 * radius * self.scale))
        falling = Image.radial_gradient("L").resize((side, side), Image.Resampling.BICUBIC)
        mask = falling.point([round(alpha * max(0.0, 1 - value / _RIM) ** 2) for value in range(256)])
        x, y = self._pixel(centre)
        self._lay(Image.new("RGB", (side, side), colour), mask, (round(x - side / 2), round(y - side / 2)))

    def beam(self, points: Iterable[Point], reach: float, colour: Rgb, alpha: int) -> None:
        """A polygon of light that fades with the distance from its first point."""
        pixels = [self._pixel(point) for point in points]
        area, falling = Image.new("L", self.image.size), Surface(*self.image.size, 1)
        ImageDraw.Draw(area).polygon(pixels, 255)
        falling.glow(pixels[0], reach * self.scale, WHITE, alpha)
        mask = ImageChops.multiply(area.filter(ImageFilter.GaussianBlur(2 * SCALE)), falling.image.convert("L"))
        self._lay(Image.new("RGB", self.image.size, colour), mask, (0, 0))

    def veil(self, stops: Stops, thickness: Stops) -> None:
        """A gradient over everything, as thick as the grey of another from top to bottom says."""
        self._lay(gradient(self.image.size, stops), gradient(self.image.size, thickness).convert("L"), (0, 0))

    def backdrop(self, stops: Stops, top: float, bottom: float) -> None:
        """A gradient over the whole width between two heights."""
        first, last = round(self._pixel((0, top))[1]), round(self._pixel((0, bottom))[1])
        self.image.paste(gradient((self.image.width, last - first), stops), (0, first))

    def stick(self, sprite: Image.Image, centre: Point, mask: Image.Image | None = None) -> None:
        """Blends a transparent picture, made for this surface's scale, over what is there."""
        x, y = self._pixel(centre)
        corner = round(x - sprite.width / 2), round(y - sprite.height / 2)
        self._lay(sprite, mask or sprite.getchannel("A"), corner)

    def blurred(self, radius: float) -> Image.Image:
        return self.image.filter(ImageFilter.GaussianBlur(radius * self.scale))

    def _lay(self, picture: Image.Image, mask: Image.Image, corner: tuple[int, int]) -> None:
        """Blends as far as ``mask`` lets it; what hangs over the edges is cut."""
        if self.image.mode == "RGB":
            self.image.paste(picture.convert("RGB"), corner, mask)
            return
        layer = picture.convert("RGBA")
        layer.putalpha(mask)
        x, y = corner
        right, bottom = min(layer.width, self.image.width - x), min(layer.height, self.image.height - y)
        if right > max(0, -x) and bottom > max(0, -y):
            self.image.alpha_composite(layer, (max(0, x), max(0, y)), (max(0, -x), max(0, -y), right, bottom))

    def _pixel(self, point: Point) -> Point:
        (x, y), (left, top) = point, self.origin
        if self.turn:
            x, y = x * cos(self.turn) - y * sin(self.turn), x * sin(self.turn) + y * cos(self.turn)
        return left + x * self.scale, top + y * self.scale
