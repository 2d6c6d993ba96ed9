"""The policies in ``docs/deployer-policy-*.json`` allow what a deployment of the template needs, each by its name."""

from __future__ import annotations

import re

from tests.functions.deployer import (
    MOST_CHARACTERS,
    NAMED,
    RIGHTS,
    boundary,
    length,
    policies,
    statements,
    texts,
    types,
)
from tests.functions.service_authorization import listed, reference
from tests.functions.transformed import of_type
from tests.functions.transformed import statements as role_statements

# What AWS lets nobody narrow by name before it is made, or at all.
ANYTHING = {
    "cloudformation:DescribeStackDriftDetectionStatus",
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
    assert {file: file.read_text() for file in texts()} == texts()


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
    iam = [one for one in statements() if any(action.startswith("iam:") for action in one["Action"])]
    allowed = [one for one in iam if one["Effect"] == "Allow" and one["Action"] != ["iam:CreateServiceLinkedRole"]]
    assert "iam:PassRole" in {action for one in allowed for action in one["Action"]}
    assert {one["Resource"] for one in allowed} == {f"arn:*:iam::*:role/{NAMED}"}


def test_a_deployer_changes_what_a_role_may_do_only_below_the_boundary_and_cannot_lift_it() -> None:
    """AWS's reference names the actions with the condition: tests/functions/service_authorization.json."""
    limited = {"ArnLike": {"iam:PermissionsBoundary": "arn:*:iam::*:policy/boundary-a2a-serverless"}}
    known = {name for name, one in reference().items() if "iam:PermissionsBoundary" in one["conditions"]}
    changes = known - {"iam:GetRole", "iam:DeleteRole"}
    denied = {action for one in statements() if one["Effect"] == "Deny" for action in one["Action"]}
    for statement in statements():
        if statement["Effect"] == "Allow" and changes & set(statement["Action"]):
            assert set(statement["Action"]) <= changes
            assert statement["Condition"] == limited
    assert "iam:DeleteRolePermissionsBoundary" in denied
    kept = [one for one in statements() if one["Effect"] == "Deny" and ":policy/boundary-" in one["Resource"]]
    assert [len(one["Action"]) for one in kept] == [4]


def test_the_boundary_allows_all_that_the_roles_of_the_stack_do_and_no_right_over_identities() -> None:
    actions = {action for one in boundary()["Statement"] for action in one["Action"]}
    assert {action for _, one in role_statements() for action in listed(one["Action"])} <= actions
    assert not {action for action in actions if action.split(":")[0] in {"iam", "sts", "organizations", "account"}}
    assert length(boundary()) <= MOST_CHARACTERS


def test_the_policies_are_for_every_partition() -> None:
    for statement in [*statements(), *boundary()["Statement"]]:
        assert statement["Resource"] == "*" or statement["Resource"].startswith("arn:*:")


def test_a_deployer_reads_no_task_no_file_and_no_secret() -> None:
    forbidden = {"dynamodb:GetItem", "dynamodb:Query", "secretsmanager:GetSecretValue", "kms:Decrypt"}
    for statement in statements():
        assert not forbidden & set(statement["Action"])
        assert "s3:GetObject" not in statement["Action"] or "aws-sam-cli-managed-default" in statement["Resource"]


def test_each_policy_fits_into_a_managed_policy_and_together_they_have_every_statement_once() -> None:
    assert all(length(policy) <= MOST_CHARACTERS for policy in policies())
    assert [statement for policy in policies() for statement in policy["Statement"]] == statements()
