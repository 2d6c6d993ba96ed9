"""Which models the setting names: Bedrock's where it does, the offline generators otherwise."""

from __future__ import annotations

import pytest

from sample_agents.bedrock import BedrockImage, BedrockText
from sample_agents.models import configured_models, models_of
from sample_agents.offline.image import OfflineImage
from sample_agents.offline.text import OfflineText


def test_without_a_setting_nothing_but_the_offline_generators_is_used() -> None:
    for models in (models_of(""), configured_models()):
        assert isinstance(models.text, OfflineText)
        assert isinstance(models.image, OfflineImage)


def test_a_model_that_is_named_is_asked_on_bedrock() -> None:
    models = models_of("text=arn:aws:bedrock:eu-west-1::x/a=b, image=amazon.nova-canvas-v1:0")
    assert isinstance(models.text, BedrockText)
    assert isinstance(models.image, BedrockImage)
    assert isinstance(models_of("text=writer").image, OfflineImage)


@pytest.mark.parametrize("setting", ["writer", "text=", "sound=x", "text=a,text=b", "=a"])
def test_a_setting_that_cannot_be_meant_is_refused_by_its_name(setting: str) -> None:
    with pytest.raises(ValueError, match="MODELS must be a list of text=ID and image=ID"):
        models_of(setting)
