"""The models that the sample agents use: text in, text or a PNG out.

``MODELS`` in the environment names models on Amazon Bedrock (``text=ID,image=ID``). The offline generators replace
those that it does not name. Nothing is imported, read or connected before a model is first used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from a2a_serverless import TaskFailed
from a2a_serverless.domain.errors import InvalidParams
from sample_agents.writing import object_in

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json
    from sample_agents.writing import Language

T = TypeVar("T")

VARIABLE: Final = "MODELS"
KINDS: Final = ("text", "image")
TRIES: Final = 2


class TextModel(Protocol):
    """Answers prompts. Raises ``TaskFailed`` with a reason that a client may see."""

    @property
    def notice(self) -> Mapping[Language, str]:
        """One sentence for readers, by language: how a text of this model was made."""

    async def complete(self, prompt: str) -> str:
        """The whole answer."""


class ImageModel(Protocol):
    """Makes images. Raises ``TaskFailed`` with a reason that a client may see."""

    async def generate(self, prompt: str) -> bytes:
        """A PNG of what the prompt describes."""


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a deployment."""

    text: TextModel
    image: ImageModel


GetModels: TypeAlias = Callable[[], Models]


async def object_from(model: TextModel, prompt: str, read: Callable[[Json], T]) -> T:
    """What ``read`` makes of the JSON in a model's answer. A model with an unusable answer is asked once more."""
    for _ in range(TRIES):
        try:
            return read(object_in(await model.complete(prompt)))
        except InvalidParams:
            continue
    raise TaskFailed("The language model gave no answer that can be used.")


def configured_models() -> Models:
    """The models that the environment names."""
    return models_of(os.environ.get(VARIABLE, ""))


@cache
def models_of(setting: str) -> Models:
    """The models that a setting such as ``text=ID,image=ID`` names; raises ValueError for anything else."""
    names = _names(setting)
    return Models(_text_model(names.get("text")), _image_model(names.get("image")))


def _text_model(name: str | None) -> TextModel:
    if name is None:
        from sample_agents.offline.text import OfflineText

        return OfflineText()
    from sample_agents.bedrock import BedrockText, bedrock_client

    return BedrockText(bedrock_client, name)


def _image_model(name: str | None) -> ImageModel:
    if name is None:
        from sample_agents.offline.image import OfflineImage

        return OfflineImage()
    from sample_agents.bedrock import BedrockImage, bedrock_client

    return BedrockImage(bedrock_client, name)


def _names(setting: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for item in filter(None, (item.strip() for item in setting.split(","))):
        kind, _, name = (part.strip() for part in item.partition("="))
        if kind not in KINDS or kind in names or not name:
            raise ValueError(f"{VARIABLE} must be a list of text=ID and image=ID, not {item!r}")
        names[kind] = name
    return names
