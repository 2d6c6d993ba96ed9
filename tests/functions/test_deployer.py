"""``docs/deployer-policy.json`` allows what a deployment of the template needs, and names what it can."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.functions.deployer import NAMED, POLICY, RIGHTS, policy, text, types

# What AWS lets nobody narrow by name before it is made, or at all.
ANYTHING = {
    "cloudformation:GetTemplateSummary",
    "cloudformation:ValidateTemplate",
    "cloudwatch:DescribeAlarms",
    "kms:CreateKey",
    "lambda:CreateEventSourceMapping",
    "lambda:DeleteEventSourceMapping",
    "lambda:GetEventSourceMapping",
    "lambda:ListTags",
    "lambda:TagResource",
    "lambda:UntagResource",
    "lambda:UpdateEventSourceMapping",
    "logs:DeleteQueryDefinition",
    "logs:DescribeLogGroups",
    "logs:DescribeQueryDefinitions",
    "logs:PutQueryDefinition",
}


def statements() -> list[dict[str, Any]]:
    return list(policy()["Statement"])


def test_every_type_of_resource_that_the_template_makes_has_its_rights() -> None:
    assert types() - RIGHTS.keys() == set()


def test_the_file_is_what_the_transformed_template_needs() -> None:
    """``python -m tests.functions.deployer`` writes it."""
    assert POLICY.read_text() == text()


def test_no_action_is_a_pattern_and_what_may_be_done_to_anything_is_known() -> None:
    for statement in statements():
        assert all(re.fullmatch(r"[a-z0-9]+:[A-Za-z0-9]+", action) for action in statement["Action"])
    anything = {action for one in statements() if one["Resource"] == "*" for action in one["Action"]}
    assert anything <= ANYTHING


def test_a_deployer_may_make_and_pass_roles_of_the_stack_only() -> None:
    (roles,) = [one for one in statements() if any(action.startswith("iam:") for action in one["Action"])]
    assert "iam:PassRole" in roles["Action"]
    assert roles["Resource"] == f"arn:aws:iam::*:role/{NAMED}"


def test_a_deployer_reads_no_task_no_file_and_no_secret() -> None:
    forbidden = {"dynamodb:GetItem", "dynamodb:Query", "secretsmanager:GetSecretValue", "kms:Decrypt"}
    for statement in statements():
        assert not forbidden & set(statement["Action"])
        assert "s3:GetObject" not in statement["Action"] or "aws-sam-cli-managed-default" in statement["Resource"]


def test_the_policy_fits_into_one_managed_policy() -> None:
    """IAM takes 6,144 characters without white space."""
    assert len(json.dumps(policy(), separators=(",", ":"))) <= 6144
