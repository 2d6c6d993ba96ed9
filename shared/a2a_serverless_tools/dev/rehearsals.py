"""Plays copies of stored tasks against the code of a project's folder, in a process that can be killed."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.testing.rehearsal import LONGEST_S
from a2a_serverless.testing.rehearsal_report import Rehearsal, RehearsalVerdict
from a2a_serverless_tools.project_check import LONGEST_S as IMPORT_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from a2a_serverless.testing.rehearsal import ReadBlob, StoredTask

PLAY_S: Final = 3 * LONGEST_S + 5
"""A task is played three times at most."""
REGION: Final = frozenset({"AWS_REGION", "AWS_DEFAULT_REGION"})
"""Modules that make AWS clients cannot be imported without a region."""


class ProjectNotLoaded(Exception):
    """The agents of the folder cannot be imported; ``text`` is the traceback."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


def rehearse_tasks(
    root: Path, tasks: Iterable[StoredTask], *, shows: bool = False, reads_secrets: bool = False
) -> Iterator[Rehearsal]:
    """Plays tasks against the project in ``root``; those of other agents are passed over. Raises ProjectNotLoaded.

    Names that are not in the code, and texts of exceptions, are left out unless ``shows``. Without ``reads_secrets``
    a text stands in the place of each secret.
    """
    process: _Process | None = None
    try:
        for task in tasks:
            process = process or _Process(root, shows=shows, reads_secrets=reads_secrets)
            rehearsal = process.rehearse(task)
            if rehearsal is None and process.is_over:
                rehearsal = Rehearsal(task.key.task, task.head.agent)
                rehearsal.add(RehearsalVerdict.UNSEEN, "the code has ended its process, or does not come to rest")
            if process.is_over or (rehearsal and rehearsal.is_stuck):
                process.close()
                process = None
            if rehearsal:
                yield rehearsal
    finally:
        if process:
            process.close()


class _Process:
    """The process, in which the agents are loaded."""

    def __init__(self, root: Path, *, shows: bool, reads_secrets: bool) -> None:
        options = [*["--show"] * shows, *["--secrets"] * reads_secrets]
        command = [sys.executable, "-m", "a2a_serverless_tools.dev.rehearsal_process", str(root), *options]
        self._process = subprocess.Popen(  # noqa: S603 - this Python
            command, cwd=root, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        answer = self._read(IMPORT_S)
        if answer is None or "error" in answer:
            self.close()
            answer = answer or {"error": "The agents were not imported.", "traceback": ""}
            raise ProjectNotLoaded(answer["error"], answer["traceback"])

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, or was killed."""
        return self._process.poll() is not None

    def rehearse(self, task: StoredTask) -> Rehearsal | None:
        """Plays a task; None if the project has no such agent, or if the process is over."""
        self._write(task.json_form())
        while (answer := self._read(PLAY_S)) and "read" in answer:
            self._write(_read_blob(task.read_blob, answer["read"], answer["size"]))
        if answer is None:
            self.close()
            return None
        return Rehearsal.of(answer["rehearsal"]) if answer["rehearsal"] else None

    def close(self) -> None:
        """Kills the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe and pipe.close()

    def _write(self, value: Any) -> None:  # noqa: ANN401 - JSON
        with suppress(OSError):  # it is over, and so is the answer
            pipe: Any = self._process.stdin
            pipe.write(json.dumps(value).encode() + b"\n")
            pipe.flush()

    def _read(self, seconds: float) -> Any:  # noqa: ANN401 - JSON
        """The next line; None if the process ends, or is killed because none has come."""
        pipe: Any = self._process.stdout
        killer = threading.Timer(seconds, self._process.kill)
        killer.start()
        try:
            line = pipe.readline()
        finally:
            killer.cancel()
        return json.loads(line) if line.endswith(b"\n") else None


def _environment() -> dict[str, str]:
    """The variables of this process without its AWS credentials: the code of the folder calls nothing in AWS."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_") or name in REGION}


def _read_blob(read: ReadBlob, name: str, size: int | None) -> str | None:
    try:
        return base64.b64encode(read(name, size)).decode()
    except KeyError:
        return None
