"""What is stored of tasks is read as it was written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from a2a_serverless.domain.events import ArtifactEvent, Event, Incoming, StatusEvent
from a2a_serverless.protocol import v1
from a2a_serverless.store.stored_forms import dump_event, dump_snapshot, load_event, load_snapshot
from tests.protocol import strategies
from tests.protocol.strategies import SOME

SAID = v1.Message(role=v1.Role.AGENT, message_id="a", parts=(v1.Part(text="hello"),))


@given(strategies.EVENTS)
@SOME
def test_an_event_is_read_back_unchanged(event: Event) -> None:
    assert load_event(dump_event(event), event.n, event.append_id) == event


@pytest.mark.parametrize(
    "event",
    [
        StatusEvent(2, 5, "by", v1.TaskState.SUBMITTED, SAID, Incoming(SAID, ("a/b",), {"x": None}), 3),
        StatusEvent(1, 0, "by", v1.TaskState.WORKING),
        ArtifactEvent(
            4,
            5,
            "by",
            v1.Artifact(artifact_id="a", parts=()),
            append=True,
            last_chunk=True,
            emits=(2, 7),
            step="a step",
        ),
        ArtifactEvent(4, 5, "by", v1.Artifact(artifact_id="a", parts=(v1.Part(data=None), v1.Part(text="\ud800")))),
    ],
)
def test_an_event_is_stored_and_loaded_with_all_its_fields(event: Any) -> None:
    assert load_event(dump_event(event), event.n, "by") == event


def test_form_2_is_the_json_of_1_0() -> None:
    event = StatusEvent(1, 5, "by", v1.TaskState.INPUT_REQUIRED, SAID)
    said = {"role": "ROLE_AGENT", "messageId": "a", "parts": [{"text": "hello"}]}
    assert json.loads(dump_event(event)) == {
        "state": "TASK_STATE_INPUT_REQUIRED",
        "at": 5,
        "message": said,
    }


@given(strategies.TASKS)
@SOME
def test_a_snapshot_is_the_task(task: v1.Task) -> None:
    read = load_snapshot(dump_snapshot(task.as_of(7), {})).task
    assert (read, read.n) == (task, 7)


def test_a_snapshot_of_a_later_form_is_refused() -> None:
    with pytest.raises(ValueError, match="another version"):
        load_snapshot('{"v":4}')


@pytest.mark.parametrize("data", [float("nan"), {"a": [float("-inf")]}])
def test_a_number_that_json_does_not_have_is_not_stored(data: Any) -> None:
    artifact = v1.Artifact(artifact_id="a", parts=(v1.Part(data=data),))
    with pytest.raises(ValueError, match="is not a JSON number"):
        dump_event(ArtifactEvent(1, 0, "by", artifact))


def test_a_stored_event_is_read_without_the_bounds_of_requests() -> None:
    long = v1.Message(role=v1.Role.AGENT, message_id="", parts=(v1.Part(text="a", filename="f" * 5000),) * 5000)
    event = StatusEvent(1, 5, "by", v1.TaskState.WORKING, long)
    assert load_event(dump_event(event), 1, "by") == event
