"""The codecs by binding and version. What is written in 0.3 is imported when the first such request comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.wire import v1

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.domain.queries import Answer, Request
    from a2a_serverless.protocol.operations import Operation

# "proto" is REST whose 0.3 answers keep the proto's own names: a local switch, for the 0.3 conformance kit.
Binding: TypeAlias = Literal["jsonrpc", "rest", "proto", "legacy"]


class Codec(Protocol):
    """What a codec module offers to a server; ``v1`` says what the functions do."""

    def parse(self, operation: Operation, params: Json, limits: Limits = LIMITS) -> Request:
        """The request."""
        ...

    def answer(self, operation: Operation, result: Answer) -> Json:
        """The result of a call that does not stream."""
        ...

    def stream_item(self, item: v1.StreamItem, task_id: str, context_id: str) -> JsonObject:
        """One item of a stream."""
        ...


def codec(binding: Binding, version: WireVersion, at: int) -> Codec:
    """The codec for a request of ``version`` over ``binding`` that came in at ``at`` (ms)."""
    if version == "1.0":
        return v1
    from a2a_serverless.wire import legacy, v0_3, v0_3_rest

    match binding:
        case "jsonrpc":
            return v0_3
        case "rest":
            return v0_3_rest
        case "proto":
            return v0_3_rest.ProtoNames()
        case "legacy":
            return legacy.LegacyCodec(at)
