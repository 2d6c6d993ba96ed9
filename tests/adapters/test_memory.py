from __future__ import annotations

import pytest

from a2a_serverless.domain import decisions
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.queue_messages import DeliveryMessage, WorkMessage
from a2a_serverless.testing.memory import MemoryBlobStore, MemoryQueues, MemorySealer, MemoryStores
from tests.contract.tasks import KEY, chunk, opening, seen, writer

WORK = WorkMessage(TaskKey("t", "o", "x"))
DELIVERY = DeliveryMessage(WORK.key, "hook")
NOW = 1_790_000_000_000


def test_the_feed_carries_every_event_once_in_the_order_of_commits() -> None:
    table = MemoryStores(lambda: NOW)
    new = opening()
    table.create(new)
    table.create(new)
    change = decisions.start_run(seen(table), now=NOW, by="me")
    table.append(change)
    table.append(change)
    event = chunk(3)
    table.append_chunk(writer(), event)
    table.append_chunk(writer(), chunk(3))
    changed = [(key, *table.read(key, n - 1, 1)) for key, n in table.feed]
    assert changed == [(KEY, new.event), (KEY, change.event), (KEY, event)]


def test_messages_arrive_in_the_order_in_which_they_are_due() -> None:
    queues = MemoryQueues(lambda: NOW)
    queues.enqueue(DELIVERY, 2)
    queues.enqueue(WORK, 1)
    queues.enqueue(WORK)
    assert queues.ready() == [WORK]
    assert queues.ready(NOW + 2000) == [WORK, WORK, DELIVERY]
    assert queues.waiting == [(NOW, WORK), (NOW + 1000, WORK), (NOW + 2000, DELIVERY)]


def test_a_message_is_taken_once_and_not_before_it_is_due() -> None:
    queues = MemoryQueues(lambda: NOW)
    queues.enqueue(DELIVERY, 2)
    queues.enqueue(WORK)
    assert [queues.pop(), queues.pop(), queues.pop(NOW + 1999), queues.pop(NOW + 2000)] == [WORK, None, None, DELIVERY]


def test_clearing_the_queues_in_memory_loses_their_messages() -> None:
    queues = MemoryQueues(lambda: NOW)
    queues.enqueue(WORK)
    queues.clear()
    assert queues.waiting == []


@pytest.mark.parametrize("delay_s", [-1, 901])
def test_a_delay_that_no_queue_knows_is_refused(delay_s: int) -> None:
    with pytest.raises(ValueError, match="0 to 900 seconds"):
        MemoryQueues(lambda: NOW).enqueue(WORK, delay_s)


def test_a_secret_opens_for_its_own_context_only() -> None:
    sealer = MemorySealer()
    sealed = sealer.seal("token", "context")
    assert sealer.open(sealed, "context") == "token"
    with pytest.raises(ValueError, match="another context"):
        sealer.open(sealed, "other")


def test_a_blob_that_is_not_there_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        MemoryBlobStore().get("name")
