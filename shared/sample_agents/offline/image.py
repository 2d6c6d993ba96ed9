"""The offline painter: an image model that can draw the sea and a few things on it, and says so for other prompts."""

from __future__ import annotations

import asyncio
from io import BytesIO
from math import exp, pi, sin
from textwrap import wrap
from typing import Final

from PIL import Image, ImageDraw, ImageFilter, ImageFont

from sample_agents.offline.canvas import HEIGHT, INK, SCALE, WHITE, WIDTH, Canvas, Point, at, chance, gradient, mix
from sample_agents.offline.light import COLOURS, Light, light_of, rgb
from sample_agents.offline.scenes import Scene, scene_of
from sample_agents.offline.subjects import paint_gull, paint_lighthouse, paint_sailboat

HORIZON: Final = 430
NOTE: Final = "The offline painter knows only the sea: a sailboat, a lighthouse and gulls."
_ROWS: Final = 24
# Positions of things (x, waterline), the farthest first.
_PLACES: Final = {"lighthouse": (paint_lighthouse, 868, 466), "sailboat": (paint_sailboat, 470, 606)}
_GULLS: Final = ((246, 214, 40), (330, 172, 29), (176, 168, 25))
_CLOUDS: Final = ((150, 118, 150), (470, 74, 110), (640, 196, 135), (905, 262, 120), (330, 250, 92))
_MORE_CLOUDS: Final = ((60, 60, 210), (330, 90, 220), (610, 60, 230), (900, 100, 220), (210, 190, 190))


class OfflineImage:
    """Paints with Pillow. The same prompt gives the same bytes."""

    async def generate(self, prompt: str) -> bytes:
        return await asyncio.to_thread(_png, prompt)


def _png(prompt: str) -> bytes:
    scene = scene_of(prompt)
    png = BytesIO()
    (paint(scene) if scene else _card(prompt)).save(png, "PNG")
    return png.getvalue()


def paint(scene: Scene) -> Image.Image:
    """Paints a scene."""
    light, canvas = light_of(scene), Canvas()
    _paint_sky(canvas, scene, light)
    _paint_water(canvas, light)
    near = float(HORIZON)
    for kind, (paint_thing, x, y) in _PLACES.items():
        if thing := scene.find(kind):
            _paint_waves(canvas, scene, light, near, y + 4)
            paint_thing(canvas.moved((x, y)), thing, light)
            near = y + 4
    _paint_waves(canvas, scene, light, near, HEIGHT + 40)
    if gulls := scene.find("gulls"):
        for gull_x, gull_y, span in _GULLS:
            paint_gull(canvas.moved((gull_x, gull_y), span), light.on(COLOURS.get(gulls.colour, WHITE)))
    _paint_weather(canvas, scene, light)
    return canvas.image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def _paint_sky(canvas: Canvas, scene: Scene, light: Light) -> None:
    canvas.image.paste(gradient((WIDTH * SCALE, HORIZON * SCALE + 2), light.sky), (0, 0))
    if scene.time == "night":
        _paint_stars(canvas, light)
    if light.hidden < 1:
        _paint_source(canvas, light)
    if scene.weather != "fog":
        _paint_clouds(canvas, scene, light)


def _paint_stars(canvas: Canvas, light: Light) -> None:
    random = chance(11)
    for _ in range(240):
        place, size = (random.uniform(0, WIDTH), HORIZON * random.random() ** 1.5), random.choice((0.5, 0.6, 1.0, 1.4))
        canvas.ellipse(place, (size, size), WHITE, round(random.uniform(70, 235) * (1 - light.hidden)))


def _paint_source(canvas: Canvas, light: Light) -> None:
    """Paints the moon at night, the sun otherwise."""
    shine = 1 - light.hidden
    canvas.glow(light.source, light.radius * 9, mix(light.disc, light.glint, 0.5), round(130 * shine))
    canvas.glow(light.source, light.radius * 3.2, light.disc, round(200 * shine))
    canvas.ellipse(light.source, (light.radius, light.radius), light.disc, round(255 * min(1, shine + 0.2)))


def _paint_clouds(canvas: Canvas, scene: Scene, light: Light) -> None:
    """Paints clouds as groups of soft balls on a flat base, lit from above."""
    random, (bright, shadow) = chance(5), light.cloud
    for x, y, width in _CLOUDS if scene.weather == "clear" else (*_CLOUDS, *_MORE_CLOUDS):
        size = round(width * 2 * SCALE), round(width * 0.8 * SCALE)
        mask = Image.new("L", size)
        draw = ImageDraw.Draw(mask)
        for number in range(15):
            place = (number + 0.5) / 15
            ball = size[1] * (0.1 + 0.3 * (1 - (2 * place - 1) ** 2)) * random.uniform(0.75, 1.1)
            middle, base = size[0] * (0.12 + 0.76 * place), size[1] * 0.8
            draw.ellipse((middle - 1.3 * ball, base - 1.7 * ball, middle + 1.3 * ball, base + 0.3 * ball), fill=215)
        draw.rectangle((0, size[1] * 0.8, *size), fill=0)
        soft = mask.filter(ImageFilter.GaussianBlur(width * 0.03))
        fill = gradient(size, ((0.0, bright), (0.45, bright), (0.85, shadow), (1.0, shadow)))
        canvas.image.paste(fill, (round((x - width) * SCALE), round((y - width * 0.6) * SCALE)), soft)


