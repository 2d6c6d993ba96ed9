"""A card for a subject that the painter does not know: its words, on colours that are theirs alone.

Pillow's own font has no Chinese, and boxes instead of characters would be worse than none: words that it cannot write
are left to the picture's description. What the painter does know stands below, as pictures, which need no language.
"""

from __future__ import annotations

from colorsys import hls_to_rgb
from hashlib import sha256
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from PIL import Image, ImageDraw, ImageFont

from a2a_serverless.adapters.builtin.painting.animals import paint_whale
from a2a_serverless.adapters.builtin.painting.boat import paint_boat
from a2a_serverless.adapters.builtin.painting.canvas import HEIGHT, SCALE, WHITE, WIDTH, Rgb, Surface, chance, mix
from a2a_serverless.adapters.builtin.painting.light import plain_daylight
from a2a_serverless.adapters.builtin.painting.shore import paint_island, paint_lighthouse
from a2a_serverless.domain.scenes import Thing

if TYPE_CHECKING:
    from a2a_serverless.domain.scenes import Scene

_INK: Final = (40, 44, 62)
_NOTE: Final = "The built-in painter knows only a few subjects:"
_LAST_WRITABLE: Final = "\u017f"
_MOST_LINES: Final = 5
_SHORT: Final = 40
_PANEL: Final = (132, 110, 892, 500)


def compose_card(scene: Scene) -> Image.Image:
    """The card of a scene that is not known, in the size of a picture."""
    random = chance(sha256(scene.words.encode()).digest())
    hue = random.random()
    surface = Surface()
    surface.backdrop(((0.0, _shade(hue, 0.62)), (1.0, _shade(hue + 0.12, 0.4))), 0, HEIGHT)
    for _ in range(16):
        middle = random.uniform(0, WIDTH), random.uniform(0, HEIGHT)
        radius = random.uniform(50, 230)
        surface.ellipse(
            middle, (radius, radius), _shade(hue + random.uniform(-0.12, 0.22), random.uniform(0.45, 0.8)), 52
        )
    _paint_panel(surface, scene.words, _shade(hue, 0.3))
    _paint_known(surface)
    return surface.image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def _shade(hue: float, lightness: float) -> Rgb:
    red, green, blue = hls_to_rgb(hue % 1, lightness, 0.5)
    return round(red * 255), round(green * 255), round(blue * 255)


def _paint_panel(surface: Surface, words: str, accent: Rgb) -> None:
    left, top, right, bottom = (edge * SCALE for edge in _PANEL)
    draw = ImageDraw.Draw(surface.image, "RGBA")
    draw.rounded_rectangle((left, top, right, bottom), 28 * SCALE, (*WHITE, 226))
    if max(words, default="a") <= _LAST_WRITABLE and words.isprintable():
        _write(draw, words, accent)
    else:
        _paint_frame(surface, accent)


def _write(draw: ImageDraw.ImageDraw, words: str, accent: Rgb) -> None:
    size = 62 if len(words) <= _SHORT else 44
    lines = wrap(words, width=round(1240 / size), max_lines=_MOST_LINES, placeholder="…") or ["…"]
    font = ImageFont.load_default(size * SCALE)
    middle = WIDTH / 2 * SCALE
    first = (290 - size * 0.62 * (len(lines) - 1)) * SCALE
    for number, line in enumerate(lines):
        draw.text((middle, first + number * size * 1.24 * SCALE), line, fill=accent, font=font, anchor="mm")
    draw.text((middle, 464 * SCALE), _NOTE, fill=_INK, font=ImageFont.load_default(23 * SCALE), anchor="mm")


def _paint_frame(surface: Surface, accent: Rgb) -> None:
    """An empty picture on an easel: there was something to paint, and it could not be."""
    for foot in (432, 592):
        surface.line([(512, 150), (foot, 470)], mix(accent, _INK, 0.3), 9)
    surface.polygon([(372, 190), (652, 190), (652, 392), (372, 392)], mix(accent, _INK, 0.3))
    surface.polygon([(384, 202), (640, 202), (640, 380), (384, 380)], (252, 251, 247))
    surface.line([(350, 396), (674, 396)], mix(accent, _INK, 0.3), 9)
    for number, place in enumerate((442, 512, 582)):
        surface.ellipse((place, 291), (13, 13), mix(accent, WHITE, 0.25 + 0.2 * number))


def _paint_known(surface: Surface) -> None:
    light = plain_daylight()
    paint_boat(surface, Thing("sailboat", "red"), light, (196, 690), 0.4)
    paint_lighthouse(surface, Thing("lighthouse"), light, (418, 676), 0.56)
    paint_island(surface, Thing("island"), light, (630, 690), 0.72)
    paint_whale(surface, Thing("whale"), light, (852, 690), 0.6)
