"""Reads and checks a user's input for an agent: a text, a file, or stdin."""

import mimetypes
from collections.abc import Callable
from pathlib import Path

import typer

from a2a_serverless.domain.contents import LARGEST as BIGGEST

LARGEST = 512 * 1024
MEDIA_TYPES = {".md": "text/markdown", ".markdown": "text/markdown"}


def read_source(text: str, file: Path | None, stdin: Callable[[int], bytes]) -> tuple[str, str | None]:
    """Returns the text and its media type. Raises BadParameter, which says what to do."""
    if bool(text) == (file is not None):
        raise typer.BadParameter("give one of TEXT, - (for stdin) or --file PATH")
    if file:
        return read_file(file), media_type_of(file)
    return (_checked(stdin(LARGEST + 1), "stdin") if text == "-" else text), None


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
