"""What the weather lays over the finished scene: rain, snow, fog; and lightning behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.builtin.painting.canvas import HEIGHT, WHITE, WIDTH, Point, Surface, chance, mix, plain
from a2a_serverless.adapters.builtin.painting.light import HORIZON, Light

if TYPE_CHECKING:
    from a2a_serverless.domain.scenes import Scene

_FLASH: Final = (236, 240, 255)
_DROP: Final = (210, 224, 240)
_HAZE: Final = (236, 240, 242)
_DROPS: Final = 1_100
_FLAKES: Final = 620
_BANKS: Final = 16
_FOG: Final = ((0.0, (70, 70, 70)), (0.54, (196, 196, 196)), (0.72, (120, 120, 120)), (1.0, (24, 24, 24)))


def paint_lightning(surface: Surface) -> None:
    """A bolt from the clouds to the horizon, with a fork."""
    random = chance(12)
    bolt: list[Point] = [(236, 118)]
    while bolt[-1][1] < HORIZON - 10:
        x, y = bolt[-1]
        bolt.append((x + random.uniform(-22, 26), y + random.uniform(12, 30)))
    x, y = bolt[5]
    fork = [(x - 14 * step - random.uniform(0, 12) * (step > 0), y + 22 * step) for step in range(6)]
    surface.glow(bolt[3], 330, _FLASH, 120)
    for path, width in ((bolt, 3.0), (fork, 1.6)):
        surface.line(path, _FLASH, width * 3, 60)
        surface.line(path, WHITE, width)


def paint_weather(surface: Surface, scene: Scene, light: Light) -> None:
    """What falls or drifts in front of everything else."""
    if scene.weather == "rain":
        _paint_rain(surface, light, _DROPS, 0.2)
    elif scene.weather == "storm":
        _paint_rain(surface, light, 2 * _DROPS, 0.42)
    elif scene.weather == "snow":
        _paint_snow(surface)
    elif scene.weather == "fog":
        _paint_fog(surface, light)


def _paint_rain(surface: Surface, light: Light, drops: int, slant: float) -> None:
    random = chance(21)
    colour = mix(light.glint, _DROP, 0.6)
    for _ in range(drops):
        x, y, length = random.uniform(-40, WIDTH + 160), random.uniform(-40, HEIGHT), random.uniform(12, 34)
        surface.line([(x, y), (x - slant * length, y + length)], colour, 0.8, random.randint(40, 110))


def _paint_snow(surface: Surface) -> None:
    random = chance(22)
    for _ in range(_FLAKES):
        size = 0.8 + 3.4 * random.random() ** 3
        place = random.uniform(0, WIDTH), random.uniform(0, HEIGHT)
        surface.ellipse(place, (size, size), WHITE, random.randint(120, 240))


def _paint_fog(surface: Surface, light: Light) -> None:
    """Thickest at the horizon, nearly clear in the foreground, with banks that drift."""
    haze = mix(light.sky[-1][1], _HAZE, 0.4)
    surface.veil(plain(haze), _FOG)
    random = chance(23)
    for _ in range(_BANKS):
        middle = random.uniform(0, WIDTH), HORIZON + random.uniform(-90, 120)
        surface.shade_ellipse(middle, (random.uniform(120, 300), random.uniform(10, 26)), plain(haze), 34)
