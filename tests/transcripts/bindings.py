"""Every operation of every binding as a request, from one set of names: what a client of each kind sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tests.transcripts.talk import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.transcripts.talk import Answer

Json = Any


@dataclass(frozen=True)
class Message:
    """A message as each version says it. ``parts`` are those of 1.0."""

    id: str
    parts: tuple[Json, ...] = ({"text": "hello"},)
    task: str | None = None
    context: str | None = None
    references: tuple[str, ...] = ()

    def new(self) -> Json:
        return self._said("ROLE_USER", list(self.parts))

    def old(self) -> Json:
        return self._said("user", [_old_part(part) for part in self.parts]) | {"kind": "message"}

    def proto(self) -> Json:
        """As 0.3 says it over HTTP, where ``content`` holds the parts."""
        said = self._said("ROLE_USER", [])
        del said["parts"]
        return said | {"content": [_proto_part(part) for part in self.parts]}

    def _said(self, role: str, parts: list[Json]) -> Json:
        message = {"messageId": self.id, "role": role, "parts": parts}
        if self.references:
            message["referenceTaskIds"] = list(self.references)
        given = {"taskId": self.task, "contextId": self.context}
        return message | {name: value for name, value in given.items() if value is not None}


def _old_part(part: Json) -> Json:
    if "text" in part:
        return {"kind": "text", **part}
    if "data" in part:
        return {"kind": "data", **part}
    content = {"bytes": part["raw"]} if "raw" in part else {"uri": part["url"]}
    names = {"name": part.get("filename"), "mimeType": part.get("mediaType")}
    return {"kind": "file", "file": content | {name: value for name, value in names.items() if value}}


def _proto_part(part: Json) -> Json:
    if "text" in part:
        return {"text": part["text"]}
    if "data" in part:
        return {"data": {"data": part["data"]}}
    content = {"fileWithBytes": part["raw"]} if "raw" in part else {"fileWithUri": part["url"]}
    names = {"name": part.get("filename"), "mimeType": part.get("mediaType")}
    return {"file": content | {name: value for name, value in names.items() if value}}


@dataclass(frozen=True)
class Hook:
    """A webhook of a client's."""

    id: str
    url: str
    token: str = "a token of the client's"


class Binding:
    """What a client of one binding and one version sends."""

    name = ""
    version = ""
    lists = True

    def send(self, agent: str, message: Message, *, wait: bool = True, hook: Hook | None = None) -> Request:
        raise NotImplementedError

    def stream(self, agent: str, message: Message, *, hook: Hook | None = None) -> Request:
        raise NotImplementedError

    def call(self, agent: str, operation: str, **names: Json) -> Request:
        """One of get, cancel, subscribe, list, set hook, get hook, list hooks, delete hook, extended card."""
        raise NotImplementedError

    def task_of(self, answer: Answer) -> Json:
        """The task in an answer to a send or a get."""
        raise NotImplementedError


class _Rpc(Binding):
    methods: ClassVar[dict[str, str]]

    def _rpc(self, agent: str, operation: str, params: Json) -> Request:
        body = {"jsonrpc": "2.0", "id": f"{operation} 1", "method": self.methods[operation], "params": params}
        return Request("POST", f"/{agent}", body, {"A2A-Version": self.version})

    def send(self, agent: str, message: Message, *, wait: bool = True, hook: Hook | None = None) -> Request:
        return self._rpc(agent, "send", self._send(message, wait=wait, hook=hook))

    def stream(self, agent: str, message: Message, *, hook: Hook | None = None) -> Request:
        return self._rpc(agent, "stream", self._send(message, wait=True, hook=hook))

    def _send(self, message: Message, *, wait: bool, hook: Hook | None) -> Json:
        raise NotImplementedError


class NewRpc(_Rpc):
    """1.0 over JSON-RPC."""

    name, version = "1.0-json-rpc", "1.0"
    methods: ClassVar[dict[str, str]] = {
        "send": "SendMessage",
        "stream": "SendStreamingMessage",
        "get": "GetTask",
        "list": "ListTasks",
        "cancel": "CancelTask",
        "subscribe": "SubscribeToTask",
        "set hook": "CreateTaskPushNotificationConfig",
        "get hook": "GetTaskPushNotificationConfig",
        "list hooks": "ListTaskPushNotificationConfigs",
        "delete hook": "DeleteTaskPushNotificationConfig",
        "extended card": "GetExtendedAgentCard",
    }

    def _send(self, message: Message, *, wait: bool, hook: Hook | None) -> Json:
        return _new_send(message, wait=wait, hook=hook)

    def call(self, agent: str, operation: str, **names: Json) -> Request:
        params = {"taskId": names["task"]} if operation == "list hooks" else _new_params(names)
        return self._rpc(agent, operation, params)

    def task_of(self, answer: Answer) -> Json:
        result = answer.json["result"]
        return result.get("task", result)


