"""The image agent: draws the picture that a text describes, and changes pictures that it has made.

It always answers with a task (task-only, "Life of a Task"). A change is a new task in the same conversation with an
artifact of the same name; the old one stays. A picture's prompt is stored beside it as a data part, so a change starts
from the prompt of the referenced picture; the metadata names the version that it replaces. If unsure, it asks.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless import Part, Skill, TaskContext, TaskFailed, TaskRejected, agent
from a2a_serverless.domain.references import references_in
from sample_agents.models import configured_models
from sample_agents.prompts import picture_prompt
from sample_agents.references import FoundArtifact, chosen, meant
from sample_agents.writing import language_of, object_in

if TYPE_CHECKING:
    from a2a_serverless import Artifact, Message
    from a2a_serverless.domain.model import Json, JsonObject
    from sample_agents.models import GetModels, TextModel
    from sample_agents.writing import Language

QUESTIONS: Final = 5
TRIES: Final = 2
LONGEST_WORDS: Final = 2_000
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
_IT: Final = re.compile(r"\b(?:it|this|that)\b|它|这", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True)
class Base:
    """The picture to change: its artifact's name, its prompt, and a reference to it."""

    name: str
    prompt: str
    reference: JsonObject


@agent(
    id="image",
    name="Picture maker",
    description="Draws a picture from a description and refines its pictures on request, in English or Chinese.",
    skills=[
        Skill(
            id="generate-image",
            name="Generate an image",
            description="Draws what a text describes, as a PNG.",
            tags=("image", "generation"),
            examples=("Generate an image of a sailboat on the ocean.", "画一艘海上的帆船"),
            output_modes=(PNG,),
        ),
        Skill(
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
async def image(task: TaskContext, models: GetModels = configured_models) -> None:
    """Emits one artifact: the PNG, and its prompt as a data part."""
    text = task.text().strip()
    if not text:
        raise TaskRejected(_SAYS["en"]["nothing"] + " " + _SAYS["zh"]["nothing"])
    is_change = _is_change(task.message, text)
    base = await _base(task, text) if is_change else None
    if is_change and base is None:
        text = (await task.ask(_SAYS[language_of(text)]["none"])).text()
    shown = await _describe(task, models, text, base)
    name = base.name if base else f"{_file_stem(shown['name'])}_image.png"

    async def draw() -> str:
        return base64.b64encode(await models().image.generate(shown["prompt"])).decode()

    picture = Part(raw=await task.step("draw", draw), media_type=PNG, filename=name)
    data = Part(
        data={"prompt": shown["prompt"]}, media_type="application/json", metadata=base.reference if base else None
    )
    await task.emit(name, [picture, data], last=True, description=shown["description"])


def _is_change(message: Message, text: str) -> bool:
    if message.reference_task_ids or references_in(message.parts):
        return True
    return bool(_CHANGE.search(text)) and not _NEW.search(text)


async def _describe(task: TaskContext, models: GetModels, text: str, base: Base | None) -> dict[str, str]:
    """What the picture should show: ``name``, ``prompt`` and ``description``. Asks the client if that is unclear."""

    async def describe(wish: str) -> dict[str, str]:
        return await _answered(models().text, wish, base.prompt if base else None)

    wish = text[:LONGEST_WORDS]
    for number in range(QUESTIONS + 1):
        answer = await task.step(f"describe {number}", describe, wish)
        if "question" not in answer:
            return answer
        if number < QUESTIONS:
            wish = f"{wish}\n{(await task.ask(answer['question'])).text()}"[: 2 * LONGEST_WORDS]
    raise TaskRejected(_SAYS[language_of(text)]["unclear"])


async def _answered(model: TextModel, wish: str, current: str | None) -> dict[str, str]:
    """A text model's description of the requested picture. If the answer is unusable, it is asked once more."""
    for _ in range(TRIES):
        found = _texts_in(object_in(await model.complete(picture_prompt(wish, current).render())))
        if "question" in found or {"name", "prompt", "description"} <= found.keys():
            return found
    raise TaskFailed("The language model gave no description that can be used.")


def _texts_in(answer: Json) -> dict[str, str]:
    members = answer.items() if isinstance(answer, dict) else ()
    return {name: value for name, value in members if isinstance(value, str) and value.strip()}


def _file_stem(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()[:40]).strip("_") or "picture"


async def _base(task: TaskContext, text: str) -> Base | None:
    """The picture to change; None when there is none."""
    message = task.message

    async def snapshot() -> JsonObject:
        found = await meant(task, message, _is_picture)
        return {"guessed": found.guessed, "pictures": [_told(one) for one in found.found]}

    for number in range(QUESTIONS):
        looked: dict[str, Any] = await task.step(f"pictures {number}", snapshot)
        pictures: list[dict[str, Any]] = looked["pictures"]
        if not pictures:
            return None
        picked = None if looked["guessed"] else _picked(pictures, text, message, first=number == 0)
        if picked is not None:
            one = pictures[picked]
            return Base(one["name"], one["prompt"], one["reference"])
        choices = " ".join(f"({index}) {one['words']}" for index, one in enumerate(pictures, 1))
        message = await task.ask(f"{_SAYS[language_of(text)]['which']} {choices}")
    raise TaskRejected(_SAYS[language_of(text)]["unclear"])


def _picked(pictures: list[dict[str, Any]], text: str, message: Message, *, first: bool) -> int | None:
    """The index of the picture that the request itself means, or that the answer to our question means."""
    words = [one["words"] for one in pictures]
    if not (first or references_in(message.parts) or message.reference_task_ids):
        return chosen(message.text(), words)
    if len(pictures) == 1:
        return 0
    return None if _IT.search(text) else chosen(text, words)


def _is_picture(artifact: Artifact) -> bool:
    data = artifact.data()
    is_drawn = any(part.media_type == PNG for part in artifact.parts)
    return is_drawn and isinstance(data, dict) and bool(_prompt_of(artifact))


def _prompt_of(artifact: Artifact) -> str:
    """The prompt of a picture, or its description."""
    data = artifact.data()
    prompt = data.get("prompt") if isinstance(data, dict) else None
    return prompt if isinstance(prompt, str) else artifact.description or ""


def _told(one: FoundArtifact) -> Json:
    artifact = one.artifact
    words = f"{artifact.name}: {artifact.description}"
    return {"name": artifact.name, "prompt": _prompt_of(artifact), "words": words, "reference": one.reference.to_json()}
