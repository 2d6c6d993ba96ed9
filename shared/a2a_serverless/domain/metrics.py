"""All metrics, with their units and their one dimension besides the stack. Alarms and the dashboard use these names.

Dimensions have few values (states, functions), because AWS charges for each combination. Ids go into the log line of a
metric, where they cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Unit: TypeAlias = Literal["Count", "Milliseconds", "Seconds", "Percent", "None"]


class MetricSpec(NamedTuple):
    """A metric. ``dimension`` is its dimension besides the stack, or "". ``description`` is for operators.

    A ``fault`` is counted only when something goes wrong, so every deployment has it as a metric; it costs nothing
    while nothing goes wrong.
    """

    description: str
    unit: Unit = "Count"
    dimension: str = ""
    fault: bool = False


METRICS: Final[dict[str, MetricSpec]] = {
    "TaskStates": MetricSpec("Tasks that entered a state.", dimension="state"),
    "StepTime": MetricSpec("Duration of a step of an agent.", "Milliseconds"),
    "QueueAge": MetricSpec("Time that a task or event spent queued.", "Milliseconds", "queue"),
    "DeliverySuccess": MetricSpec("1 for a POST to a webhook that was accepted, 0 for one that was not.", "None"),
    "DeliveryAttempts": MetricSpec("How many POSTs an event took until it was accepted or given up."),
    "DeliveryExhausted": MetricSpec("Webhooks that were given up after their last attempt.", fault=True),
    "DeliveryUnverified": MetricSpec(
        "Events that went to a webhook whose owner did not answer the challenge.", fault=True
    ),
    "OldestDueTask": MetricSpec(
        "How overdue the oldest task is that no worker runs; from two minutes on.", "Seconds", fault=True
    ),
    "OldestDueDelivery": MetricSpec(
        "How overdue the oldest delivery is, without delays by receivers; from two minutes on.", "Seconds", fault=True
    ),
    "OpenCircuits": MetricSpec("Webhook hosts with an open circuit breaker in an instance, recorded at each change."),
    "LeaseLost": MetricSpec(
        "Runs and deliveries that died, or were too slow for their lease.", dimension="of", fault=True
    ),
    "RunsDiffer": MetricSpec(
        "Runs that came to an act with something else than an earlier run, or that ended without an act of it.",
        dimension="kind",
        fault=True,
    ),
    "TicksSkipped": MetricSpec("Ticks of schedules that started no task.", dimension="reason", fault=True),
    "ColdStart": MetricSpec("Cold starts of functions.", dimension="function"),
    "Sweeps": MetricSpec("Runs of the sweeper."),
    "ItemsPostponed": MetricSpec(
        "Due items that could not be read. They are checked again within an hour.", fault=True
    ),
    "KeyAge": MetricSpec("Age of the signing key, in percent of the age at which it is replaced.", "Percent"),
    "ServerErrors": MetricSpec(
        "Requests that failed by our fault, also those that JSON-RPC answers with status 200.", fault=True
    ),
}


class NullMetrics:
    """``ports.Metrics`` that discards everything."""

    def count(self, name: str, **fields: str | int) -> None:
        """Does nothing."""

    def record(self, values: Mapping[str, float], **fields: str | int) -> None:
        """Does nothing."""


NULL_METRICS: Final = NullMetrics()
