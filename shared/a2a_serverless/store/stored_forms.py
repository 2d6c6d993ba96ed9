"""The stored texts of events, snapshots and results of steps.

The texts are the JSON of A2A 1.0, with the members that the log adds. A member that a text lacks gets the model's
default. Stored texts are read without the bounds for requests. Items of a newer release never get here:
``items.readable`` refuses them.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field
from pydantic_core import PydanticSerializationError, from_json

from a2a_serverless.domain.events import ArtifactEvent, Event, Incoming, StatusEvent
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.protojson import Metadata, ProtoModel, printed

if TYPE_CHECKING:
    from collections.abc import Mapping

_JSON: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII_JSON: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
SNAPSHOT_VERSION: Final = 1


class StoredStatus(ProtoModel):
    """A status event without its number and author, which are attributes of its item."""

    state: v1.StateName
    at: int
    message: v1.Message | None = None
    incoming: Incoming | None = None
    fence: int = 0
    usage: Metadata = None
    joined: tuple[str, ...] = ()
    answers: str = ""
    budget: Metadata = None


class StoredChunk(ProtoModel):
    """An artifact event without its number and author."""

    artifact: v1.Artifact
    at: int
    append: bool = False
    last_chunk: bool = False
    emits: tuple[int, int] = (0, 0)
    fence: int = 0
    step: str = ""
    attempt: int = 0


class StoredSnapshot(ProtoModel):
    """A task as of event ``n``. ``apart`` has, by a member's name, size and SHA-256 of the member's own blob."""

    v: int
    n: int
    task: v1.Task
    apart: dict[str, str] = Field(default_factory=dict)


class StoredArtifacts(ProtoModel):
    """The artifacts of a snapshot, in a blob of their own."""

    artifacts: tuple[v1.Artifact, ...]


class StoredHistory(ProtoModel):
    """The history of a snapshot, in a blob of its own."""

    history: tuple[v1.Message, ...]


MEMBER_FORMS: Final[Mapping[str, type[ProtoModel]]] = {"artifacts": StoredArtifacts, "history": StoredHistory}


def dump_event(event: Event) -> str:
    """An event as JSON."""
    form = StoredStatus if isinstance(event, StatusEvent) else StoredChunk
    return model_text(form(**{name: getattr(event, name) for name in form.model_fields}))


def load_event(text: str, n: int, by: str) -> Event:
    """The event in a text of ``dump_event``."""
    body = parse_text(text)
    if "state" in body:
        return StatusEvent(n=n, append_id=by, **StoredStatus.model_validate(body).__dict__)
    return ArtifactEvent(n=n, append_id=by, **StoredChunk.model_validate(body).__dict__)


def dump_snapshot(task: v1.Task, apart: Mapping[str, str]) -> str:
    """A task as of its ``n`` as JSON; ``apart`` has the places of the members in blobs of their own."""
    return model_text(StoredSnapshot(v=SNAPSHOT_VERSION, n=task.n, task=task, apart={**apart}))


def load_snapshot(text: str) -> StoredSnapshot:
    """The snapshot in a text of ``dump_snapshot``; raises ValueError for a form of another version."""
    body = parse_text(text)
    if body["v"] != SNAPSHOT_VERSION:
        raise ValueError("a snapshot of another version")
    stored = StoredSnapshot.model_validate(body)
    stored.task.as_of(stored.n)
    return stored


def dump_step(result: StepResult) -> str:
    """A step's result as JSON."""
    fields = {"t": result.attempt, "s": result.sequence, "u": result.usage, "m": result.moment}
    members = {name: value for name, value in fields.items() if value}
    return dump_json({"a": result.arguments, "v": result.value, **members})


def load_step(text: str, began_at: int = 0, ended_at: int = 0, fence: int = 0, seen: int = 0) -> StepResult:
    """The result in a text of ``dump_step``, with its times and what is known of the run that stored it."""
    body = json.loads(text)
    fields = body["a"], body["v"], body.get("t", 0), body.get("s", 0), body.get("u", {})
    return StepResult(*fields, began_at, ended_at, moment=body.get("m", 0), fence=fence, seen=seen)


def dump_json(value: object) -> str:
    """Compact JSON. A lone surrogate has no UTF-8 form, so a text with one is escaped as a whole."""
    text = _JSON.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _ASCII_JSON.encode(value)
    return text


def parse_text(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value. Only Python's own reader takes the escape of a lone surrogate."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


def model_text(model: ProtoModel) -> str:
    """JSON, as small as it gets. A lone surrogate has no UTF-8 form, so a text that holds one is escaped as a whole."""
    with suppress(PydanticSerializationError, UnicodeEncodeError):
        return printed(model).decode()
    plain = model.model_dump(by_alias=True, exclude_defaults=True)
    return _ASCII_JSON.encode(plain)
