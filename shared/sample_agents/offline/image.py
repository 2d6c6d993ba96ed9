"""The offline painter: an image model that can draw the sea, a sailboat and a lighthouse, and says so otherwise.

Everything is drawn twice as large as it is delivered and reduced at the end, which smooths every edge.
"""

from __future__ import annotations

import asyncio
from io import BytesIO
from random import Random
from textwrap import wrap
from typing import TYPE_CHECKING, Final, TypeAlias

from PIL import Image, ImageChops, ImageDraw, ImageFont, ImageOps

from sample_agents.offline.scenes import COLOURS, Scene, scene_of

if TYPE_CHECKING:
    from collections.abc import Iterable

Point: TypeAlias = "tuple[float, float]"

WIDTH: Final = 2_048
HEIGHT: Final = 1_536
HORIZON: Final = 860
NOTE: Final = "The offline painter knows only the sea, a sailboat and a lighthouse."
# Three colours of the sky and three of the sea from top to bottom, the sun or moon, and what white looks like.
_LIGHTS: Final = {
    "day": "#2674c8 #6fb0e5 #d8eefa #80bed8 #2b76a1 #0a3e68 #fffae0 #ffffff",
    "sunset": "#242658 #a24f72 #ffd68e #fab476 #6d4368 #1c1a3c #ffe8aa #ffceb2",
    "night": "#050b20 #0d1e43 #2a4874 #2c4c78 #102548 #040d22 #dce6ff #8e9ece",
}
_HEIGHTS: Final = {"day": 256, "sunset": 784, "night": 264}
_SHADOW: Final = "#060a18"
_WOOD: Final = "#966034"
_LINEN: Final = "#faf4e6"
_LAMP: Final = "#fff0be"
_MIDDLE: Final = 1_280  # of the sun and the moon
_BOAT: Final = (800, 1_200)  # its middle at the waterline
_TOWER: Final = (1_736, 932)
_STEPS: Final = 20


class OfflineImage:
    """Paints with Pillow. The same prompt gives the same bytes."""

    async def generate(self, prompt: str) -> bytes:
        return await asyncio.to_thread(_png, prompt)


def _png(prompt: str) -> bytes:
    scene, png = scene_of(prompt), BytesIO()
    (_painted(scene) if scene else _card(prompt)).save(png, "PNG")
    return png.getvalue()


