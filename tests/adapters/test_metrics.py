"""What the notifier counts is what the template's alarms watch."""

from __future__ import annotations

import io
import json
import logging
import time
from contextlib import redirect_stdout

import pytest

from a2a_serverless.adapters.logs import IdsOnly
from a2a_serverless.adapters.metrics import EmfMetrics
from a2a_serverless.domain.metrics import METRICS

IDS = {"task": "t", "config": "c"}


def written(name: str, *, every: bool = True) -> list[dict[str, object]]:
    lines: list[str] = []
    by = METRICS[name].dimension
    EmfMetrics("A2AServerless", "stack", lines.append, every=every).count(name, **IDS, **({by: "one"} if by else {}))
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", ["DeliveryExhausted", "DeliveryUnverified"])
def test_a_count_is_one_line_in_the_embedded_metric_format(name: str) -> None:
    metric = {"Namespace": "A2AServerless", "Dimensions": [["service"]], "Metrics": [{"Name": name, "Unit": "Count"}]}
    (line,) = written(name)
    assert line == {
        "_aws": {"Timestamp": line["_aws"]["Timestamp"], "CloudWatchMetrics": [metric]},  # type: ignore[index]
        "service": "stack",
        **IDS,
        name: [1.0],
    }
    assert abs(line["_aws"]["Timestamp"] - time.time() * 1000) < 60_000  # type: ignore[index]


@pytest.mark.parametrize("name", [name for name, measure in METRICS.items() if measure.dimension])
def test_a_metric_with_a_dimension_of_its_own_is_there_for_the_whole_stack_too(name: str) -> None:
    (line,) = written(name)
    (metric,) = line["_aws"]["CloudWatchMetrics"]  # type: ignore[index]
    assert metric["Dimensions"] == [["service"], ["service", METRICS[name].dimension]]


@pytest.mark.parametrize("name", METRICS)
def test_without_every_metric_only_faults_are_metrics_and_the_others_are_log_lines(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    fault = METRICS[name].fault
    assert bool(written(name, every=False)) == fault
    said = [json.loads(IdsOnly().format(record)) for record in caplog.records]
    assert [{**line, "timestamp": None} for line in said] == ([] if fault else [said_of(name)])


def said_of(name: str) -> dict[str, object]:
    """The line of the log for a metric that is none."""
    line: dict[str, object] = {
        "timestamp": None,
        "level": "INFO",
        "message": "measured",
        "logger": "a2a_serverless.adapters.metrics",
    }
    return line | IDS | {name: 1} | ({METRICS[name].dimension: "one"} if METRICS[name].dimension else {})


def test_measurements_of_an_idle_deployment_are_no_faults_and_cost_no_metric() -> None:
    for name in ("Sweeps", "KeyAge", "ColdStart"):
        assert not METRICS[name].fault


def test_a_line_leaves_the_process_at_once() -> None:
    log = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(log)):
        EmfMetrics("n", "s").count("Sweeps")
        assert json.loads(log.getvalue())["Sweeps"] == [1.0]
