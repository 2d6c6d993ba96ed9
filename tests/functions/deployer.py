"""What whoever deploys the template has to be allowed, by the types of resources that CloudFormation makes.

``python -m tests.functions.deployer`` writes ``docs/deployer-policy-1.json`` and ``-2.json`` anew: together they are
more than IAM takes in one managed policy. It also writes ``docs/permissions-boundary.json``, the most that any role of
a stack can have: without it, whoever makes roles and writes their policies could do anything in the account.

Nobody has deployed with them yet: the actions are those that AWS documents for each type. Names are those that
CloudFormation makes up: the stack's, a resource's and a random part; for what has no such name (APIs, keys, event
source mappings) a policy can say no more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import yaml

from a2a_serverless.adapters.kms import PURPOSE, SERVICE_TOKENS
from a2a_serverless_tools.stack.settings import KEY_ACTIONS, NETWORK, STORING
from tests.functions.template import ROOT
from tests.functions.transformed import statements as role_statements
from tests.functions.transformed import transformed

STACK: Final = "a2a-serverless"
PURPOSES: Final = sorted({*PURPOSE.values(), *SERVICE_TOKENS.values()})
MOST_CHARACTERS: Final = 6144
"""IAM's limit for a managed policy, without white space."""
FILES: Final = [ROOT / f"docs/deployer-policy-{number}.json" for number in (1, 2)]
BOUNDARY_FILE: Final = ROOT / "docs/permissions-boundary.json"
NAMED: Final = f"{STACK}*"
_BOUNDARY: Final = f"iam::*:policy/boundary-{STACK}"
_BOUNDED: Final = {
    f"iam:{name}Role{what}"
    for name, what in (
        *(("Attach", "Policy"), ("Create", ""), ("Delete", "Policy"), ("Detach", "Policy"), ("Update", "")),
        *(("Put", "PermissionsBoundary"), ("Put", "Policy")),
    )
} | {"iam:UpdateAssumeRolePolicy"}
"""Allowed only for roles that have the boundary, or get it."""
_WIDER: Final = {"iam:DeleteRolePermissionsBoundary": f"iam::*:role/{NAMED}"} | dict.fromkeys(
    (
        f"iam:{name}"
        for name in ("CreatePolicyVersion", "DeletePolicy", "DeletePolicyVersion", "SetDefaultPolicyVersion")
    ),
    _BOUNDARY,
)
"""Denied, whatever else the deployer may do: with these the boundary would be none."""
_ALARM, _DASHBOARD = f"cloudwatch:*:*:alarm:{NAMED}", f"cloudwatch::*:dashboard/{NAMED}"
_FUNCTION, _ROLE, _BUCKET = f"lambda:*:*:function:{NAMED}", f"iam::*:role/{NAMED}", f"s3:::{NAMED}"
_API, _QUEUE, _TABLE = "apigateway:*::/*", f"sqs:*:*:{NAMED}", f"dynamodb:*:*:table/{NAMED}"
_CALLS: Final = "DELETE GET PATCH POST PUT"
_SAM: Final = "aws-sam-cli-managed-default"  # where SAM keeps what it uploads, and the stack that this bucket is in

