"""The log lines of one task, and the errors of all functions: on this machine, or of a deployed stack."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, Literal

from rich.text import Text

from a2a_serverless_tools.cli.operator_commands import moment_of
from a2a_serverless_tools.cli.options import CliContext
from a2a_serverless_tools.cli.terminal import one_line, plain
from a2a_serverless_tools.operators.deployed import StackName
from a2a_serverless_tools.operators.function_errors import EMULATOR, FunctionError, count_errors, place_of

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
PAUSE_S: Final = 1.0
STYLES: Final = {"DEBUG": "dim", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
ERROR_HEAD: Final = ("FUNCTION", "COUNT", "LAST", "AGENT", "TASK", "WHAT")
LONGEST: Final = 500
SHOWN: Final = ("agent", "run", "step", "error", "reference", "logger")


def local_lines(cli: CliContext) -> list[str]:
    """The lines of `dev`, and of the stack on this machine if it runs."""
    from a2a_serverless_tools.local.dev_log import DevLog
    from a2a_serverless_tools.stack import logs, sam
    from a2a_serverless_tools.stack.errors import StackError

    here = cli.paths()
    lines = DevLog(here.dev.state).lines()
    for part in (*sam.FUNCTIONS, "server"):
        try:
            lines += logs.read(here, part)
        except StackError:  # no emulator runs
            continue
    return lines


def show_task(cli: CliContext, task: str, level: Level, stack: str, *, follow: bool) -> None:
    """Shows the lines of a task in the order of their times; with ``follow`` new ones, too, until Ctrl-C."""
    from a2a_serverless_tools.local.dev_log import read_entries

    wanted, shown = LEVELS[LEVELS.index(level) :], set[str]()
    while True:
        lines = cli.log_lines(StackName(stack), task) if stack else local_lines(cli)
        entries = sorted(read_entries(lines, task), key=lambda entry: str(entry.get("timestamp", "")))
        for entry in entries:
            key = json.dumps(entry, sort_keys=True)
            if key not in shown and str(entry.get("level", "INFO")) in wanted:
                _show(cli, entry)
            shown.add(key)
        if not follow:
            break
        cli.sleep(PAUSE_S)
    if not shown:
        cli.terminal.note(f"There is no line of the task {task}.")


def show_errors(cli: CliContext, since: str, stack: str) -> None:
    """Shows the errors of all functions since then, counted by their cause."""
    now = int(time.time() * 1000)
    begin = moment_of(since, now)
    lines = cli.error_lines(StackName(stack), (now - begin) // 1000) if stack else _local_lines_of_functions(cli)
    errors = count_errors(lines, f"{datetime.fromtimestamp(begin / 1000, UTC):%Y-%m-%dT%H:%M:%S}")
    forms: list[Any] = [one._asdict() for one in errors]
    cli.terminal.table({"errors": forms}, ERROR_HEAD, [_cells(one) for one in errors])
    if not errors:
        cli.terminal.note(f"No function has logged an error since {since}.")


def _cells(error: FunctionError) -> list[str]:
    what = ": ".join(text for text in (error.text, error.error) if text)
    what += f", in the step {error.step}" if error.step else ""
    what += f", at {error.place}" if error.place else ""
    at, what = error.last.replace("T", " "), one_line(what, LONGEST)
    return [error.function, str(error.occurrences), at, error.agent, error.task[:8], what]


def _local_lines_of_functions(cli: CliContext) -> Iterator[tuple[str, str]]:
    from a2a_serverless_tools.stack import logs, sam

    here = cli.paths()
    for part in (*sam.FUNCTIONS, "server", EMULATOR):
        function = "api" if part == "server" else part
        yield from ((function, line) for line in logs.read(here, part))


def _show(cli: CliContext, entry: dict[str, Any]) -> None:
    if cli.terminal.json:
        cli.terminal.data(entry, one_line=True)
        return
    level = str(entry.get("level", "INFO"))
    fields = [f"{name}={entry[name]}" for name in SHOWN if entry.get(name) is not None]
    if place := place_of(entry):
        fields.append(f"at={place}")
    text = Text.assemble(
        (f"{str(entry.get('timestamp', ''))[11:23]:12}  ", "dim"),
        (f"{level:8}", STYLES.get(level, "")),
        plain(str(entry.get("message", ""))),
        (f"  {' '.join(fields)}", "dim"),
    )
    cli.terminal.out.print(text, soft_wrap=True)
    if trace := entry.get("traceback") or entry.get("exception"):
        cli.terminal.out.print(plain(str(trace)).rstrip(), markup=False, soft_wrap=True)
