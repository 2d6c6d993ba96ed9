"""The image agent: draws the picture that a text describes, and changes pictures that it has made.

It always answers with a task (task-only, "Life of a Task"). A change is a new task in the same conversation with an
artifact of the same name; the old one stays. A picture's prompt is stored beside it as a data part, so a change starts
from the prompt of the picture that is referenced or named, or of the newest one; the metadata names the version that it
replaces. What is unclear is asked for, also which of several pictures that fit.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless import Part, Skill, TaskContext, TaskRejected, agent
from a2a_serverless.domain.contents import references_in
from a2a_serverless.domain.errors import InvalidParams
from sample_agents.models import configured_models, object_from
from sample_agents.prompts import picture_prompt
from sample_agents.references import chosen, meant
from sample_agents.writing import language_of

if TYPE_CHECKING:
    from a2a_serverless import Artifact, Message
    from a2a_serverless.domain.model import Json, JsonObject
    from sample_agents.models import GetModels
    from sample_agents.references import FoundArtifact
    from sample_agents.writing import Language

LONGEST_WORDS: Final = 2_000
PNG: Final = "image/png"
_NEW: Final = re.compile(
    r"\b(?:generate|create|sketch|render|produce|design)\b|\b(?:draw|paint|make)\s+(?:me\s+)?an?\b|生成|绘制|创建|创作|画[一幅张个只艘]",
    re.IGNORECASE,
)
_CHANGE: Final = re.compile(
    r"\b(?:modify|change|turn|make|paint|colou?r|recolou?r|add|remove|replace|instead|now)\b|[改换变涂把将加删]|去掉|移除|不要",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(r"\bthe\s+((?:[a-z]+\s+){0,2}?[a-z]+)\b|把([\u3400-\u9fff]{1,8}?)[改换变涂]", re.IGNORECASE)
QUESTIONS: Final = 5
_NOTHING: Final = "Say what the picture should show. 请说明要画什么。"
_NO_PICTURE: Final[dict[Language, str]] = {
    "en": "I do not find that picture in this conversation. What should I draw?",
    "zh": "在这个对话里找不到图片。要画什么？",
}
_WHICH: Final[dict[Language, str]] = {"en": "Which picture?", "zh": "哪一幅图片？"}


@agent(
    id="image",
    name="Picture maker",
    description="Draws a picture from a description and refines its pictures on request, in English or Chinese.",
    skills=[
        Skill(
            id="generate-image",
            name="Generate an image",
            description="Draws what a text describes, as a PNG, or changes a picture of the same conversation.",
            tags=("image", "generation", "refinement"),
            examples=("Draw a sailboat on the ocean.", "Draw a lighthouse at night.", "画一艘海上的帆船"),
            output_modes=(PNG,),
        )
    ],
    input_modes=("text/plain",),
    output_modes=(PNG, "application/json"),
)
async def image(task: TaskContext, models: GetModels = configured_models) -> None:
    """Emits one artifact: the PNG, and its prompt as a data part."""
    text = task.text().strip()
    if not text:
        raise TaskRejected(_NOTHING)
    base = await _base(task, text) if _is_change(task.message, text) else None
    if base is None and _is_change(task.message, text):
        text = (await task.ask(_NO_PICTURE[language_of(text)])).text()
    scene = await _describe(task, models, text, base)
    name = base["name"] if base else f"{_file_stem(scene['name'])}_image.png"

    async def draw() -> str:
        return base64.b64encode(await models().image.generate(scene["prompt"])).decode()

    picture = Part(raw=await task.step("draw", draw), media_type=PNG, filename=name)
    data = Part(
        data={"prompt": scene["prompt"]}, media_type="application/json", metadata=base["reference"] if base else None
    )
    await task.emit(name, [picture, data], last=True, description=scene["description"])


def _is_change(message: Message, text: str) -> bool:
    if message.reference_task_ids or references_in(message.parts):
        return True
    return bool(_CHANGE.search(text)) and not _NEW.search(text)


async def _describe(task: TaskContext, models: GetModels, text: str, base: dict[str, Any] | None) -> dict[str, str]:
    """What the picture should show: ``name``, ``prompt`` and ``description``. Asks the client if that is unclear."""

    async def describe(wish: str) -> dict[str, str]:
        prompt = picture_prompt(wish, base["prompt"] if base else None)
        return await object_from(models().text, prompt.render(), _description)

    wish, number = text[:LONGEST_WORDS], 0
    while True:
        answer = await task.step(f"describe {number}", describe, wish)
        if "question" not in answer:
            return answer
        wish = f"{wish}\n{(await task.ask(answer['question'])).text()}"[: 2 * LONGEST_WORDS]
        number += 1


def _description(answer: Json) -> dict[str, str]:
    """The texts in a model's answer: a question, or all that describes a picture."""
    members = answer.items() if isinstance(answer, dict) else ()
    texts = {name: value for name, value in members if isinstance(value, str) and value.strip()}
    if "question" in texts or {"name", "prompt", "description"} <= texts.keys():
        return texts
    raise InvalidParams


