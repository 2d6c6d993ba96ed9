"""What a sweep of much that is due costs on DynamoDB, in calls: as much for each item, however many there are.

``SWEEP_ITEMS=10000`` is the long run; an ordinary one takes some hundred.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless.domain import decisions
from a2a_serverless.domain.events import Incoming
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.new_task import NewTask
from a2a_serverless.protocol.v1 import Message, Part, Role
from a2a_serverless.services.sweep import Sweeper, sweep
from a2a_serverless.store.dynamodb import PAGE
from a2a_serverless.store.keys import SHARDS
from a2a_serverless.testing.memory import MemoryQueues
from a2a_serverless.testing.simulated_deployment import Counter as Names
from tests.contract.backends import NOW, dynamo
from tests.contract.meter import metering

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tests.contract.backends import Store

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("dynoxide_client")]

MANY: Final = int(os.environ.get("SWEEP_ITEMS", "300"))
LIFE: Final = decisions.TaskLifetime(7 * 86_400_000, 30 * 86_400_000)
ME: Final = Principal("acme", "alice")


class Clock:
    """The store's clock."""

    def __init__(self, store: Store) -> None:
        self.now = store.now

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def _task(store: Store, number: int) -> None:
    message = Message(message_id=f"m-{number}", role=Role.USER, parts=(Part(text="hello"),), context_id="context")
    key, incoming = ME.key(f"task-{number}"), Incoming(message)
    head, event = decisions.submit(key, "echo", "context", incoming, now=NOW, by=f"by-{number}", life=LIFE, push=False)
    assert store.log.create(NewTask(head, event, None)) is None


def test_a_sweep_of_everything_due_is_a_read_and_a_write_for_each_item_and_a_page_for_a_thousand(
    dynoxide_client: DynamoDBClient,
) -> None:
    with dynamo(dynoxide_client, "sweeping", time.sleep) as store, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _task(store, number), range(MANY)))
        store.now.ms = NOW + 100_000
        queues = MemoryQueues(store.now)
        sweeper = Sweeper(store.log, store.push, queues, Clock(store), Names(), each=pool.map)
        with metering(dynoxide_client) as meter:
            assert sweep(sweeper) == MANY
            calls = Counter(meter.calls)
            pages = calls["Query"] - MANY
            assert calls == {"Query": MANY + pages, "UpdateItem": MANY}
            assert SHARDS <= pages <= 2 * SHARDS + MANY // PAGE
            assert {message.key.task for message in queues.ready()} == {f"task-{number}" for number in range(MANY)}
            meter.reset()
            assert sweep(sweeper) == 0
            assert meter.calls == ["Query"] * SHARDS


def test_two_sweepers_at_once_move_each_task_once(dynoxide_client: DynamoDBClient) -> None:
    count = 50
    with dynamo(dynoxide_client, "sweepers", time.sleep) as store, ThreadPoolExecutor(4) as pool:
        for number in range(count):
            _task(store, number)
        store.now.ms = NOW + 100_000
        queues = MemoryQueues(store.now)
        sweeper = Sweeper(store.log, store.push, queues, Clock(store), Names())
        list(pool.map(lambda one: sweep(replace(sweeper, ids=one)), [Names(), Names()]))
        found = [store.log.read_head(ME.key(f"task-{number}")) for number in range(count)]
        assert {(snapshot.head.due_at, snapshot.head.sweeps_in_a_row) for snapshot in found if snapshot} == {
            (NOW + 160_000, 1)
        }
        assert count <= len(queues.ready()) <= 2 * count
