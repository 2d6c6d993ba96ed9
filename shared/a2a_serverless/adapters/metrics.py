"""Metrics as log lines in CloudWatch's embedded metric format (EMF): no call, no client, nothing to wait for.

Printed and not logged, because a logger would wrap the line and CloudWatch would not know it again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from a2a_serverless.domain.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class EmfMetrics:
    """``ports.Metrics``. The dimension ``service`` is the stack, as the template's alarms have it.

    A metric with a dimension of its own is there for the whole stack, too. Unless ``every`` metric is wanted, only
    faults are metrics; the rest are lines of the log without that format, which cost no more than their bytes.
    """

    def __init__(
        self,
        namespace: str,
        service: str,
        now: Callable[[], int],
        write: Callable[[str], object] | None = None,
        *,
        every: bool = True,
    ) -> None:
        self._namespace = namespace
        self._service = service
        self._now = now
        self._write = write or _print
        self._every = every

    def count(self, name: str, **what: str | int) -> None:
        self.record({name: 1}, **what)

    def record(self, values: Mapping[str, float], **what: str | int) -> None:
        (by,) = {METRICS[name].dimension for name in values}
        line: dict[str, object] = {**what, "service": self._service, **values}
        names = [name for name in values if self._every or METRICS[name].fault]
        if names:
            metric = {
                "Namespace": self._namespace,
                "Dimensions": [["service"], ["service", by]] if by else [["service"]],
                "Metrics": [{"Name": name, "Unit": METRICS[name].unit} for name in names],
            }
            line = {"_aws": {"Timestamp": self._now(), "CloudWatchMetrics": [metric]}, **line}
        self._write(json.dumps(line, separators=(",", ":")))


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - Lambda's standard output is the log
