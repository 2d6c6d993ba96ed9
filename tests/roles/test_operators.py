"""The policy for operators allows what their commands were heard to ask of AWS, and nothing else."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from moto.iam.access_control import IAMPolicy, PermissionResult

from a2a_serverless.store.keys import PAUSES
from tests.functions.deployer import MOST_CHARACTERS
from tests.roles.policies import covers, grants, listed
from tests.roles.powers import GROUPS, Ask, is_allowed, operator_policy, operator_statements
from tests.roles.recorder import LEADING_KEYS, Need
from tests.roles.table import of_functions

pytestmark = [pytest.mark.enable_socket, pytest.mark.xdist_group("roles")]

STACK: Final = "Stack"
EACH = pytest.mark.parametrize("group", GROUPS)


def policy() -> dict[str, Any]:
    return operator_policy(of_functions().stack)


def statements(group: str) -> list[dict[str, Any]]:
    return operator_statements(of_functions().stack, group)


@EACH
def test_the_policy_allows_each_call_of_a_command_and_no_other(group: str) -> None:
    stack, allowed = of_functions().stack, [*grants(statements(group))]
    needs = {stack.meant(need) for need in of_functions().needs[group]}
    assert [need for need in needs if not any(covers(grant, need) for grant in allowed)] == []
    assert [grant for grant in allowed if not any(covers(grant, need) for need in needs)] == []


@EACH
def test_the_evaluator_of_moto_permits_each_call_of_a_group(group: str) -> None:
    stack = of_functions().stack
    evaluator = IAMPolicy({"policy_document": json.dumps({**policy(), "Statement": statements(group)})})
    for need in map(stack.meant, of_functions().needs[group]):
        permitted = evaluator.is_action_permitted(
            need.action, need.resource, incoming_condition_values=dict(need.context)
        )
        assert permitted is PermissionResult.PERMITTED, need


@pytest.mark.parametrize("group", ["pause", "resume"])
def test_pauses_are_in_a_partition_and_the_policy_allows_that_alone(group: str) -> None:
    table = of_functions().stack.resources["Table.Arn"]
    for action in ("dynamodb:Query", "dynamodb:PutItem" if group == "pause" else "dynamodb:DeleteItem"):
        assert is_allowed(statements(group), Ask(action, table, {LEADING_KEYS: PAUSES}))
        assert not is_allowed(statements(group), Ask(action, table, {LEADING_KEYS: "TASK#1"}))
        other = Need(action, table, ((LEADING_KEYS, "TASK#"),))
        assert not any(covers(grant, other) for grant in grants(statements(group)))


def test_each_statement_is_for_a_group_of_commands_and_all_are_one_managed_policy() -> None:
    known = [one["Sid"] for group in GROUPS for one in statements(group) if one["Sid"] != STACK]
    assert sorted([STACK, *known]) == sorted(one["Sid"] for one in policy()["Statement"])
    assert len(json.dumps(policy(), separators=(",", ":"))) < MOST_CHARACTERS


def test_the_policy_is_for_every_partition() -> None:
    named = [one for statement in policy()["Statement"] for one in listed(statement["Resource"]) if one != "*"]
    assert all(one.startswith("arn:*:") for one in named)
