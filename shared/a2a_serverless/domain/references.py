"""References to artifacts of other tasks ("Life of a Task", referencing previous artifacts).

A reference is in a part's metadata: ``{"artifactId", "taskId"}``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.protocol.v1 import Part


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