def _file_stem(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()[:40]).strip("_") or "picture"


async def _base(task: TaskContext, text: str) -> dict[str, Any] | None:
    """``name``, ``prompt`` and ``reference`` of the picture to change; None if there is none, or not the one meant.

    It is the picture that the message refers to, else the one of the conversation that the text names, else the newest.
    Of several that fit, the client picks one.
    """
    message, pictures = task.message, list[dict[str, Any]]()

    async def find() -> JsonObject:
        artifacts, is_guess = await meant(task, message, _is_picture)
        refers = bool(message.reference_task_ids or references_in(message.parts))
        return {"guessed": is_guess, "pictures": [_told(one) for one in _newest(artifacts, keep=refers)]}

    for number in range(QUESTIONS):
        refers = bool(message.reference_task_ids or references_in(message.parts))
        if number == 0 or refers:
            looked: dict[str, Any] = await task.step(f"look {number}", find)
            pictures = pictures if looked["guessed"] else looked["pictures"]
        if not pictures:
            return None
        if number == 0 or refers:
            fitting = _fitting(pictures, message.text(), refers=refers)
        else:
            picked = chosen(message.text(), [one["label"] for one in pictures])
            fitting = pictures if picked is None else [pictures[picked]]
        if len(fitting) == 1:
            return fitting[0]
        pictures = fitting
        message = await task.ask(_question(pictures, language_of(text)))
    raise TaskRejected(_NO_PICTURE[language_of(text)])


def _fitting(pictures: list[dict[str, Any]], text: str, *, refers: bool) -> list[dict[str, Any]]:
    """The pictures that may be meant: those that show most of what the text names, else the newest if it names none."""
    named = {word for match in _NAMED.finditer(text) for group in match.groups() if group for word in _words(group)}
    scores = [len(named & set(_words(one["label"]))) for one in pictures]
    if best := max(scores):
        return [one for one, score in zip(pictures, scores, strict=True) if score == best]
    return pictures if refers else pictures[:1]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]{3,}|[\u3400-\u9fff]", text.casefold())


def _newest(artifacts: list[FoundArtifact], *, keep: bool) -> list[FoundArtifact]:
    """The pictures that no other one replaces; all of them with ``keep``."""
    replaced = [reference for one in artifacts for reference in references_in(one.artifact.parts)]
    return [one for one in artifacts if keep or one.reference not in replaced]


def _told(one: FoundArtifact) -> JsonObject:
    prompt = _prompt_of(one.artifact)
    label = " ".join(filter(None, (prompt, one.artifact.description if one.artifact.description != prompt else "")))
    return {"name": one.artifact.name, "prompt": prompt, "label": label, "reference": one.reference.to_json()}


def _question(pictures: list[dict[str, Any]], language: Language) -> str:
    choices = " ".join(f"({number}) {one['label']}" for number, one in enumerate(pictures, 1))
    return f"{_WHICH[language]} {choices}"


def _is_picture(artifact: Artifact) -> bool:
    return any(part.media_type == PNG for part in artifact.parts) and bool(_prompt_of(artifact))


def _prompt_of(artifact: Artifact) -> str:
    data = artifact.data()
    prompt = data.get("prompt") if isinstance(data, dict) else None
    return prompt if isinstance(prompt, str) else ""
