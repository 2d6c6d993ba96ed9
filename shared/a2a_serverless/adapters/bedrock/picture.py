"""The picture model of a deployment that names an image model on Amazon Bedrock: Amazon's or Stability's."""

from __future__ import annotations

import base64
import binascii
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent import TaskFailed
from a2a_serverless.domain.scenes import describe

if TYPE_CHECKING:
    from a2a_serverless.adapters.bedrock.runtime import Bedrock
    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.scenes import Scene

LONGEST_PROMPT: Final = 1_000  # Nova Canvas takes 1,024 characters, Stability's models more
_SEEDS: Final = 2_147_483_646


class BedrockPicture:
    """Pictures by one model, given by its id or ARN. Raises ``ValueError`` for a maker whose requests are not known."""

    def __init__(self, bedrock: Bedrock, model: str) -> None:
        if "stability." not in model and "amazon." not in model:
            raise ValueError("an image model must be one of Amazon's (amazon.*) or Stability's (stability.*)")
        self._bedrock = bedrock
        self._model = model

    async def draw(self, scene: Scene) -> bytes:
        body = _for_stability(scene) if "stability." in self._model else _for_amazon(scene)
        return _picture_in(await self._bedrock.invoke(self._model, body))


def prompt_for(scene: Scene) -> str:
    """What the picture shows now, and the words of the first request: they may say more than we understand."""
    if not scene.is_known:
        return scene.words[:LONGEST_PROMPT]
    return f"{describe(scene, 'en')} First asked for as: {scene.words}"[:LONGEST_PROMPT]


def _seed(scene: Scene) -> int:
    """The same for all versions of a picture, so that a changed colour changes little else."""
    return int.from_bytes(sha256(scene.words.encode()).digest()[:4]) % _SEEDS


def _for_amazon(scene: Scene) -> JsonObject:
    return {
        "taskType": "TEXT_IMAGE",
        "textToImageParams": {"text": prompt_for(scene)},
        "imageGenerationConfig": {"numberOfImages": 1, "width": 1024, "height": 768, "seed": _seed(scene)},
    }


def _for_stability(scene: Scene) -> JsonObject:
    return {"prompt": prompt_for(scene), "aspect_ratio": "5:4", "output_format": "png", "seed": _seed(scene)}


def _picture_in(answer: JsonObject) -> bytes:
    """Both makers answer with a list of pictures in base64; one gives an error in its place, the other a reason."""
    if answer.get("error") or any(_list(answer, "finish_reasons")):
        raise TaskFailed("The image model declined to draw this.")
    pictures = _list(answer, "images")
    try:
        return base64.b64decode(str(pictures[0]), validate=True)
    except (IndexError, binascii.Error) as error:
        raise TaskFailed("The image model answered without a picture.") from error


def _list(answer: JsonObject, name: str) -> list[Json]:
    value = answer.get(name)
    return value if isinstance(value, list) else []
