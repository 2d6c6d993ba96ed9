"""Calls to models on Amazon Bedrock: in a thread, again when the model is busy, stopped when the step is cancelled.

botocore's own retries are off: it cannot repeat a stream that breaks in the middle, and two layers would multiply.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from random import uniform
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from botocore.config import Config
from botocore.eventstream import ParserError
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection
from urllib3.exceptions import HTTPError

from a2a_serverless.domain.agent import TaskFailed

if TYPE_CHECKING:
    from botocore.session import Session

    from a2a_serverless.domain.model import JsonObject

T = TypeVar("T")

CONNECT_S: Final = 5
READ_S: Final = 120  # between two pieces of an answer; an image model says nothing until it has finished
DELAYS_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0)

# In lower case: an error in the middle of a stream is spelled with a small letter.
_BUSY: Final = frozenset({"throttlingexception", "toomanyrequestsexception", "servicequotaexceededexception"})
_PASSING: Final = frozenset(
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


class Runtime(Protocol):
    """What we use of botocore's ``bedrock-runtime`` client."""

    def converse_stream(self, **request: Any) -> Mapping[str, Any]:  # noqa: ANN401 - botocore's own shape
        """Starts an answer; ``stream`` yields its events."""
        ...

    def invoke_model(self, **request: Any) -> Mapping[str, Any]:  # noqa: ANN401 - botocore's own shape
        """The whole answer; ``body`` is read like a file."""
        ...


def make_runtime(session: Session, endpoint: str | None = None) -> Runtime:
    """A client that waits for slow models and leaves repeating to us. Without ``endpoint`` botocore finds its own."""
    config = Config(
        connect_timeout=CONNECT_S, read_timeout=READ_S, retries={"total_max_attempts": 1}, tcp_keepalive=True
    )
    return cast("Runtime", session.create_client("bedrock-runtime", endpoint_url=endpoint, config=config))


class Bedrock:
    """Models by their ids. What a model cannot do raises ``TaskFailed`` with a reason that a client may read."""

    def __init__(self, client: Runtime, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._client = client
        self._sleep = sleep

    async def converse(self, model: str, system: str, prompt: str, *, most_tokens: int) -> str:
        """The text that a language model answers with, cut at ``most_tokens``."""
        request: JsonObject = {
            "modelId": model,
            "system": [{"text": system}],
            "messages": [{"role": "user", "content": [{"text": prompt}]}],
            "inferenceConfig": {"maxTokens": most_tokens},
        }
        return await self._retry("language model", lambda stopped: _converse(self._client, request, stopped))

    async def invoke(self, model: str, body: JsonObject) -> JsonObject:
        """What a model answers that has a request shape of its own."""
        request = {"modelId": model, "body": json.dumps(body), "contentType": "application/json"}
        return await self._retry("image model", lambda _: _invoke(self._client, request))

    async def _retry(self, what: str, call: Callable[[threading.Event], T]) -> T:
        for delay in (*DELAYS_S, None):
            try:
                return await _in_thread(call)
            except (ClientError, *_NETWORK) as error:
                if delay is None or not _may_pass(error):
                    raise TaskFailed(f"The {what} {_reason(error)}.") from error
                await self._sleep(delay * uniform(0.5, 1.0))  # noqa: S311 - spreads load, hides nothing
        raise AssertionError  # pragma: no cover - the last delay is None


async def _in_thread(call: Callable[[threading.Event], T]) -> T:
    """A cancelled call is told so, and ends with the next piece of its answer."""
    stopped = threading.Event()
    try:
        return await asyncio.to_thread(call, stopped)
    except asyncio.CancelledError:
        stopped.set()
        raise


def _converse(client: Runtime, request: Mapping[str, Any], stopped: threading.Event) -> str:
    stream = client.converse_stream(**request)["stream"]
    pieces: list[str] = []
    reason = ""
    try:
        for event in stream:
            if stopped.is_set():
                break
            pieces.append(event.get("contentBlockDelta", {}).get("delta", {}).get("text", ""))
            reason = event.get("messageStop", {}).get("stopReason", reason)
    finally:
        stream.close()
    if not reason and not stopped.is_set():
        raise HTTPError("The stream ended before the message did.")
    if reason in _DECLINED:
        raise TaskFailed("The language model declined to write this.")
    return "".join(pieces)


def _invoke(client: Runtime, request: Mapping[str, Any]) -> JsonObject:
    with client.invoke_model(**request)["body"] as body:
        return cast("JsonObject", json.loads(body.read()))


def _may_pass(error: Exception) -> bool:
    return not isinstance(error, ClientError) or _code(error) in _BUSY | _PASSING


def _reason(error: Exception) -> str:
    code = _code(error)
    return "is busy; send the task again later" if code in _BUSY else _REASONS.get(code, "failed")


def _code(error: Exception) -> str:
    return str(error.response.get("Error", {}).get("Code", "")).lower() if isinstance(error, ClientError) else ""
