"""Saves artifacts as files in the user's folder. Names that agents give are sanitized and never used as paths."""

import base64
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from a2a_serverless.cli.formatting import artifact_text
from a2a_serverless.protocol.v1 import Artifact, Part

LONGEST = 100
Fetch: TypeAlias = Callable[[str], Iterable[bytes]]


def save(artifacts: Iterable[Artifact], folder: Path, prefix: str = "", fetch: Fetch | None = None) -> list[Path]:
    """Writes the artifacts into ``folder`` and returns the files. Makes the folder; replaces files of the same name.

    ``fetch`` downloads the URL of a part, in blocks; without it the URL itself is written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for artifact in artifacts:
        for name, content in _contents(artifact, fetch):
            path = folder / f"{prefix}{_safe(name)}"
            with path.open("wb") as file:
                file.writelines(content)
            written.append(path)
    return written


def _contents(artifact: Artifact, fetch: Fetch | None) -> list[tuple[str, Iterable[bytes]]]:
    """Returns name and content of each binary file, or else of the whole artifact as one text."""
    name = artifact.name or artifact.artifact_id
    files = [(part.filename or name, content) for part in artifact.parts if (content := _file(part, fetch))]
    if files:
        return files
    if all(part.kind == "data" for part in artifact.parts):
        values = [part.value for part in artifact.parts]
        text = json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False, indent=2)
        return [(f"{name.removesuffix('.json')}.json", [text.encode()])]
    return [(name, [artifact_text(artifact).encode()])]


def _file(part: Part, fetch: Fetch | None) -> Iterable[bytes] | None:
    """Returns the content of a part that is a binary file, in blocks; None for any other part."""
    if part.kind == "url" and fetch and str(part.value).startswith(("https://", "http://")):
        return fetch(str(part.value))
    if part.kind == "raw" and not (part.media_type or "").startswith("text/"):
        return [base64.b64decode(str(part.value))]
    return None


def _safe(name: str) -> str:
    """Makes a safe file name: letters, digits, space, ``.``, ``_`` and ``-``, not hidden, at most ``LONGEST``."""
    kept = re.sub(r"[^\w. -]", "_", name).strip(". ")
    return kept[-LONGEST:].lstrip(". ") or "artifact"
