import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from a2a_webhook_receiver.body import Content, read_content, read_task
from a2a_webhook_receiver.errors import Unreadable
from a2a_webhook_receiver.outbound import Unreachable
from a2a_webhook_receiver.receive import check
from a2a_webhook_receiver.relay_sns import SnsRelay
from a2a_webhook_receiver.tasks import Delivery, JsonRpcTasks, wants_task, with_task
from a2a_webhook_receiver.verifier import VerifiedNotification
from tests.webhook_receiver.sending import EXPECTED, NoTasks, receiving, signed
from vectors.cases import ISSUER, NOW, TASK
from vectors.forge import to_json

AGENT = f"{ISSUER}/document"
DONE: Any = {"id": TASK, "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}


class Agent:
    """Answers what it was told to, and remembers what it was asked."""

    def __init__(self, answer: object) -> None:
        self.answer = answer if isinstance(answer, bytes) else to_json(answer)
        self.asked: list[tuple[str, Any, Mapping[str, str]]] = []

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        self.asked.append((url, json.loads(body), headers))
        return self.answer


def delivery(body: object = None, agent_url: str | None = AGENT) -> Delivery:
    with receiving(replace(EXPECTED, agent_url=agent_url)) as receiver:
        notification = check(receiver, signed(body) if body else signed(), NOW)
    assert isinstance(notification, VerifiedNotification)
    return Delivery(notification, NOW, late=False)


def test_a_task_is_asked_for_as_a2a_1_0_says() -> None:
    agent = Agent({"jsonrpc": "2.0", "id": 1, "result": DONE})
    task = JsonRpcTasks(ISSUER, post=agent.post).fetch(AGENT, TASK)
    assert task.state == "completed"
    request = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": TASK}}
    assert agent.asked == [(AGENT, request, {"A2A-Version": "1.0", "Content-Type": "application/json"})]


@pytest.mark.parametrize(
    ("agent_url", "shown"),
    [
        (AGENT, True),
        (f"{ISSUER}/a/b", True),
        (ISSUER, False),
        (f"{ISSUER}.evil.example/document", False),
        ("https://evil.example/document", False),
    ],
)
def test_only_the_issuers_agents_see_our_credentials(agent_url: str, shown: bool) -> None:  # noqa: FBT001
    agent = Agent({"result": DONE})
    JsonRpcTasks(ISSUER, "Bearer ours", post=agent.post).fetch(agent_url, TASK)
    assert ("Authorization" in agent.asked[0][2]) is shown


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": {"code": -32001, "message": "secret"}}, "error -32001"),
        ({"result": None}, "neither"),
        ({"result": {"task": DONE}}, "missing"),
        ({"result": DONE | {"id": "another"}}, "another task"),
        ({}, "neither"),
        (b"<html>", "the agent's answer"),
        (b'{"result":1,"result":2}', "twice"),
    ],
)
def test_an_answer_that_is_no_task_is_unreadable(answer: object, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason) as refusal:
        JsonRpcTasks(ISSUER, post=Agent(answer).post).fetch(AGENT, TASK)
    assert "secret" not in str(refusal.value)


class Tasks:
    """A TaskSource with one task."""

    def fetch(self, agent_url: str, task_id: str) -> Content:
        assert agent_url == AGENT
        return read_task(DONE | {"id": task_id})


def test_the_task_comes_along_with_a_status() -> None:
    with_it = with_task(delivery(), Tasks())
    assert with_it.task
    assert with_it.task.state == "completed"


def test_an_agent_that_does_not_answer_costs_no_notification() -> None:
    without = with_task(delivery(), NoTasks())
    assert without.task is None
    assert without.trouble == f"{AGENT} has no {TASK}"


def test_without_an_agents_address_nothing_is_asked() -> None:
    assert with_task(delivery(agent_url=None), NoTasks()).trouble is None


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}, True),
        ({"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}, False),
        ({"artifactUpdate": {"taskId": "t", "artifact": {"artifactId": "a", "parts": [{"text": ""}]}}}, False),
        (
            {
                "artifactUpdate": {
                    "taskId": "t",
                    "lastChunk": True,
                    "artifact": {"artifactId": "a", "parts": [{"text": ""}]},
                }
            },
            True,
        ),
    ],
    ids=["a status", "a snapshot", "a chunk", "the last chunk"],
)
def test_a_task_is_worth_asking_for_when_something_changed(body: object, wanted: bool) -> None:  # noqa: FBT001
    assert wants_task(read_content(to_json(body), "1.0")) is wanted


class Topic:
    """An SNS client that remembers, or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.published: list[dict[str, Any]] = []
        self._failure = failure

    def publish(self, *, TopicArn: str, Message: str, MessageAttributes: object) -> object:  # noqa: N803 - AWS's names
        if self._failure:
            raise self._failure
        self.published.append({"topic": TopicArn, "message": json.loads(Message), "attributes": MessageAttributes})
        return {}


def test_the_topic_is_told_which_task_changed_and_nothing_of_its_content() -> None:
    topic = Topic()
    SnsRelay(topic, "arn:topic")(delivery())
    assert topic.published == [
        {
            "topic": "arn:topic",
            "message": {
                "taskId": TASK,
                "eventNumber": 3,
                "notificationId": "7f9c2d1e-task.config-1.3",
                "kind": "statusUpdate",
                "state": "working",
                "late": False,
            },
            "attributes": {"state": {"DataType": "String", "StringValue": "working"}},
        }
    ]


def test_a_topic_that_fails_is_not_passed_over() -> None:
    with pytest.raises(Unreachable):
        SnsRelay(Topic(Unreachable("down")), "arn:topic")(delivery())
