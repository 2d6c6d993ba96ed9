"""The codecs by binding and version: they read requests and print answers and stream items. Inside are objects of 1.0.

The codecs of 0.3 are imported when the first request of 0.3 comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.jsonrpc import NOTHING
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.protojson import read_model

if TYPE_CHECKING:
    from a2a_serverless.protocol import old_codecs
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.protocol.versions import ProtocolVersion

Binding: TypeAlias = Literal["jsonrpc", "rest", "legacy"]


class V1Codec:
    """1.0, the same over JSON-RPC and HTTP+JSON. The codecs of 0.3 have the same methods.

    With ``whole_tasks``, streams send the whole task for each change of its status. A subscription ends when the task
    comes to a state in ``subscription_ends``: in 0.3 also when it waits for input, which is ``final`` there.
    """

    whole_tasks = False
    subscription_ends = TERMINAL

    def read(self, operation: Operation, params: object) -> Any:  # noqa: ANN401
        """The request, an object of 1.0. Raises InvalidParams with all violations, or MethodNotFound."""
        return read_model(operation.request, params)

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
