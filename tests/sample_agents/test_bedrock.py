"""Models on Amazon Bedrock, against a server that speaks its protocol: answers, retries, refusals, cancellation."""

from __future__ import annotations

import asyncio
import base64
import threading
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import TaskFailed
from sample_agents.bedrock import DELAYS_S, MOST_IMAGE_PROMPT, MOST_PROMPT, BedrockImage, BedrockText, fitted
from sample_agents.prompts import read_prompt, summary_prompt
from tests.sample_agents.bedrock_stand_in import (
    PIXEL,
    Answer,
    StandIn,
    bedrock_answers,
    broke_off,
    refused,
    said,
    showed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.enable_socket

MODEL = "eu.example.writer-v1:0"
BUSY = refused(429, "ThrottlingException")


class Waits:
    """Counts the seconds that it was asked to wait, and does not."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def text_model(server: StandIn, waits: Waits | None = None) -> BedrockText:
    return BedrockText(server.client, MODEL, sleep=waits or Waits())


def complete(server: StandIn, prompt: str = "Tides?", waits: Waits | None = None) -> str:
    return asyncio.run(text_model(server, waits).complete(prompt))


def generate(server: StandIn, model: str, prompt: str = "A sailboat on the sea.") -> bytes:
    return asyncio.run(BedrockImage(server.client, model, sleep=Waits()).generate(prompt))


def test_the_model_gets_the_prompt_as_it_is_and_its_pieces_are_one_answer() -> None:
    with bedrock_answers(said("Tides ", "rise\n", "and fall. ")) as server:
        assert complete(server, "Why do tides rise?") == "Tides rise\nand fall. "
    path, body = server.asked[0]
    assert path == f"/model/{MODEL}/converse-stream"
    assert body["messages"] == [{"role": "user", "content": [{"text": "Why do tides rise?"}]}]
    assert body["inferenceConfig"]["maxTokens"] > 0


def test_a_prompt_that_is_too_long_loses_the_middle_of_its_material() -> None:
    short = fitted(summary_prompt("a" * MOST_PROMPT + "z" * 10).render())
    assert MOST_PROMPT <= len(short) < MOST_PROMPT + 100
    prompt = read_prompt(short)
    assert prompt
    assert (prompt.value("Task"), "[...]" in prompt.material, prompt.material[-10:]) == ("summary", True, "z" * 10)


@pytest.mark.parametrize(
    "trouble",
    [
        BUSY,
        refused(503, "ServiceUnavailableException"),
        broke_off("Tides ", error="throttlingException"),
        broke_off("Tides ", error="modelStreamErrorException"),
        broke_off("Tides "),
    ],
    ids=["throttled", "unavailable", "throttled in the stream", "error in the stream", "cut off"],
)
def test_a_model_that_is_busy_or_breaks_off_is_asked_again_from_the_start(trouble: Answer) -> None:
    waits = Waits()
    with bedrock_answers(trouble, trouble, said("Tides rise.")) as server:
        assert complete(server, waits=waits) == "Tides rise."
    assert len(waits.seconds) == 2
    assert all(delay / 2 <= waited <= delay for delay, waited in zip(DELAYS_S, waits.seconds, strict=False))


def test_a_model_that_stays_busy_fails_the_task_with_a_reason() -> None:
    busy = [BUSY] * (len(DELAYS_S) + 1)
    with bedrock_answers(*busy) as server, pytest.raises(TaskFailed, match="is busy; send the task again later"):
        complete(server)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (refused(403, "AccessDeniedException"), "is not open to this deployment"),
        (refused(404, "ResourceNotFoundException"), "does not exist here"),
        (refused(400, "ValidationException"), "did not accept the request"),
        (refused(418, "TeapotException"), "failed"),
        (said("", stop="guardrail_intervened"), "declined to write this"),
    ],
    ids=["denied", "unknown", "invalid", "other", "guardrail"],
)
def test_an_error_that_is_not_transient_is_not_retried(trouble: Answer, reason: str) -> None:
    with bedrock_answers(trouble) as server, pytest.raises(TaskFailed, match=f"The language model {reason}"):
        complete(server)


def test_an_endpoint_that_is_not_there_is_a_failure_with_a_reason() -> None:
    with bedrock_answers() as server:
        model = text_model(server)
    with pytest.raises(TaskFailed, match="The language model failed"):
        asyncio.run(model.complete("Tides?"))


class Endless:
    """A client whose model never stops talking until nobody listens."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.closed = threading.Event()

    def converse_stream(self, **_: object) -> dict[str, Any]:
        return {"stream": self}

    def invoke_model(self, **_: object) -> dict[str, Any]:
        raise AssertionError

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while True:
            self.begun.set()
            yield {"contentBlockDelta": {"delta": {"text": "and "}}}

    def close(self) -> None:
        self.closed.set()


def test_a_cancelled_call_stops_reading_the_answer() -> None:
    endless = Endless()

    async def run() -> None:
        call = asyncio.create_task(BedrockText(lambda: endless, MODEL).complete("Tides?"))
        await asyncio.to_thread(endless.begun.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(run())
    assert endless.closed.is_set()


@pytest.mark.parametrize(
    ("model", "shape"),
    [("amazon.nova-canvas-v1:0", "textToImageParams"), ("us.stability.stable-image-core-v1:1", "aspect_ratio")],
)
def test_each_maker_is_asked_in_its_own_shape_and_gives_the_image(model: str, shape: str) -> None:
    answer = {"images": [base64.b64encode(PIXEL).decode()], "seeds": [1], "finish_reasons": [None], "error": None}
    with bedrock_answers(showed(answer)) as server:
        assert generate(server, model) == PIXEL
    path, body = server.asked[0]
    assert path == f"/model/{model}/invoke"
    assert shape in body
    assert "A sailboat on the sea." in str(body)


def test_the_seed_is_always_the_same_and_a_long_prompt_is_cut() -> None:
    answer = showed({"images": [base64.b64encode(PIXEL).decode()]})
    with bedrock_answers(answer, answer) as server:
        generate(server, "amazon.nova-canvas-v1:0")
        generate(server, "amazon.nova-canvas-v1:0", "cat " * 1_000)
    first, second = (body for _, body in server.asked)
    assert first["imageGenerationConfig"] == second["imageGenerationConfig"]
    assert len(second["textToImageParams"]["text"]) == MOST_IMAGE_PROMPT


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"images": [], "error": "This request has been blocked by our content filters."}, "declined to draw this"),
        ({"finish_reasons": ["Filter reason: prompt"]}, "declined to draw this"),
        ({"images": []}, "answered without an image"),
        ({"images": ["no base64!"]}, "answered without an image"),
    ],
)
def test_an_image_model_that_shows_nothing_fails_the_task_with_a_reason(answer: object, reason: str) -> None:
    with bedrock_answers(showed(answer)) as server, pytest.raises(TaskFailed, match=f"The image model {reason}"):
        generate(server, "amazon.nova-canvas-v1:0")


def test_an_image_model_of_another_maker_is_refused() -> None:
    with bedrock_answers() as server, pytest.raises(ValueError, match="Amazon's"):
        BedrockImage(server.client, "example.painter-v1")
