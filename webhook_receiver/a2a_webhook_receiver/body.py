"""Reads a notification's body: one version-independent ``Content`` from both wire formats.

A2A 1.0 sends a ``StreamResponse``: exactly one of ``task``, ``message``, ``statusUpdate``, ``artifactUpdate``
(specification 1.0.1, section 4.3.3). A2A 0.3 sends the whole ``Task`` (specification 0.3.0, section 9.5). Unknown
members are ignored (1.0.1, section 5.7); members that we use must be present.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from a2a_webhook_receiver import strict_json
from a2a_webhook_receiver.errors import Unreadable, UnsupportedVersion
from a2a_webhook_receiver.strict_json import Json

Kind = Literal["task", "message", "statusUpdate", "artifactUpdate"]
Object = Mapping[str, Json]

TERMINAL = frozenset({"completed", "failed", "canceled", "rejected"})
INTERRUPTED = frozenset({"input-required", "auth-required"})
STATES = TERMINAL | INTERRUPTED | {"submitted", "working"}
STATES_0_3 = {state: state for state in STATES}
STATES_1_0 = {f"TASK_STATE_{state.upper().replace('-', '_')}": state for state in STATES}
CHALLENGE_TYPE = "a2a.webhook.challenge"
MAX_CHALLENGE = 512
_PARTS: tuple[tuple[str, Literal["text", "data", "link", "file"]], ...] = (
    ("text", "text"),
    ("data", "data"),
    ("url", "link"),
    ("raw", "file"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message or artifact. ``value``: the text, the data, the link, or the file in base64."""

    kind: Literal["text", "data", "link", "file"]
    value: Json
    media_type: str
    filename: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """A result of a task, or one chunk of it."""

    artifact_id: str
    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """A notification's content. ``state`` is spelled as in 0.3 (``input-required``); None when there is none.

    ``finished`` is False for a chunk of an artifact with more to come. ``payload`` is the whole body as received.
    """

    version: Literal["1.0", "0.3"]
    kind: Kind
    task_id: str
    context_id: str | None
    state: str | None
    message: tuple[Part, ...]
    artifacts: tuple[Artifact, ...]
    finished: bool
    payload: Object


def read_content(raw: bytes, version: str) -> Content:
    """The content of a body, read as ``version`` (the A2A-Version header). Raises Unreadable, UnsupportedVersion."""
    read = _READERS.get(version)
    if read is None:
        raise UnsupportedVersion(f"speaks {version[:16]!r}, and we read {', '.join(_READERS)}")
    try:
        return read(strict_json.parse_object(raw))
    except (ValueError, KeyError) as error:
        raise Unreadable(f"not a notification of A2A {version}: {_why(error)}") from error


def read_task(task: Object) -> Content:
    """The content of a whole 1.0 task. Raises Unreadable."""
    try:
        return _read_1_0({"task": dict(task)})
    except (ValueError, KeyError) as error:
        raise Unreadable(f"not a task of A2A 1.0: {_why(error)}") from error


def read_challenge(raw: bytes) -> str:
    """The text that a challenge wants back. Raises Unreadable."""
    try:
        body = strict_json.parse_object(raw)
        challenge = _text(body, "challenge")
    except (ValueError, KeyError) as error:
        raise Unreadable(f"not a challenge: {_why(error)}") from error
    if body.get("type") != CHALLENGE_TYPE or not 0 < len(challenge) <= MAX_CHALLENGE:
        raise Unreadable(f"not a {CHALLENGE_TYPE}")
    return challenge


