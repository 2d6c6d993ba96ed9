"""Logs with Powertools: one JSON object a line, never a client's content.

The library logs to ``logging.getLogger(__name__)``. Powertools' logger has the package's name, so all loggers inherit
its handler, and it keeps their lines away from the handler that Lambda's runtime puts on the root logger.
"""

from __future__ import annotations

import logging
import sys
from typing import Final, TextIO

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers

from a2a_serverless.domain.metrics import METRICS

PACKAGE: Final = "a2a_serverless"
QUOTING: Final = frozenset({"asyncio", "mangum"})  # libraries that log exceptions, whose texts may quote a client
FIELDS: Final = METRICS.keys() | set(
    "agent attempt call command config count enqueued error event fence function function_request_id "  # noqa: SIM905
    "host kid kind message_id ms of operation outcome owner queue raised_at reason record records "
    "reference remedy schedule seconds service state status task tenant trace version".split()
)


class IdsOnly(LambdaPowertoolsFormatter):
    """Writes only the time, the level, the constant text of the message, the logger's name and the ``FIELDS``.

    So no content gets into the log by a message's arguments, an exception or an unexpected field.
    """

    def __init__(self) -> None:
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
        return str(self.serialize(line | ({"error": kind.__name__} if kind else {}) | fields))


def start_logging(service: str, stream: TextIO | None = None) -> Logger:
    """Sets up the log of this process and returns its logger; ``service`` is on every line.

    Where no runtime has set up the root logger (in our own loop, in the emulator, under uvicorn), the lines of other
    libraries go to the same stream, formatted by Powertools.
    """
    if not logging.getLogger().handlers:
        others = logging.StreamHandler(stream or sys.stdout)
        others.setFormatter(LambdaPowertoolsFormatter(use_rfc3339=True, utc=True))
        logging.basicConfig(level=logging.INFO, handlers=[others])
    logger = Logger(service=PACKAGE, logger_formatter=IdsOnly(), stream=stream)
    for name in QUOTING:
        logging.getLogger(name)  # creates the logger: only existing loggers are configured
    copy_config_to_registered_loggers(logger, include=set(QUOTING))
    logger.append_keys(service=service)
    return logger
