"""A user's files: the input for an agent is read and checked, artifacts are saved.

Names that agents give are sanitized and never used as paths.
"""

import base64
import json
import mimetypes
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import typer

from a2a_serverless.domain.contents import LARGEST as BIGGEST
from a2a_serverless.domain.contents import fits_any
from a2a_serverless.protocol.v1 import Artifact, Part
from a2a_serverless_tools.cli.formatting import artifact_text

LARGEST = 512 * 1024
MEDIA_TYPES = {".md": "text/markdown", ".markdown": "text/markdown"}
LONGEST = 100
Fetch: TypeAlias = Callable[[str], Iterable[bytes]]


def read_text(text: str, stdin: Callable[[int], bytes]) -> str:
    """Returns the text; that of stdin for ``-``. Raises BadParameter, which says what to do."""
    return _checked(stdin(LARGEST + 1), "stdin") if text == "-" else text


def text_part(path: Path, takes: Sequence[str]) -> Part:
    """Makes a part of a text file, with its name, and its media type if that is among the types that the agent takes.

    Any agent takes a text without a type. Raises BadParameter.
    """
    media_type = media_type_of(path) or mimetypes.guess_type(path.name)[0]
    kept = media_type if media_type and fits_any(takes, media_type) else None
    return Part(text=read_file(path), media_type=kept, filename=path.name)


def read_binary(path: Path) -> tuple[bytes, str, str | None] | None:
    """Returns bytes, name and media type of a file that is no text or too big for one; None for a text file.

    Raises BadParameter.
    """
    guessed = mimetypes.guess_type(path.name)[0]
    media_type = None if guessed == "application/octet-stream" else guessed
    try:
        size = path.stat().st_size
        if media_type_of(path) or (size <= LARGEST and (media_type or "text/").startswith("text/")):
            return None
        if size > BIGGEST:
            raise typer.BadParameter(f"{path} is larger than {BIGGEST // 1024**2} MiB")
        return path.read_bytes(), path.name, media_type
    except OSError:
        return None  # read_file then reports the error


def read_file(path: Path) -> str:
    """Returns the text of a file. Raises BadParameter."""
    try:
        with path.open("rb") as file:
            return _checked(file.read(LARGEST + 1), str(path))
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read ({error.strerror})") from error


def media_type_of(path: Path) -> str | None:
    """Returns the media type of a Markdown file by its name; None for any other."""
    return MEDIA_TYPES.get(path.suffix.lower())


def _checked(content: bytes, name: str) -> str:
    if len(content) > LARGEST:
        raise typer.BadParameter(f"{name} is larger than {LARGEST // 1024} KiB; give a shorter text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{name} is not UTF-8 text; give a text or Markdown file") from None
    if not text.strip():
        raise typer.BadParameter(f"{name} is empty; give a file with some text in it")
    return text


def save(artifacts: Iterable[Artifact], folder: Path, prefix: str = "", fetch: Fetch | None = None) -> list[Path]:
    """Writes the artifacts into ``folder`` and returns the files. Makes the folder; replaces files of the same name.

    ``fetch`` downloads the URL of a part, in blocks; without it the URL itself is written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for artifact in artifacts:
        for name, content in _contents(artifact, fetch):
            path = folder / f"{prefix}{_safe(name)}"
            with path.open("wb") as file:
                file.writelines(content)
            paths.append(path)
    return paths


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
    stem = re.sub(r"[^\w. -]", "_", name).strip(". ")
    return stem[-LONGEST:].lstrip(". ") or "artifact"
