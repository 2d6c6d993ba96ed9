"""The codecs by binding and version: they read requests and print answers and stream items. Inside are objects of 1.0.

The codecs of 0.3 are imported when the first request of 0.3 comes.

This module also reads the version and the extensions that a request asks for (specification 3.6, 3.2.6 and 4.6 of
v1.0.1). The version is in ``A2A-Version``, or in a query parameter of that name; without both it is 0.3. The name of a
JSON-RPC method, or the ``/v1`` of a path, tells the version in which the request is written. The two must agree, with
one exception: a client that asks for 1.0 may call a 0.3 method, because the meaning of the method is not in doubt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from a2a_serverless.domain.errors import ExtensionRequired, VersionNotSupported
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.jsonrpc import NOTHING
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.protojson import read_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.protocol import old_codecs
    from a2a_serverless.protocol.operations import ProtocolVersion
    from a2a_serverless.protocol.protojson import ProtoModel

VERSION_HEADER: Final = "A2A-Version"
EXTENSION_HEADERS: Final[dict[ProtocolVersion, str]] = {"1.0": "A2A-Extensions", "0.3": "X-A2A-Extensions"}
EXTENSIONS_READ: Final = 32

_ACCEPTED: Final[dict[ProtocolVersion, frozenset[str]]] = {"1.0": frozenset({"1.0"}), "0.3": frozenset({"0.3", "1.0"})}
_VERSION: Final = re.compile(r"(\d{1,4}\.\d{1,4})(\.\d{1,4})?", re.ASCII)


def asked_version(header: str | None, query: str | None = None) -> str:
    """``Major.Minor`` that the request asks for; a patch does not matter. The header goes before the parameter."""
    text = (header or "").strip() or (query or "").strip() or "0.3"
    match = _VERSION.fullmatch(text)
    return match[1] if match else text


def check_version(written_in: ProtocolVersion, version: str) -> None:
    """Checks that a request written in one version may ask for ``version``. Raises VersionNotSupported."""
    if version in _ACCEPTED[written_in]:
        return
    if written_in == "1.0" and version == "0.3":
        raise VersionNotSupported(
            f"This is written in 1.0. Send the header {VERSION_HEADER}: 1.0; without it a request is read as 0.3. "
            "0.3 has paths below /v1, such as /v1/message:send, and methods such as message/send."
        )
    raise VersionNotSupported("This A2A version is not supported. Supported are 1.0 and 0.3.")


def requested_extensions(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The URIs of the extension headers, each once, in order. The names of ``headers`` are in lower case."""
    lines = [headers.get(name.lower(), "") for name in EXTENSION_HEADERS.values()]
    names = [name.strip() for line in lines for name in line.split(",")]
    return tuple(dict.fromkeys(filter(None, names)))[:EXTENSIONS_READ]


def activated_extensions(names: tuple[str, ...], offered: Mapping[str, bool]) -> tuple[str, ...]:
    """The requested extensions that an agent offers, to be echoed. Raises ExtensionRequired.

    ``offered`` tells of each URI whether requests must name it. An extension that we do not know is ignored; no other
    version of it is taken in its place (4.6.3).
    """
    missing = [uri for uri, is_required in offered.items() if is_required and uri not in names]
    if missing:
        raise ExtensionRequired(f"Name these extensions in the request: {', '.join(missing)}.")
    return tuple(name for name in names if name in offered)


Binding: TypeAlias = Literal["jsonrpc", "rest", "legacy"]

REQUESTS: Final[Mapping[Operation, type[ProtoModel]]] = {
    Operation.SEND: v1.SendMessageRequest,
    Operation.STREAM: v1.SendMessageRequest,
    Operation.GET: v1.GetTaskRequest,
    Operation.LIST: v1.ListTasksRequest,
    Operation.CANCEL: v1.CancelTaskRequest,
    Operation.SUBSCRIBE: v1.SubscribeToTaskRequest,
    Operation.PUSH_CREATE: v1.CreateTaskPushNotificationConfigRequest,
    Operation.PUSH_GET: v1.GetTaskPushNotificationConfigRequest,
    Operation.PUSH_LIST: v1.ListTaskPushNotificationConfigsRequest,
    Operation.PUSH_DELETE: v1.DeleteTaskPushNotificationConfigRequest,
    Operation.CARD: v1.GetExtendedAgentCardRequest,
}


class V1Codec:
    """1.0, the same over JSON-RPC and HTTP+JSON. The codecs of 0.3 have the same methods.

    With ``whole_tasks``, streams send the whole task for each change of its status. A subscription ends when the task
    comes to a state in ``subscription_ends``: in 0.3 also when it waits for input, which is ``final`` there.
    """

    whole_tasks = False
    subscription_ends = TERMINAL

    def read(self, operation: Operation, params: object) -> Any:  # noqa: ANN401
        """The request, an object of 1.0. Raises InvalidParams with all violations, or MethodNotFound."""
        return read_model(REQUESTS[operation], params)

    def answer(self, operation: Operation, answer: ProtoModel | None) -> bytes:
        """The JSON of the result of a call that does not stream; null if the call has no result."""
        body = NOTHING if answer is None else answer.json_bytes()
        if operation is not Operation.SEND:
            return body
        return b'{"%b":%b}' % (b"task" if isinstance(answer, v1.Task) else b"message", body)

    def stream_item(self, item: v1.StreamContent) -> bytes:
        """The JSON of one item of a stream."""
        return v1.stream_response(item).json_bytes()


Codec: TypeAlias = "V1Codec | old_codecs.RpcCodec | old_codecs.RestCodec | old_codecs.LegacyCodec"
V1: Final = V1Codec()


def codec(binding: Binding, version: ProtocolVersion, at: int) -> Codec:
    """The codec for a request of ``version`` over ``binding`` that came in at ``at`` (ms)."""
    if version == "1.0":
        return V1
    from a2a_serverless.protocol.old_codecs import LegacyCodec, RestCodec, RpcCodec

    match binding:
        case "jsonrpc":
            return RpcCodec()
        case "legacy":
            return LegacyCodec(at)
        case "rest":
            return RestCodec()
