"""Things that float or stand in the sea. Each has its own coordinates with the origin at the waterline."""

from __future__ import annotations

from math import sin
from typing import TYPE_CHECKING, Final

from PIL import Image, ImageFilter

from sample_agents.offline.canvas import INK, WHITE, Canvas, Rgb, chance, curve, mix
from sample_agents.offline.light import COLOURS, Light, rgb

if TYPE_CHECKING:
    from sample_agents.offline.scenes import Thing

_SIZE: Final = (460, 450)
_ORIGIN: Final = (230, 418)
_WATERLINE: Final = 8
_GELCOAT: Final = rgb("faf9f4")
_CANVAS: Final = rgb("faf4e6")
_SHADOW: Final = rgb("323c60")
_WOOD: Final = rgb("966034")
_LAMP: Final = rgb("fff0be")
_PALE: Final = 600  # the sum of red, green and blue above which a white stripe would not be visible
_SHEER: Final = curve("-152 -40 -60 -22 60 -24 178 -58")
_HULL: Final = [*_SHEER, *curve("178 -58 168 -30 150 -4 118 12"), *curve("-128 12 -144 4 -150 -16 -152 -40")]
_STRIPE: Final = [*curve("-146 -2 -60 2 60 2 142 -8"), *curve("138 -2 60 7 -60 7 -143 4")]
_CABIN: Final = [(-34.0, -28.0), *curve("-28 -46 0 -52 50 -52 78 -46"), (92.0, -30.0)]
_MAIN: Final = curve("10 -372 -60 -290 -140 -170 -150 -74 -90 -62 -40 -66 10 -70")
_BAND: Final = [*curve("9 -112 -50 -108 -100 -110 -146 -116"), *curve("-148 -100 -100 -94 -50 -92 9 -96")]
_JIB: Final = curve("18 -338 70 -240 130 -140 172 -62 120 -60 80 -58 36 -62 50 -140 40 -240 18 -338")
_PENNANT: Final = curve("13 -392 -8 -398 -16 -384 -40 -388 -16 -374 -8 -386 13 -378")
_WING: Final = curve("0 -0.04 0.3 -0.42 0.62 -0.42 1 -0.12 0.6 -0.26 0.32 -0.2 0 0.1")


def paint_sailboat(here: Canvas, thing: Thing, light: Light) -> None:
    """Paints a sailboat under full sail with its reflection; 330 wide and 390 high."""
    layer = Canvas(_SIZE, here.scale * 2, ground=light.on(_CANVAS))
    _paint_boat(layer.moved(_ORIGIN), thing, light)
    boat = layer.image.rotate(2, Image.Resampling.BICUBIC, center=layer.pixel(_ORIGIN)).reduce(2)
    mirrored = _reflection(boat.crop((0, 0, boat.width, round((_ORIGIN[1] + _WATERLINE) * here.scale))))
    for picture, top in ((mirrored, _WATERLINE - 3), (boat, -_ORIGIN[1])):
        x, y = here.pixel((-_ORIGIN[0], top))
        here.image.paste(picture.convert("RGB"), (round(x), round(y)), picture.getchannel("A"))
    _paint_foam(here, light, 140)


def _paint_boat(boat: Canvas, thing: Thing, light: Light) -> None:
    hull, wood = light.on(COLOURS.get(thing.colour, _GELCOAT)), light.on(_WOOD)
    for foot in ((176, -60), (-150, -42), (-28, -32)):
        boat.line([(13, -376), foot], light.on(_SHADOW), 0.8)
    _paint_sails(boat, light.on(COLOURS.get(thing.accent, _CANVAS)), light.on(COLOURS[thing.colour or "red"]))
    boat.polygon([(10, -30), (17, -30), (15, -392), (12, -392)], wood)
    boat.line([(12, -64), (-156, -70)], wood, 4)
    cabin = light.on(rgb("ece4d2"))
    boat.shade(_CABIN, ((0.0, cabin), (1.0, mix(cabin, INK, 0.25))))
    boat.shade(_HULL, ((0.0, mix(hull, WHITE, 0.18)), (0.35, hull), (1.0, mix(hull, INK, 0.5))))
    boat.polygon(_STRIPE, light.on(COLOURS["navy"]) if sum(hull) > _PALE else mix(light.on(_GELCOAT), hull, 0.15))
    boat.line(_SHEER, wood, 4.2)
    for x in (-4, 22, 48):
        boat.ellipse((x, -40), (6, 4.2), _LAMP if light.is_dark else light.on(_SHADOW))


