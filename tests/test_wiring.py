"""Which generators a deployment gets is said by one parameter of the template."""

from __future__ import annotations

import pytest

from a2a_serverless.adapters.bedrock.picture import BedrockPicture
from a2a_serverless.adapters.bedrock.text import BedrockText
from a2a_serverless.adapters.builtin.picture import BuiltinPicture
from a2a_serverless.adapters.builtin.text import BuiltinText
from a2a_serverless.settings import read
from a2a_serverless.wiring import make_models

TEXT = "text=eu.example.writer-v1:0"
IMAGE = "image=amazon.nova-canvas-v1:0"


@pytest.mark.parametrize(
    ("named", "text", "pictures"),
    [
        ("", BuiltinText, BuiltinPicture),
        (" ", BuiltinText, BuiltinPicture),
        (TEXT, BedrockText, BuiltinPicture),
        (IMAGE, BuiltinText, BedrockPicture),
        (f"{TEXT}, {IMAGE}", BedrockText, BedrockPicture),
    ],
)
def test_a_model_that_is_named_is_asked_on_bedrock_and_the_built_in_ones_do_the_rest(
    monkeypatch: pytest.MonkeyPatch, named: str, text: type, pictures: type
) -> None:
    for name, value in (("DEFAULT_REGION", "eu-central-1"), ("ACCESS_KEY_ID", "test"), ("SECRET_ACCESS_KEY", "test")):
        monkeypatch.setenv(f"AWS_{name}", value)
    models = make_models(read({"MODELS": named}))
    assert (type(models.text), type(models.pictures)) == (text, pictures)
