"""Concurrent clients of a whole deployment see what one table promises (``tests/histories``).

Unlike DynamoDB, dynoxide has no index that lags, no query that sees a part of a transaction, and no
TransactionConflict. `tests/simulation` has the first two, `tests/adapters/test_table.py` the third.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.histories.dynamodb import DynamoStores
from tests.histories.history import texts_of
from tests.histories.run import play

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.mark.enable_socket
@pytest.mark.integration
@pytest.mark.xdist_group("dynoxide_client")
def test_a_history_of_racing_threads_keeps_every_promise(dynoxide_client: DynamoDBClient) -> None:
    history, violations = play(1, clients=3, actions=6, table=partial(DynamoStores, dynoxide_client))
    assert violations == [], "\n".join(texts_of(history))
    assert len(history.operations) > 15
