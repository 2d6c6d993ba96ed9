"""The JSON texts in which the log is kept: events and snapshots of tasks. Form 2 is 1.0's JSON and what goes with it.

Form 1, with short names of its own, is read and no longer written. What is absent from an older text gets the model's
default. Which form a text has is told by its names: only form 1 has a ``k`` (events) or a ``v`` of 1 (snapshots).

What is stored is ours: it is read without the bounds that hold for what others send.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic_core import PydanticSerializationError, from_json

from a2a_serverless.domain.events import ArtifactEvent, Event, Incoming, StatusEvent
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.protojson import Metadata, Names, ProtoModel, finite

SNAPSHOT_VERSION: Final = 2
_STATES: Final = {state.short: state for state in v1.TaskState}
_PART_NAMES: Final = {"mt": "mediaType", "fn": "filename", "md": "metadata"}
_ROLES: Final = {role.short: role for role in v1.Role}


class StoredIncoming(ProtoModel):
    """What a client's message brought along."""

    message: v1.Message
    accepted_output_modes: Names = ()
    metadata: Metadata = None


class StoredStatus(ProtoModel):
    """A status event, without what its item carries apart: number and author."""

    state: v1.TaskState
    at: int
    message: v1.Message | None = None
    incoming: StoredIncoming | None = None
    fence: int = 0


class StoredChunk(ProtoModel):
    """An artifact event, likewise."""

    artifact: v1.Artifact
    at: int
    append: bool = False
    last_chunk: bool = False
    emits: tuple[int, int] = (0, 0)
    fence: int = 0
    step: str = ""


class StoredSnapshot(ProtoModel):
    """A task as of event ``n``."""

    v: int
    n: int
    task: v1.Task


def dump_event(event: Event) -> str:
    """An event as JSON in form 2."""
    return _text(_status(event) if isinstance(event, StatusEvent) else _chunk(event))


def load_event(text: str, n: int, by: str) -> Event:
    """The event that a release has stored."""
    body = _parsed(text)
    body = _event_1(body) if "k" in body else body
    if "state" in body:
        return _status_event(StoredStatus.model_validate(body), n, by)
    return _artifact_event(StoredChunk.model_validate(body), n, by)


def dump_snapshot(task: v1.Task) -> str:
    """A task as of its ``n`` as JSON in form 2."""
    return _text(StoredSnapshot(v=SNAPSHOT_VERSION, n=task.n, task=task))


def load_snapshot(text: str) -> v1.Task:
    """The task that a release has stored; raises ValueError for a form of another version."""
    body = _parsed(text)
    if body["v"] not in {1, SNAPSHOT_VERSION}:
        raise ValueError("a snapshot of another version")
    stored = StoredSnapshot.model_validate(_snapshot_1(body) if body["v"] == 1 else body)
    return stored.task.as_of(stored.n)


def _parsed(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value. Only Python's own reader takes the escape of a lone surrogate."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


def _text(model: ProtoModel) -> str:
    """JSON, as small as it gets. A lone surrogate has no UTF-8 form, so a text that holds one is escaped as a whole."""
    try:
        return finite(model.json_bytes()).decode()
    except PydanticSerializationError:
        plain = model.model_dump(by_alias=True, exclude_defaults=True)
        return json.dumps(plain, allow_nan=False, separators=(",", ":"))


def _status(event: StatusEvent) -> StoredStatus:
    incoming = event.incoming and StoredIncoming(
        message=event.incoming.message,
        accepted_output_modes=event.incoming.accepted_output_modes,
        metadata=event.incoming.metadata,
    )
    return StoredStatus(state=event.state, at=event.at, message=event.message, incoming=incoming, fence=event.fence)


def _chunk(event: ArtifactEvent) -> StoredChunk:
    return StoredChunk(
        artifact=event.artifact,
        at=event.at,
        append=event.append,
        last_chunk=event.last_chunk,
        emits=event.emits,
        fence=event.fence,
        step=event.step,
    )


def _status_event(stored: Any, n: int, by: str) -> StatusEvent:  # noqa: ANN401 - until the events hold 1.0's objects
    said = stored.incoming
    incoming = said and Incoming(said.message, said.accepted_output_modes, said.metadata)
    return StatusEvent(n, stored.at, by, stored.state, stored.message, incoming, stored.fence)


def _artifact_event(chunk: Any, n: int, by: str) -> ArtifactEvent:  # noqa: ANN401 - as above
    return ArtifactEvent(
        n=n,
        at=chunk.at,
        append_id=by,
        artifact=chunk.artifact,
        append=chunk.append,
        last_chunk=chunk.last_chunk,
        emits=chunk.emits,
        fence=chunk.fence,
        step=chunk.step,
    )


# --- form 1, as form 2 -----------------------------------------------------------------------------------------------


def _event_1(body: dict[str, Any]) -> dict[str, Any]:
    return _status_1(body) if body["k"] == "s" else _chunk_1(body)


def _status_1(body: dict[str, Any]) -> dict[str, Any]:
    said = body.get("in")
    incoming = said and {
        "message": _message_1(said["m"]),
        "acceptedOutputModes": said.get("o"),
        "metadata": said.get("md"),
    }
    message, fence = _message_1(body.get("m")), body.get("f", 0)
    return {"state": _STATES[body["s"]], "at": body["at"], "message": message, "incoming": incoming, "fence": fence}


def _chunk_1(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "artifact": _artifact_1(body["a"]),
        "at": body["at"],
        "append": body.get("+", False),
        "lastChunk": body.get("end", False),
        "emits": body.get("e", (0, 0)),
        "fence": body.get("f", 0),
        "step": body.get("st", ""),
    }


def _snapshot_1(body: dict[str, Any]) -> dict[str, Any]:
    status = {"state": _STATES[body["s"]], "timestamp": body["at"], "message": _message_1(body.get("m"))}
    task = {
        "id": body["i"],
        "contextId": body["c"],
        "status": status,
        "artifacts": [_artifact_1(one) for one in body["a"]],
        "history": [_message_1(one) for one in body["h"]],
        "metadata": body.get("md"),
    }
    return {"v": body["v"], "n": body["n"], "task": task}


def _message_1(body: dict[str, Any] | None) -> dict[str, Any] | None:
    return body and {
        "role": _ROLES[body["r"]],
        "messageId": body["i"],
        "parts": [_part_1(part) for part in body["p"]],
        "contextId": body.get("c"),
        "taskId": body.get("t"),
        "metadata": body.get("md"),
        "extensions": body.get("x"),
        "referenceTaskIds": body.get("ref"),
    }


def _artifact_1(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "artifactId": body["i"],
        "parts": [_part_1(part) for part in body["p"]],
        "name": body.get("n"),
        "description": body.get("d"),
        "metadata": body.get("md"),
        "extensions": body.get("x"),
    }


def _part_1(body: dict[str, Any]) -> dict[str, Any]:
    return {_PART_NAMES.get(name, name): value for name, value in body.items()}
