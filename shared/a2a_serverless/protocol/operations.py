"""The operations of A2A (specification 5.3), a row each: JSON-RPC, HTTP+JSON, OpenAPI and our client read this table.

A new operation is a row here and a function in ``services/operation_runner.py``. 0.3 is complete: its methods are in
``jsonrpc.py``, its models in ``old_codecs.py``, its paths in ``http/routes.py``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

from a2a_serverless.protocol import v1

if TYPE_CHECKING:
    from a2a_serverless.domain.access import Access
    from a2a_serverless.protocol.protojson import ProtoModel

_CONFIGS: Final = "/tasks/{taskId}/pushNotificationConfigs"
_CONFIG: Final = _CONFIGS + "/{id}"


class Operation(StrEnum):
    """An operation, with one name for all bindings and versions.

    ``request`` and ``answer`` are its models in 1.0; of a stream, ``answer`` is the model of an item. It is None for an
    empty answer, and for a card: the models of cards take 5 ms to import, and only the rotator and OpenAPI need them.
    ``access`` is the access to the agent that the caller needs. ``verb`` and ``path`` are those of HTTP+JSON in 1.0
    (specification 11.3), below the agent's URL; the names in braces are members of the request.
    """

    # fmt: off
    # name, request, answer, access, verb, path
    SEND = "SendMessage", v1.SendMessageRequest, v1.SendMessageResponse, "operate", "POST", "/message:send"
    STREAM = "SendStreamingMessage", v1.SendMessageRequest, v1.StreamResponse, "operate", "POST", "/message:stream"
    GET = "GetTask", v1.GetTaskRequest, v1.Task, "read", "GET", "/tasks/{id}"
    LIST = "ListTasks", v1.ListTasksRequest, v1.ListTasksResponse, "read", "GET", "/tasks"
    CANCEL = "CancelTask", v1.CancelTaskRequest, v1.Task, "operate", "POST", "/tasks/{id}:cancel"
    SUBSCRIBE = ("SubscribeToTask", v1.SubscribeToTaskRequest, v1.StreamResponse,
                 "read", "POST", "/tasks/{id}:subscribe")
    PUSH_CREATE = ("CreateTaskPushNotificationConfig", v1.CreateTaskPushNotificationConfigRequest,
                   v1.TaskPushNotificationConfig, "operate", "POST", _CONFIGS)
    PUSH_GET = ("GetTaskPushNotificationConfig", v1.GetTaskPushNotificationConfigRequest,
                v1.TaskPushNotificationConfig, "read", "GET", _CONFIG)
    PUSH_LIST = ("ListTaskPushNotificationConfigs", v1.ListTaskPushNotificationConfigsRequest,
                 v1.ListTaskPushNotificationConfigsResponse, "read", "GET", _CONFIGS)
    PUSH_DELETE = ("DeleteTaskPushNotificationConfig", v1.DeleteTaskPushNotificationConfigRequest,
                   None, "operate", "DELETE", _CONFIG)
    CARD = "GetExtendedAgentCard", v1.GetExtendedAgentCardRequest, None, "read", "GET", "/extendedAgentCard"
    # fmt: on

    request: type[ProtoModel]
    answer: type[ProtoModel] | None
    access: Access
    verb: str
    path: str

    def __new__(cls, name: str, *columns: Any) -> Self:  # noqa: ANN401 - of the types above
        """A row of the table. Its value is its name."""
        operation = str.__new__(cls, name)
        operation._value_ = name
        operation.request, operation.answer, operation.access, operation.verb, operation.path = columns
        return operation

    @property
    def streams(self) -> bool:
        """Whether its answer is a stream."""
        return self.answer is v1.StreamResponse

    @property
    def sends(self) -> bool:
        """Whether its request has a message, which counts in the sender's quota."""
        return self.request is v1.SendMessageRequest
