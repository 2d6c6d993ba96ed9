"""Concurrent clients of a whole deployment see what one table promises (``tests/histories``)."""

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
@pytest.mark.xdist_group("local_client")
def test_a_history_of_racing_threads_keeps_every_promise(local_client: DynamoDBClient) -> None:
    history, violations = play(1, clients=3, actions=6, table=partial(DynamoStores, local_client))
    assert violations == [], "\n".join(texts_of(history))
    assert len(history.operations) > 15
