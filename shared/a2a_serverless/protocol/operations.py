"""The eleven operations of A2A (specification 5.3), by the names that the tables of ``http/`` and ``protocol/`` use."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Operation(StrEnum):
    """An operation, with one name for all bindings and versions."""

    SEND = "SendMessage"
    STREAM = "SendStreamingMessage"
    GET = "GetTask"
    LIST = "ListTasks"
    CANCEL = "CancelTask"
    SUBSCRIBE = "SubscribeToTask"
    PUSH_CREATE = "CreateTaskPushNotificationConfig"
    PUSH_GET = "GetTaskPushNotificationConfig"
    PUSH_LIST = "ListTaskPushNotificationConfigs"
    PUSH_DELETE = "DeleteTaskPushNotificationConfig"
    CARD = "GetExtendedAgentCard"


STREAMING: Final = frozenset({Operation.STREAM, Operation.SUBSCRIBE})
SENDING: Final = frozenset({Operation.SEND, Operation.STREAM})
READING: Final = frozenset(
    {
        Operation.GET,
        Operation.LIST,
        Operation.SUBSCRIBE,
        Operation.PUSH_GET,
        Operation.PUSH_LIST,
        Operation.CARD,
    }
)
