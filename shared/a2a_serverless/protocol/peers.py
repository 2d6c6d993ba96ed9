"""What other agents send, and the parameters of requests to them, in the version that the agent speaks.

A peer's answer is read leniently: in every form of 1.0 and of both bindings of 0.3, whatever the agent speaks, because
some change the form within one stream. Only what is needed is required. What is not understood is left out, and named
in ``skipped``: the caller logs that. The bounds are those of ``ANSWER_LIMITS``.

No leniency ends a task: a state that is not known is read as ``working``, so that the task is read again.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import ValidationError

from a2a_serverless.domain.errors import A2AError, InvalidAgentResponse
from a2a_serverless.protocol import v1, v1_card
from a2a_serverless.protocol.protojson import ProtoModel, describe, is_data_uri, path_of, printed, read_data_uri
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS
from a2a_serverless.protocol.versions import asked_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.protocol.versions import ProtocolVersion

T = TypeVar("T")
M = TypeVar("M", bound=ProtoModel)
Members = dict[str, Any]

VERSIONS: Final = ("1.0", "0.3")
BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
MOST_SKIPPED: Final = 16
"""So many texts say what was left out of one answer."""
WRAPPED: Final = "data_part_compat"
"""Marks a data part of 0.3, whose data is an object, with another value in its member ``value``."""

# The forms of a state and of a role: by the names of 0.3, of the proto and of 0.3's proto, and by number.
_STATES: Final[Mapping[object, v1.TaskState]] = {
    **{state.value: state for state in v1.TaskState},
    **{name.removeprefix("TASK_STATE_").lower().replace("_", "-"): state for name, state in v1.STATES.items()},
    **dict(enumerate(v1.TaskState, 1)),
    "cancelled": v1.TaskState.CANCELED,
}
_ROLES: Final[Mapping[object, v1.Role]] = {
    **{role.value: role for role in v1.Role},
    **dict(enumerate(v1.Role, 1)),
}
_TRUE: Final = (True, "true")
_KINDS: Final = {"task": "task", "message": "message", "status-update": "status", "artifact-update": "artifact"}
_WRAPPERS: Final = {
    "task": "task",
    "message": "message",
    "msg": "message",
    **dict.fromkeys(("statusUpdate", "status_update", "taskStatusUpdate"), "status"),
    **dict.fromkeys(("artifactUpdate", "artifact_update", "taskArtifactUpdate"), "artifact"),
}


_CONTENTS: Final = {
    "text": ("text",),
    "raw": ("raw", "bytes", "fileWithBytes", "file_with_bytes"),
    "url": ("url", "uri", "fileWithUri", "file_with_uri"),
}
_ABOUT: Final = {
    "media_type": ("mediaType", "media_type", "mimeType", "mime_type"),
    "filename": ("filename", "name"),
}
_BINARY: Final = ("image/", "audio/", "video/")
"""Formats of which no file is a text in base64. Of other files it is not known whether they were encoded twice."""


class NoInterface(A2AError):
    """The card has no interface that we support."""


def read_item(version: ProtocolVersion, value: object, skipped: list[str] | None = None) -> v1.StreamContent:
    """The answer to a send, or an item of a stream. Raises InvalidAgentResponse for a value that is neither."""
    return _Reader(version, skipped).item(value)


def read_task(version: ProtocolVersion, value: object, skipped: list[str] | None = None) -> v1.Task:
    """A task, also a wrapped one. Raises InvalidAgentResponse."""
    item = read_item(version, value, skipped)
    if not isinstance(item, v1.Task):
        raise InvalidAgentResponse("It is not a task.")
    return item


def read_page(value: object, skipped: list[str] | None = None) -> tuple[tuple[v1.Task, ...], str | None]:
    """A page of tasks of 1.0, and the token of the next page. Raises InvalidAgentResponse."""
    if not isinstance(value, dict) or not isinstance(value.get("tasks") or [], list):
        raise InvalidAgentResponse("It is not a page of tasks.")
    reader, token = _Reader("1.0", skipped), _member(value, "nextPageToken")
    return reader.each(value, "tasks", reader.task, ""), token if isinstance(token, str) and token else None


def read_card(value: object, skipped: list[str] | None = None) -> v1_card.AgentCard:
    """The card as one of 1.0, as far as it can be used. Raises InvalidAgentResponse for a value that is no card.

    ``supported_interfaces`` has those of versions that we speak; without any, those of the members of 0.3. The
    security of the card is left out.
    """
    return _Reader("1.0", skipped).card(value)


class _Reader:
    """Reads one answer. Each method gets the path of its value, for the text about what it leaves out."""

    def __init__(self, version: ProtocolVersion, skipped: list[str] | None) -> None:
        self._is_old = version == "0.3"
        self._skipped = [] if skipped is None else skipped

    def item(self, value: object) -> v1.StreamContent:
        if not isinstance(value, dict):
            raise InvalidAgentResponse("It is null." if value is None else "It is not an object.")
        kind, content, path = _kind_of(value)
        readers: dict[str, Callable[[Members, str], v1.StreamContent]] = {
            "task": self.task,
            "message": self.message,
            "status": self._status_update,
            "artifact": self._artifact_update,
        }
        if kind not in readers:
            raise InvalidAgentResponse(f"It is not a task, a message or an event, but {kind}.")
        return readers[kind](content, path)

    def task(self, value: Members, path: str) -> v1.Task:
        artifacts = self.each(value, "artifacts", self._artifact, path)
        history = self.each(value, "history", self.message, path)
        status = self._status(value.get("status"), _below(path, "status"))
        return self._build(v1.Task, value, path, status=status, artifacts=artifacts, history=history)

    def message(self, value: Members, path: str) -> v1.Message:
        role = _ROLES.get(_plain(value.get("role"), "role-"))
        if role is None:
            self._skip(_below(path, "role"), "is not user or agent")
        return self._build(v1.Message, value, path, role=role or v1.Role.AGENT, parts=self._parts(value, path))

    def _status(self, value: object, path: str) -> v1.TaskStatus:
        members = value if isinstance(value, dict) else {"state": value}
        state, message = _STATES.get(_plain(members.get("state"), "task-state-")), members.get("message")
        if state is None:
            self._skip(_below(path, "state"), "is not a state of A2A")
        content = self.message(message, _below(path, "message")) if isinstance(message, dict) else None
        if message is not None and content is None:
            self._skip(_below(path, "message"), "is not an object")
        return self._build(v1.TaskStatus, members, path, state=state or v1.TaskState.WORKING, message=content)

    def _status_update(self, value: Members, path: str) -> v1.TaskStatusUpdateEvent:
        status = self._status(value.get("status"), _below(path, "status"))
        return self._build(v1.TaskStatusUpdateEvent, value, path, status=status)

    def _artifact_update(self, value: Members, path: str) -> v1.TaskArtifactUpdateEvent:
        if not isinstance(content := value.get("artifact"), dict):
            raise InvalidAgentResponse("It is an event of an artifact without one.")
        artifact = self._artifact(content, _below(path, "artifact"))
        return self._build(v1.TaskArtifactUpdateEvent, value, path, artifact=artifact)

    def _artifact(self, value: Members, path: str) -> v1.Artifact:
        artifact = self._build(v1.Artifact, value, path, parts=self._parts(value, path))
        name = artifact.artifact_id or artifact.name or "artifact"
        return artifact.model_copy(update={"artifact_id": name})

    def _parts(self, value: Members, path: str) -> tuple[v1.Part, ...]:
        name = "parts" if value.get("parts") is not None else "content"
        if isinstance(text := value.get(name), str):
            return (v1.Part(text=text),)
        return self.each(value, name, self._part, path, ANSWER_LIMITS.parts)

    def _part(self, value: Members, path: str) -> v1.Part:
        inner = value.get("file")
        file = {**value, **inner} if isinstance(inner, dict) else value
        contents = {name: _first(file, *names) for name, names in _CONTENTS.items()}
        contents["data"] = self._data(value)
        names = [name for name, content in contents.items() if content not in (None, "")]
        if len(names) > 1:
            self._skip(path, f"has {' and '.join(names)}, of which the first counts")
        names = names or [name for name, content in contents.items() if content is not None]
        names = names or ["data"] * ("data" in value)
        if not names:
            raise InvalidAgentResponse("has none of text, raw, url, data")
        about = {name: _first(file, *names) for name, names in _ABOUT.items()}
        metadata, content = value.get("metadata"), contents[names[0]]
        if _is_wrapped(value):
            metadata = {name: inner for name, inner in _object(metadata).items() if name != WRAPPED} or None
        if names[0] == "raw" and isinstance(content, str):
            media_type, content = _base64_of(content)
            about["media_type"] = about["media_type"] or media_type
            if self._is_old and "kind" not in value and str(about["media_type"]).startswith(_BINARY):
                content = _decode_twice_encoded(content)
        return self._build(v1.Part, {**about, "metadata": metadata, names[0]: content}, path, needs=names[0])

    def _data(self, part: Members) -> Any:  # noqa: ANN401 - any JSON
        """The data of a part: 0.3's HTTP+JSON nests it, and 0.3 wraps what is no object."""
        data = part.get("data")
        if self._is_old and "kind" not in part and isinstance(data, dict) and isinstance(data.get("data"), dict):
            data = data["data"]
        return data["value"] if _is_wrapped(part) and isinstance(data, dict) and "value" in data else data

    def card(self, value: object) -> v1_card.AgentCard:
        if not isinstance(value, dict) or not (name := self._text(value, "name", "")):
            raise InvalidAgentResponse("It is not an agent card: an agent card is an object with a name.")
        capabilities = _object(value.get("capabilities"))
        return v1_card.AgentCard(
            name=name,
            description=self._text(value, "description", "", ANSWER_LIMITS.body),
            version=self._text(value, "version", ""),
            default_input_modes=self._texts(value, "defaultInputModes", ""),
            default_output_modes=self._texts(value, "defaultOutputModes", ""),
            supported_interfaces=self._interfaces(value),
            capabilities=v1_card.AgentCapabilities(
                streaming=_member(capabilities, "streaming") in _TRUE,
                push_notifications=_member(capabilities, "pushNotifications") in _TRUE,
                extensions=self.each(capabilities, "extensions", self._extension, "capabilities"),
            ),
            skills=self.each(value, "skills", self._skill, ""),
        )

    def _interfaces(self, card: Members) -> tuple[v1_card.AgentInterface, ...]:
        """Those of versions that we speak; those of 0.3's members if no other is of use."""
        interfaces = self.each(card, "supportedInterfaces", self._interface, "")
        ours = tuple(one for one in interfaces if one.protocol_version in VERSIONS)
        if any(one.protocol_binding in BINDINGS for one in ours) or not self._text(card, "url", ""):
            return ours
        main = {"url": card["url"], "transport": _member(card, "preferredTransport") or "JSONRPC"}
        others = self.each(card, "additionalInterfaces", self._interface, "")
        return (*ours, self._interface(main, ""), *others)

    def _interface(self, value: Members, path: str) -> v1_card.AgentInterface:
        url, tenant = self._text(value, "url", path, ANSWER_LIMITS.url), self._text(value, "tenant", path)
        binding = self._text(value, "protocolBinding", path) or self._text(value, "transport", path)
        if not url or not binding:
            raise InvalidAgentResponse("has no url, or no binding")
        version = asked_version(self._text(value, "protocolVersion", path))
        binding = binding.upper() if binding.upper() in BINDINGS else binding
        return v1_card.AgentInterface(url=url, protocol_binding=binding, protocol_version=version, tenant=tenant)

    def _skill(self, value: Members, path: str) -> v1_card.AgentSkill:
        if not (id_ := self._text(value, "id", path, ANSWER_LIMITS.ident)):
            raise InvalidAgentResponse("has no id")
        return v1_card.AgentSkill(
            id=id_,
            name=self._text(value, "name", path),
            description=self._text(value, "description", path, ANSWER_LIMITS.body),
            tags=self._texts(value, "tags", path),
            examples=self._texts(value, "examples", path),
            input_modes=self._texts(value, "inputModes", path),
            output_modes=self._texts(value, "outputModes", path),
        )

    def _extension(self, value: Members, path: str) -> v1_card.AgentExtension:
        if not (uri := self._text(value, "uri", path, ANSWER_LIMITS.url)):
            raise InvalidAgentResponse("has no uri")
        return v1_card.AgentExtension(
            uri=uri,
            description=self._text(value, "description", path, ANSWER_LIMITS.body),
            required=_member(value, "required") in _TRUE,
            params=_object(value.get("params")) or None,
        )

    def _text(self, value: Members, name: str, path: str, most: int = ANSWER_LIMITS.name) -> str:
        text = _member(value, name)
        if text is None or (isinstance(text, str) and len(text) <= most):
            return text or ""
        self._skip(_below(path, name), f"is not a text of at most {most} characters")
        return ""

    def _texts(self, value: Members, name: str, path: str) -> tuple[str, ...]:
        """The texts of a list, without those that are empty, too long, or no texts."""

        def read(text: object, _: str) -> str:
            if isinstance(text, str) and 0 < len(text) <= ANSWER_LIMITS.name:
                return text
            raise InvalidAgentResponse(f"is not a text of 1 to {ANSWER_LIMITS.name} characters")

        return self.each(value, name, read, path, of=object)

    def each(
        self,
        value: Members,
        name: str,
        read: Callable[[Any, str], T],
        path: str,
        most: int = ANSWER_LIMITS.items,
        of: type = dict,
    ) -> tuple[T, ...]:
        """What ``read`` makes of the items of a list, without those that cannot be read."""
        items, path = _member(value, name), _below(path, name)
        if items is None:
            return ()
        if not isinstance(items, list):
            self._skip(path, "is not a list")
            return ()
        if len(items) > most:
            raise InvalidAgentResponse(f"Its {path} has {len(items)} items; at most {most} are read.")
        contents = list[T]()
        for number, item in enumerate(items):
            at = f"{path}[{number}]"
            try:
                if not isinstance(item, of):
                    raise InvalidAgentResponse("is not an object")  # noqa: TRY301 - said as every other mistake
                contents.append(read(item, at))
            except InvalidAgentResponse as unreadable:
                self._skip(at, str(unreadable))
        return tuple(contents)

    def _build(self, model: type[M], value: Members, path: str, *, needs: str = "", **known: Any) -> M:  # noqa: ANN401
        """The object with the members ``known``, and those of the value that are valid; ids are "" without one.

        Raises InvalidAgentResponse if the member that it ``needs`` is not valid.
        """
        fields = model.model_fields
        members = {
            name: value.get(field.alias or name, value.get(name)) for name, field in fields.items() if name not in known
        }
        members = {name: member for name, member in members.items() if member is not None or name == needs} | known
        empty = dict.fromkeys((name for name, field in fields.items() if field.is_required()), "")
        try:
            return model.model_validate(empty | members, context=ANSWER_LIMITS)
        except ValidationError as error:
            for details in error.errors(include_url=False)[: ANSWER_LIMITS.violations]:
                self._skip(_below(path, path_of(details["loc"])), describe(details))
                if not details["loc"] or details["loc"][0] == needs:
                    raise InvalidAgentResponse("cannot be read") from None
            wrong = {details["loc"][0] for details in error.errors(include_url=False)}
            valid = {name: member for name, member in members.items() if not {name, fields[name].alias} & wrong}
        return model.model_validate(empty | valid, context=ANSWER_LIMITS)

    def _skip(self, path: str, why: str) -> None:
        if len(self._skipped) < MOST_SKIPPED:
            self._skipped.append(f"{path} {why}".strip()[:200])