def _painted(scene: Scene) -> Image.Image:
    *colours, light, white = _LIGHTS[scene["time"]].split()
    picture, source = Image.new("RGB", (WIDTH, HEIGHT)), (_MIDDLE, _HEIGHTS[scene["time"]])
    picture.paste(_gradient(HORIZON, colours[:3], scene.get("sky", "")))
    picture.paste(_gradient(HEIGHT - HORIZON, colours[3:], scene.get("sea", "")), (0, HORIZON))
    if scene["time"] == "night":
        _paint_stars(picture)
    _glow(picture, source, 680, light, 0.6)
    ImageDraw.Draw(picture).ellipse(_circle(source, 84), light)
    _paint_waves(picture, light)
    things = Image.new("RGBA", picture.size)
    if "lighthouse" in scene:
        _paint_lighthouse(things, COLOURS.get(scene["lighthouse"], COLOURS["red"]))
    if "sailboat" in scene:
        _paint_sailboat(things, COLOURS.get(scene["sailboat"], COLOURS["white"]))
    shaded = ImageChops.multiply(things.convert("RGB"), Image.new("RGB", picture.size, white))
    picture.paste(shaded, mask=things.getchannel("A"))
    if scene["time"] == "night" and "lighthouse" in scene:
        _glow(picture, (_TOWER[0], _TOWER[1] - 460), 240, _LAMP, 1)
    return picture.resize((WIDTH // 2, HEIGHT // 2), Image.Resampling.LANCZOS)


def _gradient(height: int, colours: list[str], tint: str) -> Image.Image:
    """The colours from top to bottom, mixed with ``tint`` if there is one."""
    top, middle, bottom = colours
    plain = ImageOps.colorize(Image.linear_gradient("L").resize((WIDTH, height)), top, bottom, middle)
    return Image.blend(plain, Image.new("RGB", plain.size, COLOURS[tint]), 0.64) if tint else plain


def _paint_stars(picture: Image.Image) -> None:
    draw, random = ImageDraw.Draw(picture, "RGBA"), Random(11)  # noqa: S311 - nothing here is a secret
    for _ in range(240):
        place = random.uniform(0, WIDTH), HORIZON * random.random() ** 1.5
        draw.ellipse(_circle(place, random.uniform(1, 3)), (255, 255, 255, random.randint(70, 235)))


def _paint_waves(picture: Image.Image, light: str) -> None:
    """Paints short strokes of light on the water, half of them below the sun or the moon."""
    mask, random = Image.new("L", picture.size), Random(3)  # noqa: S311 - nothing here is a secret
    for number in range(1_400):
        near = random.random() ** 1.4
        x = random.uniform(0, WIDTH) if number % 2 else random.gauss(_MIDDLE, 60 + 260 * near)
        y, height = HORIZON + 4 + (HEIGHT - HORIZON) * near, 1 + 2 * near
        length = (6 + 40 * near) * random.uniform(0.5, 1.5)
        ImageDraw.Draw(mask).ellipse((x - length, y - height, x + length, y + height), random.randint(30, 110))
    picture.paste(light, mask=mask)


def _paint_sailboat(things: Image.Image, hull: str) -> None:
    """Paints a sailboat, 330 wide and 390 high."""
    _fill(things, _BOAT, [(10, -30), (17, -30), (15, -392), (12, -392)], _WOOD)
    jib = "18 -338 70 -240 130 -140 172 -62 120 -60 80 -58 36 -62 50 -140 40 -240 18 -338"
    _fill(things, _BOAT, _curve("10 -372 -60 -290 -140 -170 -150 -74 -90 -62 -40 -66 10 -70"), _LINEN, across=True)
    _fill(things, _BOAT, _curve(jib), _LINEN, across=True)
    _fill(things, _BOAT, _curve("13 -392 -8 -398 -16 -384 -40 -388 -16 -374 -8 -386 13 -378"), COLOURS["red"])
    _fill(things, _BOAT, [(-34, -28), *_curve("-28 -46 0 -52 50 -52 78 -46"), (92, -30)], _LINEN)
    sheer = "-152 -40 -60 -22 60 -24 178 -58"
    _fill(things, _BOAT, _curve(f"{sheer} 168 -30 150 -4 118 12 40 14 -60 14 -128 12 -144 4 -150 -16 -152 -40"), hull)
    _fill(things, _BOAT, _curve(f"{sheer} 178 -58 176 -52 176 -52 60 -18 -60 -16 -152 -34"), _WOOD)


def _paint_lighthouse(things: Image.Image, stripes: str) -> None:
    """Paints a striped tower on rocks, 270 high."""
    _fill(things, _TOWER, _curve("-150 22 -110 -10 -60 -20 -20 -22 20 -24 90 -16 156 22"), "#605854")
    for band in range(4):
        low, high, foot = 34 - 3.25 * band, 30.75 - 3.25 * band, -12 - 48 * band
        corners = [(-low, foot), (-high, foot - 48), (high, foot - 48), (low, foot)]
        _fill(things, _TOWER, corners, COLOURS["white"] if band % 2 else stripes, across=True)
    _fill(things, _TOWER, [(-31, -204), (31, -204), (28, -214), (-28, -214)], "#323c60")
    _fill(things, _TOWER, [(-14, -214), (14, -214), (14, -246), (-14, -246)], _LAMP)
    _fill(things, _TOWER, _curve("-19 -245 -14 -268 14 -268 19 -245"), "#7a1626")


def _curve(numbers: str) -> list[Point]:
    """The points of cubic Bezier curves: x and y of a start, then of two control points and an end for each curve."""
    values = [*map(float, numbers.split())]
    points = list(zip(values[::2], values[1::2], strict=True))
    line = points[:1]
    for first in range(0, len(points) - 1, 3):
        a, b, c, d = points[first : first + 4]
        for t in (step / _STEPS for step in range(1, _STEPS + 1)):
            p, q, r, s = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            line.append((p * a[0] + q * b[0] + r * c[0] + s * d[0], p * a[1] + q * b[1] + r * c[1] + s * d[1]))
    return line


def _fill(layer: Image.Image, place: Point, points: Iterable[Point], colour: str, *, across: bool = False) -> None:
    """Fills a polygon, with shadow that grows to its bottom, or to its right with ``across``."""
    mask = Image.new("L", layer.size)
    ImageDraw.Draw(mask).polygon([(place[0] + 2 * x, place[1] + 2 * y) for x, y in points], 255)
    layer.paste(colour, mask=mask)
    box = mask.getbbox() or (0, 0, 1, 1)
    ramp = Image.linear_gradient("L").rotate(90 if across else 0).point(lambda value: value * 0.25)
    shadow = ImageChops.multiply(mask.crop(box), ramp.resize((box[2] - box[0], box[3] - box[1])))
    layer.paste(_SHADOW, box, shadow)


def _glow(picture: Image.Image, centre: Point, radius: int, colour: str, strength: float) -> None:
    """Paints light that fades from the centre to nothing at ``radius``."""
    ramp = Image.radial_gradient("L").point(lambda value: max(0, 178 - value) ** 2 / 178 * strength)
    box = round(centre[0]) - radius, round(centre[1]) - radius
    picture.paste(colour, box, ramp.resize((2 * radius, 2 * radius)))


def _circle(centre: Point, radius: float) -> tuple[float, float, float, float]:
    return centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius


def _card(words: str) -> Image.Image:
    """The words of a prompt without anything of the sea. Pillow's own font has Latin letters only."""
    canvas, font = Image.new("RGB", (WIDTH // 2, HEIGHT // 2), "#c4d4e0"), ImageFont.load_default
    plain = "".join(letter for letter in words[:400] if letter.isprintable() and letter < "\u0180").strip()
    lines = wrap(plain, width=30, max_lines=5, placeholder="…") or ["?"]
    draw = ImageDraw.Draw(canvas)
    draw.multiline_text((512, 340), "\n".join(lines), fill=_SHADOW, font=font(44), anchor="mm", align="center")
    draw.text((512, 570), NOTE, fill=_SHADOW, font=font(20), anchor="mm")
    return canvas
