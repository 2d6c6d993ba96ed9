"""The texts of the log: their JSON, and where they are stored.

The texts are the JSON of A2A 1.0, with the members that the log adds. A member that a text lacks gets the model's
default. Stored texts are read without the bounds for requests. Items of a newer release never get here:
``items.readable`` refuses them.

A text is stored in its item or, above the inline limit, as a blob to which the item points. The blob is written before
the item, and its name ends with its SHA-256, so a pointer always leads to complete content. Snapshots of long logs are
blobs too; with a snapshot, readers need no replay from the beginning. The log alone is enough to make the same task.
The head names a snapshot by the number of its last event, its size in bytes and its SHA-256. A snapshot's long history
and large artifacts are separate blobs, which a reader can leave out. So is the large content of an event; the event's
item then has an outline of it (``domain/events.py``).
"""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import Field
from pydantic_core import PydanticSerializationError, from_json

from a2a_serverless.domain.events import ArtifactEvent, Event, Incoming, StatusEvent
from a2a_serverless.domain.model import path
from a2a_serverless.domain.replay import TaskReplay
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.protojson import Metadata, ProtoModel, printed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.system import BlobStore
    from a2a_serverless.protocol.v1 import Task
    from a2a_serverless.store.items import Item

_JSON: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII_JSON: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
Admit: TypeAlias = "Callable[[int], bool]"
"""Is called with the bytes of each text before the text is read. False ends the reading there; it may raise, too."""
ITEM_TEXT_LIMIT: Final = 300 * 1024


class PayloadCorrupted(RuntimeError):
    """A blob is missing, or its content differs from the stored SHA-256."""


class PayloadStore:
    """Stores texts of any size. ``limit`` is the longest (in bytes of UTF-8) that stays in an item."""

    def __init__(self, blobs: BlobStore, limit: int = ITEM_TEXT_LIMIT) -> None:
        self._blobs = blobs
        self._limit = limit

    def store(self, key: TaskKey, text: str) -> Item:
        """Stores a text; returns the attributes that hold it or point to its blob."""
        content = text.encode()
        if len(content) <= self._limit:
            return {"body": {"S": text}}
        return self.put(key, content)

    def put(self, key: TaskKey, content: bytes) -> Item:
        """Stores content as a blob, whatever its size; returns the attributes that point to it."""
        digest = sha256(content).hexdigest()
        self._blobs.put(_name(key, digest), content)
        return pointer(key, digest, len(content))

    def fetch(self, item: Mapping[str, Any]) -> str:
        """The text for which ``store`` returned ``item``; raises PayloadCorrupted for a missing or changed blob."""
        if "body" in item:
            return str(item["body"]["S"])
        name, size = str(item["blob"]["S"]), int(item["size"]["N"])
        try:
            content = self._blobs.get(name, size)
        except KeyError:
            content = b""
        if len(content) != size or not name.endswith(sha256(content).hexdigest()):
            raise PayloadCorrupted(f"blob {name} is gone or is not what was stored")
        return content.decode()


def pointer(key: TaskKey, digest: str, size: int) -> Item:
    """The attributes that point to a blob of a task, by its SHA-256 (hex) and its size in bytes."""
    return {"blob": {"S": _name(key, digest)}, "size": {"N": str(size)}}


def _name(key: TaskKey, digest: str) -> str:
    return f"{path(*key)}/{digest}"


