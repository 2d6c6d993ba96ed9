"""The file in which ``dev`` keeps its log lines: for its author only, and found by the id of a task."""

from __future__ import annotations

import logging
import stat
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.current_task import RAISED, Raised
from a2a_serverless_tools.local.dev_log import PRIVATE, DevLog

if TYPE_CHECKING:
    from pathlib import Path

LINES = 40
LARGEST = 3000


def write(log: DevLog, count: int = LINES) -> None:
    handler = log.handler(LARGEST)
    for number in range(count):
        record = logging.LogRecord("mine", logging.INFO, "", 0, "line %d", (number,), None)
        vars(record).update(task=f"task-{number % 2}", step="cut")
        handler.handle(record)
    handler.close()


def test_each_file_can_be_read_by_its_author_only(tmp_path: Path) -> None:
    write(log := DevLog(tmp_path))
    files = sorted(log.file.parent.iterdir())
    assert [file.name for file in files] == ["dev.log", "dev.log.1"]
    write(log)  # now each file was made when another one was full
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {PRIVATE}


def test_the_lines_of_a_full_file_are_read_before_those_of_the_next_one(tmp_path: Path) -> None:
    write(log := DevLog(tmp_path))
    newest = len(log.file.read_text().splitlines())
    numbers = [int(str(entry["message"]).split()[1]) for entry in log.of_task("task-1")]
    assert numbers == sorted(numbers)
    assert len(numbers) > newest / 2, "some are in the full file"
    assert numbers[-1] == LINES - 1
    assert len(log.of_task("task-")) == 0, "this is the beginning of two ids"


def test_a_line_of_the_dev_log_has_the_traceback(tmp_path: Path) -> None:
    handler = (log := DevLog(tmp_path)).handler()
    record = logging.LogRecord("mine", logging.ERROR, "", 0, "agent failed", (), None)
    vars(record).update(task="t", **{RAISED: Raised(ValueError("blunt"))})
    handler.handle(record)
    handler.close()
    assert [entry["traceback"] for entry in log.of_task("t")] == ["ValueError: blunt\n"]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x1c"])
def test_a_line_may_have_each_character_that_separates_lines_of_a_text(tmp_path: Path, separator: str) -> None:
    handler = (log := DevLog(tmp_path)).handler()
    record = logging.LogRecord("mine", logging.INFO, "", 0, f"above{separator}below", (), None)
    vars(record).update(task="t")
    handler.handle(record)
    handler.close()
    assert [entry["message"] for entry in log.of_task("t")] == [f"above{separator}below"]
