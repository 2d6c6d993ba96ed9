"""Every operation of every binding as an HTTP request, with the ids that a test wants in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.jsonrpc import METHODS
from a2a_serverless.protocol.operations import Operation

AGENT: Final = "echo"


@dataclass(frozen=True)
class Names:
    """What a request names. ``None`` leaves it out."""

    task: str | None = None
    context: str | None = None
    config: str = "hook"
    message: str = "message-1"
    page: str | None = None
    referenced: str | None = None
    artifact: str | None = None
    text: str = "hello"
    tenant: str | None = None
    webhook: str = "https://hooks.example.com/a2a"


Make = Callable[[Names], HttpRequest]


def _set(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _message(names: Names, part: dict[str, Any], role: str) -> dict[str, Any]:
    if names.artifact:
        part = part | {"metadata": {"taskId": names.artifact, "artifactId": "document.md"}}
    return _set(
        messageId=names.message,
        role=role,
        parts=[part],
        taskId=names.task,
        contextId=names.context,
        referenceTaskIds=[names.referenced] if names.referenced else None,
    )


def _new_send(names: Names) -> dict[str, Any]:
    message = _message(names, {"text": names.text}, "ROLE_USER")
    return _set(message=message, configuration={"returnImmediately": True}, tenant=names.tenant)


def _old_send(names: Names) -> dict[str, Any]:
    message = _message(names, {"kind": "text", "text": names.text}, "user") | {"kind": "message"}
    return {"message": message, "configuration": {"blocking": False}}


_NEW_PARAMS: Final[dict[Operation, Callable[[Names], dict[str, Any]]]] = {
    Operation.SEND: _new_send,
    Operation.STREAM: _new_send,
    Operation.GET: lambda names: _set(id=names.task, tenant=names.tenant),
    Operation.LIST: lambda names: _set(contextId=names.context, pageToken=names.page, tenant=names.tenant),
    Operation.CANCEL: lambda names: _set(id=names.task, tenant=names.tenant),
    Operation.SUBSCRIBE: lambda names: _set(id=names.task, tenant=names.tenant),
    Operation.PUSH_CREATE: lambda names: _set(
        taskId=names.task, id=names.config, url=names.webhook, tenant=names.tenant
    ),
    Operation.PUSH_GET: lambda names: _set(taskId=names.task, id=names.config, tenant=names.tenant),
    Operation.PUSH_LIST: lambda names: _set(taskId=names.task, tenant=names.tenant),
    Operation.PUSH_DELETE: lambda names: _set(taskId=names.task, id=names.config, tenant=names.tenant),
    Operation.CARD: lambda names: _set(tenant=names.tenant),
}
_OLD_PARAMS: Final[dict[Operation, Callable[[Names], dict[str, Any]]]] = {
    Operation.SEND: _old_send,
    Operation.STREAM: _old_send,
    Operation.GET: lambda names: {"id": names.task},
    Operation.CANCEL: lambda names: {"id": names.task},
    Operation.SUBSCRIBE: lambda names: {"id": names.task},
    Operation.PUSH_CREATE: lambda names: {
        "taskId": names.task,
        "pushNotificationConfig": {"id": names.config, "url": names.webhook},
    },
    Operation.PUSH_GET: lambda names: {"id": names.task, "pushNotificationConfigId": names.config},
    Operation.PUSH_LIST: lambda names: {"id": names.task},
    Operation.PUSH_DELETE: lambda names: {"id": names.task, "pushNotificationConfigId": names.config},
    Operation.CARD: lambda _: {},
}
_METHODS: Final = {
    version: {operation: name for name, (operation, spoken) in reversed(METHODS.items()) if spoken == version}
    for version in ("1.0", "0.3")
}


def _rpc(version: str, operation: Operation) -> Make:
    params = (_NEW_PARAMS if version == "1.0" else _OLD_PARAMS)[operation]
    method = next(name for name in _METHODS[version].values() if METHODS[name][0] is operation)

    def make(names: Names) -> HttpRequest:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params(names)}
        return HttpRequest("POST", f"/{AGENT}", _headers(version), body=json.dumps(body).encode())

    return make


def _rest(version: str, verb: str, path: str, fill: Callable[[Names], dict[str, Any]] | None = None) -> Make:
    def make(names: Names) -> HttpRequest:
        where = path.format(task=names.task, config=names.config)
        if names.tenant and version == "1.0":
            where = where.replace("/echo/", f"/echo/{names.tenant}/", 1)
        given = {name: value for name, value in (fill(names) if fill else {}).items() if name != "tenant"}
        query = tuple((name, str(value)) for name, value in given.items()) if verb != "POST" else ()
        body = json.dumps(given).encode() if verb == "POST" else b""
        return HttpRequest(verb, where, _headers(version), query, body)

    return make


def _headers(version: str) -> dict[str, str]:
    return {"a2a-version": version, "content-type": "application/json"}


_HOOKS: Final = "/echo/tasks/{task}/pushNotificationConfigs"
_OLD_HOOKS: Final = "/echo/v1/tasks/{task}/pushNotificationConfigs"
_NEW_REST: Final[dict[Operation, Make]] = {
    Operation.SEND: _rest("1.0", "POST", "/echo/message:send", _new_send),
    Operation.STREAM: _rest("1.0", "POST", "/echo/message:stream", _new_send),
    Operation.GET: _rest("1.0", "GET", "/echo/tasks/{task}"),
    Operation.LIST: _rest("1.0", "GET", "/echo/tasks", _NEW_PARAMS[Operation.LIST]),
    Operation.CANCEL: _rest("1.0", "POST", "/echo/tasks/{task}:cancel"),
    Operation.SUBSCRIBE: _rest("1.0", "POST", "/echo/tasks/{task}:subscribe"),
    Operation.PUSH_CREATE: _rest("1.0", "POST", _HOOKS, _NEW_PARAMS[Operation.PUSH_CREATE]),
    Operation.PUSH_GET: _rest("1.0", "GET", _HOOKS + "/{config}"),
    Operation.PUSH_LIST: _rest("1.0", "GET", _HOOKS),
    Operation.PUSH_DELETE: _rest("1.0", "DELETE", _HOOKS + "/{config}"),
    Operation.CARD: _rest("1.0", "GET", "/echo/extendedAgentCard"),
}
_OLD_REST: Final[dict[Operation, Make]] = {
    Operation.SEND: _rest("0.3", "POST", "/echo/v1/message:send", _old_send),
    Operation.STREAM: _rest("0.3", "POST", "/echo/v1/message:stream", _old_send),
    Operation.GET: _rest("0.3", "GET", "/echo/v1/tasks/{task}"),
    Operation.CANCEL: _rest("0.3", "POST", "/echo/v1/tasks/{task}:cancel"),
    Operation.SUBSCRIBE: _rest("0.3", "POST", "/echo/v1/tasks/{task}:subscribe"),
    Operation.PUSH_CREATE: _rest("0.3", "POST", _OLD_HOOKS, _OLD_PARAMS[Operation.PUSH_CREATE]),
    Operation.PUSH_GET: _rest("0.3", "GET", _OLD_HOOKS + "/{config}"),
    Operation.PUSH_LIST: _rest("0.3", "GET", _OLD_HOOKS),
    Operation.PUSH_DELETE: _rest("0.3", "DELETE", _OLD_HOOKS + "/{config}"),
    Operation.CARD: _rest("0.3", "GET", "/echo/v1/card"),
}


def _legacy_send(names: Names) -> dict[str, Any]:
    return {"message": _message(names, {"type": "text", "text": names.text}, "user")}


_LEGACY: Final[dict[Operation, Make]] = {
    Operation.SEND: _rest("0.3", "POST", "/legacy/echo/tasks/send", _legacy_send),
    Operation.STREAM: _rest("0.3", "POST", "/legacy/echo/tasks/sendSubscribe", _legacy_send),
    Operation.GET: _rest("0.3", "GET", "/legacy/echo/tasks/{task}"),
    Operation.CANCEL: _rest("0.3", "POST", "/legacy/echo/tasks/cancel", lambda names: _set(id=names.task)),
}

BINDINGS: Final[dict[str, dict[Operation, Make]]] = {
    "1.0 JSON-RPC": {operation: _rpc("1.0", operation) for operation in _NEW_PARAMS},
    "1.0 REST": _NEW_REST,
    "0.3 JSON-RPC": {operation: _rpc("0.3", operation) for operation in _OLD_PARAMS},
    "0.3 REST": _OLD_REST,
    "legacy": _LEGACY,
}


def _of_task(what: str) -> Make:
    def make(names: Names) -> HttpRequest:
        query = (("tenant", names.tenant),) if names.tenant else ()
        return HttpRequest("GET", f"/echo/tasks/{names.task}/{what}", query=query)

    return make


DELIVERIES: Final[Make] = _of_task("deliveries")
TIMELINE: Final[Make] = _of_task("timeline")


def _retry(names: Names) -> HttpRequest:
    query = (("tenant", names.tenant),) if names.tenant else ()
    body = json.dumps({"requestId": names.message}).encode()
    return HttpRequest("POST", f"/echo/tasks/{names.task}/retry", _headers("1.0"), query, body)


RETRY: Final[Make] = _retry