def _why(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _read_1_0(body: Object) -> Content:
    kinds = [kind for kind in _EVENTS if kind in body]
    if len(kinds) != 1:
        raise ValueError(f"holds {len(kinds)} of {', '.join(_EVENTS)}")
    kind = kinds[0]
    event = _object(body, kind)
    status = _object(event, "status") if kind in ("task", "statusUpdate") else None
    return Content(
        version="1.0",
        kind=kind,
        task_id=_text(event, "id" if kind == "task" else "taskId"),
        context_id=_optional_text(event, "contextId"),
        state=_state(status, STATES_1_0) if status is not None else None,
        message=_EVENTS[kind](event),
        artifacts=_artifacts(event, kind),
        finished=kind != "artifactUpdate" or event.get("lastChunk") is True,
        payload=body,
    )


def _read_0_3(body: Object) -> Content:
    if body.get("kind") != "task":
        raise ValueError("its kind is not task")
    status = _object(body, "status")
    return Content(
        version="0.3",
        kind="task",
        task_id=_text(body, "id"),
        context_id=_text(body, "contextId"),
        state=_state(status, STATES_0_3),
        message=_status_message(body),
        artifacts=_artifacts(body, "task"),
        finished=True,
        payload=body,
    )


_READERS: dict[str, Callable[[Object], Content]] = {"1.0": _read_1_0, "0.3": _read_0_3}


def _no_message(_event: Object) -> tuple[Part, ...]:
    return ()


def _status_message(event: Object) -> tuple[Part, ...]:
    status = _object(event, "status")
    return _parts(_object(status, "message")) if "message" in status else ()


def _own_message(event: Object) -> tuple[Part, ...]:
    _text(event, "messageId")
    _text(event, "role")
    return _parts(event)


_EVENTS: dict[Kind, Callable[[Object], tuple[Part, ...]]] = {
    "task": _status_message,
    "message": _own_message,
    "statusUpdate": _status_message,
    "artifactUpdate": _no_message,
}
"""How to read the message of each member of a StreamResponse."""


def _artifacts(event: Object, kind: Kind) -> tuple[Artifact, ...]:
    if kind == "artifactUpdate":
        return (_artifact(_object(event, "artifact")),)
    items = _list(event, "artifacts") if kind == "task" and "artifacts" in event else []
    return tuple(_artifact(_as_object(item, "an artifact")) for item in items)


def _artifact(item: Object) -> Artifact:
    return Artifact(_text(item, "artifactId"), _optional_text(item, "name") or "", _parts(item))


def _parts(holder: Object) -> tuple[Part, ...]:
    items = _list(holder, "parts")
    if not items:
        raise ValueError("parts is empty")
    return tuple(_part(_as_object(item, "a part")) for item in items)


def _part(part: Object) -> Part:
    """Reads a part of either version: 1.0 has a member per kind, 0.3 has ``kind`` and nests files."""
    if part.get("kind") == "file":
        return _file_0_3(_object(part, "file"))
    contents = [(name, kind) for name, kind in _PARTS if name in part]
    if len(contents) != 1:
        raise ValueError(f"a part holds {len(contents)} contents")
    name, kind = contents[0]
    value = part[name] if kind == "data" else _text(part, name)
    return Part(kind, value, _optional_text(part, "mediaType") or "", _optional_text(part, "filename") or "")


def _file_0_3(file: Object) -> Part:
    kind: Literal["link", "file"] = "file" if "bytes" in file else "link"
    value = _text(file, "bytes" if kind == "file" else "uri")
    return Part(kind, value, _optional_text(file, "mimeType") or "", _optional_text(file, "name") or "")


def _state(status: Object, names: Mapping[str, str]) -> str:
    state = names.get(_text(status, "state"))
    if state is None:
        raise ValueError("its state is unknown")
    return state


def _object(holder: Object, name: str) -> Object:
    return _as_object(holder[name], name)


def _as_object(value: Json, name: str) -> Object:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")  # noqa: TRY004 - the input is wrong, not the call
    return value


def _list(holder: Object, name: str) -> list[Json]:
    value = holder[name]
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")  # noqa: TRY004 - as above
    return value


def _text(holder: Object, name: str) -> str:
    value = holder[name]
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a string")  # noqa: TRY004 - as above
    return value


def _optional_text(holder: Object, name: str) -> str | None:
    return _text(holder, name) if holder.get(name) is not None else None
