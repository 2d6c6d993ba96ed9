"""The paths of HTTP+JSON (specification 11). Starlette matches them as they stand in the request line, encoded.

A path without ``/v1`` is 1.0, and may begin with a tenant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor

from a2a_serverless.protocol.operations import Operation

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.http.messages import HttpRequest
    from a2a_serverless.protocol.protojson import ProtoModel


class NameConvertor(Convertor[str]):
    """A name in an encoded path, decoded: a slash in it is part of the name."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        raise NotImplementedError


class TaskConvertor(NameConvertor):
    """The id of a task: it ends at a colon, because a verb may follow it."""

    regex = "[^/:]+"


class TenantConvertor(NameConvertor):
    """A tenant: it is not called like the first word of a path."""

    regex = r"(?!(?:v1|tasks|message:send|message:stream|extendedAgentCard|\.well-known)(?:/|$))[^/]+"


class AgentConvertor(NameConvertor):
    """An agent, as it stands in the path."""

    regex = "(?!legacy/)[^/]+"

    def convert(self, value: str) -> str:
        return value


for name, kind in {
    "name": NameConvertor,
    "task": TaskConvertor,
    "tenant": TenantConvertor,
    "agent": AgentConvertor,
}.items():
    register_url_convertor(name, kind())


@dataclass(frozen=True, slots=True)
class Description:
    """What an operation answers and reads, for the OpenAPI document. Without a version it is an addition of ours."""

    answer: type[ProtoModel] | None = None
    body: type[ProtoModel] | None = None
    query: type[ProtoModel] | None = None
    version: WireVersion | None = None
    streams: bool = False
    example: object = None


@dataclass(frozen=True, slots=True)
class OperationRoute:
    """One verb and path below an agent. The names in braces are the names of the request's fields."""

    verb: str
    template: str
    operation: Operation
    version: WireVersion

    @property
    def name(self) -> str:
        """The id of the operation in the OpenAPI document."""
        return f"{self.operation} {self.version} {self.verb}"

    def path(self, *, typed: bool = False) -> str:
        """The path. One place has one name in all paths, as OpenAPI requires; ``typed`` is with convertors."""
        path = self.template.replace("/tasks/{id}/", "/tasks/{taskId}/")
        if typed:
            path = re.sub(r"(?<=/tasks/)\{(\w+)\}", r"{\1:task}", path).replace("{tenant}", "{tenant:tenant}")
            path = re.sub(r"(?<=Configs/)\{(\w+)\}", r"{\1:name}", path)
        return path

    def fields(self, request: HttpRequest) -> JsonObject:
        """What the path says."""
        fields: JsonObject = {name: value for name, value in request.params.items() if name != "agent"}
        return {"id": fields.pop("taskId"), **fields} if "/tasks/{id}/" in self.template else fields


CONFIGS: Final = "/tasks/{taskId}/pushNotificationConfigs"
OLD_CONFIGS: Final = "/v1/tasks/{id}/pushNotificationConfigs"
V1: Final = (
    OperationRoute("POST", "/message:send", Operation.SEND, "1.0"),
    OperationRoute("POST", "/message:stream", Operation.STREAM, "1.0"),
    OperationRoute("POST", "/tasks/{id}:cancel", Operation.CANCEL, "1.0"),
    # The specification says POST, its proto says GET: both.
    OperationRoute("POST", "/tasks/{id}:subscribe", Operation.SUBSCRIBE, "1.0"),
    OperationRoute("GET", "/tasks/{id}:subscribe", Operation.SUBSCRIBE, "1.0"),
    OperationRoute("GET", "/tasks/{id}", Operation.GET, "1.0"),
    OperationRoute("GET", "/tasks", Operation.LIST, "1.0"),
    OperationRoute("POST", CONFIGS, Operation.PUSH_CREATE, "1.0"),
    OperationRoute("GET", CONFIGS, Operation.PUSH_LIST, "1.0"),
    OperationRoute("GET", CONFIGS + "/{id}", Operation.PUSH_GET, "1.0"),
    OperationRoute("DELETE", CONFIGS + "/{id}", Operation.PUSH_DELETE, "1.0"),
    OperationRoute("GET", "/extendedAgentCard", Operation.CARD, "1.0"),
)
V0_3: Final = (
    OperationRoute("POST", "/v1/message:send", Operation.SEND, "0.3"),
    OperationRoute("POST", "/v1/message:stream", Operation.STREAM, "0.3"),
    OperationRoute("POST", "/v1/tasks/{id}:cancel", Operation.CANCEL, "0.3"),
    OperationRoute("POST", "/v1/tasks/{id}:subscribe", Operation.SUBSCRIBE, "0.3"),
    OperationRoute("GET", "/v1/tasks/{id}:subscribe", Operation.SUBSCRIBE, "0.3"),
    OperationRoute("GET", "/v1/tasks/{id}", Operation.GET, "0.3"),
    OperationRoute("POST", "/v1" + CONFIGS, Operation.PUSH_CREATE, "0.3"),
    OperationRoute("GET", OLD_CONFIGS, Operation.PUSH_LIST, "0.3"),
    OperationRoute("GET", OLD_CONFIGS + "/{pushNotificationConfigId}", Operation.PUSH_GET, "0.3"),
    OperationRoute("DELETE", OLD_CONFIGS + "/{pushNotificationConfigId}", Operation.PUSH_DELETE, "0.3"),
    OperationRoute("GET", "/v1/card", Operation.CARD, "0.3"),
)
ROUTES: Final = (*V0_3, *V1)
TENANT_ROUTES: Final = tuple(OperationRoute(one.verb, "/{tenant}" + one.template, one.operation, "1.0") for one in V1)
# The shapes from before 0.3, below /legacy/{agent}.
LEGACY_ROUTES: Final = (
    OperationRoute("POST", "/tasks/send", Operation.SEND, "0.3"),
    OperationRoute("POST", "/tasks/sendSubscribe", Operation.STREAM, "0.3"),
    OperationRoute("GET", "/tasks/{id}", Operation.GET, "0.3"),
)
