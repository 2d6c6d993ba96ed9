"""The log of ``dev``: JSON lines in a file that only its author may read, and the lines of one task in any log."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from functools import partial
from logging.handlers import RotatingFileHandler
from typing import IO, TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.logs import RunFields
from a2a_serverless.adapters.tracebacks import format_traceback
from a2a_serverless.domain.current_task import raised_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from a2a_serverless.domain.model import JsonObject

LARGEST: Final = 20 * 1024 * 1024
FIELDS: Final = ("agent", "task", "context", "run", "step", "error", "reference")
PRIVATE: Final = 0o600  # it has what agents print, and tracebacks


class DevLog:
    """The log in the ``folder`` of the tasks of ``dev``. A full file is kept until the next one is full."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "logs/dev.log"
        self._older = self.file.with_name("dev.log.1")

    def handler(self, largest: int = LARGEST) -> logging.Handler:
        """What writes the log lines of this process. A file is full at ``largest`` bytes."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        handler = _PrivateFiles(self.file, maxBytes=largest, backupCount=1, encoding="utf-8")
        handler.setFormatter(_JsonLine())
        handler.addFilter(RunFields())
        return handler

    def lines(self) -> list[str]:
        """All lines that are kept, oldest first."""
        return [*lines_of(self._older), *lines_of(self.file)]

    def of_task(self, task: str) -> list[JsonObject]:
        """The lines of the task with this id, oldest first."""
        return [entry for entry in read_entries(self.lines(), task) if entry["task"] == task]


def lines_of(file: Path) -> list[str]:
    """The lines of a log; empty if there is no such file."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return text.removesuffix("\n").split("\n") if text else []  # splitlines would part a JSON line at U+2028


def read_entries(lines: Iterable[str], task: str) -> Iterator[dict[str, Any]]:
    """Yields the JSON lines of a task, whose id begins with ``task``. A platform may have put words before them."""
    for line in lines:
        begin = line.find("{")
        if begin < 0 or task not in line:
            continue
        try:
            entry = json.loads(line[begin:])
        except (ValueError, RecursionError):  # what an agent has printed may be nested
            continue
        if isinstance(entry, dict) and str(entry.get("task", "")).startswith(task):
            yield entry


class _PrivateFiles(RotatingFileHandler):
    """Makes each of its files for its owner only, not just the first."""

    def _open(self) -> IO[str]:  # type: ignore[override]
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=partial(os.open, mode=PRIVATE))


class _JsonLine(logging.Formatter):
    """A log line as JSON, with the ids of the run and with what was raised."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"timestamp": at, "level": record.levelname, "message": record.getMessage(), "logger": record.name}
        line |= {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        raised = raised_of(record) or (record.exc_info and record.exc_info[1])
        return json.dumps(line | ({"traceback": format_traceback(raised)} if raised else {}), ensure_ascii=False)
