"""The codecs of 0.3 and of the shapes from before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.errors import MethodNotFound
from a2a_serverless.protocol import legacy, v0_3, v0_3_rest, v1
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.validation import read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.protocol.protojson import ProtoModel

_RPC: Final[Mapping[Operation, Any]] = {
    Operation.SEND: v0_3.MessageSendParams,
    Operation.STREAM: v0_3.MessageSendParams,
    Operation.GET: v0_3.TaskQueryParams,
    Operation.CANCEL: v0_3.TaskIdParams,
    Operation.SUBSCRIBE: v0_3.ResubscribeParams,
    Operation.PUSH_CREATE: v0_3.TaskPushNotificationConfig,
    Operation.PUSH_GET: v0_3.GetTaskPushNotificationConfigParams,
    Operation.PUSH_LIST: v0_3.ListTaskPushNotificationConfigParams,
    Operation.PUSH_DELETE: v0_3.DeleteTaskPushNotificationConfigParams,
    Operation.CARD: v0_3.AuthenticatedExtendedCardParams,
}
_REST: Final[Mapping[Operation, Any]] = {
    **_RPC,
    Operation.SEND: v0_3_rest.SendMessageRequest,
    Operation.STREAM: v0_3_rest.SendMessageRequest,
    Operation.PUSH_CREATE: v0_3_rest.CreatePushNotificationConfigRequest,
}
_LEGACY: Final[Mapping[Operation, Any]] = {
    Operation.SEND: v0_3.MessageSendParams,
    Operation.STREAM: v0_3.MessageSendParams,
    Operation.GET: legacy.TaskParams,
}


class _OldCodec:
    """Reads by a table. There is no ListTasks in 0.3."""

    requests: Mapping[Operation, Any] = _RPC
    whole_tasks = False
    subscription_ends = v0_3.FINAL

    def read(self, operation: Operation, params: object, limits: Limits = LIMITS) -> Any:  # noqa: ANN401
        """The request."""
        if operation not in self.requests:
            raise MethodNotFound
        return read(self.requests[operation], params, limits).to_v1()


class RpcCodec(_OldCodec):
    """0.3 over JSON-RPC: bare objects, ``kind`` tells which."""

    def answer(self, operation: Operation, answer: ProtoModel | None) -> bytes:
        del operation
        match answer:
            case None:
                return b"null"
            case v1.TaskPushNotificationConfig():
                return v0_3.TaskPushNotificationConfig.of(answer).json_bytes()
            case v1.ListTaskPushNotificationConfigsResponse():
                return v0_3.TaskPushNotificationConfigs.of(answer.configs).json_bytes()
        content: bytes = v0_3.FAMILY.of(answer).json_bytes()
        return content

    def stream_item(self, item: v1.StreamContent) -> bytes:
        """A bare Task, Message, status-update or artifact-update."""
        content: bytes = v0_3.FAMILY.of(item).json_bytes()
        return content


class RestCodec(_OldCodec):
    """0.3 over HTTP+JSON: the proto's objects."""

    requests = _REST

    def __init__(self, *, proto_names: bool = False) -> None:
        self._bytes = v0_3_rest.proto_bytes if proto_names else v0_3.Model.json_bytes

    def answer(self, operation: Operation, answer: ProtoModel | None) -> bytes:
        if operation is Operation.SEND:
            answer = v1.send_response(answer)
        match answer:
            case None:
                return b"null"
            case v1.TaskPushNotificationConfig():
                return v0_3_rest.TaskPushNotificationConfig.of(answer).json_bytes()
            case v1.ListTaskPushNotificationConfigsResponse():
                return v0_3_rest.ListTaskPushNotificationConfigResponse.of(answer.configs).json_bytes()
        return self._bytes(v0_3_rest.FAMILY.of(answer))

    def stream_item(self, item: v1.StreamContent) -> bytes:
        return self._bytes(v0_3_rest.FAMILY.of(v1.stream_response(item)))


class LegacyCodec(_OldCodec):
    """The shapes from before 0.3, for one request that came in at ``at`` (ms)."""

    requests = _LEGACY
    whole_tasks = True

    def __init__(self, at: int) -> None:
        self._at = at

    def answer(self, operation: Operation, answer: ProtoModel | None) -> bytes:
        """The task, or the message as a task."""
        del operation
        if not isinstance(answer, v1.Task | v1.Message):
            raise TypeError("only tasks and messages are answered in the older shapes")
        return legacy.task_of(answer, self._at).json_bytes()

    def stream_item(self, item: v1.StreamContent) -> bytes:
        """One ``data`` line; a status is told by the whole task."""
        if isinstance(item, v1.TaskStatusUpdateEvent):
            raise TypeError("the older shapes tell the whole task after each change of its status")
        return legacy.update_of(item, self._at).json_bytes()
