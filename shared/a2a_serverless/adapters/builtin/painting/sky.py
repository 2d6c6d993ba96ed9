"""The sky: its colours, the sun or the moon, stars, clouds and a rainbow."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from PIL import ImageChops

from a2a_serverless.adapters.builtin.painting.canvas import WHITE, WIDTH, Point, Rgb, Surface, chance, gradient, mix
from a2a_serverless.adapters.builtin.painting.light import COLOURS, HORIZON, Light

if TYPE_CHECKING:
    from a2a_serverless.domain.scenes import Scene

_STARS: Final = 260
_STARLIGHT: Final = (190, 212, 255)
_CRATERS: Final = ((-0.34, -0.28, 0.24), (0.3, 0.1, 0.3), (-0.18, 0.42, 0.18), (0.24, -0.5, 0.12), (-0.56, 0.16, 0.12))
_DAY_MOON: Final = (96.0, 30.0)
_BOW: Final[tuple[Rgb, ...]] = (
    (214, 60, 60),
    (240, 140, 50),
    (246, 220, 80),
    (90, 190, 110),
    (70, 140, 220),
    (120, 90, 190),
)
# Middle, half width and height of each cloud.
_FEW: Final = ((150, 118, 210, 52), (470, 74, 150, 34), (640, 196, 190, 40), (905, 262, 170, 34), (330, 250, 130, 26))
_MANY: Final = (
    *_FEW,
    (60, 60, 300, 80),
    (330, 90, 320, 84),
    (610, 60, 330, 90),
    (900, 100, 320, 84),
    (210, 190, 280, 60),
    (800, 190, 300, 64),
)
_BALLS: Final = 15


def paint_sky(surface: Surface, scene: Scene, light: Light) -> None:
    """Everything above the horizon that is far away."""
    surface.backdrop(light.sky, 0, HORIZON + 1)
    if scene.time == "night":
        _paint_stars(surface, light)
    if scene.find("rainbow"):
        _paint_rainbow(surface)
    if light.dimmed < 1:
        _paint_source(surface, scene, light)
    if scene.weather != "fog":
        _paint_clouds(surface, scene, light)


def _paint_stars(surface: Surface, light: Light) -> None:
    random = chance(11)
    for _ in range(_STARS):
        place = random.uniform(0, WIDTH), HORIZON * random.random() ** 1.5
        size, alpha = random.choice((0.5, 0.5, 0.7, 1.0, 1.5)), round(random.uniform(70, 235) * (1 - light.dimmed))
        surface.ellipse(place, (size, size), mix(WHITE, _STARLIGHT, random.random()), alpha)
        if size > 1:
            surface.glow(place, 9, _STARLIGHT, alpha // 2)


def _paint_source(surface: Surface, scene: Scene, light: Light) -> None:
    """The moon at night, the sun otherwise; a moon that is asked for by day is there as well, and pale."""
    thing = scene.find("moon" if scene.time == "night" else "sun")
    disc = COLOURS[thing.colour] if thing and thing.colour else light.disc
    strength = 1 - light.dimmed
    here = surface.moved(light.source, light.radius)
    here.glow((0, 0), 9, mix(disc, light.glint, 0.5), round((80 if scene.time == "night" else 150) * strength))
    here.glow((0, 0), 3.2, disc, round(200 * strength))
    here.ellipse((0, 0), (1, 1), disc, round(255 * min(1, strength + 0.2)))
    if scene.time == "night":
        _paint_craters(here, disc)
    elif moon := scene.find("moon"):
        tint = COLOURS[moon.colour] if moon.colour else WHITE
        high, radius = _DAY_MOON
        pale = surface.moved((WIDTH - light.source[0], high), radius)
        pale.ellipse((0, 0), (1, 1), tint, 150)
        _paint_craters(pale, tint)


def _paint_craters(here: Surface, disc: Rgb) -> None:
    for x, y, size in _CRATERS:
        here.ellipse((x, y), (size, size), mix(disc, COLOURS["grey"], 0.3), 60)


def _paint_rainbow(surface: Surface) -> None:
    bow = Surface(WIDTH, HORIZON, surface.scale, ground=WHITE)
    for number, colour in enumerate(_BOW):
        bow.arc((400, HORIZON + 150), 500 - number * 9, colour, 10, 118)
    surface.stick(bow.blurred(3), (WIDTH / 2, HORIZON / 2))


def _paint_clouds(surface: Surface, scene: Scene, light: Light) -> None:
    thing = scene.find("clouds")
    heavy = scene.weather != "clear"
    bright, shadow = light.cloud
    if thing and thing.colour:
        bright, shadow = mix(bright, COLOURS[thing.colour], 0.75), mix(shadow, COLOURS[thing.colour], 0.6)
    random = chance(5)
    for x, y, width, height in _MANY if heavy or thing else _FEW:
        _paint_cloud(surface.moved((x, y)), random, (width, height), (bright, shadow), 235 if heavy else 200)


def _paint_cloud(here: Surface, random: Random, size: Point, colours: tuple[Rgb, Rgb], alpha: int) -> None:
    """Balls on a flat base, the high ones behind, each lit from above; soft at the edges."""
    (width, height), (bright, shadow) = size, colours
    heap = Surface(width * 2, height * 3, here.scale, ground=mix(bright, shadow, 0.4))
    balls: list[tuple[float, float, float]] = []
    for number in range(_BALLS):
        place = (number + 0.5) / _BALLS
        radius = height * (0.22 + 0.62 * (1 - (2 * place - 1) ** 2) ** 0.8) * random.uniform(0.7, 1.1)
        balls.append((height * 2.2 - radius * random.uniform(0.5, 0.95), width * (0.32 + 1.36 * place), radius))
    for y, x, radius in sorted(balls):
        heap.shade_ellipse(
            (x, y), (radius * 1.2, radius), ((0.0, bright), (0.45, mix(bright, shadow, 0.25)), (1.0, shadow))
        )
    soft = heap.blurred(height * 0.045)
    solid = alpha, alpha, alpha
    base = gradient(soft.size, ((0.0, solid), (0.7, solid), (0.78, (0, 0, 0)), (1.0, (0, 0, 0)))).convert("L")
    here.stick(soft, (0, -height * 0.5), ImageChops.multiply(soft.getchannel("A"), base))
