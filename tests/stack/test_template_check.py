"""Settings with which a deployment would fail, or work badly, end the build, with a text that says what is allowed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless_tools.project import PROFILES
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.settings import set_constants
from a2a_serverless_tools.stack.template_check import CHOICES, RANGES, check_template, lint
from tests.functions.template import ROOT, parsed

if TYPE_CHECKING:
    from pathlib import Path

TEXT = (ROOT / "template.yaml").read_text()


def built(**constants: int | str) -> dict[str, Any]:
    return parsed(set_constants(TEXT, constants))


def why(document: dict[str, Any]) -> str:
    with pytest.raises(StackError) as caught:
        check_template(document)
    return caught.value.why


def test_the_check_accepts_the_template_without_changes() -> None:
    check_template(built())


@pytest.mark.parametrize(
    ("constant", "value", "says"),
    [
        ("WorkerConcurrency", 1, "WorkerConcurrency must be from 2 to 1000, not 1"),
        (
            "TASK_RETENTION_DAYS",
            "45",
            "TASK_RETENTION_DAYS must be one of 1, 3, 7, 14, 30, 60, 90, 180, 365, 730, not 45",
        ),
        ("LogRetentionDays", 45, "LogRetentionDays must be one of 1, 3, 5, 7, 14, 30, 60, 90"),
        ("TASK_MAX_LIFE_DAYS", "31", "TASK_MAX_LIFE_DAYS must be a whole number from 1 to 30, not '31'"),
        ("BLOCKING_SECONDS", "60", "BLOCKING_SECONDS must be from 1 to 25, not 60"),
        ("WorkerReserved", 10, "WorkerReserved must be 0, or not less than WorkerConcurrency (50), not 10"),
        ("AgentCredentialsSecretArn", "my-secret", "AgentCredentialsSecretArn is no ARN of secretsmanager: my-secret"),
        ("PermissionsBoundaryArn", "boundary", "PermissionsBoundaryArn is no ARN of iam: boundary"),
        ("PublicBaseUrl", "https://a.example.com/", "PublicBaseUrl must be an https URL without a slash at the end"),
        ("GatewayAddress", "shut", "GatewayAddress must be one of open, closed, not shut"),
        ("WorkerService", "ecs", "WorkerService must be one of lambda.amazonaws.com"),
        ("AlarmEmail", "me", "AlarmEmail is no address: me"),
        ("WEBHOOK_OWNERSHIP", "off", "only for local runs"),
    ],
)
def test_a_bad_constant_is_named_with_what_is_allowed(constant: str, value: int | str, says: str) -> None:
    assert says in why(built(**{constant: value}))


def test_the_check_names_all_wrong_parameters_at_once() -> None:
    text = why(built(WorkerConcurrency=1, NotifierConcurrency=2000, AlarmEmail="me"))
    assert {"WorkerConcurrency", "NotifierConcurrency", "AlarmEmail"} <= {*re.findall(r"\w+", text)}


@pytest.mark.parametrize("name", sorted(RANGES))
def test_a_range_is_as_the_comment_beside_the_constant_says(name: str) -> None:
    (comment,) = re.findall(rf"^    (?:  )?{name}: .*? # (.*)$", TEXT, re.MULTILINE)
    if said := re.search(r"; (\d+) to (\d+)\.", comment):
        assert tuple(map(int, said.groups())) == RANGES[name]


def test_days_that_tasks_are_kept_are_those_for_which_the_bucket_has_days() -> None:
    assert CHOICES["TASK_RETENTION_DAYS"] == [*map(int, parsed(TEXT)["Mappings"]["ObjectDays"])]


def test_a_function_has_four_kilobytes_of_variables_at_most() -> None:
    document = built()
    variables = document["Resources"]["WorkerFunction"]["Properties"]["Environment"]["Variables"]
    variables["MINE"] = "x" * 1_500
    check_template(document)
    variables["MINE"] = "x" * 3_500
    assert re.search(r"WorkerFunction has about \d+ bytes of variables, and Lambda takes 4096", why(document))


@pytest.mark.parametrize("name", ["AWS_REGION", "LAMBDA_TASK_ROOT", "_HANDLER", "AWS_LAMBDA_LOG_GROUP_NAME"])
def test_a_variable_that_lambda_sets_is_refused(name: str) -> None:
    document = built()
    document["Resources"]["WorkerFunction"]["Properties"]["Environment"]["Variables"][name] = "mine"
    assert f"WorkerFunction sets {name}, which Lambda reserves" in why(document)


def test_a_template_has_as_many_resources_as_cloudformation_takes() -> None:
    document = built()
    schedule = {"Type": "AWS::Scheduler::Schedule", "Properties": {}}
    document["Resources"] |= {f"Schedule{number}": schedule for number in range(470)}
    assert "about 5" in why(document)
    assert "CloudFormation takes 500" in why(document)


@pytest.mark.enable_socket
def test_cfn_lint_reads_the_built_template_if_it_is_installed(tmp_path: Path) -> None:
    program = ROOT / ".a2a/venvs/sam/bin/cfn-lint"
    if not program.is_file():
        pytest.skip("CFN-LINT NOT RUN: make setup")
    file = tmp_path / "template.yaml"
    file.write_text(json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"Delay": 1}}}}))
    with pytest.raises(StackError, match=r"E3002.*Delay"):
        lint(file, program)
    file.write_text(json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}))
    lint(file, program)
    lint(file, tmp_path / "absent")


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_the_check_accepts_the_template_with_the_constants_of_each_profile(profile: str) -> None:
    check_template(built(**PROFILES[profile]))


def test_the_profile_of_a_new_account_leaves_room_for_requests_in_a_quota_of_ten() -> None:
    new = PROFILES["new-account"]
    relay_and_sweeper = 2
    used = new["STREAMS_PER_DEPLOYMENT"] + new["WorkerConcurrency"] + new["NotifierConcurrency"] + relay_and_sweeper
    assert used <= 8


def test_a_body_of_a_message_is_counted_by_the_example_acl_and_never_blocked() -> None:
    """The rules are those of https://docs.aws.amazon.com/waf/latest/developerguide/aws-managed-rule-groups-baseline.html"""
    acl = parsed((ROOT / "examples/web-acl/template.yaml").read_text())["Resources"]["WebAcl"]["Properties"]
    groups = [rule["Statement"].get("ManagedRuleGroupStatement") for rule in acl["Rules"]]
    (common,) = filter(None, groups)
    counted = {one["Name"] for one in common["RuleActionOverrides"] if one["ActionToUse"] == {"Count": {}}}
    assert counted >= {
        f"{name}_BODY"
        for name in ("SizeRestrictions", "CrossSiteScripting", "EC2MetaDataSSRF", "GenericLFI", "GenericRFI")
    }
