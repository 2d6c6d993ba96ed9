"""Records the transcripts anew, from today's code: ``make transcripts``, or ``make transcripts ARGS="steps asks"``."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.transcripts.agents import PLAYS
from tests.transcripts.play import play

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDED: Final = Path(__file__).parent / "recorded"


def path_of(name: str) -> Path:
    """Where the transcript of a play is."""
    return RECORDED / f"{name.replace(' ', '_')}.json"


def write(name: str) -> None:
    """Writes a transcript: a line for each record, so that a difference between two recordings can be read."""
    path_of(name).write_text("\n".join(_lines(play(name))) + "\n")


def _lines(transcript: dict[str, Any]) -> Iterator[str]:
    yield "{"
    for number, (part, records) in enumerate(transcript.items(), 1):
        rows = records.items() if isinstance(records, dict) else [("", record) for record in records]
        first, last = "{}" if isinstance(records, dict) else "[]"
        yield f"{_text(part)}:{first}"
        yield ",\n".join(f"{_text(name)}:{_text(row)}" if name else _text(row) for name, row in rows)
        yield last + "," * (number < len(transcript))
    yield "}"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    RECORDED.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or PLAYS:
        write(wanted)
