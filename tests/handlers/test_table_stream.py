"""Batches of the table's stream."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.aws.batches import make_stream_handler
from a2a_serverless.domain.model import TaskKey
from tests.handlers.test_queues import Clock

if TYPE_CHECKING:
    from collections.abc import Iterable

KEYS = [TaskKey("tenant", "owner", f"task-{number}") for number in (1, 2)]


def record(pk: object, number: int = 1) -> dict[str, Any]:
    """A record as DynamoDB's stream has it."""
    return {
        "eventID": f"event-{number}",
        "eventName": "INSERT",
        "eventSource": "aws:dynamodb",
        "dynamodb": {
            "Keys": {"pk": {"S": pk}, "sk": {"S": "EVENT#0000000001"}},
            "NewImage": {"pk": {"S": pk}, "body": {"S": "the client's secret"}},
            "SequenceNumber": f"{number}00",
            "StreamViewType": "NEW_IMAGE",
        },
    }


GOOD = [record("TASK#tenant/owner/task-1", 1), record("TASK#tenant/owner/task-2", 2)]


class Relay:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[list[TaskKey]] = []

    def __call__(self, tasks: Iterable[TaskKey]) -> int:
        self.asked.append(list(tasks))
        if self.error:
            raise self.error
        return 3


def handled(relay: Relay, *records: Any) -> dict[str, Any]:
    return make_stream_handler(relay)({"Records": list(records)}, Clock())


def test_the_tasks_of_a_batch_are_enqueued_together() -> None:
    relay = Relay()
    assert handled(relay, *GOOD) == {"batchItemFailures": []}
    assert relay.asked == [KEYS]


def test_a_batch_that_could_not_be_relayed_comes_again_from_its_first_record() -> None:
    assert handled(Relay(OSError("queue is down")), *GOOD) == {"batchItemFailures": [{"itemIdentifier": "100"}]}


def test_a_batch_of_one_record_that_could_not_be_relayed_comes_again_and_the_function_has_not_failed() -> None:
    assert handled(Relay(OSError("queue is down")), GOOD[0]) == {"batchItemFailures": [{"itemIdentifier": "100"}]}


STRAYS: dict[str, Any] = {
    "another partition": record("SENT#tenant/owner"),
    "a partition that is no text": record(7),
    "no partition": {"eventID": "e", "dynamodb": {"SequenceNumber": "1", "Keys": {}}},
    "no keys": {"eventID": "e", "dynamodb": {"SequenceNumber": "1"}},
    "no dynamodb": {"eventID": "e"},
    "empty": {},
    "no object": "record",
    "null": None,
}


@pytest.mark.parametrize("stray", STRAYS.values(), ids=STRAYS)
def test_a_stray_record_is_passed_over_and_its_neighbours_are_enqueued(
    stray: object, caplog: pytest.LogCaptureFixture
) -> None:
    relay = Relay()
    assert handled(relay, stray, *GOOD) == {"batchItemFailures": []}
    assert relay.asked == [KEYS]
    (line,) = caplog.records
    named = stray.get("eventID") if isinstance(stray, dict) else None
    assert (line.getMessage(), line.__dict__["record"]) == ("not an event of a task, skipped", named)


@pytest.mark.parametrize("stray", STRAYS.values(), ids=STRAYS)
def test_a_batch_that_begins_with_a_stray_record_can_still_come_again(stray: object) -> None:
    answer = handled(Relay(OSError("queue is down")), stray, *GOOD)
    (failure,) = answer["batchItemFailures"]
    assert failure["itemIdentifier"] in {"1", "100"}, "from the first record that has a position"


def test_an_empty_batch_enqueues_nothing() -> None:
    relay = Relay()
    assert handled(relay) == {"batchItemFailures": []}
    assert make_stream_handler(relay)({}, Clock()) == {"batchItemFailures": []}
    assert relay.asked == [[], []]


def test_rule_10_the_log_counts_and_shows_no_content(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    handled(Relay(), *GOOD, STRAYS["another partition"])
    handled(Relay(OSError("down: the client's secret")), *GOOD)
    lines = [line for line in caplog.records if line.name.startswith("a2a_serverless.")]
    assert [line.getMessage() for line in lines] == [
        "not an event of a task, skipped",
        "batch relayed",
        "batch not relayed",
    ]
    assert (lines[1].__dict__["records"], lines[1].__dict__["enqueued"]) == (3, 3)
    assert (lines[2].__dict__["records"], lines[2].__dict__["error"]) == (2, "OSError")
    assert "the client's secret" not in caplog.text + str([line.__dict__ for line in caplog.records])
