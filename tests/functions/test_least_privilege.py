"""What functions may do, read from the template as CloudFormation gets it: SAM's own additions are in it."""

import json
import re
from typing import Any

import pytest

from a2a_serverless.adapters.kms import PURPOSE, SERVICE_TOKENS
from a2a_serverless.settings import SettingsError, read
from tests.functions.evaluated import evaluated
from tests.functions.template import functions, settings
from tests.functions.transformed import of_type, statements, transformed

LONGEST_LIFE = 30
# Resources with a wildcard, and why there is no narrower one.
WIDE = {
    "*": ("xray:PutTraceSegments xray:PutTelemetryRecords", "X-Ray's writes know no resource"),
    "${Blobs.Arn}/*": (
        "s3:GetObject s3:PutObject",
        "objects are named by their content: any of them may be asked for",
    ),
    "arn:${AWS::Partition}:bedrock:*::foundation-model/*": (
        "bedrock:InvokeModel bedrock:InvokeModelWithResponseStream",
        "an inference profile calls models in regions that it chooses",
    ),
    "${Table.Arn}/stream/*": ("dynamodb:ListStreams", "lists the streams of a table"),
    "arn:${AWS::Partition}:bedrock:${AWS::Region}:${AWS::AccountId}:application-inference-profile/*": (
        "bedrock:InvokeModel bedrock:InvokeModelWithResponseStream",
        "a profile's name is not its identifier",
    ),
    "arn:${AWS::Partition}:bedrock:${AWS::Region}:${AWS::AccountId}:inference-profile/*": (
        "bedrock:InvokeModel bedrock:InvokeModelWithResponseStream",
        "a profile's name is not its identifier",
    ),
}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def text(resource: Any) -> str:
    return str(resource["Fn::Sub"]) if isinstance(resource, dict) and "Fn::Sub" in resource else json.dumps(resource)


def test_no_action_has_a_wildcard_and_every_resource_with_one_has_its_reason() -> None:
    for role, statement in statements():
        assert statement["Effect"] == "Allow"
        assert not {"NotAction", "NotResource"} & set(statement), role
        actions = listed(statement["Action"])
        assert all(re.fullmatch(r"[a-z0-9-]+:[A-Za-z]+", action) for action in actions), (role, actions)
        for resource in listed(statement["Resource"]):
            named = resource if isinstance(resource, str) else text(resource)
            if "*" in named:
                allowed, reason = WIDE[named]
                assert reason
                assert set(actions) <= set(allowed.split()), role


def test_every_resource_with_a_reason_is_in_a_policy() -> None:
    used = {
        resource if isinstance(resource, str) else text(resource)
        for _, statement in statements()
        for resource in listed(statement["Resource"])
    }
    assert set(WIDE) <= used


def test_no_role_has_a_managed_policy() -> None:
    for name, role in of_type("AWS::IAM::Role").items():
        assert "ManagedPolicyArns" not in role["Properties"], name


def test_a_role_is_for_one_function_or_for_its_schedule() -> None:
    roles = set(of_type("AWS::IAM::Role"))
    own = {f"{name.title()}Role" for name in functions()}
    assert own <= roles
    for name in roles - own:
        (statement,) = [statement for role, statement in statements() if role == name]
        assert listed(statement["Action"]) == ["lambda:InvokeFunction"], name


def test_only_api_gateway_and_the_schedules_may_invoke_a_function_from_outside() -> None:
    found = of_type("AWS::Lambda::Permission")
    assert {one["Properties"]["Principal"] for one in found.values()} == {"apigateway.amazonaws.com"}
    assert all("SourceArn" in one["Properties"] for one in found.values())


