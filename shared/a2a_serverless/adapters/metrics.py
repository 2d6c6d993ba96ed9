"""Metrics with Powertools, as log lines in CloudWatch's embedded metric format (EMF), so no request waits for them."""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING

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