class OldRpc(_Rpc):
    """0.3 over JSON-RPC."""

    name, version, lists = "0.3-json-rpc", "0.3", False
    methods: ClassVar[dict[str, str]] = {
        "send": "message/send",
        "stream": "message/stream",
        "get": "tasks/get",
        "cancel": "tasks/cancel",
        "subscribe": "tasks/resubscribe",
        "set hook": "tasks/pushNotificationConfig/set",
        "get hook": "tasks/pushNotificationConfig/get",
        "list hooks": "tasks/pushNotificationConfig/list",
        "delete hook": "tasks/pushNotificationConfig/delete",
        "extended card": "agent/getAuthenticatedExtendedCard",
    }

    def _send(self, message: Message, *, wait: bool, hook: Hook | None) -> Json:
        return {"message": message.old(), "configuration": _old_configuration(wait=wait, hook=hook)}

    def call(self, agent: str, operation: str, **names: Json) -> Request:
        hook = names.pop("hook", None)
        if isinstance(hook, Hook):
            config = {"id": hook.id, "url": hook.url, "token": hook.token}
            return self._rpc(agent, operation, {"taskId": names["task"], "pushNotificationConfig": config})
        params = {"id": names.get("task")} | ({"pushNotificationConfigId": hook} if hook else {})
        length = {"historyLength": names["history"]} if "history" in names else {}
        return self._rpc(agent, operation, {} if operation == "extended card" else params | length)

    def task_of(self, answer: Answer) -> Json:
        return answer.json["result"]


class _Rest(Binding):
    prefix = ""

    def _rest(self, agent: str, verb: str, path: str, body: Json = None) -> Request:
        return Request(verb, f"/{agent}{self.prefix}{path}", body, {"A2A-Version": self.version})

    def call(self, agent: str, operation: str, **names: Json) -> Request:
        task, hook = names.get("task"), names.get("hook")
        webhooks = f"/tasks/{task}/pushNotificationConfigs"
        length = f"?historyLength={names['history']}" if "history" in names else ""
        paths: dict[str, tuple[str, str]] = {
            "get": ("GET", f"/tasks/{task}{length}"),
            "cancel": ("POST", f"/tasks/{task}:cancel"),
            "subscribe": ("POST", f"/tasks/{task}:subscribe"),
            "list hooks": ("GET", webhooks),
            "get hook": ("GET", f"{webhooks}/{hook}"),
            "delete hook": ("DELETE", f"{webhooks}/{hook}"),
            "set hook": ("POST", webhooks),
            "extended card": ("GET", "/extendedAgentCard" if self.version == "1.0" else "/card"),
            "list": ("GET", "/tasks?" + "&".join(f"{name}={value}" for name, value in _new_params(names).items())),
        }
        return self._rest(agent, *paths[operation], self._hook(hook) if isinstance(hook, Hook) else None)

    def _hook(self, hook: Hook) -> Json:
        raise NotImplementedError


class NewRest(_Rest):
    """1.0 over HTTP+JSON."""

    name, version = "1.0-rest", "1.0"

    def send(self, agent: str, message: Message, *, wait: bool = True, hook: Hook | None = None) -> Request:
        return self._rest(agent, "POST", "/message:send", _new_send(message, wait=wait, hook=hook))

    def stream(self, agent: str, message: Message, *, hook: Hook | None = None) -> Request:
        return self._rest(agent, "POST", "/message:stream", _new_send(message, wait=True, hook=hook))

    def _hook(self, hook: Hook) -> Json:
        return {"id": hook.id, "url": hook.url, "token": hook.token}

    def task_of(self, answer: Answer) -> Json:
        return answer.json.get("task", answer.json)


class OldRest(_Rest):
    """0.3 over HTTP+JSON, in the forms that 0.3's JSON-RPC has too."""

    name, version, lists, prefix = "0.3-rest", "0.3", False, "/v1"
    said: Callable[[Message], Json] = staticmethod(Message.old)

    def send(self, agent: str, message: Message, *, wait: bool = True, hook: Hook | None = None) -> Request:
        body = {"message": self.said(message), "configuration": _old_configuration(wait=wait, hook=hook)}
        return self._rest(agent, "POST", "/message:send", body)

    def stream(self, agent: str, message: Message, *, hook: Hook | None = None) -> Request:
        configured = {"configuration": _old_configuration(wait=True, hook=hook)} if hook else {}
        return self._rest(agent, "POST", "/message:stream", {"message": self.said(message)} | configured)

    def _hook(self, hook: Hook) -> Json:
        return {"pushNotificationConfig": {"id": hook.id, "url": hook.url, "token": hook.token}}

    def task_of(self, answer: Answer) -> Json:
        return answer.json.get("task", answer.json)


class ProtoRest(OldRest):
    """0.3 over HTTP+JSON, with messages as 0.3's protocol buffers print them."""

    name = "0.3-rest-proto"
    said = staticmethod(Message.proto)


BINDINGS: Final[tuple[Binding, ...]] = (NewRpc(), NewRest(), OldRpc(), OldRest(), ProtoRest())


def _new_send(message: Message, *, wait: bool, hook: Hook | None) -> Json:
    configuration: Json = {"returnImmediately": not wait}
    if hook:
        configuration["taskPushNotificationConfig"] = {"id": hook.id, "url": hook.url, "token": hook.token}
    return {"message": message.new(), "configuration": configuration}


def _old_configuration(*, wait: bool, hook: Hook | None) -> Json:
    configuration: Json = {"blocking": wait}
    if hook:
        configuration["pushNotificationConfig"] = {"id": hook.id, "url": hook.url, "token": hook.token}
    return configuration


def _new_params(names: dict[str, Json]) -> Json:
    hook = names.get("hook")
    if isinstance(hook, Hook):
        return {"taskId": names["task"], "id": hook.id, "url": hook.url, "token": hook.token}
    if "hook" in names:
        return {"taskId": names["task"], "id": hook}
    known = {
        "task": "id",
        "history": "historyLength",
        "context": "contextId",
        "size": "pageSize",
        "page": "pageToken",
        "artifacts": "includeArtifacts",
    }
    return {known[name]: value for name, value in names.items()}
