"""The notifier answers the messages of a batch side by side, so that a slow host does not hold the others' messages."""

from __future__ import annotations

import json
from threading import Barrier, current_thread
from typing import Any

import pytest

from a2a_serverless.aws.batches import make_queue_handler
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.queue_messages import DeliveryMessage, to_json
from a2a_serverless.services.deliver import DeliveryOutcome
from tests.contexts import Context


def batch(*tasks: str) -> dict[str, Any]:
    queues = [DeliveryMessage(TaskKey("t", "o", task), "c") for task in tasks]
    return {"Records": [{"messageId": message.key.task, "body": json.dumps(to_json(message))} for message in queues]}


@pytest.mark.parametrize("tasks", ["ab", "abc"])
def test_messages_of_a_batch_are_answered_at_the_same_time(tasks: str) -> None:
    meeting = Barrier(len(tasks))

    def answer(*_: object) -> DeliveryOutcome:
        meeting.wait(60)
        return DeliveryOutcome.CAUGHT_UP

    handler = make_queue_handler(DeliveryMessage, answer, len(tasks))
    assert handler(batch(*tasks), Context()) == {"batchItemFailures": []}


def test_a_message_that_is_answered_by_itself_is_answered_in_the_thread_of_the_invocation() -> None:
    threads = []

    def answer(*_: object) -> DeliveryOutcome:
        threads.append(current_thread())
        return DeliveryOutcome.CAUGHT_UP

    make_queue_handler(DeliveryMessage, answer)(batch("a", "b"), Context())
    assert threads == [current_thread()] * 2


def test_when_all_messages_of_a_batch_fail_each_is_reported_back_and_the_function_has_not_failed() -> None:
    def answer(*_: object) -> DeliveryOutcome:
        raise ConnectionError

    failures = make_queue_handler(DeliveryMessage, answer, 3)(batch("a", "b"), Context())
    assert failures == {"batchItemFailures": [{"itemIdentifier": "a"}, {"itemIdentifier": "b"}]}


def test_only_the_message_that_failed_is_reported_back() -> None:
    def answer(message: DeliveryMessage, *_: object) -> DeliveryOutcome:
        if message.key.task == "b":
            raise ConnectionError
        return DeliveryOutcome.CAUGHT_UP

    failures = make_queue_handler(DeliveryMessage, answer, 3)(batch("a", "b", "c"), Context())
    assert failures == {"batchItemFailures": [{"itemIdentifier": "b"}]}
