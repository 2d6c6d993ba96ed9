"""Saves artifacts as files in the user's folder. Names that agents give are sanitized and never used as paths."""

import base64
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from a2a_serverless.cli.formatting import artifact_text
from a2a_serverless.domain.model import Artifact, Part

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
    files = [part for part in artifact.parts if _is_file(part, fetch)]
    if files:
        return [(part.filename or name, _content(part, fetch)) for part in files]
    if all(part.kind == "data" for part in artifact.parts):
        return [(_with_suffix(name, ".json"), [_data(artifact.parts)])]
    return [(name, [artifact_text(artifact).encode()])]


def _is_file(part: Part, fetch: Fetch | None) -> bool:
    if part.kind == "url":
        return fetch is not None and str(part.value).startswith(("https://", "http://"))
    return part.kind == "raw" and not (part.media_type or "").startswith("text/")


def _content(part: Part, fetch: Fetch | None) -> Iterable[bytes]:
    if part.kind == "url" and fetch:
        return fetch(str(part.value))
    return [base64.b64decode(str(part.value))]


def _data(parts: tuple[Part, ...]) -> bytes:
    values = [part.value for part in parts]
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False, indent=2).encode()


def _with_suffix(name: str, suffix: str) -> str:
    return name if name.endswith(suffix) else name + suffix


def _safe(name: str) -> str:
    """Makes a safe file name: letters, digits, space, ``.``, ``_`` and ``-``, not hidden, at most ``LONGEST``."""
    kept = re.sub(r"[^\w. -]", "_", name).strip(". ")
    return kept[-LONGEST:].lstrip(". ") or "artifact"
