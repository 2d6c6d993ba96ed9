"""What operators, deployers and functions can do, as the documents say it and as the policies decide it."""

from __future__ import annotations

import pytest

from tests.docs.documents import ROOT
from tests.docs.drawn import drawn_in
from tests.functions.deployer import RIGHTS, boundary
from tests.functions.deployer import statements as deployer_statements
from tests.roles.emulated import emulated
from tests.roles.policies import covers, grants
from tests.roles.powers import (
    ADMINISTRATOR,
    HOLDERS,
    Ask,
    all_asks,
    holders,
    is_allowed,
    powers,
    stack,
    table,
    without_boundary,
)
from tests.roles.recorder import PURPOSE, Need

pytestmark = [pytest.mark.enable_socket, pytest.mark.xdist_group("roles")]

WIDER = ("make a role without the boundary", "change or lift the boundary", "change roles of others")


def test_the_table_in_the_documents_is_as_the_policies_are() -> None:
    assert drawn_in(ROOT / "docs" / "roles.md", "powers") == table(), "make drawings writes it anew"


@pytest.mark.parametrize("name", HOLDERS)
def test_the_emulator_s_evaluator_says_the_same_of_each_call(name: str) -> None:
    statements, asks = holders()[name], all_asks()
    assert [one == "Allow" for one in emulated(statements, asks)] == [is_allowed(statements, one) for one in asks]


def test_each_power_is_somebody_s_and_no_two_rows_ask_for_the_same() -> None:
    asks = all_asks()
    assert all(is_allowed([ADMINISTRATOR], one) for one in asks)
    assert len({(ask.action, ask.resource, *ask.context.values()) for ask in asks}) == len(asks)


def test_no_deployer_and_no_role_of_a_deployer_gets_beyond_the_boundary() -> None:
    asks = [ask for name in WIDER for ask in powers()[name]]
    for statements in (deployer_statements(), boundary()["Statement"]):
        assert not any(is_allowed(statements, ask) for ask in asks)


def test_a_boundary_of_another_name_is_no_boundary() -> None:
    role = stack().resources["WorkerRole.Arn"]
    for name, allowed in (("boundary-a2a-serverless", True), ("a2a-serverless-mine", False), ("other", False)):
        ask = Ask("iam:CreateRole", role, {"iam:PermissionsBoundary": f"arn:aws:iam::123456789012:policy/{name}"})
        assert is_allowed(deployer_statements(), ask) is allowed


def test_without_the_boundary_whoever_may_make_roles_is_an_administrator() -> None:
    assert without_boundary(deployer_statements()) == [ADMINISTRATOR]
    lesser = [one for one in deployer_statements() if "iam:PassRole" not in one["Action"]]
    assert without_boundary(lesser) != [ADMINISTRATOR]
    assert "AWS::IAM::Role" in RIGHTS


def test_the_worker_decrypts_by_your_key_only_as_secrets_manager_asks_and_only_this_secret() -> None:
    worker, known = stack().roles()["worker"], stack().resources
    secret, key = known["agent_credentials"], known["agent_credentials_key"]
    right = {"kms:ViaService": "secretsmanager.us-east-1.amazonaws.com", "kms:EncryptionContext:SecretARN": secret}
    assert is_allowed(worker, Ask("kms:Decrypt", key, right))
    for wrong in (
        {},
        right | {"kms:ViaService": "s3.us-east-1.amazonaws.com"},
        right | {"kms:EncryptionContext:SecretARN": f"{secret}-other"},
        {PURPOSE: "a2a-webhook-secrets"},
    ):
        assert not is_allowed(worker, Ask("kms:Decrypt", key, wrong))
        assert not any(covers(grant, Need("kms:Decrypt", key, tuple(wrong.items()))) for grant in grants(worker))