# For each type: service, actions, and what they are done to ("*" where AWS has no narrower form).
RIGHTS: Final[dict[str, list[tuple[str, str, str]]]] = {
    "AWS::ApiGateway::BasePathMapping": [("apigateway", _CALLS, _API)],
    "AWS::ApiGateway::Deployment": [("apigateway", _CALLS, _API)],
    "AWS::ApiGateway::DomainName": [
        ("apigateway", _CALLS, _API),
        # the first domain of an account makes this role
        ("iam", "CreateServiceLinkedRole", "iam::*:role/aws-service-role/ops.apigateway.amazonaws.com/*"),
    ],
    "AWS::ApiGateway::GatewayResponse": [("apigateway", _CALLS, _API)],
    "AWS::ApiGateway::RestApi": [("apigateway", _CALLS, _API)],
    "AWS::ApiGateway::Stage": [("apigateway", _CALLS, _API)],
    "AWS::Budgets::Budget": [
        (
            "budgets",
            "ListTagsForResource ModifyBudget TagResource UntagResource ViewBudget",
            "budgets::*:budget/*",  # the name is CloudFormation's
        )
    ],
    "AWS::CloudFormation::Stack": [],  # as the stack itself
    "AWS::CloudWatch::Alarm": [
        ("cloudwatch", "DeleteAlarms ListTagsForResource PutMetricAlarm TagResource UntagResource", _ALARM),
        ("cloudwatch", "DescribeAlarms", "*"),
    ],
    "AWS::CloudWatch::Dashboard": [("cloudwatch", "DeleteDashboards GetDashboard PutDashboard", _DASHBOARD)],
    "AWS::Logs::QueryDefinition": [("logs", "DeleteQueryDefinition DescribeQueryDefinitions PutQueryDefinition", "*")],
    "AWS::DynamoDB::Table": [
        (
            "dynamodb",
            (
                "CreateTable DeleteTable DescribeContinuousBackups DescribeContributorInsights "
                "DescribeKinesisStreamingDestination DescribeTable DescribeTimeToLive GetResourcePolicy "
                "ListTagsOfResource TagResource UntagResource UpdateContinuousBackups UpdateTable "
                "UpdateTimeToLive"
            ),
            _TABLE,
        )
    ],
    "AWS::IAM::Role": [
        (
            "iam",
            (
                "AttachRolePolicy CreateRole DeleteRole DeleteRolePolicy DetachRolePolicy GetRole "
                "GetRolePolicy ListAttachedRolePolicies ListRolePolicies PassRole PutRolePermissionsBoundary "
                "PutRolePolicy TagRole "
                "UntagRole UpdateAssumeRolePolicy UpdateRole"
            ),
            _ROLE,
        )
    ],
    "AWS::KMS::Key": [
        ("kms", "CreateKey", "*"),
        (
            "kms",
            (
                "DescribeKey EnableKeyRotation GetKeyPolicy GetKeyRotationStatus ListResourceTags "
                "PutKeyPolicy ScheduleKeyDeletion TagResource UntagResource UpdateKeyDescription"
            ),
            "kms:*:*:key/*",
        ),
    ],
    "AWS::Lambda::EventInvokeConfig": [
        (
            "lambda",
            (
                "DeleteFunctionEventInvokeConfig GetFunctionEventInvokeConfig PutFunctionEventInvokeConfig "
                "UpdateFunctionEventInvokeConfig"
            ),
            _FUNCTION,
        )
    ],
    "AWS::Lambda::EventSourceMapping": [
        (
            "lambda",
            (
                "CreateEventSourceMapping DeleteEventSourceMapping GetEventSourceMapping ListTags TagResource "
                "UntagResource UpdateEventSourceMapping"
            ),
            "*",
        )
    ],
    "AWS::Lambda::Function": [
        (
            "lambda",
            (
                "CreateFunction DeleteFunction DeleteFunctionConcurrency GetFunction "
                "GetFunctionCodeSigningConfig GetFunctionConfiguration GetFunctionRecursionConfig "
                "GetRuntimeManagementConfig ListTags PutFunctionConcurrency PutFunctionRecursionConfig TagResource "
                "UntagResource UpdateFunctionCode UpdateFunctionConfiguration"
            ),
            _FUNCTION,
        )
    ],
    "AWS::Lambda::Permission": [("lambda", "AddPermission GetPolicy RemovePermission", _FUNCTION)],
    "AWS::Logs::LogGroup": [
        (
            "logs",
            (
                "CreateLogGroup DeleteLogGroup DeleteRetentionPolicy ListTagsForResource PutRetentionPolicy "
                "TagResource UntagResource"
            ),
            f"logs:*:*:log-group:{NAMED}",
        ),
        ("logs", "DescribeLogGroups", "*"),
    ],
    "AWS::Route53::RecordSet": [
        ("route53", "ChangeResourceRecordSets GetHostedZone ListResourceRecordSets", "route53:::hostedzone/*"),
        ("route53", "GetChange", "route53:::change/*"),
    ],
    "AWS::S3::Bucket": [
        (
            "s3",
            (
                "CreateBucket DeleteBucket GetBucketCORS GetBucketLocation GetBucketOwnershipControls "
                "GetBucketPublicAccessBlock GetBucketTagging GetBucketVersioning GetEncryptionConfiguration "
                "GetLifecycleConfiguration ListBucket PutBucketCORS PutBucketOwnershipControls "
                "PutBucketPublicAccessBlock PutBucketTagging PutBucketVersioning PutEncryptionConfiguration "
                "PutLifecycleConfiguration"
            ),
            _BUCKET,
        )
    ],
    "AWS::S3::BucketPolicy": [("s3", "DeleteBucketPolicy GetBucketPolicy PutBucketPolicy", _BUCKET)],
    "AWS::SNS::Topic": [
        (
            "sns",
            (
                "CreateTopic DeleteTopic GetDataProtectionPolicy GetTopicAttributes ListSubscriptionsByTopic "
                "ListTagsForResource SetTopicAttributes Subscribe TagResource UntagResource"
            ),
            f"sns:*:*:{NAMED}",
        ),
        ("sns", "Unsubscribe", "*"),
    ],
    "AWS::SQS::Queue": [
        (
            "sqs",
            (
                "CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags SetQueueAttributes "
                "TagQueue UntagQueue"
            ),
            _QUEUE,
        )
    ],
    "AWS::SQS::QueuePolicy": [("sqs", "GetQueueAttributes SetQueueAttributes", _QUEUE)],
    "AWS::Scheduler::Schedule": [
        (
            "scheduler",
            "CreateSchedule DeleteSchedule GetSchedule UpdateSchedule",
            f"scheduler:*:*:schedule/default/{NAMED}",
        ),
        # of agents, which the build adds to the template: in a group with the stack's name
        (
            "scheduler",
            "CreateSchedule DeleteSchedule GetSchedule UpdateSchedule",
            f"scheduler:*:*:schedule/{NAMED}/*",
        ),
        (
            "scheduler",
            "CreateScheduleGroup DeleteScheduleGroup GetScheduleGroup ListTagsForResource TagResource UntagResource",
            f"scheduler:*:*:schedule-group/{NAMED}",
        ),
    ],
    "AWS::SecretsManager::Secret": [
        (
            "secretsmanager",
            "CreateSecret DeleteSecret DescribeSecret GetResourcePolicy TagResource UntagResource UpdateSecret",
            "secretsmanager:*:*:secret:*KeyRingSecret-*",
        )
    ],
    "AWS::WAFv2::WebACLAssociation": [
        ("apigateway", "SetWebACL", _API),
        ("wafv2", "AssociateWebACL GetWebACL GetWebACLForResource", "wafv2:*:*:regional/webacl/*"),
        ("wafv2", "AssociateWebACL DisassociateWebACL GetWebACLForResource", "apigateway:*::/restapis/*/stages/*"),
    ],
    "Custom::KeyRing": [("lambda", "InvokeFunction", _FUNCTION)],
}
# SAM's and CloudFormation's own: change sets, the transform, and the bucket that the zips are uploaded to, from which
# `sam delete` removes them before it deletes the stack. tests/stack/test_deployer_calls.py sees SAM's calls.
DEPLOYING: Final = [
    (
        "cloudformation",
        (
            "CancelUpdateStack ContinueUpdateRollback CreateChangeSet CreateStack DeleteChangeSet DeleteStack "
            "DescribeChangeSet DescribeStackEvents DescribeStackResource DescribeStackResourceDrifts "
            "DescribeStackResources DescribeStacks DetectStackDrift DetectStackResourceDrift ExecuteChangeSet "
            "GetTemplate ListStackResources TagResource UpdateStack"
        ),
        f"cloudformation:*:*:stack/{NAMED}/*",
    ),
    (
        "cloudformation",
        "CreateChangeSet DescribeChangeSet DescribeStacks ExecuteChangeSet",
        f"cloudformation:*:*:stack/{_SAM}/*",
    ),
    ("cloudformation", "CreateChangeSet", "cloudformation:*:aws:transform/Serverless-2016-10-31"),
    ("cloudformation", "DescribeStackDriftDetectionStatus GetTemplateSummary ValidateTemplate", "*"),
    (
        "s3",
        (
            "CreateBucket DeleteObject GetBucketLocation GetBucketPolicy GetEncryptionConfiguration GetObject "
            "ListBucket PutBucketPolicy PutBucketPublicAccessBlock PutBucketTagging PutBucketVersioning "
            "PutEncryptionConfiguration PutObject"
        ),
        f"s3:::{_SAM}*",
    ),
]


