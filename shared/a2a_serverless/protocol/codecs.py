"""The codecs by binding and version: requests in, answers and stream items out, 1.0's objects inside.

What is written in 0.3 is imported when the first such request comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.validation import read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.protocol.protojson import ProtoModel

# "proto" is REST whose 0.3 answers keep the proto's own names: a local switch, for the 0.3 conformance kit.
Binding: TypeAlias = Literal["jsonrpc", "rest", "proto", "legacy"]

NOTHING: Final = b"null"


class Codec(Protocol):
    """How one version says requests and answers over one binding.

    With ``whole_tasks`` its streams send the whole task for each change of the status. A subscription ends with a state
    in ``subscription_ends``: in 0.3 a question is ``final`` too.
    """

    whole_tasks: bool
    subscription_ends: frozenset[v1.TaskState]

    def read(self, operation: Operation, params: object, limits: Limits = LIMITS) -> Any:  # noqa: ANN401
        """The request, an object of 1.0. Raises InvalidParams with all violations, or MethodNotFound."""
        ...

    def answer(self, operation: Operation, answer: ProtoModel | None) -> bytes:
        """The JSON of the result of a call that does not stream; what has no result is null."""
        ...

    def stream_item(self, item: v1.StreamContent) -> bytes:
        """The JSON of one item of a stream."""
        ...


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
    """1.0, the same over JSON-RPC and HTTP+JSON."""

    whole_tasks = False
    subscription_ends = TERMINAL

    def read(self, operation: Operation, params: object, limits: Limits = LIMITS) -> Any:  # noqa: ANN401
        """The request."""
        return read(REQUESTS[operation], params, limits)

    def answer(self, operation: Operation, answer: ProtoModel | None) -> bytes:
        body = NOTHING if answer is None else answer.json_bytes()
        if operation is not Operation.SEND:
            return body
        return b'{"%b":%b}' % (b"task" if isinstance(answer, v1.Task) else b"message", body)

    def stream_item(self, item: v1.StreamContent) -> bytes:
        return v1.stream_response(item).json_bytes()


V1: Final = V1Codec()


def codec(binding: Binding, version: WireVersion, at: int) -> Codec:
    """The codec for a request of ``version`` over ``binding`` that came in at ``at`` (ms)."""
    if version == "1.0":
        return V1
    from a2a_serverless.protocol.old_codecs import LegacyCodec, RestCodec, RpcCodec

    match binding:
        case "jsonrpc":
            return RpcCodec()
        case "legacy":
            return LegacyCodec(at)
        case _:
            return RestCodec(proto_names=binding == "proto")
