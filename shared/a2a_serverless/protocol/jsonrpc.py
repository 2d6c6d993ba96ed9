"""The JSON-RPC 2.0 binding (specification 9): the envelope, and the operation of each method in each version.

A batch is refused (-32600), as A2A names none. There are no notifications either: every A2A operation has an answer
that its caller needs, so a request without an id is answered with the id null. An id is a string, an integer (also
written as 1.0 or 1e0) or null.
Parameters are by name only; anything but an object is -32602, absent or null is the empty object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import AfterValidator, Field, StrictFloat, StrictInt, StrictStr, ValidationError
from pydantic_core import to_json

from a2a_serverless.domain.errors import A2AError, InvalidParams, InvalidRequest, MethodNotFound
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.protojson import OR_EMPTY, ProtoModel, violation
from a2a_serverless.protocol.strict_json import LIMITS, loads

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.protocol.versions import ProtocolVersion

RpcId: TypeAlias = str | int | float | None

_V0_3: Final = {
    "message/send": Operation.SEND,
    "message/stream": Operation.STREAM,
    "tasks/get": Operation.GET,
    "tasks/cancel": Operation.CANCEL,
    "tasks/resubscribe": Operation.SUBSCRIBE,
    "tasks/subscribe": Operation.SUBSCRIBE,  # so A2A's page on streaming names it
    "tasks/pushNotificationConfig/set": Operation.PUSH_CREATE,
    "tasks/pushNotificationConfig/get": Operation.PUSH_GET,
    "tasks/pushNotificationConfig/list": Operation.PUSH_LIST,
    "tasks/pushNotificationConfig/delete": Operation.PUSH_DELETE,
    "agent/getAuthenticatedExtendedCard": Operation.CARD,
    "agent/authenticatedExtendedCard": Operation.CARD,
}

NOTHING: Final = b"null"
"""The result of an operation that has none."""
METHODS: Final[dict[str, tuple[Operation, ProtocolVersion]]] = (
    {operation.value: (operation, "1.0") for operation in Operation}
    | {name: (operation, "0.3") for name, operation in _V0_3.items()}
    # Guides of the 0.3 time print "message.send"; it can mean nothing else.
    | {name.replace("/", "."): (operation, "0.3") for name, operation in _V0_3.items()}
)
# Of several names for an operation, the first is the name in the specification of the version.
_NAMES: Final = {key: name for name, key in reversed(METHODS.items())}


class RpcRefusal(NamedTuple):
    """The error of a refused envelope, and the id for the answer as far as it could be read."""

    id: RpcId
    error: A2AError


def _whole(number: float) -> float:
    if not number.is_integer():
        raise violation("must be an integer")
    return number  # as it came: some clients compare 1 and 1.0 by their types


class RpcRequest(ProtoModel):
    """A request with a valid envelope."""

    id: (
        Annotated[StrictStr, Field(max_length=LIMITS.name)]
        | StrictInt
        | Annotated[StrictFloat, AfterValidator(_whole)]
        | None
    ) = None
    jsonrpc: Literal["2.0"]
    method: Annotated[str, Field(min_length=1)]
    params: Annotated[dict[str, Any], OR_EMPTY] = Field({})


def parse(body: bytes) -> RpcRequest | RpcRefusal:
    """The request in a body; its method is in ``METHODS``."""
    try:
        document: Any = loads(body)
    except A2AError as error:
        return RpcRefusal(None, error)
    if not isinstance(document, dict):
        return RpcRefusal(None, InvalidRequest("The body must be one JSON-RPC request; batches are not supported."))
    try:
        call = RpcRequest.model_validate(document)
    except ValidationError as error:
        field = error.errors(include_input=False)[0]["loc"][0]
        return RpcRefusal(None if field == "id" else document.get("id"), _REFUSALS[str(field)]())
    return call if call.method in METHODS else RpcRefusal(call.id, MethodNotFound())


def name_of(operation: Operation, version: ProtocolVersion) -> str:
    """The method name of an operation in a version. Raises KeyError if the version has no such operation."""
    return _NAMES[operation, version]


def success(call_id: RpcId, result: bytes) -> bytes:
    """A response with a result. ``result`` is JSON; null is a result too."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (to_json(call_id), result)


_REFUSALS: Final[dict[str, Callable[[], A2AError]]] = {
    "id": lambda: InvalidRequest("id must be a short string, an integer or null."),
    "jsonrpc": lambda: InvalidRequest('jsonrpc must be "2.0".'),
    "method": lambda: InvalidRequest("method must be a string."),
    "params": lambda: InvalidParams("params must be an object."),
}
