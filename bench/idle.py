"""What a deployment costs a month that nobody calls (N17).

Counted metrics of the templates' alarms times public prices; nothing is measured here. `basic` is the default of the
template's parameter `Observability`. Its figure is without metrics of ours, because they count faults only; that of
`full` is for a month with calls in every hour, in which every metric is charged.
"""

from __future__ import annotations

from typing import Final

from a2a_serverless.domain.metrics import METRICS
from a2a_serverless_tools.stack.bases import parse_template
from cost import PRICES, Item, standing
from measuring import ROOT, Report, figure, goal, main

N17_USD: Final = 4.0
KEY_USD: Final = PRICES["per_month"]["kms_key"]
ROTATIONS: Final = 2  # the KMS key rotates every year; AWS charges the first two rotations like a key each
DIMENSIONS: Final = 7 + 2 + 2 + 6  # states, queues, who lost a lease, functions


def basic() -> list[Item]:
    """Returns the monthly items of `Observability=basic`."""
    return standing(_alarms("template.yaml"), 0, 0)


def full() -> list[Item]:
    """Returns the same of `Observability=full`: all metrics, alarms and the dashboard."""
    return standing(_alarms("template.yaml") + _alarms("observability.yaml"), len(METRICS) + DIMENSIONS, 1)


def usd(items: list[Item]) -> float:
    """Returns their sum."""
    return sum(item.usd for item in items)


def measure(_rounds: int) -> Report:
    """Computes the bill once: it does not vary."""
    return Report(
        "While nobody calls",
        __doc__ or "",
        [
            *(figure(item.what, "USD a month", [item.usd], ours=True) for item in basic()),
            figure("all, Observability=basic", "USD a month", [usd(basic())], ours=True),
            figure("the same from the third year on", "USD a month", [usd(basic()) + ROTATIONS * KEY_USD], ours=True),
            figure("all, Observability=full, with calls", "USD a month", [usd(full())], ours=True),
        ],
        [goal("N17", "a month without calls, USD", "<=", N17_USD, [usd(basic())])],
        [
            f"Prices of {PRICES['as_of']} in {PRICES['region']}, without the free tier.",
            "The goal is for the first year. The first two yearly rotations of the KMS key add 1 USD a month each.",
        ],
    )


def _alarms(name: str) -> int:
    """Returns how many metrics the alarms of a template watch: AWS charges for each."""
    resources = parse_template((ROOT / name).read_text())["Resources"].values()
    alarms = [one["Properties"] for one in resources if one["Type"] == "AWS::CloudWatch::Alarm"]
    return sum(len([one for one in alarm.get("Metrics", [{}]) if "Expression" not in one]) for alarm in alarms)


if __name__ == "__main__":
    main(measure, rounds=1)