class SnapshotStore:
    """Stores and reads the snapshots of tasks."""

    def __init__(self, payloads: PayloadStore) -> None:
        self._payloads = payloads

    def store(self, key: TaskKey, task: Task) -> str:
        """Stores the task as of its event ``n``; returns the name that the head must hold. Idempotent."""
        apart, rest = {}, task
        for name, form in _APART.items():
            content = _model_text(form(**{name: getattr(task, name)})).encode()
            if len(content) > APART_BYTES:
                self._payloads.put(key, content)
                apart[name] = f"{len(content)} {sha256(content).hexdigest()}"
                rest = rest.model_copy(update={name: ()})
        content = dump_snapshot(rest, apart).encode()
        self._payloads.put(key, content)
        return f"{task.n} {len(content)} {sha256(content).hexdigest()}"

    def start_replay(
        self,
        head: Head,
        most: int,
        *,
        history: bool = True,
        artifacts: bool = True,
        admit: Admit | None = None,
    ) -> tuple[TaskReplay, int]:
        """The replay from which to continue, and how many bytes of snapshots were read for it.

        It continues the head's snapshot. It begins with the log if the snapshot lies after event ``most``, is missing
        or corrupt, or has another format. Without ``artifacts`` it has no artifacts; without ``history`` it may lack
        messages.
        """
        members = {"artifacts": artifacts, "history": history}
        snapshot = self._find(head, members, admit) if 0 < head.snapshot_position <= most else None
        if snapshot is None:
            return TaskReplay(head.key.task, head.context_id, artifacts=artifacts), 0
        task, size = snapshot
        return TaskReplay.from_task(task, artifacts=artifacts), size

    def _find(self, head: Head, members: Mapping[str, bool], admit: Admit | None) -> tuple[Task, int] | None:
        """The task of the snapshot, and the bytes that were read."""
        with suppress(PayloadCorrupted, ValueError):
            text, total = self._fetch(head, head.snapshot.partition(" ")[2], admit)
            stored = load_snapshot(text)
            task = stored.task
            for name, place in stored.apart.items():
                if members[name]:
                    text, size = self._fetch(head, place, admit)
                    task = task.model_copy(update=_APART[name].model_validate(_parsed(text)).__dict__)
                    total += size
            return task, total
        return None

    def _fetch(self, head: Head, place: str, admit: Admit | None) -> tuple[str, int]:
        """The text at a place, which is its size in bytes and its SHA-256; and that size."""
        words = place.split(" ")
        size, digest = int(words[0]), words[1]
        if admit:
            admit(size)
        return self._payloads.fetch(pointer(head.key, digest, size)), size


SNAPSHOT_VERSION: Final = 1
APART_BYTES: Final = 64 * 1024  # history and artifacts above this are stored as blobs of their own


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


_APART: Final[Mapping[str, type[ProtoModel]]] = {"artifacts": StoredArtifacts, "history": StoredHistory}


def dump_event(event: Event) -> str:
    """An event as JSON."""
    form = StoredStatus if isinstance(event, StatusEvent) else StoredChunk
    return _model_text(form(**{name: getattr(event, name) for name in form.model_fields}))


def load_event(text: str, n: int, by: str) -> Event:
    """The event in a text of ``dump_event``."""
    body = _parsed(text)
    if "state" in body:
        return StatusEvent(n=n, append_id=by, **StoredStatus.model_validate(body).__dict__)
    return ArtifactEvent(n=n, append_id=by, **StoredChunk.model_validate(body).__dict__)


def dump_snapshot(task: v1.Task, apart: Mapping[str, str]) -> str:
    """A task as of its ``n`` as JSON; ``apart`` has the places of the members in blobs of their own."""
    return _model_text(StoredSnapshot(v=SNAPSHOT_VERSION, n=task.n, task=task, apart={**apart}))


def load_snapshot(text: str) -> StoredSnapshot:
    """The snapshot in a text of ``dump_snapshot``; raises ValueError for a form of another version."""
    body = _parsed(text)
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


def load_step(text: str, began_at: int = 0, ended_at: int = 0) -> StepResult:
    """The result in a text of ``dump_step``, with its times."""
    body = json.loads(text)
    fields = body["a"], body["v"], body.get("t", 0), body.get("s", 0), body.get("u", {})
    return StepResult(*fields, began_at, ended_at, moment=body.get("m", 0))


def dump_json(value: object) -> str:
    """Compact JSON. A lone surrogate has no UTF-8 form, so a text with one is escaped as a whole."""
    text = _JSON.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _ASCII_JSON.encode(value)
    return text


def _parsed(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value. Only Python's own reader takes the escape of a lone surrogate."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


def _model_text(model: ProtoModel) -> str:
    """JSON, as small as it gets. A lone surrogate has no UTF-8 form, so a text that holds one is escaped as a whole."""
    with suppress(PydanticSerializationError, UnicodeEncodeError):
        return printed(model).decode()
    plain = model.model_dump(by_alias=True, exclude_defaults=True)
    return _ASCII_JSON.encode(plain)
