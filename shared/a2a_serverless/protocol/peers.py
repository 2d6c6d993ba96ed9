"""What a client sends to another agent and reads from it, in the version that the agent speaks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from a2a_serverless.protocol import v1
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.protojson import finite
from a2a_serverless.protocol.validation import read_peer

if TYPE_CHECKING:
    from a2a_serverless.domain.push import WireVersion


def send_params(version: WireVersion, request: v1.SendMessageRequest) -> dict[str, Any]:
    """The parameters of a send as JSON. Raises ValueError for a number that JSON does not have (NaN)."""
    if version == "1.0":
        return _json(request)
    from a2a_serverless.protocol.v0_3 import MessageSendParams

    return _json(MessageSendParams.of(request))


def read_item(version: WireVersion, value: object, limits: Limits = LIMITS) -> v1.StreamContent:
    """The answer to a send, or an item of a stream. Raises InvalidAgentResponse."""
    if version == "1.0":
        return read_peer(v1.StreamResponse, value, limits).content
    from a2a_serverless.protocol.v0_3 import StreamItem

    return read_peer(StreamItem, value, limits).to_v1()


def read_task(version: WireVersion, value: object, limits: Limits = LIMITS) -> v1.Task:
    """A task. Raises InvalidAgentResponse."""
    if version == "1.0":
        return read_peer(v1.Task, value, limits)
    from a2a_serverless.protocol import v0_3

    task: v1.Task = read_peer(v0_3.Task, value, limits).to_v1()
    return task


def _json(model: Any) -> dict[str, Any]:  # noqa: ANN401 - a model of either version
    params: dict[str, Any] = json.loads(finite(model.json_bytes()))
    return params
