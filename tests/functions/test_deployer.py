"""The policies in ``docs/deployer-policy-*.json`` allow what a deployment of the template needs, each by its name."""

from __future__ import annotations

import re

from tests.functions.deployer import FILES, MOST_CHARACTERS, NAMED, RIGHTS, length, policies, statements, texts, types
from tests.functions.transformed import of_type

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
    "sns:Unsubscribe",
}


def test_every_type_of_resource_that_the_template_makes_has_its_rights() -> None:
    assert types() - RIGHTS.keys() == set()


def test_the_files_are_what_the_transformed_template_needs() -> None:
    """``python -m tests.functions.deployer`` writes them."""
    assert [file.read_text() for file in FILES] == texts()


def test_no_action_is_a_pattern_and_what_may_be_done_to_anything_is_known() -> None:
    for statement in statements():
        assert all(re.fullmatch(r"[a-z0-9]+:[A-Za-z0-9]+", action) for action in statement["Action"])
    anything = {action for one in statements() if one["Resource"] == "*" for action in one["Action"]}
    assert anything <= ANYTHING


def test_a_deployer_may_let_functions_loop_that_the_template_lets_loop() -> None:
    allowed = {action for one in statements() for action in one["Action"]}
    assert any("RecursiveLoop" in made["Properties"] for made in of_type("AWS::Lambda::Function").values())
    assert {"lambda:GetFunctionRecursionConfig", "lambda:PutFunctionRecursionConfig"} <= allowed


def test_a_deployer_may_make_and_pass_roles_of_the_stack_only() -> None:
    (roles,) = [one for one in statements() if any(action.startswith("iam:") for action in one["Action"])]
    assert "iam:PassRole" in roles["Action"]
    assert roles["Resource"] == f"arn:aws:iam::*:role/{NAMED}"


def test_a_deployer_reads_no_task_no_file_and_no_secret() -> None:
    forbidden = {"dynamodb:GetItem", "dynamodb:Query", "secretsmanager:GetSecretValue", "kms:Decrypt"}
    for statement in statements():
        assert not forbidden & set(statement["Action"])
        assert "s3:GetObject" not in statement["Action"] or "aws-sam-cli-managed-default" in statement["Resource"]


def test_each_policy_fits_into_a_managed_policy_and_together_they_have_every_statement_once() -> None:
    assert all(length(policy) <= MOST_CHARACTERS for policy in policies())
    assert [statement for policy in policies() for statement in policy["Statement"]] == statements()
