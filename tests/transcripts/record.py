"""Records the transcripts anew, from today's code: ``make transcripts``, or ``make transcripts ARGS="steps asks"``.

Plays run in one process; the scenarios of clients on a stack of their own, which takes a minute to start.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless_tools.stack import paths
from tests.stack.local import running_stack
from tests.transcripts import scenarios
from tests.transcripts.agents import PLAYS
from tests.transcripts.play import play
from tests.transcripts.talk import listening

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RECORDED: Final = Path(__file__).parent / "recorded"
DEPLOYED: Final = Path(__file__).parent / "deployed"


def path_of(name: str) -> Path:
    """Where the transcript of a play is."""
    return RECORDED / f"{name.replace(' ', '_')}.json"


def path_of_scenario(name: str) -> Path:
    """Where the transcript of a scenario is."""
    return DEPLOYED / f"{name.replace(' ', '.')}.json"


def write(name: str) -> None:
    """Writes a transcript: a line for each record, so that a difference between two recordings can be read."""
    path_of(name).write_text("\n".join(_lines(play(name))) + "\n")


def write_scenarios(names: Iterable[str]) -> None:
    """Writes what clients saw in these scenarios."""
    if not names:
        return
    with TemporaryDirectory() as state, running_stack(paths.find(state=Path(state))) as stack, listening() as hook:
        for name in names:
            seen = scenarios.play(name, stack.running.api.url, hook)
            path_of_scenario(name).write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n")


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
    wanted = sys.argv[1:] or [*PLAYS, *scenarios.NAMES]
    for name in wanted:
        if name in PLAYS:
            write(name)
    write_scenarios([name for name in wanted if name not in PLAYS])