def _kind_of(value: Members) -> tuple[str, Members, str]:
    """The kind of an item, its content, and the path of that. An unknown kind is a text that describes the item."""
    if isinstance(kind := value.get("kind"), str):
        return _KINDS.get(kind, f"of the kind {kind[:40]!r}"), value, ""
    for name, inner in value.items():
        if name in _WRAPPERS and isinstance(inner, dict):
            return _WRAPPERS[name], inner, name
    if "status" in value:
        return "task" if "id" in value else "status", value, ""
    if isinstance(value.get("artifact"), dict):
        return "artifact", value, ""
    if "parts" in value or "content" in value:
        return "message", value, ""
    return f"an object with {', '.join(map(repr, list(value)[:5])) or 'no member'}"[:200], value, ""


def _member(value: Members, name: str) -> Any:  # noqa: ANN401 - any JSON
    """A member by its name in camelCase, or by that in snake_case."""
    member = value.get(name)
    return member if member is not None else value.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))


def _first(value: Members, *names: str) -> Any:  # noqa: ANN401 - any JSON
    """The first of these members that is not empty; else the first that is there."""
    members = [value[name] for name in names if value.get(name) is not None]
    return next((member for member in members if member != ""), members[0] if members else None)


def _object(value: object) -> Members:
    return value if isinstance(value, dict) else {}


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def _plain(name: object, prefix: str) -> object:
    """The name of a state or role in 0.3's form; None for a value that is no name and no number."""
    if isinstance(name, str):
        return name.lower().replace("_", "-").removeprefix(prefix)
    return name if type(name) is int else None


