"""Metrics as log lines in CloudWatch's embedded metric format (EMF): no call, no client, nothing to wait for.

Printed and not logged, because a logger would wrap the line and CloudWatch would not know it again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class EmfMetrics:
    """``ports.Metrics``. The dimension ``service`` is the stack, as the template's alarms have it."""

    def __init__(
        self, namespace: str, service: str, now: Callable[[], int], write: Callable[[str], object] | None = None
    ) -> None:
        self._namespace = namespace
        self._service = service
        self._now = now
        self._write = write or _print

    def count(self, name: str, **what: str | int) -> None:
        metric = {
            "Namespace": self._namespace,
            "Dimensions": [["service"]],
            "Metrics": [{"Name": name, "Unit": "Count"}],
        }
        line = {**what, "service": self._service, name: 1}
        self._write(json.dumps({"_aws": {"Timestamp": self._now(), "CloudWatchMetrics": [metric]}, **line}))


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - Lambda's standard output is the log