def types() -> set[str]:
    """The types of all that the template makes, the stacks inside of it included."""
    found: set[str] = set()
    for document in (transformed(), *map(_nested, _paths())):
        found |= {str(resource["Type"]) for resource in document["Resources"].values()}
    return found


def policies() -> list[dict[str, Any]]:
    """The IAM policies: a statement for each name, with all that may be done to it. None is over IAM's limit."""
    found: list[dict[str, Any]] = []
    for statement in statements():
        if not found or length(found[-1]) + length(statement) + 1 > MOST_CHARACTERS:
            found.append({"Version": "2012-10-17", "Statement": []})
        found[-1]["Statement"].append(statement)
    return found


def length(document: dict[str, Any]) -> int:
    """How many characters IAM counts."""
    return len(json.dumps(document, separators=(",", ":")))


def statements() -> list[dict[str, Any]]:
    """A statement for each name, in the order of the names; then what is denied."""
    wanted: dict[tuple[str, bool], set[str]] = {}
    for service, actions, resource in [*DEPLOYING, *(right for kind in sorted(types()) for right in RIGHTS[kind])]:
        for action in (f"{service}:{name}" for name in actions.split()):
            wanted.setdefault((_arn(resource), action in _BOUNDED), set()).add(action)
    only = {"Condition": {"ArnLike": {"iam:PermissionsBoundary": _arn(_BOUNDARY)}}}
    allowed = [
        {"Effect": "Allow", "Action": sorted(actions), "Resource": resource} | (only if is_bounded else {})
        for (resource, is_bounded), actions in sorted(wanted.items())
    ]
    denied: dict[str, set[str]] = {}
    for action, resource in _WIDER.items():
        denied.setdefault(_arn(resource), set()).add(action)
    return allowed + [
        {"Effect": "Deny", "Action": sorted(actions), "Resource": resource}
        for resource, actions in sorted(denied.items())
    ]


