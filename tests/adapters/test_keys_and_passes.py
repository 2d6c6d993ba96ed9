"""API keys stand where only operators write; what functions can write is a pass or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from a2a_serverless.adapters.api_keys import DynamoApiKeys, DynamoKeysAndPasses
from a2a_serverless.adapters.table import Patience, Table
from a2a_serverless.domain.access import ApiKey, digest_of
from a2a_serverless.domain.model import Principal
from tests.contract.backends import client_at
from tests.contract.schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

ALICE = Principal("acme", "alice")
KEY, PASS = digest_of("a2a_alice"), digest_of("a2a_pass_alice")


@pytest.fixture
def tables() -> Iterator[tuple[Table, Table]]:
    with mock_aws(), client_at(None) as client:
        for name in ("AccessTable", "Table"):
            client.create_table(TableName=name, **table_schema(name))
        patience = Patience(lambda _: None, lambda: 0.5)
        yield Table(client, "AccessTable", lambda: 0, patience), Table(client, "Table", lambda: 0, patience)


def test_a_key_that_a_function_has_written_lets_nobody_in(tables: tuple[Table, Table]) -> None:
    access, table = tables
    found = DynamoKeysAndPasses(access, table)
    DynamoApiKeys(table).add(ApiKey(KEY, ALICE, "", 0, operator=True))
    assert (found.find(KEY), found.all()) == (None, [])
    found.add(ApiKey(KEY, ALICE, "", 0))
    assert [found.find(KEY)] == found.all() == [ApiKey(KEY, ALICE, "", 0)]


@pytest.mark.parametrize("expires", [None, 3_600_000])
def test_a_pass_is_no_operator_s_and_ends(tables: tuple[Table, Table], expires: int | None) -> None:
    access, table = tables
    DynamoApiKeys(table).add(ApiKey(PASS, ALICE, "", 0, operator=True, expires=expires))
    found = DynamoKeysAndPasses(access, table).find(PASS)
    assert found == (ApiKey(PASS, ALICE, "", 0, expires=expires) if expires else None)
