"""The offline painter: what it reads in a request, what it asks, how it says what it shows, and its pictures."""

from __future__ import annotations

import asyncio
import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sample_agents.offline.image import OfflineImage
from sample_agents.offline.scenes import COLOURS, Scene, _in_english, scene_of
from sample_agents.offline.text import OfflineText
from sample_agents.prompts import picture_prompt

SAILBOAT = "A sailboat on the sea."
BOTH = "A sailboat and a lighthouse on the sea."
COLOUR = st.sampled_from(["", *COLOURS])
SCENES = st.fixed_dictionaries(
    {"time": st.sampled_from(["day", "sunset", "night"]), "sea": COLOUR},
    optional={"sailboat": COLOUR, "lighthouse": COLOUR, "sky": st.sampled_from([*COLOURS])},
)


def told(request: str, current: str | None = None) -> dict[str, str]:
    found: dict[str, str] = json.loads(asyncio.run(OfflineText().complete(picture_prompt(request, current).render())))
    return found


def image(prompt: str) -> Any:
    return Image.open(BytesIO(asyncio.run(OfflineImage().generate(prompt))))


def pixels(prompt: str) -> bytes:
    return bytes(image(prompt).tobytes())


@pytest.mark.parametrize(
    ("request_text", "name", "prompt"),
    [
        ("Generate an image of a sailboat on the ocean.", "sailboat", "A sailboat on the sea."),
        ("a sailboat at sunset on the sea", "sailboat", "A sailboat on the sea at sunset."),
        ("画一艘海上的帆船", "sailboat", "A sailboat on the sea."),
        ("夜里的一座红色灯塔", "lighthouse", "A red lighthouse by the sea at night."),
        ("a blue boat on a green sea at dusk", "sailboat", "A blue sailboat on a green sea at sunset."),
        (
            "a lighthouse by a green sea under an orange sky",
            "lighthouse",
            "A lighthouse by a green sea under an orange sky.",
        ),
        ("the ocean by moonlight", "sea", "The sea at night."),
        ("a cat at the piano", "words", "a cat at the piano"),
    ],
)
def test_a_request_becomes_a_description_of_what_will_be_painted(request_text: str, name: str, prompt: str) -> None:
    answer = told(request_text)
    assert (answer["name"], answer["prompt"]) == (name, prompt)


@pytest.mark.parametrize(
    ("wish", "prompt"),
    [
        ("Please modify the sailboat to be red", "A red sailboat on the sea."),
        ("请把帆船改成红色", "A red sailboat on the sea."),
        ("Make it red.", "A red sailboat on the sea."),
        ("Change the hull from white to blue", "A blue sailboat on the sea."),
        ("Make the sky red", "A sailboat on the sea under a red sky."),
        ("Make the sailboat on the sea red", "A red sailboat on the sea."),
        ("把天空变成粉色", "A sailboat on the sea under a pink sky."),
        ("make it night and add a lighthouse", "A sailboat and a lighthouse on the sea at night."),
        ("再加一座灯塔", "A sailboat and a lighthouse on the sea."),
        ("Change the colour\nblue", "A blue sailboat on the sea."),
    ],
)
def test_a_change_keeps_what_it_does_not_name(wish: str, prompt: str) -> None:
    assert told(wish, SAILBOAT)["prompt"] == prompt


@pytest.mark.parametrize(
    ("wish", "question"),
    [
        ("Change the colour", "What should change about the picture?"),
        ("Change the sky", "What should change about the picture?"),
        ("换个颜色", "画面要怎么改？"),
    ],
)
def test_the_offline_model_asks_about_an_unclear_wish(wish: str, question: str) -> None:
    assert told(wish, SAILBOAT)["question"].startswith(question)


def test_a_colour_for_it_is_the_subjects_or_the_skys_when_there_is_none() -> None:
    assert told("Make it red", BOTH)["prompt"] == "A red sailboat and a lighthouse on the sea."
    assert told("make it red", "The sea.")["prompt"] == "The sea under a red sky."


def test_a_picture_is_described_in_the_language_of_its_request() -> None:
    assert told("请把帆船改成红色", SAILBOAT)["description"] == "海面上有一艘红色帆船。"


def test_words_of_an_unknown_subject_are_kept_and_a_known_one_takes_their_place() -> None:
    assert told("Make it black", "a cat")["prompt"] == "a cat Make it black"
    assert told("Draw a sailboat instead", "a cat")["prompt"] == SAILBOAT


@settings(deadline=None)
@given(SCENES)
def test_a_description_reads_back_as_the_scene_that_it_describes(scene: Scene) -> None:
    assert scene_of(_in_english(scene)) == scene


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("a boat红帆船red不要 and的,.\n把海sky"), max_size=80))
def test_any_words_get_a_picture_or_a_question(words: str) -> None:
    for current in (None, SAILBOAT, "a cat"):
        answer = told(words, current)
        assert set(answer) in ({"question"}, {"name", "prompt", "description"})


def test_a_picture_is_a_png_of_the_same_bytes_each_time() -> None:
    picture = image(SAILBOAT)
    assert (picture.format, picture.size) == ("PNG", (1024, 768))
    assert asyncio.run(OfflineImage().generate(SAILBOAT)) == asyncio.run(OfflineImage().generate(SAILBOAT))


def test_colours_are_where_they_belong() -> None:
    hull, sea, sky = (400, 592), (60, 700), (900, 40)
    green = image("A green sailboat on a red sea.")
    assert _is(green.getpixel(hull), green=True)
    assert _is(green.getpixel(sea), red=True)
    assert _is(image("A sailboat on the sea under a red sky.").getpixel(sky), red=True)


def test_a_change_of_the_sky_keeps_everything_else() -> None:
    before, after = image(SAILBOAT), image("A sailboat on the sea under a red sky.")
    below = (0, 440, 1024, 768)
    assert before.crop(below).tobytes() == after.crop(below).tobytes()
    assert before.tobytes() != after.tobytes()


def _is(pixel: tuple[int, int, int], **wanted: bool) -> bool:
    """Whether one colour is far stronger than the other two."""
    (name,) = wanted
    strong = pixel[["red", "green", "blue"].index(name)]
    return all(strong > 1.3 * other for other in pixel if other != strong)


@pytest.mark.parametrize(
    "prompt", [SAILBOAT, BOTH, "The sea.", "The sea at night.", "A red sailboat on the sea at sunset.", "a cat", "猫"]
)
def test_different_prompts_give_different_pictures(prompt: str) -> None:
    assert pixels(prompt) != pixels("A sailboat on the sea at sunset.")


@settings(max_examples=4, deadline=None)
@given(SCENES)
def test_every_scene_can_be_painted(scene: Scene) -> None:
    assert image(_in_english(scene)).size == (1024, 768)
