"""What the notifier counts is what the template's alarms watch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from a2a_serverless.adapters.metrics import EmfMetrics

TEMPLATE = (Path(__file__).parents[2] / "template.yaml").read_text()


def written(name: str) -> dict[str, object]:
    lines: list[str] = []
    EmfMetrics("A2AServerless", "stack", lambda: 1_790_000_000_000, lines.append).count(name, task="t", config="c")
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


@pytest.mark.parametrize("name", ["DeliveryExhausted", "DeliveryUnverified"])
def test_an_alarm_of_the_template_watches_it(name: str) -> None:
    _, _, alarm = TEMPLATE.partition(f"MetricName: {name}\n")
    assert alarm.lstrip().startswith("Dimensions: [{ Name: service, Value: !Ref AWS::StackName }]")
    assert "POWERTOOLS_METRICS_NAMESPACE: A2AServerless" in TEMPLATE


def test_a_line_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    EmfMetrics("n", "s", lambda: 1).count("Sweeps")
    assert json.loads(capsys.readouterr().out)["Sweeps"] == 1
