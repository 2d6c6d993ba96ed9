"""Models on Amazon Bedrock: text by ConverseStream, images by InvokeModel.

boto3's own retries are off: it cannot repeat a stream that breaks in the middle, and two retry layers would multiply.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cache
from random import uniform
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

import boto3
from botocore.config import Config
from botocore.eventstream import ParserError
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection
from urllib3.exceptions import HTTPError

from a2a_serverless import TaskFailed

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject
    from sample_agents.writing import Language

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

CONNECT_S: Final = 5
READ_S: Final = 120  # between two chunks of an answer; an image model sends nothing until it has finished
DELAYS_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
MOST_PROMPT: Final = 152_000
MOST_TOKENS: Final = 4_096
MOST_IMAGE_PROMPT: Final = 1_000  # Nova Canvas takes 1,024 characters, Stability's models more
SEED: Final = 7  # constant, so that a changed word changes little else
_CUT: Final = "\n\n[...]\n\n"
_HEAD_SHARE: Final = 2 / 3
_NOTICE: Final[Mapping[Language, str]] = {
    "en": "Written by a language model. Check what you rely on.",
    "zh": "本文由语言模型撰写，引用前请核实。",
}

# In lower case: in the middle of a stream, AWS spells error names with a small first letter.
_BUSY: Final = frozenset({"throttlingexception", "toomanyrequestsexception", "servicequotaexceededexception"})
_TRANSIENT: Final = frozenset(
    {
        "serviceunavailableexception",
        "internalserverexception",
        "modelnotreadyexception",
        "modeltimeoutexception",
        "modelstreamerrorexception",
    }
)
_REASONS: Final = {
    "accessdeniedexception": "is not open to this deployment",
    "resourcenotfoundexception": "does not exist here",
    "validationexception": "did not accept the request",
}
_DECLINED: Final = frozenset({"guardrail_intervened", "content_filtered"})
_NETWORK: Final = (NoConnection, HTTPClientError, HTTPError, ParserError)


class BedrockClient(Protocol):
    """The methods of boto3's ``bedrock-runtime`` client that are used."""

    def converse_stream(self, **request: Any) -> Mapping[str, Any]:  # noqa: ANN401 - boto3's own shape
        """Starts an answer; ``stream`` yields its events."""

    def invoke_model(self, **request: Any) -> Mapping[str, Any]:  # noqa: ANN401 - boto3's own shape
        """The whole answer; ``body`` is read like a file."""


GetClient = Callable[[], BedrockClient]
"""Returns the client, creating it if needed; called in a thread, because creating one reads files and may block."""


@cache
def bedrock_client() -> BedrockClient:
    """The client of this process; boto3 finds region, credentials and endpoint."""
    return make_client(boto3.Session())


def make_client(session: boto3.Session, endpoint: str | None = None) -> BedrockClient:
    """A client with timeouts for slow models and without retries."""
    config = Config(
        connect_timeout=CONNECT_S, read_timeout=READ_S, retries={"total_max_attempts": 1}, tcp_keepalive=True
    )
    # ``Any``: the stubs know only the services that the library uses.
    make: Any = session.client
    return cast("BedrockClient", make("bedrock-runtime", endpoint_url=endpoint, config=config))


class BedrockText:
    """A language model by its id, inference profile or ARN."""

    notice = _NOTICE

    def __init__(self, client: GetClient, model: str, *, sleep: Sleep = asyncio.sleep) -> None:
        self._client = client
        self._model = model
        self._sleep = sleep

    async def complete(self, prompt: str) -> str:
        """The whole answer. A model that is busy or breaks off is asked again from the start."""
        request = {
            "modelId": self._model,
            "messages": [{"role": "user", "content": [{"text": fitted(prompt)}]}],
            "inferenceConfig": {"maxTokens": MOST_TOKENS},
        }
        return await _retried(
            "language model",
            lambda: _in_thread(lambda stopped: "".join(_pieces(self._client(), request, stopped))),
            self._sleep,
        )


