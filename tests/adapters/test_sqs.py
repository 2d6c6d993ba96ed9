from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from a2a_serverless.adapters.sqs import SqsQueues, group_of
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.queue_messages import DeliveryMessage, WorkMessage, from_json
from tests.adapters.clouds import cloud

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.queue_messages import QueueMessage

KEY = TaskKey("租户", "owner", "task")


class Queues:
    """Two queues and the messages over them."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.work = client.create_queue(QueueName="work")["QueueUrl"]
        self.deliveries = client.create_queue(QueueName="deliveries")["QueueUrl"]
        self.queues = SqsQueues(client, self.work, self.deliveries)

    def payloads(self, url: str) -> list[str]:
        found = self._client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0)
        return [message["Body"] for message in found.get("Messages", [])]

    def delayed(self, url: str) -> int:
        name = "ApproximateNumberOfMessagesDelayed"
        answer = self._client.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return int(answer["Attributes"][name])


@pytest.fixture
def client() -> Iterator[Any]:
    with cloud("sqs") as made:
        yield made


@pytest.fixture
def queues(client: Any) -> Queues:
    return Queues(client)


@pytest.mark.parametrize("message", [WorkMessage(KEY), DeliveryMessage(KEY, "hook")])
def test_a_message_goes_to_its_own_queue_and_can_be_read_there(queues: Queues, message: QueueMessage) -> None:
    queues.queues.enqueue(message)
    mine, other = queues.work, queues.deliveries
    if isinstance(message, DeliveryMessage):
        mine, other = other, mine
    (body,) = queues.payloads(mine)
    assert from_json(json.loads(body)) == message
    assert queues.payloads(other) == []


def test_a_message_carries_ids_and_nothing_else(queues: Queues) -> None:
    queues.queues.enqueue(DeliveryMessage(KEY, "hook"))
    (body,) = queues.payloads(queues.deliveries)
    ids = {"tenant": "租户", "owner": "owner", "task": "task", "config": "hook"}
    assert json.loads(body) == {"v": 1, "kind": "deliver", **ids}


def test_messages_of_an_owner_share_a_group_that_no_other_owner_has() -> None:
    sent: list[dict[str, Any]] = []

    class Client:
        def send_message(self, **parameters: Any) -> None:
            sent.append(parameters)

    client: Any = Client()
    queues = SqsQueues(client, "work", "deliveries")
    for message in (
        WorkMessage(KEY),
        DeliveryMessage(KEY._replace(task="another"), "hook"),
        WorkMessage(KEY._replace(owner="b")),
    ):
        queues.enqueue(message)
    mine, too, other = (one["MessageGroupId"] for one in sent)
    assert mine == too != other
    assert re.fullmatch("[0-9a-f]{32}", mine)
    assert group_of(TaskKey("a/b", "c", "t")) != group_of(TaskKey("a", "b/c", "t"))


@pytest.mark.parametrize("delay_s", [1, 900])
def test_a_delayed_message_does_not_arrive_yet(queues: Queues, delay_s: int) -> None:
    queues.queues.enqueue(WorkMessage(KEY), delay_s)
    assert queues.payloads(queues.work) == []
    assert queues.delayed(queues.work) == 1


@pytest.mark.parametrize("delay_s", [-1, 901])
def test_a_delay_that_the_queue_does_not_know_is_refused(queues: Queues, delay_s: int) -> None:
    with pytest.raises(ValueError, match="0 to 900 seconds"):
        queues.queues.enqueue(WorkMessage(KEY), delay_s)
    assert queues.delayed(queues.work) == 0


class Recorded:
    """A client that keeps what is sent, and refuses the messages whose bodies have a word in them."""

    def __init__(self, refused: str = "nothing") -> None:
        self.refused = refused
        self.calls: list[tuple[str, list[dict[str, Any]]]] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.calls.append((QueueUrl, Entries))
        failed = [{"Id": one["Id"], "Code": "Throttled"} for one in Entries if self.refused in one["MessageBody"]]
        return {"Failed": failed} if failed else {}


def test_many_messages_are_sent_ten_with_a_call_each_to_its_queue_with_its_owner_s_group() -> None:
    client: Any = Recorded()
    work = [WorkMessage(KEY._replace(task=f"task-{number}", owner=f"owner-{number % 3}")) for number in range(25)]
    webhooks: list[QueueMessage] = [DeliveryMessage(KEY, "one"), DeliveryMessage(KEY, "two")]
    SqsQueues(client, "work", "deliveries").enqueue_many([webhooks[0], *work, webhooks[1]])
    assert [(url, len(entries)) for url, entries in client.calls] == [
        ("deliveries", 2),
        ("work", 10),
        ("work", 10),
        ("work", 5),
    ]
    sent = [entry for _, entries in client.calls for entry in entries]
    assert [from_json(json.loads(entry["MessageBody"])) for entry in sent] == [*webhooks, *work]
    assert [entry["MessageGroupId"] for entry in sent] == [group_of(message.key) for message in (*webhooks, *work)]
    assert all(len({entry["Id"] for entry in entries}) == len(entries) for _, entries in client.calls)


def test_enqueue_many_sends_each_message_to_its_queue(queues: Queues) -> None:
    queues.queues.enqueue_many(
        [WorkMessage(KEY), DeliveryMessage(KEY, "hook"), WorkMessage(KEY._replace(task="other"))]
    )
    found = [from_json(json.loads(body)) for body in queues.payloads(queues.work)]
    assert sorted(message.key.task for message in found) == ["other", "task"]
    assert len(queues.payloads(queues.deliveries)) == 1


def test_a_batch_of_which_the_queue_took_a_part_only_is_an_error_that_says_why() -> None:
    client: Any = Recorded(refused="task-3")
    with pytest.raises(RuntimeError, match="1 of 5 messages: Throttled"):
        SqsQueues(client, "work", "").enqueue_many(
            [WorkMessage(KEY._replace(task=f"task-{number}")) for number in range(5)]
        )


def test_a_received_message_comes_again_after_its_delay_and_one_that_is_gone_does_not(
    queues: Queues, client: Any
) -> None:
    queues.queues.enqueue(WorkMessage(KEY))
    (received,) = client.receive_message(QueueUrl=queues.work)["Messages"]
    assert queues.payloads(queues.work) == []
    queues.queues.delay(received["ReceiptHandle"], 0)
    (again,) = client.receive_message(QueueUrl=queues.work)["Messages"]
    assert again["MessageId"] == received["MessageId"]
    with pytest.raises(ClientError):
        queues.queues.delay("another", 18)
