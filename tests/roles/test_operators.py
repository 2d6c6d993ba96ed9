"""The policy for operators allows what their commands were heard to ask of AWS, and nothing else."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from moto.iam.access_control import IAMPolicy, PermissionResult

from tests.docs.documents import ROOT
from tests.functions.deployer import MOST_CHARACTERS
from tests.roles.policies import covers, document, grants
from tests.roles.table import of_functions

pytestmark = [pytest.mark.enable_socket, pytest.mark.xdist_group("roles")]

STACK: Final = "Stack"
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
EACH = pytest.mark.parametrize("group", GROUPS)


def policy() -> dict[str, Any]:
    """The document's policy, each output in it replaced as the document says: by what follows its last slash."""

    def value(found: re.Match[str]) -> str:
        return str(of_functions().stack.value(document()["Outputs"][found[1]]["Value"])).rpartition("/")[2]

    text = (ROOT / "docs/operator-policy.json").read_text()
    return dict(json.loads(re.sub("<([A-Za-z]+)>", value, text)))


def statements(group: str) -> list[dict[str, Any]]:
    """What the commands of a group need: their own statements, and the one for all."""
    return [one for one in policy()["Statement"] if one["Sid"] == STACK or one["Sid"].startswith(group.title())]


@EACH
def test_the_policy_allows_each_call_of_a_command_and_no_other(group: str) -> None:
    stack, allowed = of_functions().stack, [*grants(statements(group))]
    needs = {stack.meant(need) for need in of_functions().needs[group]}
    assert [need for need in needs if not any(covers(grant, need) for grant in allowed)] == []
    assert [grant for grant in allowed if not any(covers(grant, need) for need in needs)] == []


@EACH
def test_moto_s_evaluator_says_the_same(group: str) -> None:
    stack = of_functions().stack
    evaluator = IAMPolicy({"policy_document": json.dumps({**policy(), "Statement": statements(group)})})
    for need in map(stack.meant, of_functions().needs[group]):
        permitted = evaluator.is_action_permitted(need.action, need.resource)
        assert permitted is PermissionResult.PERMITTED, need


def test_each_statement_is_for_a_group_of_commands_and_all_are_one_managed_policy() -> None:
    known = [one["Sid"] for group in GROUPS for one in statements(group) if one["Sid"] != STACK]
    assert sorted([STACK, *known]) == sorted(one["Sid"] for one in policy()["Statement"])
    assert len(json.dumps(policy(), separators=(",", ":"))) < MOST_CHARACTERS