def _paint_sails(boat: Canvas, sails: Rgb, flag: Rgb) -> None:
    """Paints light in the middle of each sail and shadow at its edges."""
    shadow, bright = mix(sails, _SHADOW, 0.3), mix(sails, WHITE, 0.25)
    edge = mix(sails, shadow, 0.4)
    boat.shade(_MAIN, ((0.0, edge), (0.3, bright), (0.75, sails), (1.0, shadow)), across=True)
    for share in (0.2, 0.36, 0.52, 0.68, 0.84):
        y, left = -372 + 300 * share, -150 * share**0.82
        boat.line(curve(f"9 {y} {left * 0.35} {y + 8} {left * 0.7} {y + 9} {left * 0.97} {y + 4}"), shadow, 0.8)
    boat.polygon(_BAND, mix(flag, sails, 0.2))
    boat.shade(_JIB, ((0.0, edge), (0.45, bright), (1.0, edge)), across=True)
    boat.polygon(_PENNANT, flag)


def _reflection(boat: Image.Image) -> Image.Image:
    """The boat upside down and shorter, in wavering rows that fade with depth."""
    mirrored = boat.transpose(Image.Transpose.FLIP_TOP_BOTTOM).resize((boat.width, max(1, round(boat.height * 0.55))))
    broken = Image.new("RGBA", mirrored.size)
    for y in range(mirrored.height):
        near = y / mirrored.height
        shift = round((3 + 16 * near) * sin(y / (3.5 + 5 * near)) * boat.width / 920)
        broken.paste(mirrored.crop((0, y, mirrored.width, y + 1)), (shift, y))
    fade = Image.linear_gradient("L").resize(mirrored.size).point([round(0.5 * (255 - value)) for value in range(256)])
    broken.putalpha(Image.composite(fade, Image.new("L", mirrored.size), broken.getchannel("A")))
    return broken.filter(ImageFilter.GaussianBlur(1.2))


def _paint_foam(here: Canvas, light: Light, half: float) -> None:
    """Paints the foam around something in the water."""
    random = chance(8)
    for _ in range(90):
        place = half * random.uniform(-1.15, 1), random.uniform(5, 11)
        here.ellipse(place, (random.uniform(4, 13), random.uniform(0.8, 2.6)), light.glint, 120)


def paint_lighthouse(here: Canvas, thing: Thing, light: Light) -> None:
    """Paints a striped tower on rocks, 270 high. If it has only one colour, that is the colour of the stripes."""
    if light.is_dark:
        for way in (-1, 1):
            here.polygon([(0, -230), (way * 900, -330), (way * 900, -150)], _LAMP, 44)
        here.glow((0, -230), 90, _LAMP, 220)
    _paint_rocks(here, light)
    wall = COLOURS[thing.colour] if thing.accent and thing.colour else COLOURS["white"]
    for band, colour in enumerate((COLOURS[thing.accent or thing.colour or "red"], wall) * 2):
        _paint_band(here, band, light.on(colour))
    iron = light.on(_SHADOW)
    for y in (-20, -70, -122, -172):
        here.ellipse((0, y), (4, 6), iron)
    here.polygon([(-31, -204), (31, -204), (28, -214), (-28, -214)], iron)
    here.polygon([(-14, -214), (14, -214), (14, -246), (-14, -246)], _LAMP if light.is_dark else light.on(_GELCOAT))
    for x in (-14, -5, 5, 14):
        here.line([(x, -212), (x, -246)], iron, 1.4)
    here.polygon(curve("-19 -245 -14 -268 14 -268 19 -245"), light.on(COLOURS["maroon"]))
    _paint_foam(here.moved((0, 10)), light, 160)


def _paint_band(here: Canvas, band: int, colour: Rgb) -> None:
    low, high, foot = 34 - 3.25 * band, 30.75 - 3.25 * band, -51.5 * band
    corners = [(-low, foot), (-high, foot - 51.5), (high, foot - 51.5), (low, foot)]
    stops = ((0.0, mix(colour, INK, 0.38)), (0.45, mix(colour, WHITE, 0.14)), (1.0, mix(colour, INK, 0.5)))
    here.shade(corners, stops, across=True)


def _paint_rocks(here: Canvas, light: Light) -> None:
    random = chance(6)
    for step in range(26):
        place = step / 12.5 - 1
        x, size = 150 * place, random.uniform(20, 34) * (1.2 - abs(place) * 0.8)
        grey = light.on(mix(rgb("605854"), rgb("3a363c"), random.random()))
        corners = [(x - size, 18), (x - size * 0.6, 8 - size * 0.7), (x + size * 0.5, 6 - size * 0.9), (x + size, 18)]
        here.shade(corners, ((0.0, mix(grey, WHITE, 0.14)), (1.0, mix(grey, INK, 0.6))))


def paint_gull(here: Canvas, white: Rgb) -> None:
    """Paints a gull with a wingspan of 2."""
    for way in (-1, 1):
        here.polygon([(way * x, y) for x, y in _WING], mix(white, _SHADOW, 0.2 + 0.1 * way))
    here.ellipse((0.04, 0.02), (0.24, 0.09), white)
