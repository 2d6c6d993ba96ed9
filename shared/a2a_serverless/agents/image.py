"""The image agent: draws what a text asks for, and changes what it has drawn.

It always answers with a task (task-only, "Life of a Task"). A change is a new task in the same conversation with an
artifact of the same name; the old one stays. The scene travels beside the picture as a data part, so a change starts
from what the referenced picture shows; its metadata names the version that it replaces. In doubt, it asks.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.agent import AgentSkill, AgentTask, TaskRejected, agent
from a2a_serverless.domain.model import Part
from a2a_serverless.domain.references import FoundArtifact, chosen, meant, references_in
from a2a_serverless.domain.writing import language_of

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Artifact, Json, JsonObject, Message
    from a2a_serverless.domain.scene_model import Scene
    from a2a_serverless.domain.writing import Language

QUESTIONS: Final = 5
PNG: Final = "image/png"
_NEW: Final = re.compile(
    r"\b(?:generate|create|sketch|render|produce|design)\b|\b(?:draw|paint|make)\s+(?:me\s+)?an?\b|生成|绘制|创建|创作|画[一幅张个只艘]",
    re.IGNORECASE,
)
_CHANGE: Final = re.compile(
    r"\b(?:modify|change|turn|make|paint|colou?r|recolou?r|add|remove|replace|instead|without|more|less|now)\b"
    r"|改|换|变|涂|把|将|加|去掉|删|移除|不要",
    re.IGNORECASE,
)
_SAYS: Final[dict[Language, dict[str, str]]] = {
    "en": {
        "nothing": "Say what the picture should show.",
        "none": "There is no picture in this conversation yet. What should I draw?",
        "which": "Which picture do you mean?",
        "unclear": "I still do not know what to change.",
    },
    "zh": {
        "nothing": "请说明要画什么。",
        "none": "这个对话里还没有图片。要画什么？",
        "which": "您指的是哪一张图片？",
        "unclear": "还是不清楚要改什么。",
    },
}


@agent(
    id="image",
    name="Picture maker",
    description="Draws a picture from a description and refines its pictures on request, in English or Chinese.",
    skills=[
        AgentSkill(
            id="generate-image",
            name="Generate an image",
            description="Draws what a text describes, as a PNG.",
            tags=("image", "generation"),
            examples=("Generate an image of a sailboat on the ocean.", "画一艘海上的帆船"),
            output_modes=(PNG,),
        ),
        AgentSkill(
            id="refine-image",
            name="Refine an image",
            description="Changes a picture of the same conversation; the new one has the same name.",
            tags=("image", "refinement"),
            examples=("Please modify the sailboat to be red.", "请把帆船改成红色"),
            output_modes=(PNG,),
        ),
    ],
    input_modes=("text/plain",),
    output_modes=(PNG, "application/json"),
)
async def image(task: AgentTask) -> None:
    """Emits one artifact: the PNG, and its scene as a data part."""
    text = task.text().strip()
    if not text:
        raise TaskRejected(_SAYS["en"]["nothing"] + " " + _SAYS["zh"]["nothing"])
    base = await _base(task, text) if _is_change(task.message, text) else None
    if base is None:
        await _draw(task, text)
    else:
        await _refine(task, base, text)


def _is_change(message: Message, text: str) -> bool:
    if message.reference_task_ids or references_in(message.parts):
        return True
    return bool(_CHANGE.search(text)) and not _NEW.search(text)


async def _draw(task: AgentTask, text: str) -> None:
    from a2a_serverless.domain.scenes import file_name, scene_from_text

    if _is_change(task.message, text):
        text = (await task.ask(_SAYS[language_of(text)]["none"])).text()
    scene = scene_from_text(text)
    await _emit(task, file_name(scene), scene, text, None)


async def _refine(task: AgentTask, base: dict[str, Any], text: str) -> None:
    from a2a_serverless.domain.scenes import Ambiguity, refine, scene_from_json

    scene, wish = scene_from_json(base["scene"]), text
    for _ in range(QUESTIONS):
        refined = refine(scene, wish)
        if not isinstance(refined, Ambiguity):
            return await _emit(task, base["name"], refined, text, base["reference"])
        wish = f"{wish}\n{(await task.ask(refined.question)).text()}"
    raise TaskRejected(_SAYS[language_of(text)]["unclear"])


async def _emit(task: AgentTask, name: str, scene: Scene, text: str, refines: JsonObject | None) -> None:
    from a2a_serverless.domain.scenes import describe, scene_to_json

    async def draw() -> str:
        return base64.b64encode(await task.picture_model.draw(scene)).decode()

    picture = Part("raw", await task.step("draw", draw), PNG, name)
    shown = Part("data", scene_to_json(scene), "application/json", metadata=refines)
    words = describe(replace(scene, words=text) if scene.is_known else scene)
    await task.emit(name, [picture, shown], last=True, description=words)


async def _base(task: AgentTask, text: str) -> dict[str, Any] | None:
    """The picture to be changed: ``name``, ``scene``, ``words`` and ``reference``; None when there is none."""
    message = task.message

    async def look() -> JsonObject:
        found = await meant(task, message, _is_picture)
        return {"guessed": found.guessed, "pictures": [_told(one) for one in found.found]}

    for number in range(QUESTIONS):
        looked: dict[str, Any] = await task.step(f"look {number}", look)
        pictures: list[dict[str, Any]] = looked["pictures"]
        if not pictures:
            return None
        picked = None if looked["guessed"] else _picked(pictures, text, message, first=number == 0)
        if picked is not None:
            return pictures[picked]
        choices = " ".join(f"({index}) {one['words']}" for index, one in enumerate(pictures, 1))
        message = await task.ask(f"{_SAYS[language_of(text)]['which']} {choices}")
    raise TaskRejected(_SAYS[language_of(text)]["unclear"])


def _picked(pictures: list[dict[str, Any]], text: str, message: Message, *, first: bool) -> int | None:
    """The picture that the request means by itself, or the answer to the question which one it means."""
    if first or references_in(message.parts) or message.reference_task_ids:
        return 0 if len(pictures) == 1 else _showing(pictures, text)
    return chosen(message.text(), [one["words"] for one in pictures])


def _showing(pictures: list[dict[str, Any]], text: str) -> int | None:
    """The one picture that shows what the request names."""
    from a2a_serverless.domain.scene_requests import read_request

    named = {*read_request(text).shown, *read_request(text).hidden}
    shown = [{thing["kind"] for thing in one["scene"]["things"]} for one in pictures]
    showing = [index for index, kinds in enumerate(shown) if named & kinds]
    return showing[0] if len(showing) == 1 else None


def _is_picture(artifact: Artifact) -> bool:
    data = artifact.data()
    is_drawn = any(part.media_type == PNG for part in artifact.parts)
    return is_drawn and isinstance(data, dict) and "words" in data


def _told(one: FoundArtifact) -> Json:
    artifact = one.artifact
    words = f"{artifact.name}: {artifact.description}"
    return {"name": artifact.name, "scene": artifact.data(), "words": words, "reference": one.reference.to_json()}
