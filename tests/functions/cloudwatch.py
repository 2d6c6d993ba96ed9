"""Plays CloudWatch: which alarms of template.yaml the lines of metrics set off, minute by minute.

As https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html describes: of the last
``EvaluationPeriods``, ``DatapointsToAlarm`` have to breach. Only for alarms on one metric of ours; of alarms
on a sum over functions, ``minutes_to_alarm`` computes how long a steady fault takes.
"""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.functions.template import resources

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
}
_STATISTICS: Final[dict[str, Callable[[list[float]], float]]] = {"Maximum": max, "Sum": sum}
MINUTE_MS: Final = 60_000


@dataclass
class CloudWatch:
    """The lines that functions have written so far, with their time (ms)."""

    now: Callable[[], int]
    lines: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    def write(self, line: str) -> None:
        """Takes a line in embedded metric format."""
        self.lines.append((self.now(), json.loads(line)))

    def values(self, name: str) -> list[float]:
        """The values of a metric."""
        return [value for _, line in self.lines for value in line.get(name, [])]

    def loud_at(self, from_ms: int, to_ms: int) -> dict[str, list[int]]:
        """The minutes after ``from_ms`` in which an alarm is in state ALARM, by alarm."""
        minutes = range((to_ms - from_ms) // MINUTE_MS + 1)
        found = {
            name: [minute for minute in minutes if self._is_loud(alarm, from_ms + minute * MINUTE_MS)]
            for name, alarm in resources("AWS::CloudWatch::Alarm").items()
            if alarm.get("Namespace") == "A2AServerless"
        }
        return {name: minutes for name, minutes in found.items() if minutes}

    def _is_loud(self, alarm: dict[str, Any], at: int) -> bool:
        period_ms, periods = alarm["Period"] * 1000, alarm["EvaluationPeriods"]
        assert alarm["TreatMissingData"] == "notBreaching"
        breaches = _COMPARISONS[alarm["ComparisonOperator"]]
        count = 0
        for number in range(periods):
            begin = (at // period_ms - number) * period_ms
            points = [
                value
                for when, line in self.lines
                if begin <= when < min(begin + period_ms, at + 1)
                for value in line.get(alarm["MetricName"], [])
            ]
            count += bool(points) and breaches(_STATISTICS[alarm["Statistic"]](points), alarm["Threshold"])
        return count >= int(alarm.get("DatapointsToAlarm", periods))


def minutes_to_alarm(name: str, values_a_minute: float) -> float:
    """The minutes after which an alarm on a sum goes off, if a function counts so many each minute."""
    alarm = resources("AWS::CloudWatch::Alarm")[name]
    (period,) = {one["MetricStat"]["Period"] for one in alarm["Metrics"] if "MetricStat" in one}
    assert _COMPARISONS[alarm["ComparisonOperator"]](values_a_minute * period / 60, alarm["Threshold"])
    return float(period * alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"]) / 60)
