"""A sailboat under full sail, seen from the side, with its reflection in the water.

Its own coordinates begin where the mast meets the waterline; the hull is 330 long and the mast 390 high.
"""

from __future__ import annotations

from math import sin
from typing import TYPE_CHECKING, Final

from PIL import Image, ImageFilter

from a2a_serverless.adapters.builtin.painting.canvas import Point, Rgb, Surface, chance, darker, lighter, mix, outline
from a2a_serverless.adapters.builtin.painting.light import COLOURS, Light

if TYPE_CHECKING:
    from a2a_serverless.domain.scenes import Thing

_SIZE: Final = (460, 450)
_ORIGIN: Final = (230, 418)
_FINE: Final = 2  # the boat is what people look at, so it is drawn finer than the rest
_TRIM: Final = -0.035  # the wind lifts the bow a little
_WATERLINE: Final = 8
_GELCOAT: Final = (250, 249, 244)
_CANVAS: Final = (250, 244, 230)
_CABIN_WHITE: Final = (236, 228, 210)
_WOOD: Final = (150, 96, 52)
_VARNISH: Final = (206, 152, 98)
_WIRE: Final = (90, 94, 104)
_WINDOW: Final = (60, 80, 104)
_LAMPLIGHT: Final = (255, 206, 120)
_SHADOW: Final = (50, 60, 96)
_PALE: Final = 600  # the sum of red, green and blue from which white stripes would not show
_PORTHOLES: Final = ((-4, -40), (22, -40), (48, -40))
_MASTHEAD: Final = (13, -394)

_SHEER: Final = outline((-152, -40), ((-60, -22), (60, -24), (178, -58)))
_HULL: Final = [
    *_SHEER,
    *outline(
        (178, -58),
        ((168, -30), (150, -4), (118, 12)),
        (-128, 12),
        ((-144, 4), (-150, -16), (-152, -40)),
    ),
]
_STRIPE: Final = outline((-146, -2), ((-60, 2), (60, 2), (142, -8)), (138, -2), ((60, 7), (-60, 7), (-143, 4)))
_CABIN: Final = outline((-34, -30), (-28, -46), ((0, -52), (50, -52), (78, -46)), (92, -34))
_MAIN: Final = outline((10, -372), ((-60, -290), (-140, -170), (-150, -74)), ((-90, -62), (-40, -66), (10, -70)))
_BAND: Final = outline(
    (9, -112), ((-50, -108), (-100, -110), (-146, -116)), (-148, -100), ((-100, -94), (-50, -92), (9, -96))
)
_JIB: Final = outline(
    (18, -338),
    ((70, -240), (130, -140), (172, -62)),
    ((120, -60), (80, -58), (36, -62)),
    ((50, -140), (40, -240), (18, -338)),
)
_PENNANT: Final = outline((13, -392), ((-8, -398), (-16, -384), (-40, -388)), ((-16, -374), (-8, -386), (13, -378)))


def paint_boat(surface: Surface, thing: Thing, light: Light, at: Point, scale: float) -> None:
    """The boat with its waterline at ``at``."""
    sprite = _sprite(thing, light, surface.scale * scale)
    here = surface.moved(at, scale)
    above = round((_ORIGIN[1] + _WATERLINE) * here.scale)
    mirrored = _reflection(sprite.crop((0, 0, sprite.width, above)))
    here.stick(mirrored, (0, _WATERLINE - 3 + mirrored.height / here.scale / 2))
    here.stick(sprite, (_SIZE[0] / 2 - _ORIGIN[0], _SIZE[1] / 2 - _ORIGIN[1]))
    _paint_foam(here, light)


def _sprite(thing: Thing, light: Light, scale: float) -> Image.Image:
    hull = light.on(COLOURS[thing.colour] if thing.colour else _GELCOAT)
    canvas = light.on(COLOURS[thing.accent] if thing.accent else _CANVAS)
    flag = light.on(COLOURS[thing.colour or "red"])
    whole = Surface(*_SIZE, scale * _FINE, ground=canvas)
    boat = whole.moved(_ORIGIN, turn=_TRIM)
    _paint_rigging(boat, light)
    _paint_sails(boat, canvas, flag)
    _paint_spars(boat, light, flag)
    _paint_hull(boat, hull, light)
    if light.lamps:
        _paint_lamps(boat)
    return whole.image.reduce(_FINE)


def _paint_rigging(boat: Surface, light: Light) -> None:
    for foot in ((176, -60), (-150, -42), (-28, -32)):
        boat.line([(13, -376), foot], light.on(_WIRE), 0.8)