def _paint_water(canvas: Canvas, light: Light) -> None:
    """Paints the sea without waves, and short strokes of light, most of them below the sun or the moon."""
    canvas.image.paste(gradient((WIDTH * SCALE, (HEIGHT - HORIZON) * SCALE), light.sea), (0, HORIZON * SCALE))
    canvas.glow((light.source[0], HORIZON + 4), 260, light.glint, round(90 * (1 - light.hidden)))
    random = chance(3)
    for _ in range(900):
        near = random.random() ** 1.4
        width = 30 + 190 * near
        x = random.choice(
            (random.gauss(light.source[0], width), random.gauss(light.source[0], width), random.uniform(0, WIDTH))
        )
        close = exp(-(((x - light.source[0]) / (width * 1.1)) ** 2))
        stroke = (2 + 15 * near) * random.uniform(0.5, 1.5), 0.35 + 1.1 * near
        alpha = round((26 + 150 * close) * (1 - 0.85 * light.hidden))
        canvas.ellipse((x, HORIZON + 3 + (HEIGHT - HORIZON) * near), stroke, light.glint, alpha)


def _paint_waves(canvas: Canvas, scene: Scene, light: Light, top: float, bottom: float) -> None:
    """Paints the rows of waves with crests between two heights, far ones first."""
    for number in range(_ROWS):
        near = (number + 0.6) / _ROWS
        crest = HORIZON + (HEIGHT + 10 - HORIZON) * near**1.65
        if top <= crest < bottom:
            line = _wave(number, near, crest, 2.4 if scene.weather == "storm" else 1.0)
            colour = at(light.sea, (crest - HORIZON) / (HEIGHT - HORIZON))
            stops = ((0.0, mix(colour, light.sky[-1][1], 0.2)), (0.5, colour), (1.0, mix(colour, INK, 0.1)))
            canvas.shade([*line, *((x, y + 10 + 60 * near) for x, y in reversed(line))], stops, alpha=110)
            _paint_crests(canvas, light, line, number, near * (1.8 if scene.weather == "storm" else 1.0))


def _wave(number: int, near: float, crest: float, height: float) -> list[Point]:
    high, length, shift = height * (0.5 + 9 * near**1.5), 46 + 330 * near, chance(number).uniform(0, 2 * pi)
    phases = ((x, 2 * pi * x / length + shift) for x in range(-8, WIDTH + 9, 4))
    return [
        (x, crest + high * (0.6 * sin(turn) + 0.28 * sin(2.3 * turn + 1) + 0.12 * sin(5.1 * turn + 2)))
        for x, turn in phases
    ]


def _paint_crests(canvas: Canvas, light: Light, line: list[Point], number: int, size: float) -> None:
    """Paints short crescents of light along the waves."""
    random = chance(number + 100)
    place = random.randrange(12)
    while place < len(line) - 4:
        length = random.randint(3, 6 + round(22 * size))
        crest, thick = line[place : place + length], (0.5 + 2.6 * size) * random.uniform(0.5, 1.2)
        under = [(x, y + thick * sin(pi * step / max(1, len(crest) - 1))) for step, (x, y) in enumerate(crest)]
        canvas.polygon([*crest, *reversed(under)], light.glint, random.randint(40, 120))
        place += length + random.randint(4, 10 + round(34 * size))


def _paint_weather(canvas: Canvas, scene: Scene, light: Light) -> None:
    """Paints rain or fog in front of everything else."""
    random = chance(21)
    if scene.weather == "fog":
        thick = gradient(canvas.image.size, ((0.0, (70,) * 3), (0.54, (196,) * 3), (1.0, (24,) * 3))).convert("L")
        canvas.image.paste(mix(light.sky[-1][1], WHITE, 0.4), (0, 0), thick)
    for _ in range({"rain": 1_100, "storm": 2_200}.get(scene.weather, 0)):
        x, y, size = random.uniform(-40, WIDTH + 160), random.uniform(-40, HEIGHT), random.random()
        canvas.line([(x, y), (x - 6 * size - 3, y + 14 + 20 * size)], mix(light.glint, WHITE, 0.4), 0.8, 80)


def _card(words: str) -> Image.Image:
    """The words of a prompt without anything of the sea. Pillow's own font has Latin letters only."""
    canvas, font = Image.new("RGB", (WIDTH, HEIGHT)), ImageFont.load_default
    canvas.paste(gradient((WIDTH, HEIGHT), ((0.0, rgb("54708c")), (1.0, rgb("c89664")))))
    draw = ImageDraw.Draw(canvas, "RGBA")
    draw.rounded_rectangle((112, 150, 912, 618), 24, (*WHITE, 226))
    plain = "".join(letter if letter.isprintable() and letter < "\u0180" else "" for letter in words[:400]).strip()
    lines = wrap(plain, width=30, max_lines=5, placeholder="…") or ["?"]
    draw.multiline_text((512, 340), "\n".join(lines), fill=INK, font=font(44), anchor="mm", align="center")
    draw.text((512, 570), NOTE, fill=INK, font=font(20), anchor="mm")
    return canvas
