"""Logs with Powertools: one JSON object a line, never a client's content.

The library logs to ``logging.getLogger(__name__)``. Powertools' logger has the package's name, so all loggers inherit
its handler, and it keeps their lines away from the handler that Lambda's runtime puts on the root logger.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Final, TextIO

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers

from a2a_serverless.adapters.tracebacks import format_traceback
from a2a_serverless.domain.current_task import raised_of, run_fields
from a2a_serverless.domain.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE: Final = "a2a_serverless"
PRINT: Final = "print"
LONGEST_LINE: Final = 64 * 1024
ERRORS_IN_LOG: Final = "LOG_AGENT_ERRORS"
QUOTING: Final = frozenset({"asyncio", "mangum"})  # libraries that log exceptions, whose texts may quote a client
FIELDS: Final = METRICS.keys() | set(
    "agent agents attempt call command config context count enqueued error event function function_request_id "  # noqa: SIM905
    "host kid kind message_id ms of operation outcome owner queue raised_at reason record records "
    "reference remedy run schedule seconds service state status step task tenant trace version".split()
)


class IdsOnly(LambdaPowertoolsFormatter):
    """Writes only the time, the level, the constant text of the message, the logger's name and the ``FIELDS``.

    So no content gets into the log by a message's arguments, an exception or an unexpected field. With
    ``shows_errors`` the traceback of what an agent raises is there, too: its text may quote anything.
    """

    def __init__(self, *, shows_errors: bool = False) -> None:
        self._shows_errors = shows_errors
        super().__init__(use_rfc3339=True, utc=True)  # Lambda takes lines with another time format for INFO

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": self.formatTime(record),
            "level": record.levelname,
            "message": record.msg.partition("\n")[0] if isinstance(record.msg, str) else type(record.msg).__name__,
            "logger": record.name,
        }
        attributes = self.log_format | vars(record)
        fields = {name: value for name, value in attributes.items() if name in FIELDS and value is not None}
        kind = record.exc_info and record.exc_info[0]
        if self._shows_errors and (raised := raised_of(record)):
            line["traceback"] = format_traceback(raised)
        return str(self.serialize(line | ({"error": kind.__name__} if kind else {}) | fields))


class RunFields(logging.Filter):
    """Adds the ids of the run to the lines of all its code: of the agent, of libraries, and of this one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets each record pass. A field that the line has already stays."""
        for name, value in run_fields().items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


class _BegunLine(threading.local):
    """The text that a thread has printed without a line end, in the context of its run."""

    text: str = ""
    context: Context = Context()
    is_logged: bool = False  # a handler that writes to this stdout would log its own line again

    def log(self) -> None:
        text, self.text = self.text, ""
        self.context.run(self.log_line, text)

    def log_line(self, line: str) -> None:
        self.is_logged = True
        try:
            logging.getLogger(PRINT).info("%s", line)
        finally:
            self.is_logged = False


class PrintedLines(io.TextIOBase):
    """Stands for stdout: each line that a run prints becomes a log line of the logger ``print``.

    What is printed outside of runs goes to ``out`` as it is.
    """

    def __init__(self, out: TextIO) -> None:
        self.out, self._begun = out, _BegunLine()

    @property
    def encoding(self) -> str:  # type: ignore[override] # theirs is writable
        return self.out.encoding

    def isatty(self) -> bool:
        return self.out.isatty()

    def fileno(self) -> int:
        return self.out.fileno()

    def write(self, text: str) -> int:
        if self._begun.is_logged or not run_fields():
            return self.out.write(text)
        if self._begun.text and self._begun.context.run(_run_ids) != _run_ids():
            self._begun.log()  # the thread has another run now
        *lines, rest = (self._begun.text + text).split("\n")
        if len(rest) > LONGEST_LINE:
            lines, rest = [*lines, rest], ""
        self._begun.text, self._begun.context = rest, copy_context() if rest else Context()
        for line in lines:
            if line:
                self._begun.log_line(line)
        return len(text)

    def flush(self) -> None:
        """Writes what is outside of runs. A begun line of a run waits for its end, or for another run."""
        self.out.flush()


def _run_ids() -> dict[str, str | int]:
    return {**run_fields(), "step": ""}


def start_logging(service: str, stream: TextIO | None = None, *, shows_errors: bool = False) -> Logger:
    """Sets up the log of this process and returns its logger; ``service`` is on every line, ids are on those of a run.

    Where no runtime has set up the root logger (in our own loop, in the emulator, under uvicorn), the lines of other
    libraries go to the same stream, formatted by Powertools.
    """
    stream = stream or (sys.stdout.out if isinstance(sys.stdout, PrintedLines) else sys.stdout)
    if not logging.getLogger().handlers:
        others = logging.StreamHandler(stream)
        others.setFormatter(LambdaPowertoolsFormatter(use_rfc3339=True, utc=True))
        logging.basicConfig(level=logging.INFO, handlers=[others])
    logger = Logger(service=PACKAGE, logger_formatter=IdsOnly(shows_errors=shows_errors), stream=stream)
    for name in QUOTING:
        logging.getLogger(name)  # creates the logger: only existing loggers are configured
    copy_config_to_registered_loggers(logger, include=set(QUOTING))
    logger.append_keys(service=service)
    for handler in (*logging.getLogger().handlers, *logging.getLogger(PACKAGE).handlers):
        if not any(isinstance(one, RunFields) for one in handler.filters):
            handler.addFilter(RunFields())
    return logger


def start_process_log(environment: Mapping[str, str]) -> Logger:
    """Sets up the log of a process that may run agents: what their runs print becomes log lines, too."""
    shows_errors = environment.get(ERRORS_IN_LOG) == "true"
    logger = start_logging(environment.get("POWERTOOLS_SERVICE_NAME", ""), shows_errors=shows_errors)
    # After the handlers, which keep the real stdout.
    if not isinstance(sys.stdout, PrintedLines):
        sys.stdout = PrintedLines(sys.stdout)
    return logger
