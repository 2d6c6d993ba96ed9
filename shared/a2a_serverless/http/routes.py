"""The paths of HTTP+JSON (specification 11), of 0.3 and from before, and of our additions.

Starlette matches the paths as they stand in the request line, encoded. A path without ``/v1`` is 1.0, and may begin
with a tenant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from starlette.convertors import Convertor, StringConvertor, register_url_convertor

from a2a_serverless.protocol.operations import Operation

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.http.api import Endpoint
    from a2a_serverless.http.messages import HttpRequest
    from a2a_serverless.protocol.protojson import ProtoModel
    from a2a_serverless.protocol.versions import ProtocolVersion


class NameConvertor(Convertor[str]):
    """A name in an encoded path, decoded: a slash in it is part of the name."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        raise NotImplementedError


class TaskConvertor(NameConvertor):
    """The id of a task: it ends at a colon, because a custom verb may follow it."""

    regex = "[^/:]+"


_FIRST_WORDS: Final = (r"\.well-known", "v1", *dict.fromkeys(operation.path.split("/")[1] for operation in Operation))


class TenantConvertor(NameConvertor):
    """A tenant: it is not the first word of another path."""

    regex = rf"(?!(?:{'|'.join(_FIRST_WORDS)})(?:/|$))[^/]+"


class AgentConvertor(StringConvertor):
    """An agent, percent-encoded as in the path."""

    regex = "(?!legacy/)[^/]+"


register_url_convertor("name", NameConvertor())
register_url_convertor("task", TaskConvertor())
register_url_convertor("tenant", TenantConvertor())
register_url_convertor("agent", AgentConvertor())


@dataclass(frozen=True, slots=True)
class OperationRoute:
    """One verb and path below an agent. The names in braces are the request's fields, with their convertors."""

    verb: str
    template: str
    operation: Operation
    version: ProtocolVersion

    @property
    def name(self) -> str:
        """The id of the operation in the OpenAPI document."""
        return f"{self.operation} {self.version} {self.verb}"

    def fields(self, request: HttpRequest) -> JsonObject:
        """The values in the path."""
        fields: JsonObject = {name: value for name, value in request.params.items() if name != "agent"}
        if self.version == "0.3" and self.operation in _TASK_AS_ID:
            fields["id"] = fields.pop("taskId")
        return fields


@dataclass(frozen=True, slots=True)
class AddedRoute:
    """A route of ours, which A2A does not have; ``answer`` and ``body`` are its models."""

    verb: str
    template: str
    name: str
    endpoint: Endpoint
    answer: type[ProtoModel]
    body: type[ProtoModel] | None = None


# In 0.3 these requests call the task ``id``. In the paths it is ``taskId``: OpenAPI requires one name in all paths.
_TASK_AS_ID: Final = frozenset({Operation.PUSH_LIST, Operation.PUSH_GET, Operation.PUSH_DELETE})


def _template(path: str) -> str:
    """The path with convertors: the id of a task ends at a colon, every other name at a slash."""
    return re.sub(r"\{(\w+)\}", r"{\1:name}", re.sub(r"(?<=/tasks/)\{(\w+)\}", r"{\1:task}", path))


CONFIGS: Final = "/tasks/{taskId:task}/pushNotificationConfigs"
V1: Final = (
    *(OperationRoute(operation.verb, _template(operation.path), operation, "1.0") for operation in Operation),
    # The specification says POST, its proto says GET: both are routes.
    OperationRoute("GET", _template(Operation.SUBSCRIBE.path), Operation.SUBSCRIBE, "1.0"),
)
V0_3: Final = (
    OperationRoute("POST", "/v1/message:send", Operation.SEND, "0.3"),
    OperationRoute("POST", "/v1/message:stream", Operation.STREAM, "0.3"),
    OperationRoute("POST", "/v1/tasks/{id:task}:cancel", Operation.CANCEL, "0.3"),
    OperationRoute("POST", "/v1/tasks/{id:task}:subscribe", Operation.SUBSCRIBE, "0.3"),
    OperationRoute("GET", "/v1/tasks/{id:task}:subscribe", Operation.SUBSCRIBE, "0.3"),
    OperationRoute("GET", "/v1/tasks/{id:task}", Operation.GET, "0.3"),
    OperationRoute("POST", "/v1" + CONFIGS, Operation.PUSH_CREATE, "0.3"),
    OperationRoute("GET", "/v1" + CONFIGS, Operation.PUSH_LIST, "0.3"),
    OperationRoute("GET", "/v1" + CONFIGS + "/{pushNotificationConfigId:name}", Operation.PUSH_GET, "0.3"),
    OperationRoute("DELETE", "/v1" + CONFIGS + "/{pushNotificationConfigId:name}", Operation.PUSH_DELETE, "0.3"),
    OperationRoute("GET", "/v1/card", Operation.CARD, "0.3"),
)
ROUTES: Final = (*V0_3, *V1)
TENANT_ROUTES: Final = tuple(
    OperationRoute(route.verb, "/{tenant:tenant}" + route.template, route.operation, "1.0") for route in V1
)
# The shapes from before 0.3, below /legacy/{agent}.
LEGACY_ROUTES: Final = (
    OperationRoute("POST", "/tasks/send", Operation.SEND, "0.3"),
    OperationRoute("POST", "/tasks/sendSubscribe", Operation.STREAM, "0.3"),
    OperationRoute("GET", "/tasks/{id:task}", Operation.GET, "0.3"),
    OperationRoute("POST", "/tasks/cancel", Operation.CANCEL, "0.3"),
)
