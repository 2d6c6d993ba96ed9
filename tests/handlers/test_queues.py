"""Batches of messages: a valid one is answered, an invalid one is discarded, one that fails is reported by itself."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.aws.batches import make_queue_handler
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.queue_messages import DeliveryMessage, QueueMessage, WorkMessage, to_json
from tests.contexts import Context

if TYPE_CHECKING:
    from collections.abc import Callable

WORK = WorkMessage(TaskKey("tenant", "owner", "task-1"))
OTHER = WorkMessage(TaskKey("tenant", "owner", "task-2"))
DELIVERY = DeliveryMessage(TaskKey("tenant", "owner", "task-1"), "hook")


class Ending(Enum):
    DONE = "done"


class Clock(Context):
    def __init__(self) -> None:
        super().__init__(4321)


@dataclass
class Answerer:
    """Answers messages, and fails for some of them."""

    fails: dict[QueueMessage, Exception] = field(default_factory=dict)
    answered: list[QueueMessage] = field(default_factory=list)
    left: list[int] = field(default_factory=list)

    def __call__(self, message: QueueMessage, remaining_ms: Callable[[], int], receipt: str) -> Ending:
        assert receipt == "secret-handle"
        self.answered.append(message)
        self.left.append(remaining_ms())
        if message in self.fails:
            raise self.fails[message]
        return Ending.DONE


def record(message: QueueMessage, message_id: str = "m-1", **fields: Any) -> dict[str, Any]:
    """A message as SQS hands it over."""
    return {
        "messageId": message_id,
        "receiptHandle": "secret-handle",
        "body": json.dumps(to_json(message)),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1790000000000"},
        "messageAttributes": {},
        "md5OfBody": "0" * 32,
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:work",
        "awsRegion": "us-east-1",
    } | fields


def handled(answerer: Answerer, *records: dict[str, Any], at_once: int = 1) -> dict[str, Any]:
    handler = make_queue_handler(WorkMessage, answerer, at_once)
    return handler({"Records": list(records)}, Clock())


def test_every_message_of_a_batch_is_answered_and_knows_how_much_time_is_left() -> None:
    answerer = Answerer()
    assert handled(answerer, record(WORK), record(OTHER, "m-2")) == {"batchItemFailures": []}
    assert answerer.answered == [WORK, OTHER]
    assert answerer.left == [4321, 4321]


def test_an_empty_batch_is_no_failure() -> None:
    assert handled(Answerer()) == {"batchItemFailures": []}
    assert make_queue_handler(WorkMessage, Answerer())({}, Clock()) == {"batchItemFailures": []}


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_message_that_fails_is_reported_by_itself_and_its_neighbours_stand(at_once: int) -> None:
    answerer = Answerer({OTHER: RuntimeError("no")})
    records = [record(WORK), record(OTHER, "m-2"), record(WORK, "m-3")]
    assert handled(answerer, *records, at_once=at_once) == {"batchItemFailures": [{"itemIdentifier": "m-2"}]}
    assert sorted(message.key.task for message in answerer.answered) == ["task-1", "task-1", "task-2"]


@pytest.mark.parametrize("error", [Overloaded(), TimeoutError(), OSError("down"), KeyError("x")])
def test_an_error_of_a_message_is_a_failed_item_and_no_exception(error: Exception) -> None:
    assert handled(Answerer({WORK: error}), record(WORK)) == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}


INVALID_MESSAGES = {
    "no json": "hello",
    "empty": "",
    "null": None,
    "a number": "7",
    "a list": "[]",
    "another version": json.dumps(to_json(WORK) | {"v": 0}),
    "another kind": json.dumps(to_json(WORK) | {"kind": "play"}),
    "no task": json.dumps({"v": 1, "kind": "work", "tenant": "t", "owner": "o"}),
    "a message of the other queue": json.dumps(to_json(DELIVERY)),
    "a very deep list": "[" * 100_000,
    "a very long number": "9" * 10_000,
    "a lone surrogate for a task": json.dumps(to_json(WORK) | {"task": 7}),
    "two megabytes": json.dumps(to_json(WORK) | {"task": "x" * 2_000_000}),
}


@pytest.mark.parametrize("body", INVALID_MESSAGES.values(), ids=INVALID_MESSAGES)
def test_an_invalid_message_is_discarded_and_logged(body: str | None, caplog: pytest.LogCaptureFixture) -> None:
    answerer = Answerer()
    assert handled(answerer, record(WORK, body=body)) == {"batchItemFailures": []}
    assert answerer.answered == []
    (line,) = caplog.records
    assert (line.levelname, line.getMessage()) == ("WARNING", "invalid queue message discarded")
    assert line.__dict__["message_id"] == "m-1"
    assert "Error" in line.__dict__["reason"] or line.__dict__["reason"] == "InvalidMessage"


def test_a_message_without_a_body_is_thrown_away() -> None:
    bare = record(WORK)
    del bare["body"]
    assert handled(Answerer(), bare) == {"batchItemFailures": []}


def test_rule_10_the_log_names_tasks_and_shows_no_content(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    stray = record(WORK, "m-3", body='{"password": "hunter2"}')
    handled(Answerer({OTHER: RuntimeError("hunter2")}), record(WORK), record(OTHER, "m-2"), stray)
    ours = [line for line in caplog.records if line.name.startswith("a2a_serverless.")]
    lines = [(line.getMessage(), line.__dict__.get("task"), line.__dict__.get("outcome")) for line in ours]
    assert lines == [
        ("queue message handled", "task-1", "done"),
        ("queue message failed", "task-2", None),
        ("invalid queue message discarded", None, None),
    ]
    assert [line.__dict__.get("kind") for line in ours] == ["WorkMessage", "WorkMessage", None]
    assert ours[1].__dict__["error"] == "RuntimeError"
    shown = caplog.text + str([line.__dict__ for line in caplog.records])
    assert "hunter2" not in shown
    assert "secret-handle" not in shown
