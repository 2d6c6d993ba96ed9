from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.sqs import SqsBells, group_of
from a2a_serverless.domain.bells import DeliveryBell, WorkBell, from_json
from a2a_serverless.domain.model import TaskKey
from tests.adapters.clouds import cloud

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.bells import Bell

KEY = TaskKey("租户", "owner", "task")


class Queues:
    """Two queues and the bells over them."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.work = client.create_queue(QueueName="work")["QueueUrl"]
        self.deliveries = client.create_queue(QueueName="deliveries")["QueueUrl"]
        self.bells = SqsBells(client, self.work, self.deliveries)

    def bodies(self, url: str) -> list[str]:
        found = self._client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0)
        return [message["Body"] for message in found.get("Messages", [])]

    def delayed(self, url: str) -> int:
        name = "ApproximateNumberOfMessagesDelayed"
        answer = self._client.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return int(answer["Attributes"][name])


@pytest.fixture
def queues() -> Iterator[Queues]:
    with cloud("sqs") as client:
        yield Queues(client)


@pytest.mark.parametrize("bell", [WorkBell(KEY), DeliveryBell(KEY, "hook")])
def test_a_bell_goes_to_its_own_queue_and_can_be_read_there(queues: Queues, bell: Bell) -> None:
    queues.bells.ring(bell)
    mine, other = queues.work, queues.deliveries
    if isinstance(bell, DeliveryBell):
        mine, other = other, mine
    (body,) = queues.bodies(mine)
    assert from_json(json.loads(body)) == bell
    assert queues.bodies(other) == []


def test_a_bell_carries_ids_and_nothing_else(queues: Queues) -> None:
    queues.bells.ring(DeliveryBell(KEY, "hook"))
    (body,) = queues.bodies(queues.deliveries)
    ids = {"tenant": "租户", "owner": "owner", "task": "task", "config": "hook"}
    assert json.loads(body) == {"v": 1, "kind": "deliver", **ids}


def test_all_bells_of_an_owner_are_of_one_group_and_those_of_another_of_another() -> None:
    sent: list[dict[str, Any]] = []

    class Client:
        def send_message(self, **parameters: Any) -> None:
            sent.append(parameters)

    client: Any = Client()
    bells = SqsBells(client, "work", "deliveries")
    for bell in (WorkBell(KEY), DeliveryBell(replace(KEY, task="another"), "hook"), WorkBell(replace(KEY, owner="b"))):
        bells.ring(bell)
    mine, too, other = (one["MessageGroupId"] for one in sent)
    assert mine == too != other
    assert re.fullmatch("[0-9a-f]{32}", mine)
    assert group_of(TaskKey("a/b", "c", "t")) != group_of(TaskKey("a", "b/c", "t"))


@pytest.mark.parametrize("delay_s", [1, 900])
def test_a_delayed_bell_does_not_ring_yet(queues: Queues, delay_s: int) -> None:
    queues.bells.ring(WorkBell(KEY), delay_s)
    assert queues.bodies(queues.work) == []
    assert queues.delayed(queues.work) == 1


@pytest.mark.parametrize("delay_s", [-1, 901])
def test_a_delay_that_the_queue_does_not_know_is_refused(queues: Queues, delay_s: int) -> None:
    with pytest.raises(ValueError, match="0 to 900 seconds"):
        queues.bells.ring(WorkBell(KEY), delay_s)
    assert queues.delayed(queues.work) == 0
