"""Painted pictures."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest
from PIL import Image

from a2a_serverless.adapters.builtin.picture import BuiltinPicture
from a2a_serverless.domain.scene_words import Kind, Weather
from a2a_serverless.domain.scenes import Scene, Thing, refine, scene_from_text

if TYPE_CHECKING:
    from a2a_serverless.domain.scene_words import Time

HULL = (330, 570, 620, 600)
SAIL = (420, 350, 460, 480)
SKY = (0, 0, 1024, 100)
SEA = (0, 640, 1024, 768)
ROOT = Path(__file__).parents[3]


def draw(scene: Scene | str) -> bytes:
    return asyncio.run(BuiltinPicture().draw(scene_from_text(scene) if isinstance(scene, str) else scene))


def mean(png: bytes, box: tuple[int, int, int, int]) -> tuple[float, float, float]:
    """The mean red, green and blue of a part of the picture."""
    part = Image.open(BytesIO(png)).crop(box).resize((1, 1), Image.Resampling.BOX)
    pixel = part.getpixel((0, 0))
    assert isinstance(pixel, tuple)
    return float(pixel[0]), float(pixel[1]), float(pixel[2])


@pytest.fixture(scope="module")
def sailboat() -> bytes:
    return draw("Generate an image of a sailboat on the ocean.")


def test_a_picture_is_a_png_of_1024_by_768(sailboat: bytes) -> None:
    picture = Image.open(BytesIO(sailboat))
    assert (picture.format, picture.mode, picture.size) == ("PNG", "RGB", (1024, 768))


def test_a_red_sailboat_has_a_red_hull_and_the_same_sails(sailboat: bytes) -> None:
    changed = refine(scene_from_text("Generate an image of a sailboat on the ocean."), "make the sailboat red")
    assert isinstance(changed, Scene)
    png = draw(changed)
    red, green, blue = mean(png, HULL)
    assert red > 2.5 * green
    assert red > 2.5 * blue
    assert mean(png, SAIL) == mean(sailboat, SAIL)


def test_hull_and_sails_have_the_colours_that_were_asked_for(sailboat: bytes) -> None:
    png = draw("a blue sailboat with green sails")
    hull, sails = mean(png, HULL), mean(png, SAIL)
    assert hull[2] == max(hull)
    assert sails[1] == max(sails)
    assert max(mean(sailboat, SAIL)) - min(mean(sailboat, SAIL)) < 40


def test_at_night_it_is_dark_and_a_red_hull_is_still_red(sailboat: bytes) -> None:
    night = draw("a red sailboat at night")
    red, green, blue = mean(night, HULL)
    assert red > 2 * max(green, blue)
    assert sum(mean(night, SKY)) < 0.3 * sum(mean(sailboat, SKY))


def test_a_sunset_is_warm() -> None:
    red, _, blue = mean(draw("sunset over the sea"), (0, 380, 200, 425))
    assert red > 1.5 * blue


def test_the_sea_and_the_sky_can_have_a_colour_too() -> None:
    png = draw("a green sea under a pink sky")
    sea, sky = mean(png, SEA), mean(png, SKY)
    assert sea[1] == max(sea)
    assert sky[1] == min(sky)


@pytest.mark.parametrize(
    ("time", "weather"), [("night", "storm"), ("sunset", "snow"), ("dawn", "fog"), ("day", "rain")]
)
def test_everything_can_be_in_one_picture_at_any_time_in_any_weather(time: Time, weather: Weather) -> None:
    everything = tuple(Thing(kind, "pink", "teal", count=2) for kind in get_args(Kind))
    png = draw(Scene("all", things=everything, time=time, weather=weather, waves="rough"))
    assert Image.open(BytesIO(png)).size == (1024, 768)


@pytest.fixture(scope="module")
def empty_sea() -> bytes:
    return draw(Scene("the sea"))


@pytest.mark.parametrize("kind", [kind for kind in get_args(Kind) if kind != "sun"])
def test_each_thing_can_be_seen(empty_sea: bytes, kind: Kind) -> None:
    assert draw(Scene("x", things=(Thing(kind),))) != empty_sea


def test_unknown_words_are_written_on_a_card() -> None:
    assert draw("a cat") != draw("a dog")


@pytest.mark.parametrize("words", ["画一只猫", "кот", "🐈", "a\u0301 \u202e cat", "x" * 2_000, " "])
def test_words_that_cannot_be_written_give_a_card_as_well(words: str) -> None:
    assert Image.open(BytesIO(draw(Scene(words, is_known=False)))).size == (1024, 768)


def test_chinese_words_are_not_drawn_as_boxes() -> None:
    """In their place stands an empty picture on an easel: white paper with three dots."""
    paper = Image.open(BytesIO(draw(Scene("画一只大狗和一只小狗", is_known=False)))).crop((390, 206, 634, 376))
    blank = sum(count for count, colour in paper.getcolors(100_000) or () if colour == (252, 251, 247))
    assert 0.94 < blank / (paper.width * paper.height) < 0.98


def test_another_process_paints_the_same_bytes(sailboat: bytes) -> None:
    code = (
        "import asyncio, hashlib, sys; from a2a_serverless.adapters.builtin.picture import BuiltinPicture;"
        "from a2a_serverless.domain.scenes import scene_from_text; assert 'PIL' not in sys.modules;"
        "scene = scene_from_text('Generate an image of a sailboat on the ocean.');"
        "print(hashlib.sha256(asyncio.run(BuiltinPicture().draw(scene))).hexdigest())"
    )
    run = subprocess.run(  # noqa: S603 - our own interpreter and our own code
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.strip() == hashlib.sha256(sailboat).hexdigest()