@pytest.mark.requirement(90)
@pytest.mark.parametrize("kind", ["AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy"])
def test_storage_and_queues_are_reached_by_tls_only(kind: str) -> None:
    for policy in of_type(kind).values():
        (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
        assert (statement["Effect"], statement["Principal"]) == ("Deny", "*")
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.requirement(90)
def test_a_domain_speaks_no_tls_before_1_2() -> None:
    (domain,) = of_type("AWS::ApiGateway::DomainName").values()
    assert domain["Properties"]["SecurityPolicy"] == "TLS_1_2"


def test_every_queue_has_the_policy_and_is_encrypted() -> None:
    (policy,) = of_type("AWS::SQS::QueuePolicy").values()
    queues = of_type("AWS::SQS::Queue")
    assert {one["Ref"] for one in policy["Properties"]["Queues"]} == set(queues)
    assert all(queue["Properties"]["SqsManagedSseEnabled"] is True for queue in queues.values())


def test_resources_with_data_of_customers_outlive_the_stack_but_signing_keys_do_not() -> None:
    policies = {name: one.get("DeletionPolicy") for name, one in transformed()["Resources"].items()}
    kept = {name for name, policy in policies.items() if policy == "RetainExceptOnCreate"}
    assert kept == {"Table", "AccessTable", "Blobs", "SealingKey"}
    assert policies["KeyRingSecret"] == "Delete"


@pytest.mark.requirement(123)
def test_every_function_traces_by_one_parameter_and_logs_to_a_group_that_forgets() -> None:
    groups = of_type("AWS::Logs::LogGroup")
    for name, function in of_type("AWS::Lambda::Function").items():
        properties = function["Properties"]
        assert properties["TracingConfig"]["Mode"] == {"Fn::If": ["Full", "Active", "PassThrough"]}
        assert groups[properties["LoggingConfig"]["LogGroup"]["Ref"]]["Properties"]["RetentionInDays"], name


def test_objects_stay_longer_than_any_task_that_points_at_them() -> None:
    days = transformed()["Mappings"]["ObjectDays"]
    with pytest.raises(SettingsError, match=f"from 1 to {LONGEST_LIFE}"):
        read({"TASK_MAX_LIFE_DAYS": str(LONGEST_LIFE + 1)})
    assert all(entry["Stay"] > int(day) + LONGEST_LIFE for day, entry in days.items())
    (bucket,) = of_type("AWS::S3::Bucket").values()
    (rule,) = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    kept = settings()["Environment"]["TASK_RETENTION_DAYS"]
    assert rule["ExpirationInDays"] == {"Fn::FindInMap": ["ObjectDays", kept, "Stay"]}


@pytest.mark.parametrize("name", ["Domain", "DomainRoot", "DomainRecord"])
def test_a_domain_is_made_only_when_it_is_named(name: str) -> None:
    resource = transformed()["Resources"][name]
    assert resource["Condition"] in {"HasDomain", "HasHostedZone"}
    assert transformed()["Parameters"]["DomainName"]["Default"] == ""


@pytest.mark.requirement(126)
def test_at_a_domain_of_one_s_own_well_known_addresses_are_at_the_root() -> None:
    (mapping,) = of_type("AWS::ApiGateway::BasePathMapping").values()
    assert "BasePath" not in mapping["Properties"]
    variables = functions()["notifier"]["Environment"]["Variables"]["PUBLIC_BASE_URL"]
    assert variables["Fn::If"][2]["Fn::If"][1] == {"Fn::Sub": "https://${DomainName}"}


def test_the_notifier_knows_api_gateway_s_own_address_also_at_a_domain() -> None:
    variables = functions()["notifier"]["Environment"]["Variables"]
    gateway = variables["PUBLIC_BASE_URL"]["Fn::If"][2]["Fn::If"][2]
    assert variables["GATEWAY_URL"] == gateway


def test_no_concurrency_is_reserved_unless_a_constant_says_so() -> None:
    for name in ("Api", "Worker", "Relay", "Notifier", "Sweeper"):
        reserved = transformed()["Resources"][f"{name}Function"]["Properties"]["ReservedConcurrentExecutions"]
        assert reserved == {"Fn::If": [f"Reserves{name}", 0, {"Ref": "AWS::NoValue"}]}
        assert transformed()["Conditions"][f"Reserves{name}"] == {"Fn::Not": [{"Fn::Equals": [0, 0]}]}
    functions_ = [one["Properties"] for one in evaluated().values() if one["Type"] == "AWS::Lambda::Function"]
    assert functions_
    assert not any("ReservedConcurrentExecutions" in one for one in functions_), "a small account has none to give"


def test_no_function_may_write_api_keys_and_only_the_rotator_public_documents() -> None:
    writes = {"PutItem", "UpdateItem", "BatchWriteItem", "PartiQLInsert", "PartiQLUpdate"}
    found = {
        (role, resource["Fn::GetAtt"][0])
        for role, statement in statements()
        for resource in listed(statement["Resource"])
        if isinstance(resource, dict)
        and resource.get("Fn::GetAtt", ["", ""])[0] in {"PublicTable", "AccessTable"}
        and {action.partition(":")[2] for action in listed(statement["Action"])} & writes
    }
    assert found == {("RotatorRole", "PublicTable")}


def test_roles_use_the_sealing_key_for_a_purpose_and_only_the_worker_makes_service_tokens() -> None:
    found: set[tuple[str, str, str]] = set()
    for role, statement in statements():
        if {"Fn::GetAtt": ["SealingKey", "Arn"]} in listed(statement["Resource"]):
            (purposes,) = statement["Condition"]["StringEquals"].values()
            assert list(statement["Condition"]) == ["StringEquals"]
            assert list(statement["Condition"]["StringEquals"]) == ["kms:EncryptionContext:purpose"]
            found |= {(role, action, one) for action in listed(statement["Action"]) for one in listed(purposes)}
    webhooks, tokens = PURPOSE["purpose"], SERVICE_TOKENS["purpose"]
    assert found == {
        ("ApiRole", "kms:GenerateDataKey", webhooks),
        ("ApiRole", "kms:Decrypt", webhooks),
        ("ApiRole", "kms:Decrypt", tokens),
        ("WorkerRole", "kms:Encrypt", tokens),
        ("NotifierRole", "kms:Decrypt", webhooks),
    }


def test_no_function_can_delete_objects_list_the_bucket_or_revoke_keys() -> None:
    allowed = {
        (resource, action)
        for _, statement in statements()
        for named in listed(statement["Resource"])
        for resource in [re.sub(r"[^A-Za-z]*\bFn::\w+\W+(\w+).*", r"\1", json.dumps(named))]
        for action in listed(statement["Action"])
    }
    assert {action for resource, action in allowed if resource == "Blobs"} == {"s3:GetObject", "s3:PutObject"}
    assert {action for resource, action in allowed if resource == "AccessTable"} == {"dynamodb:GetItem"}
