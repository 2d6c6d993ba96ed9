"""The example of workers in containers: its times and its scaling fit what a worker and the stack do."""

from __future__ import annotations

import re
from typing import Any

import cost
from a2a_serverless.aws.queue_worker import HAND_OVER_S
from tests.functions.service_authorization import faults
from tests.functions.template import ROOT, parsed

TEXT = (ROOT / "examples/worker/template.yaml").read_text()
RESOURCES: dict[str, Any] = parsed(TEXT)["Resources"]
TASK: dict[str, Any] = RESOURCES["Task"]["Properties"]
(CONTAINER,) = TASK["ContainerDefinitions"]
VARIABLES = {one["Name"]: one["Value"] for one in CONTAINER["Environment"]}
MOST_SECONDS = 120
"""https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_definition_parameters.html, of Fargate"""


def test_the_platform_waits_until_tasks_are_handed_over() -> None:
    assert int(VARIABLES["DRAIN_SECONDS"]) + HAND_OVER_S < CONTAINER["StopTimeout"] <= MOST_SECONDS


def test_the_container_is_that_whose_cost_the_documents_have() -> None:
    size = {"vcpu": int(TASK["Cpu"]) / 1024, "gb": int(TASK["Memory"]) / 1024, "tasks": int(VARIABLES["TASKS_AT_ONCE"])}
    assert size == cost.CONTAINER


def test_the_check_asks_the_port_of_the_image() -> None:
    (port,) = re.findall(r"EXPOSE (\d+)", (ROOT / "examples/worker/Dockerfile").read_text())
    assert f":{port}'" in CONTAINER["HealthCheck"]["Command"][-1]


def test_each_step_of_the_scaling_has_places_for_all_tasks_up_to_the_next() -> None:
    busy = RESOURCES["Busy"]["Properties"]
    most = RESOURCES["Scaling"]["Properties"]["MaxCapacity"]
    steps = RESOURCES["More"]["Properties"]["StepScalingPolicyConfiguration"]["StepAdjustments"]
    for step in steps:
        if upper := step.get("MetricIntervalUpperBound"):
            assert busy["Threshold"] + upper <= step["ScalingAdjustment"] * cost.CONTAINER["tasks"]
    bounds = [(one["MetricIntervalLowerBound"], one.get("MetricIntervalUpperBound")) for one in steps]
    assert [upper for _, upper in bounds] == [*(lower for lower, _ in bounds[1:]), None]
    assert max(one["ScalingAdjustment"] for one in steps) == most


def test_the_two_alarms_share_their_metric_and_their_threshold_and_fewer_takes_longer() -> None:
    busy, quiet = (RESOURCES[name]["Properties"] for name in ("Busy", "Quiet"))
    assert (busy["Metrics"], busy["Threshold"]) == (quiet["Metrics"], quiet["Threshold"])
    assert quiet["EvaluationPeriods"] > busy["EvaluationPeriods"]


def test_the_role_that_starts_the_container_allows_what_aws_lets_be_allowed() -> None:
    (policy,) = RESOURCES["StartRole"]["Properties"]["Policies"]
    assert [*faults(_with_names(policy["PolicyDocument"]["Statement"]))] == []


def _with_names(statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {"Logs.Arn": "arn:aws:logs:*:*:log-group:a:*", "Environment": "arn:aws:s3:::a/worker.env"}

    def arn(given: Any) -> str:
        match given:
            case {"Fn::Select": _}:
                return names["Environment"].partition("/")[0]
            case {"Fn::Sub": text}:
                return re.sub(r"\$\{[^}]+\}", "*", text)
            case {"Ref": name}:
                return names[name]
            case {"Fn::GetAtt": parts}:
                return names[".".join(parts)]
        return str(given)

    return [one | {"Resource": arn(one["Resource"])} for one in statements]