def _is_wrapped(part: Members) -> bool:
    return _object(part.get("metadata")).get(WRAPPED) is True


def _base64_of(text: str) -> tuple[str | None, str]:
    """The media type of a ``data:`` URI, which some put in the place of base64, and the base64 without line ends."""
    if is_data_uri(text):
        with suppress(ValueError):
            return read_data_uri(text)
    return None, "".join(text.split())


def _decode_twice_encoded(raw: str) -> str:
    """The base64 that is encoded in base64 once more, as by the SDKs of Python and Go over 0.3's HTTP+JSON."""
    with suppress(ValueError):
        inner = b64decode(raw, validate=True)
        if inner and b64encode(b64decode(inner, validate=True)) == inner:
            return inner.decode("ascii")
    return raw


def keeps_subscribed_tasks(version: str) -> bool:
    """Whether a peer's task stays as it is while its stream is subscribed to again.

    The official server of 0.3 in Python stores each chunk once more for each subscription.
    """
    return version != "0.3"


def interface_of(card: v1_card.AgentCard, binding: str | None = None) -> v1_card.AgentInterface:
    """The first interface of the newest version that we speak (8.3.2), JSON-RPC before HTTP+JSON.

    It has this ``binding`` if one is named. Raises NoInterface.
    """
    choices = [(version, name) for version in VERSIONS for name in ((binding,) if binding else BINDINGS)]
    interfaces = {(one.protocol_version, one.protocol_binding): one for one in reversed(card.supported_interfaces)}
    for choice in choices:
        if choice in interfaces:
            return interfaces[choice]
    raise NoInterface(f"The agent does not speak A2A 1.0 or 0.3 over {binding or 'JSON-RPC or HTTP+JSON'}.")


def print_params(version: ProtocolVersion, request: ProtoModel, binding: str = "JSONRPC") -> bytes:
    """The JSON of the parameters of a request of 1.0. Raises ValueError for what JSON cannot express, such as NaN."""
    if version != "1.0":
        from a2a_serverless.protocol import v0_3, v0_3_rest

        request = (v0_3 if binding == "JSONRPC" else v0_3_rest).REQUESTS.of(request)
    return printed(request)
