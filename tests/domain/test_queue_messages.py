"""Queue messages carry ids only; anything else is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_serverless.domain.model import Json, TaskKey
from a2a_serverless.domain.queue_messages import (
    LONGEST,
    DeliveryMessage,
    InvalidMessage,
    QueueMessage,
    TickMessage,
    WorkMessage,
    from_json,
    to_json,
)
from tests.protocol.strategies import JSON, NAMES

KEYS = st.builds(TaskKey, NAMES, NAMES, NAMES)
MESSAGES = (
    st.builds(WorkMessage, KEYS)
    | st.builds(DeliveryMessage, KEYS, NAMES)
    | st.builds(TickMessage, KEYS, st.integers(0, 4_000_000_000).map(lambda seconds: seconds * 1000))
)
WORK: dict[str, Json] = {"v": 1, "kind": "work", "tenant": "t", "owner": "o", "task": "x"}


@settings(deadline=None)
@given(MESSAGES)
def test_a_queue_message_is_read_as_it_was_written(message: QueueMessage) -> None:
    assert from_json(json.loads(json.dumps(to_json(message)))) == message


def test_rule_05_a_queue_message_carries_ids_and_nothing_else() -> None:
    key = TaskKey("t", "o", "x")
    assert to_json(WorkMessage(key)) == WORK
    assert to_json(DeliveryMessage(key, "c")) == WORK | {"kind": "deliver", "config": "c"}
    assert to_json(TickMessage(key, 1_790_000_000_000)) == WORK | {"kind": "tick", "at": "2026-09-21T14:13:20Z"}


@settings(deadline=None)
@given(JSON)
def test_json_that_is_no_queue_message_is_refused(value: Json) -> None:
    with pytest.raises(InvalidMessage):
        from_json(value)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"v": 0}, "not a queue message"),
        ({"v": "1"}, "not a queue message"),
        ({"kind": "play"}, "an unknown kind of queue message"),
        ({"kind": None}, "an unknown kind of queue message"),
        ({"task": ""}, "task is missing or wrong"),
        ({"task": 7}, "task is missing or wrong"),
        ({"owner": None}, "owner is missing or wrong"),
        ({"tenant": ["t"]}, "tenant is missing or wrong"),
        ({"task": "x" * (LONGEST + 1)}, "task is missing or wrong"),
        ({"kind": "deliver"}, "config is missing or wrong"),
        ({"kind": "deliver", "config": {}}, "config is missing or wrong"),
        ({"kind": "tick"}, "at is missing or wrong"),
        ({"kind": "tick", "at": "<aws.scheduler.scheduled-time>"}, "at is no time"),
        ({"kind": "tick", "at": "2026-09-21T14:13:20+02:00"}, "at is no time"),
        ({"kind": "tick", "at": "0001-01-01T00:00:00Z" * 9}, "at is no time"),
    ],
)
def test_an_invalid_queue_message_is_refused_by_name(change: dict[str, Json], text: str) -> None:
    with pytest.raises(InvalidMessage, match=text):
        from_json(WORK | change)


def test_a_refusal_does_not_repeat_what_it_was_given() -> None:
    with pytest.raises(InvalidMessage) as refusal:
        from_json(WORK | {"kind": "secret-kind", "task": "secret-task"})
    assert "secret" not in str(refusal.value)
