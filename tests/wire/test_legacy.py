import json
from pathlib import Path
from typing import Any

import pytest

from a2a_serverless.domain.errors import InvalidParams, MethodNotFound
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import Artifact, Message, Part, Role, SendRequest, Task, TaskState, TaskStatus
from a2a_serverless.domain.queries import GetTask
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.wire import jsonrpc, legacy, v0_3
from a2a_serverless.wire.jsonrpc import RpcRequest

EXAMPLES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "examples" / "older-requests.json").read_text()
)
OUTLINE = Artifact("a1", (Part("data", {"title": "T"}),), name="outline")
HELLO = Message("m", Role.AGENT, (Part("text", "hello"),), context_id="c")


def test_every_printed_json_rpc_example_is_read() -> None:
    bodies = EXAMPLES["life-of-a-task, JSON-RPC at POST /{agent}, no A2A-Version header"]
    messages = []
    for body in bodies:
        call = jsonrpc.parse(json.dumps(body).encode())
        assert isinstance(call, RpcRequest)
        operation, version = jsonrpc.method(call.method)
        assert version == "0.3"
        request = v0_3.parse(operation, call.params)
        assert isinstance(request, SendRequest)
        messages.append(request.message)
    boat = (Part("text", "Generate an image of a sailboat on the ocean."),)
    assert messages[:2] == [Message("msg-user-001", Role.USER, boat)] * 2
    assert messages[2].reference_task_ids == ("<task id of the first answer>",)


def test_every_printed_file_part_is_read() -> None:
    sent = json.loads(
        json.dumps(EXAMPLES["file parts that were printed for it (accept on input)"]).replace("<base64>", "YQ==")
    )
    request = legacy.parse_send({"message": {"role": "user", "messageId": "m", "parts": sent}})
    assert request.message.parts == (Part("raw", "YQ==", "image/png", "sailboat_image.png"),) * 2


def test_the_body_of_send_is_read() -> None:
    body = EXAMPLES["older HTTP shapes, under /legacy/{agent}"]["POST /tasks/send"]
    body = json.loads(json.dumps(body).replace("<base64>", "YQ=="))
    assert legacy.parse_send(body) == SendRequest(
        Message(
            "m1",
            Role.USER,
            (Part("text", "..."), Part("data", {"title": "..."}), Part("raw", "YQ==", filename="...")),
            context_id="c1",
        )
    )


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(InvalidParams) as caught:
        legacy.parse_send({"message": {"role": "user", "parts": [{"type": "text"}]}})
    assert {one.field for one in caught.value.violations} == {"message.messageId", "message.parts[0].text"}


def test_a_task_is_answered_with_its_artifacts_whole() -> None:
    task = Task("t", "c", TaskStatus(TaskState.COMPLETED, 0), 4, artifacts=(OUTLINE, OUTLINE))
    artifact = {
        "artifactId": "a1",
        "name": "outline",
        "parts": [{"type": "data", "data": {"title": "T"}}],
        "append": False,
        "lastChunk": True,
    }
    assert legacy.answer(task, 0) == {
        "id": "t",
        "contextId": "c",
        "status": {"state": "completed", "timestamp": "1970-01-01T00:00:00.000Z"},
        "artifacts": [artifact | {"index": 0}, artifact | {"index": 1}],
        "history": [],
    }


@pytest.mark.parametrize("state", TaskState)
def test_only_the_six_old_states_are_printed(state: TaskState) -> None:
    printed = legacy.answer(Task("t", "c", TaskStatus(state, 0), 1), 0)
    assert isinstance(printed["status"], dict)
    old = {"submitted", "working", "input-required", "completed", "failed", "canceled"}
    assert printed["status"]["state"] in old
    assert state.value not in old or printed["status"]["state"] == state.value


def test_a_direct_message_is_a_task_that_has_completed_with_it() -> None:
    printed = legacy.answer(HELLO, 1000)
    assert (printed["id"], printed["contextId"]) == ("m", "c")
    assert printed["status"] == {
        "state": "completed",
        "timestamp": "1970-01-01T00:00:01.000Z",
        "message": {"messageId": "m", "role": "agent", "parts": [{"type": "text", "text": "hello"}], "contextId": "c"},
    }


def test_a_stream_has_tasks_and_chunks() -> None:
    task = Task("t", "c", TaskStatus(TaskState.WORKING, 0), 2)
    assert legacy.stream_item(task, "t", "c", 0) == {"task": legacy.answer(task, 0)}
    assert legacy.stream_item(ArtifactEvent(3, 0, "by", OUTLINE, append=True), "t", "c", 0) == {
        "taskId": "t",
        "contextId": "c",
        "artifact": {
            "artifactId": "a1",
            "name": "outline",
            "parts": [{"type": "data", "data": {"title": "T"}}],
            "index": 0,
            "append": True,
            "lastChunk": False,
        },
    }


def test_a_stream_tells_the_whole_task_after_each_status_and_the_chunks_between() -> None:
    codec = legacy.LegacyCodec(0)
    began = Task("t", "c", TaskStatus(TaskState.WORKING, 0), 2)
    ended = StatusEvent(4, 1, "x", TaskState.COMPLETED, HELLO)
    chunk = ArtifactEvent(3, 0, "x", OUTLINE)
    assert codec.stream_item(began, "t", "c") == {"task": legacy.answer(began, 0)}
    assert "artifact" in codec.stream_item(chunk, "t", "c")
    told = codec.stream_item(ended, "t", "c")
    done = Task("t", "c", TaskStatus(TaskState.COMPLETED, 1, HELLO), 4, (OUTLINE,))
    assert told == {"task": legacy.answer(done, 0)}


def test_what_the_older_shapes_do_not_know_is_refused() -> None:
    codec = legacy.LegacyCodec(0)
    assert codec.parse(Operation.GET, {"id": "t"}) == GetTask("t")
    with pytest.raises(MethodNotFound):
        codec.parse(Operation.LIST, {})
    with pytest.raises(TypeError):
        codec.answer(Operation.PUSH_DELETE, None)
    with pytest.raises(TypeError):
        codec.stream_item(ArtifactEvent(3, 0, "x", OUTLINE), "t", "c")
