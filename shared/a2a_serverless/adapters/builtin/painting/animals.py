"""Gulls in the air and a whale in the water."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.builtin.painting.canvas import Point, Rgb, Surface, chance, darker, lighter, mix, outline
from a2a_serverless.adapters.builtin.painting.light import COLOURS, Light

if TYPE_CHECKING:
    from a2a_serverless.domain.scenes import Thing

# Where each gull flies, its half span, and how it banks, in radians.
_GULLS: Final = (
    (246, 214, 40, 0.1),
    (330, 172, 29, -0.14),
    (176, 168, 25, 0.09),
    (300, 268, 20, -0.06),
    (398, 236, 17, 0.2),
)
_FEATHERS: Final = (250, 250, 250)
_WING_TIPS: Final = (70, 80, 100)
_BEAK: Final = (232, 164, 60)
_GULL: Final = outline(
    (-0.2, 0.02), ((-0.05, -0.12), (0.14, -0.1), (0.28, 0.02)), ((0.1, 0.14), (-0.1, 0.12), (-0.2, 0.02))
)

_SKIN: Final = (52, 74, 104)
_BACK: Final = outline((-120, 4), ((-50, -40), (60, -78), (132, 4)))
_FIN: Final = outline((-30, -32), ((-34, -50), (-46, -56), (-54, -54)), (-52, -26))
_STALK: Final = outline(
    (-174, 6), ((-178, -20), (-178, -40), (-174, -58)), (-166, -58), ((-156, -36), (-142, -16), (-132, 6))
)
_BLOWHOLE: Final = (70, -46)


def paint_gulls(surface: Surface, thing: Thing, light: Light) -> None:
    """As many as the scene has, the nearest first."""
    white = light.on(COLOURS[thing.colour] if thing.colour else _FEATHERS)
    for x, y, span, bank in _GULLS[: thing.count]:
        _paint_gull(surface.moved((x, y), span, bank), white, mix(white, light.on(_WING_TIPS), 0.55))


def _paint_gull(here: Surface, white: Rgb, grey: Rgb) -> None:
    for way in (-1, 1):
        upper = outline((0, -0.04), ((way * 0.3, -0.42), (way * 0.62, -0.42), (way, -0.12)))
        lower = outline((way, -0.12), ((way * 0.6, -0.26), (way * 0.32, -0.2), (0, 0.1)))
        here.polygon([*upper, *lower], white if way < 0 else mix(white, grey, 0.35))
        here.polygon([*upper[-8:], *lower[:8]], grey)
    here.polygon(_GULL, white)
    here.polygon([(0.27, -0.02), (0.36, 0.03), (0.27, 0.05)], _BEAK)


def paint_whale(surface: Surface, thing: Thing, light: Light, at: Point, scale: float) -> None:
    """Its back, its tail and its breath, 300 long; ``at`` is where its back meets the water."""
    here = surface.moved(at, scale)
    skin = light.on(COLOURS[thing.colour] if thing.colour else _SKIN)
    _paint_breath(here, light)
    here.shade(_BACK, ((0.0, mix(skin, light.glint, 0.3)), (0.4, skin), (1.0, darker(skin, 0.5))))
    here.polygon(_FIN, darker(skin, 0.2))
    here.shade(_STALK, ((0.0, lighter(skin, 0.1)), (1.0, darker(skin, 0.4))))
    for way in (-1, 1):
        _paint_fluke(here.moved((-170, -56)), skin, way)
    random = chance(2)
    for _ in range(56):
        here.ellipse((random.uniform(-185, 142), random.uniform(0, 8)), (random.uniform(5, 14), 1.6), light.glint, 130)


def _paint_fluke(end: Surface, skin: Rgb, way: int) -> None:
    fluke = outline(
        (0, 2),
        ((way * 10, -24), (way * 36, -34), (way * 62, -16)),
        ((way * 44, -10), (way * 20, -2), (0, 10)),
    )
    end.shade(fluke, ((0.0, lighter(skin, 0.2)), (1.0, darker(skin, 0.3))))


def _paint_breath(here: Surface, light: Light) -> None:
    """Two soft plumes that bend apart."""
    plume = Surface(150, 150, here.scale, ground=light.glint)
    random = chance(7)
    for way in (-1, 1):
        for step in range(40):
            rise = step / 39
            spread = way * 36 * rise**1.6 + random.uniform(-7, 7) * rise
            plume.ellipse((75 + spread, 146 - 104 * (rise - 0.25 * rise**3)), (2 + 6 * rise, 3 + 6 * rise), light.glint)
    soft = plume.blurred(4.5)
    thin = soft.getchannel("A").point([round(0.62 * value) for value in range(256)])
    here.stick(soft, (_BLOWHOLE[0], _BLOWHOLE[1] - 75), thin)
