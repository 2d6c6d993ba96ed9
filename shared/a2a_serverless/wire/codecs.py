"""The codecs by binding and version. What is written in 0.3 is imported when the first such request comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from a2a_serverless.wire import v1
from a2a_serverless.wire.limits import LIMITS, Limits

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.domain.queries import Answer, Request
    from a2a_serverless.wire.operations import Operation

Binding: TypeAlias = Literal["jsonrpc", "rest"]


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


def codec(binding: Binding, version: WireVersion) -> Codec:
    """The codec for requests of ``version`` over ``binding``."""
    if version == "1.0":
        return v1
    from a2a_serverless.wire import v0_3, v0_3_rest

    return v0_3 if binding == "jsonrpc" else v0_3_rest