class BedrockImage:
    """An image model by its id or ARN: Amazon's or Stability's. Raises ValueError for other providers."""

    def __init__(self, client: GetClient, model: str, *, sleep: Sleep = asyncio.sleep) -> None:
        if "stability." not in model and "amazon." not in model:
            raise ValueError("an image model must be one of Amazon's (amazon.*) or Stability's (stability.*)")
        self._client = client
        self._model = model
        self._sleep = sleep

    async def generate(self, prompt: str) -> bytes:
        """The image as a PNG."""
        body = (_stability_body if "stability." in self._model else _amazon_body)(prompt[:MOST_IMAGE_PROMPT])
        request = {"modelId": self._model, "body": json.dumps(body), "contentType": "application/json"}
        answer = await _retried("image model", lambda: asyncio.to_thread(_invoke, self._client, request), self._sleep)
        return _image_in(answer)


def fitted(prompt: str) -> str:
    """The prompt; one that is too long for the model loses its middle, which is in the material."""
    if len(prompt) <= MOST_PROMPT:
        return prompt
    head = round(MOST_PROMPT * _HEAD_SHARE)
    return prompt[:head] + _CUT + prompt[head - MOST_PROMPT :]


async def _retried(what: str, call: Callable[[], Awaitable[T]], sleep: Sleep) -> T:
    """The result of ``call``, which is retried after each of ``DELAYS_S`` while its errors are transient."""
    for delay in (*DELAYS_S, None):
        try:
            return await call()
        except (ClientError, *_NETWORK) as error:
            if delay is None or not _is_transient(error):
                raise TaskFailed(f"The {what} {_reason(error)}.") from error
            await sleep(delay * uniform(0.5, 1.0))  # noqa: S311 - spreads load, hides nothing
    raise AssertionError  # pragma: no cover - the last delay is None


async def _in_thread(work: Callable[[threading.Event], T]) -> T:
    """The result of ``work`` in a thread. If the caller is cancelled, the event is set and the work should end."""
    stopped = threading.Event()
    try:
        return await asyncio.to_thread(work, stopped)
    except asyncio.CancelledError:
        stopped.set()
        raise


def _pieces(client: BedrockClient, request: Mapping[str, Any], stopped: threading.Event) -> Iterator[str]:
    """The text of an answer as it arrives, until ``stopped``."""
    events = client.converse_stream(**request)["stream"]
    reason = ""
    try:
        for event in events:
            if stopped.is_set():
                return
            reason = event.get("messageStop", {}).get("stopReason", reason)
            if piece := event.get("contentBlockDelta", {}).get("delta", {}).get("text", ""):
                yield piece
    finally:
        events.close()
    if not reason:
        raise HTTPError("The stream ended before the message did.")
    if reason in _DECLINED:
        raise TaskFailed("The language model declined to write this.")


def _invoke(client: GetClient, request: Mapping[str, Any]) -> JsonObject:
    with client().invoke_model(**request)["body"] as body:
        return cast("JsonObject", json.loads(body.read()))


def _amazon_body(prompt: str) -> JsonObject:
    size: JsonObject = {"numberOfImages": 1, "width": 1024, "height": 768, "seed": SEED}
    return {"taskType": "TEXT_IMAGE", "textToImageParams": {"text": prompt}, "imageGenerationConfig": size}


def _stability_body(prompt: str) -> JsonObject:
    return {"prompt": prompt, "aspect_ratio": "5:4", "output_format": "png", "seed": SEED}


def _image_in(answer: JsonObject) -> bytes:
    """The image in an answer: base64 in a list. In its place, one provider sends an error, the other a reason."""
    if answer.get("error") or any(_list(answer, "finish_reasons")):
        raise TaskFailed("The image model declined to draw this.")
    try:
        return base64.b64decode(str(_list(answer, "images")[0]), validate=True)
    except (IndexError, binascii.Error) as error:
        raise TaskFailed("The image model answered without an image.") from error


def _list(answer: JsonObject, name: str) -> list[Json]:
    value = answer.get(name)
    return value if isinstance(value, list) else []


def _is_transient(error: Exception) -> bool:
    return not isinstance(error, ClientError) or _code(error) in _BUSY | _TRANSIENT


def _reason(error: Exception) -> str:
    code = _code(error)
    return "is busy; send the task again later" if code in _BUSY else _REASONS.get(code, "failed")


def _code(error: Exception) -> str:
    return str(error.response.get("Error", {}).get("Code", "")).lower() if isinstance(error, ClientError) else ""
