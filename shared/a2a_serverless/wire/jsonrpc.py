"""The JSON-RPC 2.0 binding (specification 9): the envelope, and which method is which operation in which version.

::

    call = jsonrpc.parse(body, limits)                    # Call, or Refusal when the envelope is bad
    operation, version = jsonrpc.method(call.method)      # raises MethodNotFound
    body = jsonrpc.success(call.id, result)               # bytes; also each ``data:`` of a stream
    body = jsonrpc.failure(call.id, error, version)       # bytes; HTTP 200

Decided here: a batch is refused (-32600), as A2A names none. There are no notifications either: every A2A operation has
an answer that its caller needs, so who forgot the id gets it with the id null. An id is a string, an integer or null.
Parameters are by name only; anything but an object is -32602, absent or null is the empty object.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Final, TypeAlias

from a2a_serverless.domain.errors import A2AError, InvalidParams, InvalidRequest, MethodNotFound
from a2a_serverless.protocol import errors
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.strict_json import dumps, loads

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.push import WireVersion

RpcId: TypeAlias = str | int | None

_V1: Final = {operation.value: operation for operation in Operation}
_V0_3: Final = {
    "message/send": Operation.SEND,
    "message/stream": Operation.STREAM,
    "tasks/get": Operation.GET,
    "tasks/cancel": Operation.CANCEL,
    "tasks/resubscribe": Operation.SUBSCRIBE,
    "tasks/pushNotificationConfig/set": Operation.PUSH_CREATE,
    "tasks/pushNotificationConfig/get": Operation.PUSH_GET,
    "tasks/pushNotificationConfig/list": Operation.PUSH_LIST,
    "tasks/pushNotificationConfig/delete": Operation.PUSH_DELETE,
    "agent/getAuthenticatedExtendedCard": Operation.CARD,
    "agent/authenticatedExtendedCard": Operation.CARD,
}

METHODS: Final[dict[str, tuple[Operation, WireVersion]]] = (
    {name: (operation, "1.0") for name, operation in _V1.items()}
    | {name: (operation, "0.3") for name, operation in _V0_3.items()}
    # Guides of the 0.3 time print "message.send"; it cannot be anything else.
    | {name.replace("/", "."): (operation, "0.3") for name, operation in _V0_3.items()}
)
# Of several names for one operation, the first is the one that the version's specification gives it.
_NAMES: Final = {found: name for name, found in reversed(METHODS.items())}


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """A request with a sound envelope."""

    id: RpcId
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class RpcRefusal:
    """What is wrong with an envelope, and the id to answer it with as far as it could be read."""

    id: RpcId
    error: A2AError


def parse(body: bytes, limits: Limits = LIMITS) -> RpcRequest | RpcRefusal:
    """The call that a body makes."""
    try:
        document = loads(body, limits)
    except A2AError as error:
        return RpcRefusal(None, error)
    if not isinstance(document, dict):
        return RpcRefusal(None, InvalidRequest("The body must be one JSON-RPC request; batches are not supported."))
    return _call(document, limits)


def method(name: str) -> tuple[Operation, WireVersion]:
    """The operation and the version whose method this is."""
    if name not in METHODS:
        raise MethodNotFound
    return METHODS[name]


def name_of(operation: Operation, version: WireVersion) -> str:
    """What a version calls an operation. Raises KeyError for one that it does not have."""
    return _NAMES[operation, version]


def success(call_id: RpcId, result: Json) -> bytes:
    """A response with a result; null is a result too and is printed."""
    return dumps({"jsonrpc": "2.0", "id": call_id, "result": result})


def failure(call_id: RpcId, error: Exception, version: WireVersion) -> bytes:
    """An error response. ``version`` is that of the method; an error that it does not know degrades to -32603."""
    body: JsonObject = {
        "code": errors.code_of(error).rpc_for(version),
        "message": errors.text_of(error),
        "data": errors.details(error),
    }
    return dumps({"jsonrpc": "2.0", "id": call_id, "error": body})


def _call(document: JsonObject, limits: Limits) -> RpcRequest | RpcRefusal:
    call_id = document.get("id")
    if isinstance(call_id, bool) or not isinstance(call_id, (str, int, NoneType)) or _too_long(call_id, limits):
        return RpcRefusal(None, InvalidRequest("id must be a short string, an integer or null."))
    name, params = document.get("method"), document.get("params")
    if document.get("jsonrpc") != "2.0":
        return RpcRefusal(call_id, InvalidRequest('jsonrpc must be "2.0".'))
    if not isinstance(name, str) or not name:
        return RpcRefusal(call_id, InvalidRequest("method must be a string."))
    if not isinstance(params, (dict, NoneType)):
        return RpcRefusal(call_id, InvalidParams("params must be an object."))
    return RpcRequest(call_id, name, params or {})


def _too_long(call_id: RpcId, limits: Limits) -> bool:
    return isinstance(call_id, str) and len(call_id) > limits.name
