"""Content of parts: files outside the log, references to artifacts of other tasks, and media types.

A file's address is a ``url`` part with ``a2a-file:<place>/<sha256>/<size>``. The place is the id of the task that made
the content, or ``uploads``. The address does not contain the owner: it is looked up among the content of the caller's
owner, so the address of another owner's content is not found.

A reference ("Life of a Task", referencing previous artifacts) is in a part's metadata: ``{"artifactId", "taskId"}``.
Media types match as in RFC 9110, 8.3.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.protocol.v1 import Part


def fits(mode: str, media_type: str) -> bool:
    """Whether the two match; each may be a range such as ``text/*``, and parameters are ignored.

    Old cards use ``text`` for ``text/*``.
    """
    kind, _, form = _essence(mode).partition("/")
    other_kind, _, other_form = _essence(media_type).partition("/")
    return _alike(kind, other_kind) and _alike(form or "*", other_form or "*")


def fits_any(modes: Iterable[str], media_type: str) -> bool:
    """Whether one of the modes matches ``media_type``."""
    return any(fits(mode, media_type) for mode in modes)


def _alike(first: str, second: str) -> bool:
    return first == second or "*" in {first, second}


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class Reference:
    """An artifact of a task."""

    task_id: str
    artifact_id: str

    def to_json(self) -> JsonObject:
        """The reference as members of a part's metadata."""
        return {"taskId": self.task_id, "artifactId": self.artifact_id}


def references_in(parts: Iterable[Part]) -> list[Reference]:
    """The artifact references in the metadata of ``parts``."""
    all_metadata = [part.metadata or {} for part in parts]
    pairs = [(metadata.get("taskId"), metadata.get("artifactId")) for metadata in all_metadata]
    return [
        Reference(task, artifact) for task, artifact in pairs if isinstance(task, str) and isinstance(artifact, str)
    ]


SCHEME: Final = "a2a-file:"
UPLOADS: Final = "uploads"
LARGEST: Final = 100 * 1024 * 1024
_EXPIRY: Final = re.compile(r"[?&](x-amz-expires|x-goog-expires|expires|se)=", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"a2a-file:([A-Za-z0-9_-]{1,128})/([0-9a-f]{64})/(0|[1-9][0-9]{0,11})")


class ContentNotFound(Exception):
    """The content does not exist, or does not match its address."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Stored content: its place, SHA-256 (hex) and size (bytes).

    A dataclass, because an agent may pass it to a step: see ``domain/model.py``.
    """

    place: str
    sha256: str
    size: int

    @property
    def address(self) -> str:
        """The value of a ``url`` part that refers to it."""
        return f"{SCHEME}{self.place}/{self.sha256}/{self.size}"


class UploadSlot(NamedTuple):
    """The URL to PUT an upload to, and the headers that the request must have."""

    url: str
    headers: dict[str, str]


def is_expiring(part: Part) -> bool:
    """Whether the part is a link with an end of its validity: a presigned URL of S3, CloudFront, Google or Azure."""
    return part.url is not None and bool(_EXPIRY.search(part.url))


def file_of(part: Part) -> StoredFile | None:
    """The content that a part refers to; None if the part refers to no content of ours."""
    match = None if part.url is None else _ADDRESS.fullmatch(part.url)
    return StoredFile(match[1], match[2], int(match[3])) if match else None
