"""A role allows what its function was heard to ask of AWS, and nothing else but what has a reason."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from moto.iam.access_control import IAMPolicy, PermissionResult

from a2a_serverless.adapters.kms import SERVICE_TOKENS
from tests.docs.documents import ROOT
from tests.docs.drawn import drawn_in
from tests.functions.service_authorization import faults
from tests.functions.template import functions
from tests.roles.emulated import emulated
from tests.roles.policies import covers, grants
from tests.roles.powers import Ask
from tests.roles.recorder import PURPOSE, Need
from tests.roles.table import REASONS, of_functions, reasons, table

pytestmark = [pytest.mark.enable_socket, pytest.mark.xdist_group("roles")]

EACH = pytest.mark.parametrize("function", functions())


@EACH
def test_a_role_allows_every_call_that_its_function_makes(function: str) -> None:
    assert of_functions().too_little(function) == []


@EACH
def test_a_role_has_only_statements_that_aws_accepts(function: str) -> None:
    assert [*faults(of_functions().stack.roles()[function])] == []


@EACH
def test_a_role_allows_nothing_that_its_function_never_asks_for_without_a_reason(function: str) -> None:
    assert of_functions().too_much(function) == []


def test_every_reason_belongs_to_a_grant_that_no_journey_uses() -> None:
    unheard = [(one, grant) for one in functions() for grant in of_functions().unheard(one)]
    assert {found for one, grant in unheard for found in reasons(one, grant)} == set(REASONS)


def test_a_call_that_is_not_allowed_and_a_right_that_nobody_uses_are_found() -> None:
    found = of_functions()
    without = {name: set(needs) for name, needs in found.needs.items()}
    without["relay"] = {Need("dynamodb:Scan", "Table")}
    other = replace(found, needs=without)
    assert other.too_little("relay") == [Need("dynamodb:Scan", "Table")]
    assert Need("dynamodb:Query", "Table") in other.too_much("relay")


@EACH
def test_the_evaluator_of_moto_permits_the_calls_of_a_function_and_no_similar_calls(function: str) -> None:
    policy = IAMPolicy({"policy_document": json.dumps(_policy(function))})
    for need in _concrete(function):
        given = dict(need.context)
        permitted = policy.is_action_permitted(need.action, need.resource, incoming_condition_values=given)
        assert permitted is PermissionResult.PERMITTED, need
        foreign = need.resource + "-other"
        if not need.resource.startswith(("arn:aws:s3:::blobs/", "arn:aws:bedrock")):
            permitted = policy.is_action_permitted(need.action, foreign, incoming_condition_values=given)
            assert permitted is not PermissionResult.PERMITTED, need
        if need.purpose:
            given = {PURPOSE: "another"}
            permitted = policy.is_action_permitted(need.action, need.resource, incoming_condition_values=given)
            assert permitted is not PermissionResult.PERMITTED, need


@EACH
def test_the_evaluator_of_the_emulator_allows_the_calls_of_a_function_only(function: str) -> None:
    needs = _concrete(function)
    asked = [Ask(need.action, need.resource, dict(need.context)) for need in needs]
    others = [Ask(need.action, need.resource, {PURPOSE: "another"}) for need in needs if need.purpose]
    said = emulated(of_functions().stack.roles()[function], asked + others)
    assert said == ["Allow"] * len(needs) + ["ImplicitDeny"] * len(others)


MAKES = {"kms:Encrypt", "kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptTo"}


def test_only_the_worker_may_make_what_opens_as_a_service_token_and_only_the_api_may_open_it() -> None:
    may: dict[str, set[str]] = {}
    for function, statements in of_functions().stack.roles().items():
        for grant in grants(statements):
            for action in {*MAKES, "kms:Decrypt"}:
                sealing = of_functions().stack.resources["SealingKey.Arn"]
                if covers(grant, Need(action, sealing, ((PURPOSE, SERVICE_TOKENS["purpose"]),))):
                    may.setdefault(action, set()).add(function)
    assert may == {"kms:Encrypt": {"worker"}, "kms:Decrypt": {"api"}}


def test_the_table_in_the_documents_is_as_the_roles_are() -> None:
    assert drawn_in(ROOT / "docs" / "roles.md", "roles") == table(), "make drawings writes it anew"


def _policy(function: str) -> dict[str, object]:
    return {"Version": "2012-10-17", "Statement": of_functions().stack.roles()[function]}


def _concrete(function: str) -> list[Need]:
    """What the function needs, with resources as IAM names them."""
    stack = of_functions().stack
    return sorted(stack.meant(need) for need in of_functions().needs[function])
