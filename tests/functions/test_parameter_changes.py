"""A parameter that is changed on a stack that stands takes effect, and two stacks stand side by side."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functions.evaluated import evaluated
from tests.functions.template import observability, template
from tests.functions.transformed import transformed

OTHERWISE = {
    "Console": {"Console": "on"},
    "DomainName": {"DomainName": "agents.example.com", "CertificateArn": "arn:aws:acm:us-east-1:1:certificate/1"},
    "CertificateArn": {"CertificateArn": "arn:aws:acm:us-east-1:1:certificate/2"},
    "HostedZoneId": {"HostedZoneId": "Z1"},
    "CorsOrigins": {"CorsOrigins": "https://app.example.com"},
    "OidcIssuer": {"OidcIssuer": "https://id.example.com", "OidcAudience": "agents"},
    "OidcAudience": {"OidcAudience": "others"},
    "OidcClaims": {"OidcClaims": "owner=oid,scopes=scope scp"},
    "Models": {"Models": "text=writer"},
    "AlarmTopicArn": {"AlarmTopicArn": "arn:aws:sns:us-east-1:1:topic"},
    "Observability": {"Observability": "full"},
    "Runtime": {"Runtime": "python3.14"},
    "Architecture": {"Architecture": "x86_64"},
    "ResponseStreaming": {"ResponseStreaming": "off"},
}
AT_A_DOMAIN = OTHERWISE["DomainName"]
# Properties that hold a name which CloudFormation would otherwise make up, and that must differ between stacks.
NAMES = re.compile(r"^(Name|.*Name)$")
REFERENCES = {  # to what has its name elsewhere, or names within something that is a stack's own
    "AttributeName",
    "DomainName",
    "FunctionName",
    "IndexName",
    "MetricName",
    "PolicyName",
    "StageName",
}


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def of(resources: dict[str, Any], kind: str) -> set[str]:
    return {name for name, one in resources.items() if one["Type"] == kind}


def test_every_parameter_is_tried() -> None:
    assert set(OTHERWISE) == set(template()["Parameters"])


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_changed_parameter_reaches_what_depends_on_it(name: str) -> None:
    base = AT_A_DOMAIN if name in {"CertificateArn", "HostedZoneId"} else {}
    before, after = evaluated(**base), evaluated(**(base | OTHERWISE[name]))
    found = changed(before, after)
    assert found, "nothing depends on it"
    if found & of(after, "AWS::ApiGateway::RestApi"):
        assert of(before, "AWS::ApiGateway::Deployment") != of(after, "AWS::ApiGateway::Deployment"), "still deployed"
    if variables(before, "RotatorFunction") != variables(after, "RotatorFunction"):
        assert "KeyRing" in found, "cards and key set stay as they are until the next hour"


def variables(resources: dict[str, Any], function: str) -> dict[str, Any]:
    """What a function is told about the deployment, but not how it is watched."""
    told: dict[str, Any] = resources[function]["Properties"]["Environment"]["Variables"]
    return {name: value for name, value in told.items() if name != "OBSERVABILITY"}


def test_new_code_of_the_rotator_is_run_at_once() -> None:
    (version,) = of(evaluated(), "AWS::Lambda::Version")
    assert {"Ref": version} in references(evaluated()["KeyRing"])


def test_nobody_runs_a_function_with_the_environment_of_an_older_version() -> None:
    resources = evaluated()
    frozen = of(resources, "AWS::Lambda::Alias") | of(resources, "AWS::Lambda::Version")
    for name, resource in resources.items():
        if name not in frozen and name != "KeyRing":
            assert not [one for one in references(resource) if one["Ref"] in frozen], name
    schedules = [one["Properties"]["Target"]["Arn"] for one in by_type("AWS::Scheduler::Schedule")]
    assert schedules
    assert {one["Fn::GetAtt"][0] for one in [*schedules, resources["KeyRing"]["Properties"]["ServiceToken"]]} == {
        "RotatorFunction",
        "SweeperFunction",
    }


def references(value: Any) -> list[dict[str, str]]:
    """Every Ref in it."""
    if isinstance(value, list):
        return [one for each in value for one in references(each)]
    if not isinstance(value, dict):
        return []
    return [value] if list(value) == ["Ref"] else references(list(value.values()))


def by_type(kind: str) -> list[dict[str, Any]]:
    resources = evaluated()
    return [resources[name] for name in of(resources, kind)]


def named(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every name in the properties of a resource."""
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(key, str) and NAMES.match(key) and key not in REFERENCES and not isinstance(one, dict | list):
            yield f"{path}.{key}", one
        yield from named(one, f"{path}.{key}")


def test_no_name_is_the_same_in_two_stacks() -> None:
    documents = (transformed(), observability())
    resources = {name: one for document in documents for name, one in document["Resources"].items()}
    assert {"Table", "Dashboard"} <= set(resources)
    fixed = {
        path: value
        for name, one in resources.items()
        for path, value in named(one.get("Properties", {}), f"{one['Type']} {name}")
        if one["Type"] != "AWS::Lambda::Alias"  # which is a part of its function's name
        if not re.search(r"\.(Dimensions|PolicyDocument|DefinitionBody|Body)\.", path)
    }
    assert fixed == {}


def test_the_dashboard_whose_name_holds_in_all_regions_has_the_region_in_it() -> None:
    dashboard = observability()["Resources"]["Dashboard"]["Properties"]
    assert dashboard["DashboardName"] == {"Fn::Sub": "${Service}-${AWS::Region}"}


def test_why_a_first_deployment_failed_can_be_read_after_it_was_rolled_back() -> None:
    logs = template()["Resources"]["RotatorLogs"]
    assert (logs["DeletionPolicy"], logs["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert "LogGroupName" not in json.dumps(logs)
