"""A parameter that is changed on a stack that stands takes effect, and two stacks stand side by side."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from a2a_serverless_tools.stack.settings import set_constants
from tests.functions.evaluated import evaluated
from tests.functions.template import ROOT, observability, parsed, template
from tests.functions.transformed import transform, transformed

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
    "WebAclArn": {"WebAclArn": "arn:aws:wafv2:us-east-1:1:regional/webacl/agents/1"},
    "DeletionProtection": {"DeletionProtection": "on"},
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


def test_every_parameter_of_the_template_has_another_value_to_try() -> None:
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


def test_a_domain_leaves_the_api_s_own_address_open_until_a_constant_closes_it() -> None:
    """Addresses of events and callbacks that were handed out before have to answer until their tasks end."""
    text = (ROOT / "template.yaml").read_text()

    def made(gateway: str) -> dict[str, Any]:
        constants = parsed(set_constants(text, {"GatewayAddress": gateway}))
        return dict(json.loads(transform(constants, {"DomainName": "agents.example.com", "CertificateArn": "arn"})))

    def is_closed(document: dict[str, Any]) -> object:
        (api,) = (one for one in document["Resources"].values() if one["Type"] == "AWS::ApiGateway::RestApi")
        (server,) = api["Properties"]["Body"]["servers"]
        endpoint = server["x-amazon-apigateway-endpoint-configuration"]["disableExecuteApiEndpoint"]
        assert endpoint == {"Fn::If": ["ClosesGateway", True, False]}
        has_domain, equals = document["Conditions"]["ClosesGateway"]["Fn::And"]
        assert has_domain == {"Condition": "HasDomain"}
        return equals["Fn::Equals"][0] == equals["Fn::Equals"][1]

    first, second = made("open"), made("closed")
    assert (is_closed(first), is_closed(second)) == (False, True)
    deployments = [of(one["Resources"], "AWS::ApiGateway::Deployment") for one in (first, second)]
    assert deployments[0] != deployments[1], "the stage is deployed anew"


def test_a_web_acl_checks_the_requests_of_the_stage() -> None:
    assert of(evaluated(), "AWS::WAFv2::WebACLAssociation") == set()
    after = evaluated(**OTHERWISE["WebAclArn"])
    (association,) = (after[name]["Properties"] for name in of(after, "AWS::WAFv2::WebACLAssociation"))
    (stage,) = of(after, "AWS::ApiGateway::Stage")
    assert association["WebACLArn"] == OTHERWISE["WebAclArn"]["WebAclArn"]
    assert association["ResourceArn"]["Fn::Sub"].endswith(f"/restapis/${{Api}}/stages/${{{stage}}}")


def test_the_tables_that_outlive_the_stack_are_protected_when_it_is_turned_on_and_no_others() -> None:
    def protected(**parameters: str) -> set[str]:
        resources = evaluated(**parameters)
        tables = of(resources, "AWS::DynamoDB::Table")
        return {name for name in tables if resources[name]["Properties"].get("DeletionProtectionEnabled")}

    assert protected() == set()
    assert protected(DeletionProtection="on") == {"Table", "AccessTable"}


def variables(resources: dict[str, Any], function: str) -> dict[str, Any]:
    """What a function is told about the deployment, but not how it is watched."""
    told: dict[str, Any] = resources[function]["Properties"]["Environment"]["Variables"]
    return {name: value for name, value in told.items() if name != "OBSERVABILITY"}


def test_the_key_ring_has_a_place_for_a_digest() -> None:
    """The build writes it (tests/stack/test_build.py), so that new code and new settings are tried at once."""
    assert evaluated()["KeyRing"]["Properties"]["Digest"] == ""


def test_a_deployment_makes_the_same_resources_wherever_sam_uploads_the_zips() -> None:
    """`--guided` saves a prefix, CI has none: a version that is named after the place is refused as a second one."""
    elsewhere = json.loads(transform(template(), {}, "s3://bucket/prefix/uploaded"))["Resources"]
    assert elsewhere.keys() == transformed()["Resources"].keys()
    assert not {"AWS::Lambda::Version", "AWS::Lambda::Alias"} & {one["Type"] for one in elsewhere.values()}


def test_schedules_and_the_custom_resource_call_the_functions_themselves() -> None:
    schedules = [one["Properties"]["Target"]["Arn"] for one in by_type("AWS::Scheduler::Schedule")]
    assert schedules
    called = [*schedules, evaluated()["KeyRing"]["Properties"]["ServiceToken"]]
    assert {one["Fn::GetAtt"][0] for one in called} == {"RotatorFunction", "SweeperFunction"}


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


def test_a_rotator_that_cannot_start_does_not_keep_a_stack_from_being_rolled_back_or_deleted() -> None:
    """A request to delete the custom resource would go to the same function, and wait for its answer in vain."""
    key_ring = template()["Resources"]["KeyRing"]
    assert (key_ring["DeletionPolicy"], key_ring["UpdateReplacePolicy"]) == ("Retain", "Retain")
