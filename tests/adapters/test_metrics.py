"""What the notifier counts is what the template's alarms watch."""

from __future__ import annotations

import json

import pytest

from a2a_serverless.adapters.metrics import EmfMetrics
from a2a_serverless.domain.metrics import METRICS


def written(name: str, *, every: bool = True) -> dict[str, object]:
    lines: list[str] = []
    metrics = EmfMetrics("A2AServerless", "stack", lambda: 1_790_000_000_000, lines.append, every=every)
    metrics.count(name, task="t", config="c")
    (line,) = lines
    found: dict[str, object] = json.loads(line)
    return found


@pytest.mark.parametrize("name", ["DeliveryExhausted", "DeliveryUnverified"])
def test_a_count_is_one_line_in_the_embedded_metric_format(name: str) -> None:
    metric = {"Namespace": "A2AServerless", "Dimensions": [["service"]], "Metrics": [{"Name": name, "Unit": "Count"}]}
    assert written(name) == {
        "_aws": {"Timestamp": 1_790_000_000_000, "CloudWatchMetrics": [metric]},
        "service": "stack",
        "task": "t",
        "config": "c",
        name: 1,
    }


@pytest.mark.parametrize("name", METRICS)
def test_where_not_every_metric_is_wanted_a_fault_is_one_and_the_rest_are_lines(name: str) -> None:
    line = written(name, every=False)
    assert ("_aws" in line) == METRICS[name].fault
    assert line | {"_aws": None} == written(name) | {"_aws": None}


def test_nothing_that_an_idle_deployment_says_is_a_metric_unless_it_is_wanted() -> None:
    for name in ("Sweeps", "OldestDueDelivery", "KeyAge", "ColdStart"):
        assert not METRICS[name].fault


def test_a_line_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    EmfMetrics("n", "s", lambda: 1).count("Sweeps")
    assert json.loads(capsys.readouterr().out)["Sweeps"] == 1
