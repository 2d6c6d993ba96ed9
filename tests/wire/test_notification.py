import json

import pytest
from hypothesis import given

from a2a_serverless.domain.events import Event, StatusEvent
from a2a_serverless.domain.model import Task, TaskState
from a2a_serverless.wire import v0_3, v1
from a2a_serverless.wire.notification import NotificationBody, notification
from tests.wire import strategies
from tests.wire.schema import assert_v0_3, assert_v1
from tests.wire.strategies import SOME


@given(strategies.TASKS | strategies.EVENTS)
@SOME
def test_a_1_0_webhook_gets_a_stream_response(item: Task | Event) -> None:
    body = notification("1.0", item, "t", "c")
    assert (body.content_type, body.version) == ("application/a2a+json", "1.0")
    assert_v1("StreamResponse", json.loads(body.content))
    assert json.loads(body.content) == v1.stream_item(item, "t", "c")


@given(strategies.TASKS)
@SOME
def test_a_0_3_webhook_gets_the_full_task(task: Task) -> None:
    body = notification("0.3", task, "t", "c")
    assert (body.content_type, body.version) == ("application/json", "0.3")
    assert_v0_3("Task", json.loads(body.content))
    assert json.loads(body.content) == v0_3.stream_item(task, "t", "c")


def test_a_0_3_webhook_never_gets_an_event() -> None:
    with pytest.raises(TypeError, match="full task"):
        notification("0.3", StatusEvent(1, 0, "by", TaskState.WORKING), "t", "c")


def test_the_bytes_are_compact_and_always_the_same() -> None:
    event = StatusEvent(1, 0, "by", TaskState.WORKING)
    content = (
        b'{"statusUpdate":{"taskId":"t","contextId":"c",'
        b'"status":{"state":"TASK_STATE_WORKING","timestamp":"1970-01-01T00:00:00.000Z"}}}'
    )
    assert notification("1.0", event, "t", "c") == NotificationBody("application/a2a+json", "1.0", content)
