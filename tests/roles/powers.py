"""What operators, deployers and functions can do with their rights: the table in ``docs/roles.md``, and an evaluator.

Names are as CloudFormation makes them up, in an account in which nothing runs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.kms import PURPOSE as WEBHOOK_SECRETS
from a2a_serverless.adapters.kms import SERVICE_TOKENS
from tests.functions.deployer import STACK, boundary
from tests.functions.deployer import statements as deployer_statements
from tests.functions.template import ROOT, functions
from tests.roles.policies import Stack, document, listed
from tests.roles.recorder import ACCOUNT, PURPOSE, REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

PLACE: Final = f"{REGION}:{ACCOUNT}"
FORMS: Final = {
    "AWS::DynamoDB::Table": f"dynamodb:{PLACE}:table/{STACK}-%s-1A2B",
    "AWS::IAM::Role": f"iam::{ACCOUNT}:role/{STACK}-%s-1A2B",
    "AWS::KMS::Key": f"kms:{PLACE}:key/%s",
    "AWS::Lambda::Function": f"lambda:{PLACE}:function:{STACK}-%s-1A2B",
    "AWS::Logs::LogGroup": f"logs:{PLACE}:log-group:{STACK}-%s-1A2B:*",
    "AWS::S3::Bucket": f"s3:::{STACK}-%s-1a2b",
    "AWS::SQS::Queue": f"sqs:{PLACE}:{STACK}-%s-1A2B",
    "AWS::SecretsManager::Secret": f"secretsmanager:{PLACE}:secret:%s-1A2B-c3d4e5",
}
BOUNDED: Final = {"iam:PermissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/boundary-{STACK}"}
GROUPS: Final = (
    "callers",
    "erase",
    "keys",
    "logs",
    "pause",
    "push",
    "queues",
    "rehearse",
    "restore",
    "resume",
    "schedules",
    "tasks",
    "work",
)
"""The operators' commands, by their first word."""
HOLDERS: Final = (
    "operator",
    "deployer",
    "a role that a deployer makes",
    "such a role without the boundary",
    *functions(),
)
ADMINISTRATOR: Final = {"Effect": "Allow", "Action": "*", "Resource": "*"}


@dataclass(frozen=True)
class Ask:
    """A call: its action, the ARN that it is done to, and the values of condition keys."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


def is_allowed(statements: Iterable[Mapping[str, Any]], ask: Ask) -> bool:
    """Whether IAM would allow a call: a statement allows it, and no statement denies it."""
    return {one["Effect"] for one in statements if _is_about(one, ask)} == {"Allow"}


def _is_about(statement: Mapping[str, Any], ask: Ask) -> bool:
    actions = (one.lower() for one in listed(statement["Action"]))
    return (
        any(fnmatchcase(ask.action.lower(), one) for one in actions)
        and any(_matches(ask.resource, one) for one in listed(statement["Resource"]))
        and all(
            OPERATORS[operator](ask.context.get(key), listed(values))
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        )
    )


def _matches(value: str, pattern: str) -> bool:
    return fnmatchcase(value, pattern.replace("[", "[[]"))


def _equals(value: str | None, values: list[str]) -> bool:
    return value in values


def _is_like(value: str | None, patterns: list[str]) -> bool:
    return value is not None and any(_matches(value, one) for one in patterns)


OPERATORS: Final[dict[str, Callable[[str | None, list[str]], bool]]] = {
    "ArnLike": _is_like,
    "StringEquals": _equals,
    "StringLike": _is_like,
    "ForAllValues:StringEquals": lambda value, values: value is None or _equals(value, values),
}


@cache
def stack() -> Stack:
    """A stack with the names that CloudFormation makes up."""
    known = {
        "agent_credentials": f"arn:aws:secretsmanager:{PLACE}:secret:agents-c3d4e5",
        "agent_credentials_key": f"arn:aws:kms:{PLACE}:key/agents",
    }
    for name, one in document()["Resources"].items():
        if form := FORMS.get(one["Type"]):
            arn = "arn:aws:" + form % (name.lower() if one["Type"] == "AWS::S3::Bucket" else name)
            is_secret = one["Type"] == "AWS::SecretsManager::Secret"
            known |= {f"{name}.Arn": arn, name: arn if is_secret else re.split("[/:]", arn.removesuffix(":*"))[-1]}
    return Stack({"Models": "text=model"}, known)


def operator_policy(of: Stack) -> dict[str, Any]:
    """The document's policy, each output in it replaced as the document says: by what follows its last slash."""

    def value(found: re.Match[str]) -> str:
        return str(of.value(document()["Outputs"][found[1]]["Value"])).rpartition("/")[2]

    text = (ROOT / "docs/operator-policy.json").read_text()
    return dict(json.loads(re.sub("<([A-Za-z]+)>", value, text)))


def operator_statements(of: Stack, group: str) -> list[dict[str, Any]]:
    """What the commands of a group need: their own statements, and the one for all."""
    statements = operator_policy(of)["Statement"]
    return [one for one in statements if one["Sid"] == "Stack" or one["Sid"].startswith(group.title())]


