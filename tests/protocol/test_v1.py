"""The objects of 1.0: printed to the published schema, and read as clients of any library write them."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.events import update_of
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.codecs import codec
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.peers import read_item, read_task
from tests.protocol import strategies
from tests.protocol.schema import assert_v0_3, assert_v1
from tests.protocol.strategies import SOME

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event

MESSAGE: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
V1 = codec("jsonrpc", "1.0", 0)
OLD = codec("jsonrpc", "0.3", 0)


@pytest.mark.requirement(84, 87)
@given(strategies.TASKS)
@SOME
def test_a_task_is_printed_to_the_schema_and_read_back_unchanged(task: v1.Task) -> None:
    printed = json.loads(V1.answer(Operation.GET, task))
    assert_v1("Task", printed)
    assert read_task("1.0", printed) == task
    assert_v0_3("Task", json.loads(OLD.answer(Operation.GET, task)))


@pytest.mark.requirement(84, 87)
@given(strategies.EVENTS)
@SOME
def test_an_event_is_a_stream_response_and_read_back_unchanged(event: Event) -> None:
    update = update_of(event, "t", "c")
    printed = json.loads(V1.stream_item(update))
    assert_v1("StreamResponse", printed)
    assert read_item("1.0", printed) == update


@given(strategies.MESSAGES)
@SOME
def test_a_direct_message_is_the_message_of_a_send(message: v1.Message) -> None:
    printed = json.loads(V1.answer(Operation.SEND, message))
    assert_v1("SendMessageResponse", printed)
    assert read_item("1.0", printed) == message


@pytest.mark.requirement(85)
def test_every_state_has_its_name() -> None:
    names = {state: f"TASK_STATE_{state.upper().replace('-', '_')}" for state in v1.TaskState}
    printed = {state: json.loads(v1.TaskStatus(state=state).json_bytes())["state"] for state in v1.TaskState}
    assert printed == names
    assert {v1.TaskStatus.model_validate({"state": name}).state for name in names.values()} == set(v1.TaskState)


@pytest.mark.requirement(85)
@pytest.mark.parametrize("state", [*range(1, 9), "TASK_STATE_WORKING"])
def test_a_state_is_read_by_number_or_name(state: int | str) -> None:
    expected = v1.TaskState.WORKING if isinstance(state, str) else list(v1.TaskState)[state - 1]
    assert V1.read(Operation.LIST, {"status": state}).status is expected


@pytest.mark.requirement(29, 36)
@pytest.mark.parametrize("state", ["working", "TASK_STATE_LOST", 9, -1, True, 1.5, [], {}])
def test_an_unknown_state_is_answered_with_the_valid_ones(state: Any) -> None:
    with pytest.raises(InvalidParams) as refused:
        V1.read(Operation.LIST, {"status": state})
    ((field, description),) = [(one.field, one.description) for one in refused.value.violations]
    assert (field, description.startswith("must be one of TASK_STATE_SUBMITTED, ")) == ("status", True)


@pytest.mark.requirement(88)
def test_members_that_nobody_knows_are_ignored_at_every_level() -> None:
    known = {"message": MESSAGE, "configuration": {"historyLength": 1}}
    news = {"x": {"y": 1}}
    message = MESSAGE | news | {"parts": [{"text": "hi"} | news]}
    read = V1.read(Operation.SEND, {"message": message, "configuration": {"historyLength": 1} | news} | news)
    assert read == V1.read(Operation.SEND, known)


@pytest.mark.requirement(35, 36, 87)
def test_a_refusal_names_all_wrong_fields_of_a_request() -> None:
    with pytest.raises(InvalidParams) as refused:
        V1.read(Operation.SEND, {"message": {"parts": [{}, {"raw": "*"}]}, "configuration": {"historyLength": -1}})
    assert {one.field for one in refused.value.violations} == {
        "message.messageId",
        "message.role",
        "message.parts[0]",
        "message.parts[1].raw",
        "configuration.historyLength",
    }


@pytest.mark.requirement(10)
def test_a_page_has_its_four_members_even_when_it_is_empty() -> None:
    page = v1.ListTasksResponse(tasks=(), next_page_token="", page_size=50, total_size=0)
    assert json.loads(page.json_bytes()) == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


HISTORY = tuple(v1.Message(message_id=name, role=v1.Role.USER, parts=(v1.Part(text="x"),)) for name in "abc")
TASK = v1.Task(
    id="t",
    context_id="c",
    status=v1.TaskStatus(state=v1.TaskState.WORKING, timestamp=5),
    artifacts=(v1.Artifact(artifact_id="a", parts=(v1.Part(text="x"),)),),
    history=HISTORY,
).as_of(3)


@pytest.mark.requirement(23)
@pytest.mark.parametrize(
    ("history_length", "left"),
    [(None, HISTORY), (0, ()), (1, HISTORY[2:]), (2, HISTORY[1:]), (3, HISTORY), (9, HISTORY)],
)
def test_history_is_cut_to_the_most_recent_messages(history_length: int | None, left: tuple[v1.Message, ...]) -> None:
    limited = TASK.limited(history_length)
    assert (limited.history, limited.artifacts, limited.n) == (left, TASK.artifacts, 3)


@pytest.mark.requirement(9)
def test_artifacts_are_left_out_unless_they_are_requested() -> None:
    assert TASK.limited(None, artifacts=False).artifacts == ()


def test_a_part_with_other_content_keeps_its_media_type_name_and_metadata() -> None:
    part = v1.Part(text="a", media_type="text/plain", filename="f", metadata={"k": 1})
    other = part.with_content(url="https://example.com")
    assert (other.kind, other.media_type, other.filename, other.metadata) == ("url", "text/plain", "f", {"k": 1})


RAW = {
    "data:image/png;base64,Ym9hdA==": ("image/png", "Ym9hdA=="),
    "DATA:image/png;BASE64,Ym9hdA": ("image/png", "Ym9hdA=="),
    "data:image/png;base64,%59m9h%0AdA%3D%3D": ("image/png", "Ym9hdA=="),
    "data:image/png;base64,-_-_": ("image/png", "+/+/"),
    "data:,a%20boat": ("text/plain", "YSBib2F0"),
    "data:;charset=utf-8,boat": ("text/plain;charset=utf-8", "Ym9hdA=="),
    "data:text/plain;charset=gbk;base64,tKw=": ("text/plain;charset=gbk", "tKw="),
    "data:,船": ("text/plain", "6Ii5"),
    "data:,": ("text/plain", ""),
}
SEND_PARTS: dict[str, Any] = {
    "1.0": (V1, "message.parts[0].url", lambda url: {"url": url}),
    "0.3": (OLD, "message.parts[0].file.uri", lambda url: {"kind": "file", "file": {"uri": url}}),
    "0.3 REST": (
        codec("rest", "0.3", 0),
        "message.parts[0].file.fileWithUri",
        lambda url: {"file": {"fileWithUri": url}},
    ),
}


@pytest.mark.parametrize("binding", SEND_PARTS)
@pytest.mark.parametrize(("uri", "content"), RAW.items())
def test_a_data_uri_is_the_file_itself(uri: str, content: tuple[str, str], binding: str) -> None:
    codec_, _, part = SEND_PARTS[binding]
    (read,) = codec_.read(Operation.SEND, {"message": MESSAGE | {"parts": [part(uri)]}}).message.parts
    assert (read.kind, read.media_type, read.raw) == ("raw", *content)
    artifacts = [{"artifactId": "a", "parts": [{"url": uri}]}]
    (answered,) = read_task("1.0", TASK_OF_A_PEER | {"artifacts": artifacts}).artifacts
    assert answered.parts == (read,)


TASK_OF_A_PEER = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}


def test_a_data_uri_is_as_long_as_a_body_may_be_and_the_part_names_its_type() -> None:
    uri = "data:application/octet-stream;base64," + "AAAA" * 100_000
    request = V1.read(Operation.SEND, {"message": MESSAGE | {"parts": [{"url": uri, "mediaType": "image/png"}]}})
    assert (request.message.parts[0].media_type, len(request.message.parts[0].raw)) == ("image/png", 400_000)
    with pytest.raises(InvalidParams, match="at most 2048"):
        V1.read(Operation.SEND, {"message": MESSAGE | {"parts": [{"url": "https://a.example/" + "a" * 2048}]}})


@pytest.mark.parametrize("binding", SEND_PARTS)
@pytest.mark.parametrize(
    "uri", ["data:", "data:image/png;base64", "data:image/png;base64,*", "data:;base64,a", f"data:{'x' * 300},a"]
)
def test_a_data_uri_that_cannot_be_read_is_refused_at_the_send(uri: str, binding: str) -> None:
    codec_, field, part = SEND_PARTS[binding]
    with pytest.raises(InvalidParams) as refused:
        codec_.read(Operation.SEND, {"message": MESSAGE | {"parts": [part(uri)]}})
    ((name, description),) = [(one.field, one.description) for one in refused.value.violations]
    assert (name, description[:31]) == (field, "must be a data: URI of RFC 2397")


@pytest.mark.parametrize(
    ("content", "media_type", "text"),
    [
        (b"t\xe9", "text/plain; charset=iso-8859-1", "té"),
        (b"t\xe9", 'text/html;level=1; Charset="ISO-8859-1"', "té"),
        ("船".encode("gbk"), "text/plain;charset=GBK", "船"),
        ("船".encode("utf-16"), "text/csv;charset=utf-16", "船"),
        ("té".encode(), "Text/Plain", "té"),
        (b"\xef\xbb\xbft\xc3\xa9", "text/plain", "té"),
        (b"\xef\xbb\xbft\xc3\xa9", "text/plain;charset=utf-8", "té"),
        (b"t\xe9", "text/plain;charset=utf-8", "t\ufffd"),
        ("té".encode(), "text/plain;charset=klingon", "té"),
        ("té".encode(), "text/plain;charset=hex", "té"),
        (b"xn--t", "text/plain;charset=punycode", "xn--t"),
        (b"\\x41", "text/plain;charset=unicode_escape", "\\x41"),
        (b"boat", "image/png;charset=utf-8", ""),
        (b"boat", None, ""),
    ],
)
def test_a_text_file_is_read_by_its_charset(content: bytes, media_type: str | None, text: str) -> None:
    assert v1.Part(raw=b64encode(content).decode(), media_type=media_type).readable == text


ANSWER = v1.Message(message_id="m", role=v1.Role.AGENT, parts=(v1.Part(text="In short."),))


@pytest.mark.parametrize(
    ("state", "artifacts", "shown"),
    [
        (v1.TaskState.COMPLETED, (), ["In short."]),
        (v1.TaskState.COMPLETED, (v1.Artifact(artifact_id="a", parts=(v1.Part(text="x"),)),), ["x"]),
        (v1.TaskState.FAILED, (), []),
        (v1.TaskState.INPUT_REQUIRED, (), []),
    ],
)
def test_before_0_3_the_last_message_of_a_task_without_artifacts_is_its_artifact(
    state: v1.TaskState, artifacts: tuple[v1.Artifact, ...], shown: list[str]
) -> None:
    status = v1.TaskStatus(state=state, timestamp=5, message=ANSWER)
    task = v1.Task(id="t", context_id="c", status=status, artifacts=artifacts)
    old = codec("legacy", "0.3", 5)
    for printed in (old.answer(Operation.GET, task), json.dumps(json.loads(old.stream_item(task))["task"]).encode()):
        assert [part["text"] for one in json.loads(printed)["artifacts"] for part in one["parts"]] == shown


def test_before_0_3_a_direct_message_is_a_completed_task_with_an_artifact() -> None:
    task = json.loads(codec("legacy", "0.3", 5).answer(Operation.SEND, ANSWER))
    assert (task["status"]["state"], task["status"]["message"]["parts"]) == ("completed", task["artifacts"][0]["parts"])
