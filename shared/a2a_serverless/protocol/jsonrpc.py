"""The JSON-RPC 2.0 envelope (specification 9) as a model.

The methods, and what a refused envelope is, are those of ``wire/jsonrpc.py``. A batch is refused (-32600), as A2A names
none. An id is a string, an integer or null; a request without one is answered with the id null. Parameters are by name
only; anything but an object is -32602, absent or null is the empty object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, PlainValidator, ValidationError, ValidationInfo
from pydantic_core import to_json

from a2a_serverless.domain.errors import A2AError, InvalidParams, InvalidRequest
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.protojson import ProtoModel, violation
from a2a_serverless.protocol.strict_json import loads
from a2a_serverless.wire.jsonrpc import RpcId, RpcRefusal

if TYPE_CHECKING:
    from collections.abc import Callable


def _id(value: object, info: ValidationInfo) -> RpcId:
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise violation("must be a short string, an integer or null")
    if isinstance(value, str) and info.context and len(value) > info.context.name:
        raise violation("must be a short string, an integer or null")
    return value


def _params(value: object) -> dict[str, Any]:
    if value is None or isinstance(value, dict):
        return value or {}
    raise violation("must be an object")


class RpcRequest(ProtoModel):
    """A request with a sound envelope."""

    id: Annotated[RpcId, PlainValidator(_id)] = None
    jsonrpc: Literal["2.0"]
    method: Annotated[str, Field(min_length=1)]
    params: Annotated[dict[str, Any], PlainValidator(_params)] = Field({})


def parse(body: bytes, limits: Limits = LIMITS) -> RpcRequest | RpcRefusal:
    """The call that a body makes."""
    try:
        document = loads(body, limits)
    except A2AError as error:
        return RpcRefusal(None, error)
    if not isinstance(document, dict):
        return RpcRefusal(None, InvalidRequest("The body must be one JSON-RPC request; batches are not supported."))
    try:
        return RpcRequest.model_validate(document, context=limits)
    except ValidationError as error:
        return _refusal(document, str(error.errors(include_input=False)[0]["loc"][0]))


def success(call_id: RpcId, result: bytes) -> bytes:
    """A response with a result, which is JSON; null is a result too."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (to_json(call_id), result)


def _refusal(document: dict[str, Any], field: str) -> RpcRefusal:
    """What is refused for the first field that is wrong."""
    return RpcRefusal(None if field == "id" else document.get("id"), _REFUSED[field]())


_REFUSED: Final[dict[str, Callable[[], A2AError]]] = {
    "id": lambda: InvalidRequest("id must be a short string, an integer or null."),
    "jsonrpc": lambda: InvalidRequest('jsonrpc must be "2.0".'),
    "method": lambda: InvalidRequest("method must be a string."),
    "params": lambda: InvalidParams("params must be an object."),
}