def _paint_sails(boat: Surface, canvas: Rgb, flag: Rgb) -> None:
    """Light in the middle of each sail, where it bellies; darker where it turns away."""
    shadow, bright = mix(canvas, _SHADOW, 0.3), lighter(canvas, 0.25)
    edge = mix(canvas, shadow, 0.4)
    boat.shade(_MAIN, ((0.0, edge), (0.3, bright), (0.75, canvas), (1.0, shadow)), across=True)
    for share in (0.2, 0.36, 0.52, 0.68, 0.84):
        y, left = -372 + 300 * share, -150 * share**0.82
        seam = outline((9, y), ((left * 0.35, y + 8), (left * 0.7, y + 9), (left * 0.97, y + 4)))
        boat.line(seam, mix(shadow, canvas, 0.4), 0.8)
    boat.polygon(_BAND, mix(flag, canvas, 0.2))
    boat.shade(_JIB, ((0.0, edge), (0.45, bright), (1.0, mix(canvas, shadow, 0.55))), across=True)


def _paint_spars(boat: Surface, light: Light, flag: Rgb) -> None:
    wood = light.on(_WOOD)
    boat.polygon([(10, -30), (17, -30), (15, -392), (12, -392)], wood)
    boat.line([(16, -34), (14, -388)], mix(wood, light.on(_VARNISH), 0.6), 1)
    boat.line([(12, -64), (-156, -70)], wood, 4)
    boat.polygon(_PENNANT, flag)


def _paint_hull(boat: Surface, hull: Rgb, light: Light) -> None:
    cabin = light.on(_CABIN_WHITE)
    boat.shade(_CABIN, ((0.0, cabin), (1.0, darker(cabin, 0.25))))
    for porthole in _PORTHOLES:
        boat.ellipse(porthole, (6, 4.2), light.on(_WINDOW))
    boat.shade(_HULL, ((0.0, lighter(hull, 0.18)), (0.35, hull), (1.0, darker(hull, 0.5))))
    boat.polygon(_STRIPE, light.on(COLOURS["navy"]) if sum(hull) > _PALE else mix(light.on(_GELCOAT), hull, 0.15))
    boat.line(_SHEER, light.on(_WOOD), 4.2)
    boat.line([(x, y - 1.6) for x, y in _SHEER], light.on(_VARNISH), 1.2)


def _paint_lamps(boat: Surface) -> None:
    for porthole in _PORTHOLES:
        boat.glow(porthole, 20, _LAMPLIGHT, 170)
        boat.ellipse(porthole, (5.4, 3.8), lighter(_LAMPLIGHT, 0.3))
    boat.glow(_MASTHEAD, 26, lighter(_LAMPLIGHT, 0.7), 220)
    boat.ellipse(_MASTHEAD, (2.4, 2.4), lighter(_LAMPLIGHT, 0.9))


def _reflection(sprite: Image.Image) -> Image.Image:
    """The boat upside down, shorter, broken into wavering rows and fading with depth."""
    mirrored = sprite.transpose(Image.Transpose.FLIP_TOP_BOTTOM).resize(
        (sprite.width, max(1, round(sprite.height * 0.55)))
    )
    broken = Image.new("RGBA", mirrored.size)
    for y in range(mirrored.height):
        near = y / mirrored.height
        shift = round((3 + 16 * near) * sin(y / (3.5 + 5 * near)) * sprite.width / 920)
        broken.paste(mirrored.crop((0, y, mirrored.width, y + 1)), (shift, y))
    fade = Image.linear_gradient("L").resize(mirrored.size).point([round(0.5 * (255 - value)) for value in range(256)])
    broken.putalpha(Image.composite(fade, Image.new("L", mirrored.size), broken.getchannel("A")))
    return broken.filter(ImageFilter.GaussianBlur(1.2))


def _paint_foam(here: Surface, light: Light) -> None:
    """The water that the hull pushes aside: a wave at the bow, a line along the side, a wake behind."""
    random = chance(8)
    for step in range(70):
        along = step / 69
        thick = 1.2 + 12.8 * max(0.0, along - 0.75) + 9 * max(0.0, 0.15 - along)
        place = -150 + 290 * along, 8 + random.uniform(-1.5, 3.5)
        here.ellipse(place, (random.uniform(4, 12), thick * random.uniform(0.4, 1)), light.glint, 120)
    for _ in range(60):
        back = random.random()
        place = -150 - 150 * back, 10 + random.uniform(-4, 14) * back
        here.ellipse(place, (random.uniform(4, 16), 1.3), light.glint, round(110 * (1 - back)))