def powers() -> dict[str, list[Ask]]:
    """What somebody may be able to do, and the calls of which one is enough for it."""
    arn = {name.removesuffix(".Arn"): value for name, value in stack().resources.items() if name.endswith(".Arn")}
    files, role, key = f"{arn['Blobs']}/sha256/a", arn["WorkerRole"], arn["SealingKey"]
    for_webhooks, for_tokens = ({PURPOSE: one["purpose"]} for one in (WEBHOOK_SECRETS, SERVICE_TOKENS))
    other_key = f"arn:aws:kms:{PLACE}:key/other"
    return {
        "read tasks of all owners": [Ask("dynamodb:Query", arn["Table"])],
        "write tasks": [Ask("dynamodb:PutItem", arn["Table"])],
        "read files": [Ask("s3:GetObject", files)],
        "list files": [Ask("s3:ListBucket", arn["Blobs"])],
        "delete files": [Ask("s3:DeleteObject", files)],
        "delete the tables": [Ask("dynamodb:DeleteTable", arn["Table"])],
        "look up API keys": [Ask(f"dynamodb:{name}", arn["AccessTable"]) for name in ("GetItem", "Query", "Scan")],
        "make API keys": [Ask("dynamodb:PutItem", arn["AccessTable"])],
        "read the signing keys": [Ask("secretsmanager:GetSecretValue", arn["KeyRingSecret"])],
        "replace the signing keys": [Ask("secretsmanager:PutSecretValue", arn["KeyRingSecret"])],
        "open secrets of webhooks": [Ask("kms:Decrypt", key, for_webhooks)],
        "make service tokens": [Ask("kms:Encrypt", key, for_tokens)],
        "delete the sealing key": [Ask("kms:ScheduleKeyDeletion", key)],
        "change the functions' code": [Ask("lambda:UpdateFunctionCode", arn["WorkerFunction"])],
        "say who may take the roles (trust)": [Ask("iam:UpdateAssumeRolePolicy", role, BOUNDED)],
        "read any secret of the account": [
            Ask("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{PLACE}:secret:other-c3d4e5"),
        ],
        "call any model of Bedrock": [Ask("bedrock:InvokeModel", f"arn:aws:bedrock:{REGION}::foundation-model/other")],
        "read tables of others": [Ask("dynamodb:GetItem", f"arn:aws:dynamodb:{PLACE}:table/other")],
        "decrypt by keys of others": [Ask("kms:Decrypt", other_key)],
        "say who may use keys of others": [Ask("kms:PutKeyPolicy", other_key)],
        "delete keys of others": [Ask("kms:ScheduleKeyDeletion", other_key)],
        "change APIs of others": [Ask("apigateway:PATCH", f"arn:aws:apigateway:{REGION}::/restapis/other")],
        "delete stacks of others": [Ask("cloudformation:DeleteStack", f"arn:aws:cloudformation:{PLACE}:stack/other/1")],
        "change roles of others": [Ask("iam:PutRolePolicy", f"arn:aws:iam::{ACCOUNT}:role/other", BOUNDED)],
        "make a role without the boundary": [Ask("iam:CreateRole", role)],
        "change or lift the boundary": [
            *(
                Ask(f"iam:{name}", BOUNDED["iam:PermissionsBoundary"])
                for name in ("CreatePolicyVersion", "DeletePolicy")
            ),
            Ask("iam:DeleteRolePermissionsBoundary", role, BOUNDED),
        ],
    }


def without_boundary(statements: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What these statements come to without a boundary: an administrator's, if they can make any role and use it."""
    free = [{**one, "Condition": {}} for one in statements if one["Effect"] == "Allow"]
    role, function = stack().resources["WorkerRole.Arn"], stack().resources["WorkerFunction.Arn"]
    steps = [Ask(f"iam:{name}", role) for name in ("CreateRole", "PutRolePolicy", "PassRole")]
    steps += [Ask(f"lambda:{name}", function) for name in ("CreateFunction", "InvokeFunction")]
    return [ADMINISTRATOR] if all(is_allowed(free, one) for one in steps) else free


def holders() -> dict[str, list[dict[str, Any]]]:
    """Whoever has rights, by the column of the table, and their statements."""
    statements = [
        operator_policy(stack())["Statement"],
        deployer_statements(),
        boundary()["Statement"],
        without_boundary(deployer_statements()),
        *(stack().roles()[name] for name in functions()),
    ]
    return dict(zip(HOLDERS, statements, strict=True))


@cache
def all_asks() -> list[Ask]:
    """The calls of all powers."""
    return [ask for asks in powers().values() for ask in asks]


def table() -> str:
    """Who can do what."""
    columns = holders()
    lines = [f"| | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    for power, asks in powers().items():
        cells = ("yes" if any(is_allowed(one, ask) for ask in asks) else "·" for one in columns.values())
        lines.append(f"| {power} | {' | '.join(cells)} |")
    return "\n".join(lines)
