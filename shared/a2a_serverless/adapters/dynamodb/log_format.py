"""The JSON format of stored events, step results, snapshots and documents. Names are short to save storage and reads.

A field that an older text lacks gets the model's default. Items of a newer release never get here:
``items.readable`` refuses them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from a2a_serverless.domain.events import ArtifactEvent, Event, Incoming, StatusEvent
from a2a_serverless.domain.model import Artifact, Json, Message, Part, PartKind, Role, Task, TaskState, TaskStatus
from a2a_serverless.ports.tasks import StepResult

if TYPE_CHECKING:
    from collections.abc import Mapping

SNAPSHOT_VERSION: Final = 1
_KINDS: Final[tuple[PartKind, ...]] = ("text", "raw", "url", "data")


def dump_event(event: Event) -> str:
    """An event as JSON, without its number and append id, which its item carries."""
    kind = _status(event) if isinstance(event, StatusEvent) else _chunk(event)
    return _text(_given({**kind, "at": event.at, "f": event.fence or None}))


def load_event(text: str, n: int, by: str) -> Event:
    """The event that ``dump_event`` wrote."""
    body = json.loads(text)
    if body["k"] == "s":
        message, incoming = body.get("m"), body.get("in")
        return StatusEvent(
            n=n,
            at=body["at"],
            append_id=by,
            state=TaskState(body["s"]),
            message=message and _message_of(message),
            incoming=incoming and _incoming_of(incoming),
            fence=body.get("f", 0),
        )
    first, last = body.get("e", (0, 0))
    return ArtifactEvent(
        n=n,
        at=body["at"],
        append_id=by,
        artifact=_artifact_of(body["a"]),
        append=body.get("+", False),
        last_chunk=body.get("end", False),
        emits=(first, last),
        fence=body.get("f", 0),
        step=body.get("st", ""),
    )


def dump_step(result: StepResult) -> str:
    """A step's result as JSON."""
    said = _given({"f": result.fence or None, "c": result.counts or None})
    return _text({"a": result.arguments, "v": result.value, **said})


def load_step(text: str) -> StepResult:
    """The result that ``dump_step`` wrote."""
    body = json.loads(text)
    return StepResult(body["a"], body["v"], body.get("f", 0), body.get("c", {}))


def dump_snapshot(task: Task) -> str:
    """A whole task, as of its event ``n``, as JSON with a format version."""
    status = task.status
    body = {
        "s": status.state,
        "at": status.timestamp,
        "m": status.message and _message(status.message),
        "md": task.metadata,
    }
    made, said = [_artifact(one) for one in task.artifacts], [_message(one) for one in task.history]
    ids = {"v": SNAPSHOT_VERSION, "i": task.task_id, "c": task.context_id, "n": task.n}
    return _text(_given({**ids, **body, "a": made, "h": said}))


def load_snapshot(text: str) -> Task:
    """The task that ``dump_snapshot`` wrote; raises ValueError for another format version."""
    body = json.loads(text)
    if body["v"] != SNAPSHOT_VERSION:
        raise ValueError("a snapshot of another version")
    message = body.get("m")
    return Task(
        task_id=body["i"],
        context_id=body["c"],
        status=TaskStatus(TaskState(body["s"]), body["at"], message and _message_of(message)),
        n=body["n"],
        artifacts=tuple(_artifact_of(one) for one in body["a"]),
        history=tuple(_message_of(one) for one in body["h"]),
        metadata=body.get("md"),
    )


def dump_document(document: Json) -> str:
    """A public document as JSON."""
    return _text(document)


def load_document(text: str) -> Json:
    """The document that ``dump_document`` wrote."""
    return cast("Json", json.loads(text))


def _text(value: object) -> str:
    """Compact JSON. A lone surrogate has no UTF-8 form, so a text with one is escaped as a whole."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def _given(body: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in body.items() if value is not None}


def _status(event: StatusEvent) -> dict[str, object]:
    incoming = event.incoming and _incoming(event.incoming)
    return {"k": "s", "s": event.state, "m": event.message and _message(event.message), "in": incoming}


def _chunk(event: ArtifactEvent) -> dict[str, object]:
    flags = {"+": event.append or None, "end": event.last_chunk or None, "st": event.step or None}
    return {"k": "a", "a": _artifact(event.artifact), "e": _range(event.emits), **flags}


def _range(emits: tuple[int, int]) -> list[int] | None:
    return None if emits == (0, 0) else [*emits]


def _incoming(incoming: Incoming) -> dict[str, object]:
    modes = [*incoming.accepted_output_modes] or None
    return _given({"m": _message(incoming.message), "o": modes, "md": incoming.metadata})


def _incoming_of(body: dict[str, Any]) -> Incoming:
    return Incoming(_message_of(body["m"]), tuple(body.get("o", ())), body.get("md"))


def _message(message: Message) -> dict[str, object]:
    return _given(
        {
            "i": message.message_id,
            "r": message.role,
            "p": [_part(part) for part in message.parts],
            "c": message.context_id,
            "t": message.task_id,
            "md": message.metadata,
            "x": [*message.extensions] or None,
            "ref": [*message.reference_task_ids] or None,
        }
    )


def _message_of(body: dict[str, Any]) -> Message:
    return Message(
        message_id=body["i"],
        role=Role(body["r"]),
        parts=tuple(_part_of(part) for part in body["p"]),
        context_id=body.get("c"),
        task_id=body.get("t"),
        metadata=body.get("md"),
        extensions=tuple(body.get("x", ())),
        reference_task_ids=tuple(body.get("ref", ())),
    )


def _artifact(artifact: Artifact) -> dict[str, object]:
    return _given(
        {
            "i": artifact.artifact_id,
            "p": [_part(part) for part in artifact.parts],
            "n": artifact.name,
            "d": artifact.description,
            "md": artifact.metadata,
            "x": [*artifact.extensions] or None,
        }
    )


def _artifact_of(body: dict[str, Any]) -> Artifact:
    return Artifact(
        artifact_id=body["i"],
        parts=tuple(_part_of(part) for part in body["p"]),
        name=body.get("n"),
        description=body.get("d"),
        metadata=body.get("md"),
        extensions=tuple(body.get("x", ())),
    )


def _part(part: Part) -> dict[str, object]:
    rest = _given({"mt": part.media_type, "fn": part.filename, "md": part.metadata})
    return {part.kind: part.value, **rest}


def _part_of(body: dict[str, Any]) -> Part:
    kind = next(kind for kind in _KINDS if kind in body)
    return Part(kind, body[kind], body.get("mt"), body.get("fn"), body.get("md"))
