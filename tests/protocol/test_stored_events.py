"""What is stored of tasks: form 1 of every release is read, form 2 is written and read."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from a2a_serverless.adapters.dynamodb import log_format, stored_events
from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.events import ArtifactEvent, Event, Incoming, StatusEvent
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.digest_forms import digest_form
from tests.protocol.codec_pairs import converted, converted_event
from tests.wire import strategies
from tests.wire.strategies import SOME

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Message, Task

RELEASES = Path(__file__).parents[1] / "releases"
# Their annotations name today's objects until the switch.
status_event: Any = StatusEvent
artifact_event: Any = ArtifactEvent
incoming: Any = Incoming
SAID = v1.Message(role=v1.Role.AGENT, message_id="a", parts=(v1.Part(text="hello"),))


def _texts(value: Any) -> list[str]:
    """The events that a release has left, wherever they lie."""
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    return [value] if isinstance(value, str) and value.startswith(('{"k":"s"', '{"k":"a"')) else []


@pytest.mark.parametrize("release", ["1", "2"])
def test_events_of_a_release_are_read(release: str) -> None:
    texts = [
        text
        for what in ("items", "blobs")
        for text in _texts(json.loads((RELEASES / release / f"{what}.json").read_text()))
    ]
    assert texts
    for text in texts:
        old, new = log_format.load_event(text, 3, "by"), stored_events.load_event(text, 3, "by")
        assert new == converted_event(old)
        assert {one.name: getattr(new, one.name) for one in fields(new) if one.name in _SAME} == {
            one.name: getattr(old, one.name) for one in fields(old) if one.name in _SAME
        }


_SAME = {"n", "at", "by", "fence", "append", "last_chunk", "emits", "step"}


@given(strategies.EVENTS)
@SOME
def test_an_event_is_read_back_unchanged(event: Event) -> None:
    new = converted_event(event)
    assert stored_events.load_event(stored_events.dump_event(new), new.n, new.append_id) == new


@pytest.mark.parametrize(
    "event",
    [
        status_event(2, 5, "by", v1.TaskState.SUBMITTED, SAID, incoming(SAID, ("a/b",), {"x": None}), 3),
        status_event(1, 0, "by", v1.TaskState.WORKING),
        artifact_event(
            4,
            5,
            "by",
            v1.Artifact(artifact_id="a", parts=()),
            append=True,
            last_chunk=True,
            emits=(2, 7),
            step="a step",
        ),
        artifact_event(4, 5, "by", v1.Artifact(artifact_id="a", parts=(v1.Part(data=None), v1.Part(text="\ud800")))),
    ],
)
def test_all_that_an_event_says_is_stored(event: Any) -> None:
    assert stored_events.load_event(stored_events.dump_event(event), event.n, "by") == event


def test_form_2_is_the_json_of_1_0() -> None:
    event = status_event(1, 5, "by", v1.TaskState.INPUT_REQUIRED, SAID)
    said = {"role": "ROLE_AGENT", "messageId": "a", "parts": [{"text": "hello"}]}
    assert json.loads(stored_events.dump_event(event)) == {
        "state": "TASK_STATE_INPUT_REQUIRED",
        "at": 5,
        "message": said,
    }


@given(strategies.TASKS)
@SOME
def test_a_snapshot_of_either_form_is_the_task(task: Task) -> None:
    task = replace(task, n=7)
    new = stored_events.load_snapshot(log_format.dump_snapshot(task))
    assert new == stored_events.load_snapshot(stored_events.dump_snapshot(new))
    assert (new.id, new.n, new.status.timestamp) == (task.task_id, 7, task.status.timestamp)


def test_a_snapshot_of_a_later_form_is_refused() -> None:
    with pytest.raises(ValueError, match="another version"):
        stored_events.load_snapshot('{"v":3}')


@pytest.mark.parametrize("data", [float("nan"), {"a": [float("-inf")]}])
def test_what_is_no_number_in_json_is_not_stored(data: Any) -> None:
    artifact = v1.Artifact(artifact_id="a", parts=(v1.Part(data=data),))
    with pytest.raises(ValueError, match="is not a JSON number"):
        stored_events.dump_event(artifact_event(1, 0, "by", artifact))


def test_what_is_ours_is_read_whatever_bounds_hold_for_others() -> None:
    long = v1.Message(role=v1.Role.AGENT, message_id="", parts=(v1.Part(text="a", filename="f" * 5000),) * 5000)
    event = status_event(1, 5, "by", v1.TaskState.WORKING, long)
    assert stored_events.load_event(stored_events.dump_event(event), 1, "by") == event


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=digest_form)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@given(strategies.MESSAGES)
@SOME
def test_the_digest_of_a_message_stays_what_receipts_say(message: Message) -> None:
    assert _digest(converted(message)) == digest(message)


@given(strategies.TASKS)
@SOME
def test_the_digest_of_a_steps_arguments_stays_what_is_stored(task: Task) -> None:
    new = converted(task)
    assert _digest([new, new.artifacts, {"status": new.status}]) == digest(
        [task, task.artifacts, {"status": task.status}]
    )


def test_nothing_else_has_a_digest() -> None:
    with pytest.raises(TypeError, match="neither a JSON value"):
        digest_form(object())
