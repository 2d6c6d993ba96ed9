"""The image agent: draws, and changes what it has drawn, in English and Chinese; asks when it is in doubt."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from a2a_serverless import Artifact, Part, TaskState
from a2a_serverless.testing import AgentTestHarness, Reply
from sample_agents.image import image
from sample_agents.offline.text import OfflineText
from tests.sample_agents.sketches import sketching, with_models

SAILBOAT = "Generate an image of a sailboat on the ocean."
RED = "Please modify the sailboat to be red."
ASKS = TaskState.INPUT_REQUIRED


def harness() -> AgentTestHarness:
    return AgentTestHarness(sketching)


def only(reply: Reply) -> Artifact:
    assert reply.state is TaskState.COMPLETED, reply.said
    (artifact,) = reply.task.artifacts
    return artifact


def shown(reply: Reply) -> str:
    """What the picture shows: the prompt beside it, which the sketch is made of, too."""
    drawn, data = only(reply).parts
    prompt: Any = data.value
    assert base64.b64decode(str(drawn.value)).decode() == prompt["prompt"]
    return str(prompt["prompt"])


def test_a_picture_is_a_real_png_beside_its_prompt() -> None:
    artifact = only(AgentTestHarness(image).send(SAILBOAT))
    assert (artifact.name, artifact.description) == ("sailboat_image.png", "A sailboat on the sea.")
    assert (artifact.parts[0].kind, artifact.parts[0].media_type) == ("raw", "image/png")
    assert base64.b64decode(str(artifact.parts[0].value)).startswith(b"\x89PNG")
    assert artifact.data() == {"prompt": "A sailboat on the sea."}


@pytest.mark.requirement(51, 57)
@pytest.mark.parametrize("wish", [RED, "请把帆船改成红色", "Make it red."])
def test_a_refinement_is_a_new_task_whose_artifact_has_the_old_name_and_a_new_id(wish: str) -> None:
    world = harness()
    first = world.send(SAILBOAT)
    context, before = first.task.context_id, only(first)
    second = world.send(wish, context_id=context, references=[first.task.id])
    assert second.task.id != first.task.id
    assert second.task.context_id == context
    assert only(second).name == before.name
    assert only(second).artifact_id != before.artifact_id
    assert shown(second) == "A red sailboat on the sea."
    assert only(world.reply(first.task.id)) == before, "the old version stays"


def test_a_refinement_is_described_in_the_language_of_its_request() -> None:
    world = harness()
    first = world.send(SAILBOAT)
    second = world.send("请把帆船改成红色", context_id=first.task.context_id)
    assert "红色" in (only(second).description or "")


def test_an_artifact_reference_in_a_parts_metadata_says_which_version_is_meant() -> None:
    world = harness()
    first = world.send(SAILBOAT)
    context = first.task.context_id
    world.send(RED, context_id=context, references=[first.task.id])
    reference = {"taskId": first.task.id, "artifactId": only(first).artifact_id}
    third = world.send([Part(text="Add a lighthouse.", metadata={**reference})], context_id=context)
    assert shown(third) == "A sailboat and a lighthouse on the sea."
    assert only(third).parts[1].metadata == reference


def test_without_a_reference_the_newest_version_in_the_conversation_is_meant() -> None:
    world = harness()
    context = world.send(SAILBOAT).task.context_id
    world.send(RED, context_id=context)
    assert shown(world.send("再加一座灯塔", context_id=context)) == "A red sailboat and a lighthouse on the sea."


def test_a_picture_that_is_named_needs_no_reference() -> None:
    world = harness()
    context = world.send(SAILBOAT).task.context_id
    world.send("Draw a lighthouse by the sea", context_id=context)
    assert shown(world.send("Make the lighthouse red", context_id=context)) == "A red lighthouse by the sea."


def test_a_change_is_of_the_newest_picture_unless_another_one_is_referred_to() -> None:
    world = harness()
    first = world.send("Draw a lighthouse by the sea")
    context = first.task.context_id
    world.wait(1000)
    world.send("Draw a sailboat on the sea", context_id=context)
    assert shown(world.send("Make it red.", context_id=context)) == "A red sailboat on the sea."
    reference = {"taskId": first.task.id, "artifactId": only(first).artifact_id}
    old = world.send([Part(text="Make it red.", metadata={**reference})], context_id=context)
    assert (shown(old), only(old).name) == ("A red lighthouse by the sea.", "lighthouse_image.png")


def two_pictures(world: AgentTestHarness) -> tuple[Reply, Reply]:
    """A sailboat, then a lighthouse, in one conversation."""
    first = world.send(SAILBOAT)
    world.wait(1000)
    second = world.send("Draw a lighthouse by the sea", context_id=first.task.context_id)
    world.wait(1000)
    return first, second


@pytest.mark.requirement(51)
@pytest.mark.parametrize(
    ("wish", "which"), [("Make it red.", "Which picture? (1) A sailboat"), ("改成红色", "哪一幅图片？ (1) A sailboat")]
)
@pytest.mark.parametrize(
    ("answer", "picture"),
    [
        ("the lighthouse", "A red lighthouse by the sea."),
        ("1", "A red sailboat on the sea."),
        ("2", "A red lighthouse by the sea."),
    ],
)
def test_of_two_references_the_client_is_asked_which_is_meant(wish: str, which: str, answer: str, picture: str) -> None:
    world = harness()
    first, second = two_pictures(world)
    references = [first.task.id, second.task.id]
    asked = world.send(wish, context_id=first.task.context_id, references=references)
    assert (asked.state, asked.said.startswith(which)) == (ASKS, True)
    again = world.send("hm", task_id=asked.task.id)
    assert (again.state, again.said) == (ASKS, asked.said)
    assert shown(world.send(answer, task_id=asked.task.id)) == picture


def test_the_answer_may_refer_to_the_picture() -> None:
    world = harness()
    first, second = two_pictures(world)
    context = first.task.context_id
    asked = world.send("Make it red.", context_id=context, references=[first.task.id, second.task.id])
    reference = {"taskId": first.task.id, "artifactId": only(first).artifact_id}
    changed = world.send([Part(text="this one", metadata={**reference})], task_id=asked.task.id)
    assert shown(changed) == "A red sailboat on the sea."


def test_of_two_references_the_one_that_is_named_is_changed() -> None:
    world = harness()
    first, second = two_pictures(world)
    references = [second.task.id, first.task.id]
    changed = world.send("Make the sailboat red.", context_id=first.task.context_id, references=references)
    assert shown(changed) == "A red sailboat on the sea."


def test_a_picture_that_is_named_is_changed_though_it_is_not_the_newest() -> None:
    world = harness()
    first, _ = two_pictures(world)
    changed = world.send(RED, context_id=first.task.context_id)
    assert shown(changed) == "A red sailboat on the sea."
    assert only(changed).parts[1].metadata == {"taskId": first.task.id, "artifactId": only(first).artifact_id}


def test_of_two_pictures_of_a_name_the_client_is_asked_which_is_meant() -> None:
    world = harness()
    context = world.send(SAILBOAT).task.context_id
    world.wait(1000)
    world.send("Draw a red sailboat at night", context_id=context)
    asked = world.send("Make the sailboat blue.", context_id=context)
    assert (asked.state, asked.said.startswith("Which picture? (1) A red sailboat on the sea at night.")) == (
        ASKS,
        True,
    )
    assert shown(world.send("2", task_id=asked.task.id)) == "A blue sailboat on the sea."


@pytest.mark.parametrize(
    ("wish", "question"), [(RED, "The picture shows no sailboat."), ("请把帆船改成红色", "图片里没有帆船。")]
)
def test_a_thing_that_no_picture_shows_is_asked_about(wish: str, question: str) -> None:
    world = harness()
    context = world.send("Draw a lighthouse by the sea").task.context_id
    asked = world.send(wish, context_id=context)
    assert (asked.state, asked.said.startswith(question)) == (ASKS, True)


def test_after_five_answers_that_pick_none_it_gives_up() -> None:
    world = harness()
    first, second = two_pictures(world)
    reply = world.send("Make it red.", context_id=first.task.context_id, references=[first.task.id, second.task.id])
    for _ in range(5):
        reply = world.send("hm", task_id=reply.task.id)
    assert reply.state is TaskState.REJECTED


def test_a_change_without_a_picture_asks_what_to_draw() -> None:
    world = harness()
    asked = world.send("请把帆船改成红色")
    assert (asked.state, asked.said) == (ASKS, "在这个对话里找不到图片。要画什么？")
    assert shown(world.send("一艘红色的帆船", task_id=asked.task.id)) == "A red sailboat on the sea."


def test_a_reference_to_what_is_not_there_is_asked_about_and_never_guessed() -> None:
    world = harness()
    context = world.send(SAILBOAT).task.context_id
    asked = world.send(RED, context_id=context, references=["no-such-task"])
    assert (asked.state, "that picture" in asked.said) == (ASKS, True)
    assert shown(world.send("a lighthouse", task_id=asked.task.id)) == "A lighthouse by the sea."


@pytest.mark.parametrize(
    ("wish", "question", "answer"),
    [("Change the colour", "colour", "blue"), ("换个颜色", "颜色", "蓝色")],
)
def test_the_image_agent_asks_for_missing_parts_of_a_wish(wish: str, question: str, answer: str) -> None:
    world = harness()
    context = world.send(SAILBOAT).task.context_id
    asked = world.send(wish, context_id=context)
    assert (asked.state, question in asked.said) == (ASKS, True)
    assert shown(world.send(answer, task_id=asked.task.id)) == "A blue sailboat on the sea."


def test_an_empty_request_is_rejected() -> None:
    assert harness().send(" ").state is TaskState.REJECTED


class Scripted:
    """A text model that gives these answers."""

    notice = OfflineText.notice

    def __init__(self, *answers: object) -> None:
        self.answers = [*answers]
        self.prompts: list[str] = []

    async def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return str(self.answers.pop(0))


CAT = json.dumps(
    {"name": "Grey Cat!", "prompt": "A grey cat at a piano.", "description": "一只灰猫。"}, ensure_ascii=False
)


def test_a_language_model_says_what_the_picture_shows_or_asks_the_client() -> None:
    model = Scripted('Sure: {"question": "Which cat?"}', f"```json\n{CAT}\n```")
    world = AgentTestHarness(with_models(sketching, text=model))
    asked = world.send("画一只猫")
    assert (asked.state, asked.said) == (ASKS, "Which cat?")
    done = world.send("灰色的", task_id=asked.task.id)
    assert (only(done).name, only(done).description) == ("grey_cat_image.png", "一只灰猫。")
    assert only(done).data() == {"prompt": "A grey cat at a piano."}
    assert "画一只猫\n灰色的" in model.prompts[1]


def test_an_answer_that_cannot_be_used_is_asked_for_once_more() -> None:
    done = AgentTestHarness(with_models(sketching, text=Scripted("A cat.", CAT))).send("a cat")
    assert only(done).name == "grey_cat_image.png"
    failed = AgentTestHarness(with_models(sketching, text=Scripted("A cat.", '{"name": "cat", "prompt": 7}'))).send(
        "a cat"
    )
    assert (failed.state, "no answer that can be used" in failed.said) == (TaskState.FAILED, True)