# Of each service, what a role of a stack may do its actions to at most. A key, a secret of yours and a model have no
# name that begins with the stack's.
_MOST: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "bedrock": ("bedrock:*:*:*", {}),
    "dynamodb": (_TABLE, {}),
    "ec2": ("*", {}),
    "kms": ("kms:*:*:key/*", {"StringEquals": {"kms:EncryptionContext:purpose": [*PURPOSES]}}),
    "lambda": (_FUNCTION, {}),
    "logs": (f"logs:*:*:log-group:{NAMED}", {}),
    "s3": (_BUCKET, {}),
    "secretsmanager": ("secretsmanager:*:*:secret:*", {}),
    "sqs": (_QUEUE, {}),
    "ssm": ("ssm:*:*:parameter/*", {}),
    "xray": ("*", {}),
}
_ROTATED: Final = "secretsmanager:PutSecretValue"


def boundary() -> dict[str, Any]:
    """The most that any role may do: the actions of the template's roles, and those that the build can add."""
    actions = {action for _, one in role_statements() for action in _listed(one["Action"])} - {_ROTATED}
    actions |= {"ssm:GetParameter", *NETWORK}
    by_storage = {"StringLike": {"kms:ViaService": [f"{service}.*" for service in STORING]}}
    statements = [
        {"Effect": "Allow", "Action": sorted(action for action in actions if action.startswith(f"{service}:"))}
        | {"Resource": _arn(resource)}
        | ({"Condition": condition} if condition else {})
        for service, (resource, condition) in _MOST.items()
    ]
    statements += [
        {"Effect": "Allow", "Action": [*KEY_ACTIONS], "Resource": _arn("kms:*:*:key/*"), "Condition": by_storage},
        {"Effect": "Allow", "Action": [_ROTATED], "Resource": _arn("secretsmanager:*:*:secret:*KeyRingSecret-*")},
    ]
    granted = {action for one in statements for action in one["Action"]}
    assert granted - {_ROTATED, *KEY_ACTIONS} == actions - {*KEY_ACTIONS}
    return {"Version": "2012-10-17", "Statement": statements}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _arn(resource: str) -> str:
    return resource if resource == "*" else f"arn:*:{resource}"  # of every partition: China's, GovCloud's


def texts() -> dict[Path, str]:
    """The files."""
    documents = dict(zip(FILES, policies(), strict=True)) | {BOUNDARY_FILE: boundary()}
    return {file: json.dumps(document, indent=2) + "\n" for file, document in documents.items()}


def _paths() -> list[Path]:
    stacks = [one for one in transformed()["Resources"].values() if one["Type"] == "AWS::CloudFormation::Stack"]
    return [ROOT / str(one["Properties"]["TemplateURL"]) for one in stacks]


def _nested(path: Path) -> dict[str, Any]:
    class Loader(yaml.SafeLoader):
        """Reads CloudFormation's tags as nothing."""

    Loader.add_multi_constructor("!", lambda *_: None)
    return dict(yaml.load(path.read_text(), Loader))  # noqa: S506 - a safe loader


if __name__ == "__main__":
    for file, text in texts().items():
        file.write_text(text)
