"""Logs and metrics with Powertools, as log lines: one JSON object each, never a client's content.

The library logs to ``logging.getLogger(__name__)``. Powertools' logger has the package's name, so all loggers inherit
its handler, and it keeps their lines away from the handler that Lambda's runtime puts on the root logger.

Metrics are in CloudWatch's embedded metric format (EMF), so no request waits for them.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING, Final, TextIO

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers
from aws_lambda_powertools.metrics import EphemeralMetrics

from a2a_serverless.domain.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

logger = logging.getLogger(__name__)


class EmfMetrics:
    """``ports.Metrics``. The dimension ``service`` is the stack, as in the template's alarms.

    A metric with a dimension is also recorded for the whole stack. Unless ``every`` is set, only faults become metrics;
    the others become ordinary log lines, which cost only their bytes.
    """

    def __init__(
        self, namespace: str, service: str, write: Callable[[str], object] | None = None, *, every: bool = True
    ) -> None:
        self._namespace = namespace
        self._service = service
        self._write = write or _print
        self._every = every

    def count(self, name: str, **fields: str | int) -> None:
        self.record({name: 1}, **fields)

    def record(self, values: Mapping[str, float], **fields: str | int) -> None:
        if self._every or any(METRICS[name].fault for name in values):
            self._write(self._emf(values, fields))
        else:
            logger.info("measured", extra={**fields, **values})

    def _emf(self, values: Mapping[str, float], fields: Mapping[str, str | int]) -> str:
        """One EMF line. It uses its own metrics object, because threads share a process and dimensions differ."""
        metrics = EphemeralMetrics(namespace=self._namespace, service=self._service)
        metrics.set_default_dimensions(service=self._service)
        (by,) = {METRICS[name].dimension for name in values}
        if by:
            metrics.add_dimensions(**{by: str(fields[by])})
        for name, value in values.items():
            metrics.add_metric(name, METRICS[name].unit, value)
        for name, entry in fields.items():
            metrics.add_metadata(name, entry)
        return json.dumps(metrics.serialize_metric_set(), separators=(",", ":"))


def _print(line: str) -> None:
    """Writes a line in one call: threads share Lambda's standard output, which is the log."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


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
