"""Observability=full, deployed by the real SAM CLI: the nested template is uploaded, created, fed by its parent, and
taken away again by Observability=basic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless_tools.operators.deployed import StackName
from a2a_serverless_tools.operators.operations import alarm_states
from a2a_serverless_tools.stack import local_stack, sam
from tests.functions.template import observability, resources

if TYPE_CHECKING:
    from tests.stack.local import LocalStack

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]
NAME = "observed"
Deploy = Callable[[str], sam.Deployment]


@pytest.fixture
def deploy(stack: LocalStack) -> Iterator[Deploy]:
    """Deploys a second stack beside the first, with as much to look at as is named."""

    def deployed(much: str) -> sam.Deployment:
        parameters = local_stack.local_parameters(stack.options) | {"Observability": much}
        switches = local_stack.local_switches(stack.options)
        return sam.deploy(stack.paths, stack.running.build, stack.deployment.endpoint, parameters, switches, NAME)

    yield deployed
    cloudformation = stack.client("cloudformation")
    cloudformation.delete_stack(StackName=NAME)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=NAME, WaiterConfig={"Delay": 1})


def made(stack: LocalStack, name: str) -> dict[str, tuple[str, str]]:
    """Type and physical id of each resource of a stack, all of them complete."""
    found = stack.client("cloudformation").describe_stack_resources(StackName=name)["StackResources"]
    assert {one["ResourceStatus"] for one in found} <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
    return {one["LogicalResourceId"]: (one["ResourceType"], one["PhysicalResourceId"]) for one in found}


def test_all_alarms_and_the_dashboard_are_made_on_what_the_stack_has_and_go_with_the_parameter(
    stack: LocalStack, deploy: Deploy
) -> None:
    parent = deploy("full")
    outer = made(stack, NAME)
    nested = made(stack, outer["FullObservability"][1])
    assert {name: kind for name, (kind, _) in nested.items()} == {
        name: one["Type"] for name, one in observability()["Resources"].items() if "Condition" not in one
    }

    cloudwatch = stack.client("cloudwatch")
    ids = [physical for kind, physical in nested.values() if kind == "AWS::CloudWatch::Alarm"]
    alarms = cloudwatch.describe_alarms(AlarmNames=ids)["MetricAlarms"]
    named = {one["Name"]: one["Value"] for alarm in alarms for one in alarm["Dimensions"]}
    assert named == {"service": NAME, "FunctionName": parent.outputs["RelayFunctionName"]}
    assert all(alarm["MetricName"] and alarm["AlarmDescription"] for alarm in alarms)

    body = cloudwatch.get_dashboard(DashboardName=f"{NAME}-us-east-1")["DashboardBody"]
    words = set(words_in(json.loads(body)))
    queues = {outer[name][1].rpartition("/")[2] for name in ("WorkQueue", "DeliveryQueue")}
    assert {NAME, "us-east-1"} | queues <= words
    assert not any("${" in word for word in words)

    of_the_parent = {outer[name][1] for name in resources("AWS::CloudWatch::Alarm")}
    here = StackName(NAME, stack.deployment.endpoint)
    assert alarm_states(here).keys() == of_the_parent | set(ids), "`check` looks at these"

    deploy("basic")
    assert "FullObservability" not in made(stack, NAME)
    assert alarm_states(here).keys() == of_the_parent
    assert cloudwatch.describe_alarms(AlarmNames=ids)["MetricAlarms"] == []
    assert cloudwatch.list_dashboards(DashboardNamePrefix=NAME)["DashboardEntries"] == []


def words_in(document: Any) -> Iterator[str]:
    """Every text in a JSON document."""
    if isinstance(document, dict):
        document = list(document.values())
    if isinstance(document, list):
        for one in document:
            yield from words_in(one)
    elif isinstance(document, str):
        yield document
