"""What the emulators do otherwise than AWS says, each with AWS's page, and what they can evaluate in its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.roles.policies import listed
from tests.roles.recorder import ACCOUNT, LEADING_KEYS, PURPOSE, REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.roles.clouds import Cloud

Statements = list[dict[str, Any]]
GUIDES: Final = "https://docs.aws.amazon.com/"
KEY: Final = {"AttributeName": "pk", "KeyType": "HASH"}
TARGET: Final = {"Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:queue", "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/schedules"}


class Fault(NamedTuple):
    """A fault: AWS's page, what shows it, and the statements that stand for some that it lets nobody use.

    ``amend`` may widen statements only. What it widens is then not seen on this emulator.
    """

    name: str
    page: str
    shows: Callable[[Cloud], bool]
    amend: Callable[[Statements], Statements] = list


def allow(action: str, on: str = "*", condition: Mapping[str, Mapping[str, str]] | None = None) -> Statements:
    """One statement."""
    return [{"Effect": "Allow", "Action": action, "Resource": on, "Condition": condition or {}}]


def without_keys(statements: Statements, prefix: str) -> Statements:
    """The statements without conditions on keys that begin so."""
    return [{**one, "Condition": _without(one.get("Condition", {}), prefix)} for one in statements]


def _without(condition: dict[str, dict[str, Any]], prefix: str) -> dict[str, dict[str, Any]]:
    left = {name: {key: keys[key] for key in keys if not key.startswith(prefix)} for name, keys in condition.items()}
    return {name: keys for name, keys in left.items() if keys}


# ---- What shows them


def _knows_no_encryption_context(cloud: Cloud) -> bool:
    key = cloud.client("kms").create_key()["KeyMetadata"]["Arn"]
    given = {"KeyId": key, "Plaintext": b"secret", "EncryptionContext": {"purpose": "seal"}}
    return cloud.refuses(allow("kms:Encrypt", key, {"StringEquals": {PURPOSE: "seal"}}), "kms", "encrypt", **given)


def _knows_no_leading_keys(cloud: Cloud) -> bool:
    table = "leading"
    cloud.client("dynamodb").create_table(
        TableName=table,
        KeySchema=[KEY],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    rights = allow("dynamodb:PutItem", condition={"ForAllValues:StringEquals": {LEADING_KEYS: "PAUSES"}})
    return not cloud.refuses(rights, "dynamodb", "put_item", TableName=table, Item={"pk": {"S": "TASK#1"}})


def _knows_no_group_of_a_schedule(cloud: Cloud) -> bool:
    schedules, place = cloud.client("scheduler"), {"GroupName": "group", "Name": "daily"}
    schedules.create_schedule_group(Name="group")
    schedules.create_schedule(
        **place, ScheduleExpression="rate(1 day)", FlexibleTimeWindow={"Mode": "OFF"}, Target=TARGET
    )
    arn = f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/group/daily"
    return cloud.refuses(allow("scheduler:GetSchedule", on=arn), "scheduler", "get_schedule", **place)


def _has_an_action_for_batches(cloud: Cloud) -> bool:
    url = cloud.client("sqs").create_queue(QueueName="batches")["QueueUrl"]
    batch = {"QueueUrl": url, "Entries": [{"Id": "1", "MessageBody": "body"}]}
    return cloud.refuses(allow("sqs:SendMessage"), "sqs", "send_message_batch", **batch)


def _queries_no_log_group(cloud: Cloud) -> bool:
    cloud.client("logs").create_log_group(logGroupName="asked")
    query = {"logGroupNames": ["asked"], "startTime": 0, "endTime": 1, "queryString": "fields @message"}
    arn = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:asked:*"
    return cloud.refuses(allow("logs:StartQuery", on=arn), "logs", "start_query", **query)


def _refuses_a_partition_that_is_any(cloud: Cloud) -> bool:
    try:
        cloud.refuses(allow("sqs:ListQueues", on="arn:*:sqs:*:*:queue"), "sqs", "list_queues")
    except cloud.client("iam").exceptions.MalformedPolicyDocumentException:
        return True
    return False


def _names_no_source_of_a_copy(cloud: Cloud) -> bool:
    tables = cloud.client("dynamodb")
    tables.create_table(
        TableName="source",
        KeySchema=[KEY],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    copy = {"SourceTableName": "source", "TargetTableName": "copy", "UseLatestRestorableTime": True}
    tables.restore_table_to_point_in_time(**copy)
    return "RestoreSummary" not in tables.describe_table(TableName="copy")["Table"]


def _checks_no_secret(cloud: Cloud) -> bool:
    name = cloud.client("secretsmanager").create_secret(Name="unchecked", SecretString="{}")["ARN"]
    return not cloud.refuses(allow("sqs:ListQueues"), "secretsmanager", "get_secret_value", SecretId=name)


def _checks_no_log(cloud: Cloud) -> bool:
    return not cloud.refuses(allow("sqs:ListQueues"), "logs", "describe_log_groups")


def simulates(iam: Any, statements: Statements, action: str, resource: str, context: Mapping[str, str]) -> bool:
    """Whether the simulator of policies allows a call."""
    entries = [
        {"ContextKeyName": name, "ContextKeyValues": [value], "ContextKeyType": "string"}
        for name, value in context.items()
    ]
    (found,) = iam.simulate_custom_policy(
        PolicyInputList=[json.dumps({"Version": "2012-10-17", "Statement": statements})],
        ActionNames=[action],
        ResourceArns=[resource],
        ContextEntries=entries,
    )["EvaluationResults"]
    return bool(found["EvalDecision"] == "allowed")


def _simulates_no_context(cloud: Cloud) -> bool:
    rights = allow("kms:Encrypt", condition={"StringEquals": {PURPOSE: "seal"}})
    return not simulates(cloud.client("iam"), rights, "kms:Encrypt", "*", {PURPOSE: "seal"})


# ---- What stands for the statements


def _with_batches(statements: Statements) -> Statements:
    return [
        {**one, "Action": [*listed(one["Action"]), "sqs:SendMessageBatch"]}
        if "sqs:SendMessage" in listed(one["Action"])
        else one
        for one in statements
    ]


def _with_default_group(statements: Statements) -> Statements:
    return list(json.loads(json.dumps(statements).replace(":schedule/a2a-serverless/", ":schedule/default/")))


def _on_every_log_group(statements: Statements) -> Statements:
    return [{**one, "Resource": "*"} if "logs:StartQuery" in listed(one["Action"]) else one for one in statements]


def _in_the_partition(statements: Statements) -> Statements:
    return list(json.loads(json.dumps(statements).replace('"arn:*:', '"arn:aws:')))


CONTEXT: Final = Fault(
    "it knows no encryption context of a call",
    f"{GUIDES}kms/latest/developerguide/conditions-kms.html#conditions-kms-encryption-context",
    _knows_no_encryption_context,
    lambda statements: without_keys(statements, "kms:"),
)
BATCHES: Final = Fault(
    "SendMessageBatch is an action of its own",
    f"{GUIDES}AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html",
    _has_an_action_for_batches,
    _with_batches,
)
NO_SIMULATED_CONTEXT: Final = Fault(
    "its simulator of policies knows no context",
    f"{GUIDES}IAM/latest/APIReference/API_SimulateCustomPolicy.html",
    _simulates_no_context,
)
OF_EMULATOR: Final = (
    CONTEXT,
    BATCHES,
    NO_SIMULATED_CONTEXT,
    Fault(
        "it knows no leading keys of a call",
        f"{GUIDES}amazondynamodb/latest/developerguide/specifying-conditions.html",
        _knows_no_leading_keys,
        lambda statements: without_keys(statements, LEADING_KEYS),
    ),
    Fault(
        "each schedule is in the group `default`",
        f"{GUIDES}service-authorization/latest/reference/list_amazoneventbridgescheduler.html",
        _knows_no_group_of_a_schedule,
        _with_default_group,
    ),
    Fault(
        "a query of logs is on every log group",
        f"{GUIDES}service-authorization/latest/reference/list_amazoncloudwatchlogs.html",
        _queries_no_log_group,
        _on_every_log_group,
    ),
)
OF_FAKECLOUD: Final = (
    CONTEXT,
    BATCHES,
    Fault(
        "it refuses a policy with `*` for the partition",
        f"{GUIDES}IAM/latest/UserGuide/reference_policies_elements_resource.html",
        _refuses_a_partition_that_is_any,
        _in_the_partition,
    ),
    Fault(
        "the description of a restored table names no source",
        f"{GUIDES}amazondynamodb/latest/APIReference/API_RestoreSummary.html",
        _names_no_source_of_a_copy,
    ),
    Fault(
        "it checks no right to a secret",
        f"{GUIDES}service-authorization/latest/reference/list_awssecretsmanager.html",
        _checks_no_secret,
    ),
    Fault(
        "it checks no right to a log",
        f"{GUIDES}service-authorization/latest/reference/list_amazoncloudwatchlogs.html",
        _checks_no_log,
    ),
)
