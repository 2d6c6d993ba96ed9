"""Scenes from requests in English and Chinese, changed by later ones, and as they travel."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.scene_words import Colour, Kind, Time, Waves, Weather
from a2a_serverless.domain.scenes import (
    Ambiguity,
    Scene,
    Thing,
    describe,
    file_name,
    refine,
    scene_from_json,
    scene_from_text,
    scene_to_json,
)

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

COLOURS = st.sampled_from(get_args(Colour))
THINGS = st.builds(
    Thing,
    kind=st.sampled_from(get_args(Kind)),
    colour=st.none() | COLOURS,
    accent=st.none() | COLOURS,
    count=st.integers(min_value=1, max_value=5),
)
SCENES = st.builds(
    Scene,
    words=st.text(max_size=40),
    is_known=st.booleans(),
    things=st.lists(THINGS, max_size=4, unique_by=lambda thing: thing.kind).map(tuple),
    time=st.sampled_from(get_args(Time)),
    weather=st.sampled_from(get_args(Weather)),
    waves=st.sampled_from(get_args(Waves)),
    sea=st.none() | COLOURS,
    sky=st.none() | COLOURS,
)
SAILBOAT = scene_from_text("Generate an image of a sailboat on the ocean.")


def refined(scene: Scene, text: str) -> Scene:
    changed = refine(scene, text)
    assert isinstance(changed, Scene), changed
    return changed


def asked(scene: Scene, text: str) -> Ambiguity:
    doubt = refine(scene, text)
    assert isinstance(doubt, Ambiguity), doubt
    return doubt


@pytest.mark.parametrize(
    ("request_text", "description"),
    [
        ("Generate an image of a sailboat on the ocean.", "A sailboat on the sea."),
        (
            "Please draw two red yachts with white sails at dusk",
            "Two red sailboats with white sails on the sea at sunset.",
        ),
        ("a dark-blue boat, three gulls and no clouds", "A navy sailboat on the sea with three gulls."),
        ("An orange lighthouse in the fog", "An orange lighthouse by the sea in the fog."),
        ("a whale in a stormy green sea at night", "A whale in a green sea at night in a storm."),
        ("sunset over the ocean", "The sea at sunset."),
        ("an island under a rainbow", "An island in the sea with a rainbow."),
        ("a red and white lighthouse", "A red lighthouse with white stripes by the sea."),
        ("the moon over the sea", "The moon over the sea at night."),
        ("画一艘海上的帆船", "海面上的一艘帆船。"),
        ("日落时的两艘红色帆船和海鸥", "日落时的海面上的两艘红色帆船，还有五只海鸥。"),
        ("暴风雨中的灯塔", "暴风雨中的海面上的一座灯塔。"),
        ("红白条纹的灯塔", "海面上的一座红色灯塔（白色条纹）。"),
    ],
)
def test_a_request_is_understood(request_text: str, description: str) -> None:
    assert describe(scene_from_text(request_text)) == description


@pytest.mark.parametrize(
    "request_text",
    [
        "",
        "a cat",
        "A cat under the moon",
        "a spaceship over the ocean",
        "submarine",
        "画一只猫",
        "一艘飞船",
        "🙂",
        "x" * 5_000,
    ],
)
def test_what_cannot_be_painted_is_said_to_be_unknown(request_text: str) -> None:
    scene = scene_from_text(request_text)
    assert not scene.is_known
    assert ("内置画师只会画" if scene.language == "zh" else "built-in painter knows only") in describe(scene)


@pytest.mark.parametrize(
    ("change", "description"),
    [
        ("Please modify the sailboat to be red.", "A red sailboat on the sea."),
        ("请把帆船改成红色", "A red sailboat on the sea."),
        ("make it blue", "A blue sailboat on the sea."),
        ("把它从红色改成深蓝色", "A navy sailboat on the sea."),
        ("change the boat from white to green", "A green sailboat on the sea."),
        ("the sails should be orange", "A sailboat with orange sails on the sea."),
        ("make the boat on the sea yellow", "A yellow sailboat on the sea."),
        ("make the sea purple", "A sailboat on a purple sea."),
        ("at night, with a moon", "A sailboat on the sea at night with the moon."),
        ("add a lighthouse and three birds", "A sailboat on the sea with a lighthouse and three gulls."),
        ("add another boat", "Two sailboats on the sea."),
        ("a red lighthouse too", "A sailboat on the sea with a red lighthouse."),
        ("下雨", "A sailboat on the sea in the rain."),
    ],
)
def test_a_change_is_carried_out(change: str, description: str) -> None:
    assert describe(refined(SAILBOAT, change)) == description


def test_what_was_added_can_be_taken_away() -> None:
    busy = refined(SAILBOAT, "add birds and a lighthouse in the fog")
    assert describe(refined(busy, "remove the birds")) == "A sailboat on the sea in the fog with a lighthouse."
    assert describe(refined(busy, "把灯塔去掉")) == "A sailboat on the sea in the fog with five gulls."
    assert refined(busy, "no fog please").weather == "clear"


def test_it_is_asked_which_of_two_things_is_meant() -> None:
    both = refined(SAILBOAT, "add a lighthouse")
    doubt = asked(both, "make it red")
    assert doubt == Ambiguity(
        "Which one do you mean: the sailboat or the lighthouse?", ("the sailboat", "the lighthouse")
    )
    lighthouse = refined(both, f"make it red {doubt.choices[1]}").find("lighthouse")
    assert lighthouse == Thing("lighthouse", "red")


def test_it_is_asked_what_is_meant_when_nothing_can_be() -> None:
    assert asked(scene_from_text("the sea"), "make it red").choices == ("the sea", "the sky")
    assert asked(refined(SAILBOAT, "加一座灯塔"), "把它改成红色").question == "您指的是帆船还是灯塔？"


def test_which_colour_is_asked_when_none_is_named() -> None:
    doubt = asked(SAILBOAT, "change the colour of the boat")
    assert doubt.question == "Which colour should the sailboat have?"
    assert (
        describe(refined(SAILBOAT, f"change the colour of the boat {doubt.choices[1]}"))
        == "A blue sailboat on the sea."
    )
    assert asked(SAILBOAT, "换个颜色").question == "帆船要改成什么颜色？"


def test_what_is_not_there_is_offered_and_can_be_accepted() -> None:
    doubt = asked(SAILBOAT, "make the lighthouse red")
    assert doubt.question == "There are no lighthouses in the picture. Should I add a lighthouse?"
    accepted = refined(SAILBOAT, f"make the lighthouse red, {doubt.choices[0]}")
    assert accepted.find("lighthouse") == Thing("lighthouse", "red")
    assert asked(SAILBOAT, "把灯塔改成红色").choices == ("添加灯塔",)


def test_what_is_not_there_cannot_be_removed() -> None:
    assert asked(SAILBOAT, "remove the whale").question == "There are no whales in the picture. What should change?"


@pytest.mark.parametrize("text", ["", "more beautiful please", "再好看一点", "the sailboat"])
def test_a_change_that_is_not_understood_is_asked_about(text: str) -> None:
    question = asked(SAILBOAT, text).question
    assert "The built-in painter can change" in question or "内置画师可以改变" in question


def test_an_unknown_scene_is_replaced_by_a_known_one_only() -> None:
    cat = scene_from_text("a cat")
    assert describe(refined(cat, "then a sailboat")) == "A sailboat on the sea."
    assert "The built-in painter can change" in asked(cat, "make it red").question


def test_refining_keeps_the_name_of_the_picture() -> None:
    assert file_name(SAILBOAT) == "sailboat_image.png"
    assert file_name(refined(SAILBOAT, "make it red and add a lighthouse")) == "sailboat_image.png"
    assert file_name(scene_from_text("the sea")) == "seascape_image.png"
    assert file_name(scene_from_text("a cat")) == "words_image.png"


@given(SCENES)
@settings(deadline=None)
def test_a_scene_comes_back_as_it_went_and_can_be_described(scene: Scene) -> None:
    assert scene_from_json(scene_to_json(scene)) == scene
    assert describe(scene)


@given(SCENES, st.text(max_size=80))
@settings(deadline=None)
def test_any_words_change_a_scene_or_raise_a_question(scene: Scene, text: str) -> None:
    assert isinstance(refine(scene, text), Scene | Ambiguity)


def test_counts_may_come_back_as_floats_but_whole() -> None:
    things: Json = [{"kind": "birds", "count": 3.0}]
    assert scene_from_json({"words": "", "things": things}).things == (Thing("birds", count=3),)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("x", "scene"),
        ({}, "words"),
        ({"words": 1}, "words"),
        ({"words": "x" * 2_001}, "words"),
        ({"words": "", "is_known": 1}, "is_known"),
        ({"words": "", "things": {}}, "things"),
        ({"words": "", "things": [{}] * 11}, "things"),
        ({"words": "", "things": ["boat"]}, "things[0]"),
        ({"words": "", "things": [{"kind": "cat"}]}, "things[0].kind"),
        ({"words": "", "things": [{"kind": "birds", "count": 6}]}, "things[0].count"),
        ({"words": "", "things": [{"kind": "birds", "count": True}]}, "things[0].count"),
        ({"words": "", "things": [{"kind": "birds", "colour": "rouge"}]}, "things[0].colour"),
        ({"words": "", "time": "noon"}, "time"),
        ({"words": "", "weather": None}, "weather"),
        ({"words": "", "sea": "wine-dark"}, "sea"),
    ],
)
def test_a_bad_scene_is_refused_by_the_name_of_its_bad_field(value: Json, field: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        scene_from_json(value)
    assert [violation.field for violation in refused.value.violations] == [field]
