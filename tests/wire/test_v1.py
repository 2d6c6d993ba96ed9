from typing import Any

import pytest
from hypothesis import given

from a2a_serverless.domain.errors import InvalidAgentResponse, InvalidParams
from a2a_serverless.domain.events import ArtifactEvent, Event, Incoming, StatusEvent
from a2a_serverless.domain.model import (
    Artifact,
    Json,
    Message,
    Part,
    PushRequest,
    Role,
    SendRequest,
    Task,
    TaskState,
    TaskStatus,
)
from a2a_serverless.domain.push import PushConfig
from a2a_serverless.domain.queries import (
    CancelTask,
    CreatePush,
    DeletePush,
    GetCard,
    GetPush,
    GetTask,
    ListPushes,
    ListTasks,
    PushPage,
    Request,
    SubscribeToTask,
    TaskPage,
    TaskPush,
    Update,
)
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.wire import v1
from tests.wire import strategies
from tests.wire.schema import assert_v1
from tests.wire.strategies import SOME

MESSAGE: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
HELLO = Message("m", Role.USER, (Part("text", "hello"),))
TASK = Task("t", "c", TaskStatus(TaskState.WORKING, 1_760_000_000_123), 3)
SECRETIVE = PushConfig(
    "p", "https://example.com/hook", "1.0", "i", 0, scheme="Basic", token="sealed-token", credentials="sealed-password"
)


@pytest.mark.parametrize(
    ("operation", "params", "request_"),
    [
        (Operation.SEND, {"message": MESSAGE}, SendRequest(HELLO)),
        (Operation.STREAM, {"message": MESSAGE, "configuration": {}}, SendRequest(HELLO)),
        (
            Operation.SEND,
            {
                "tenant": "ignored here",
                "message": MESSAGE,
                "configuration": {
                    "acceptedOutputModes": ["text/plain"],
                    "returnImmediately": True,
                    "historyLength": 0,
                    "taskPushNotificationConfig": {
                        "id": "p",
                        "taskId": "",
                        "url": "https://example.com/hook",
                        "token": "t",
                        "authentication": {"scheme": "Basic", "credentials": "c"},
                    },
                },
                "metadata": {"a": 1},
            },
            SendRequest(
                HELLO,
                return_immediately=True,
                history_length=0,
                accepted_output_modes=("text/plain",),
                push=PushRequest("https://example.com/hook", "p", "t", "Basic", "c"),
                metadata={"a": 1},
            ),
        ),
        (
            Operation.SEND,
            {
                "message": {"message_id": "m", "role": 1, "parts": [{"text": "hello"}], "task_id": "t"},
                "configuration": {
                    "return_immediately": True,
                    "history_length": "2",
                    "task_push_notification_config": {"url": "u"},
                },
            },
            SendRequest(
                Message("m", Role.USER, (Part("text", "hello"),), task_id="t"),
                return_immediately=True,
                history_length=2,
                push=PushRequest("u"),
            ),
        ),
        (Operation.GET, {"id": "t"}, GetTask("t")),
        (Operation.GET, {"id": "t", "historyLength": 0}, GetTask("t", 0)),
        (Operation.LIST, {}, ListTasks()),
        (
            Operation.LIST,
            {
                "contextId": "c",
                "status": "TASK_STATE_INPUT_REQUIRED",
                "pageSize": 100,
                "pageToken": "next",
                "historyLength": 1,
                "statusTimestampAfter": "1970-01-01T00:00:01Z",
                "includeArtifacts": True,
            },
            ListTasks("c", TaskState.INPUT_REQUIRED, 100, "next", 1, 1000, include_artifacts=True),
        ),
        (
            Operation.LIST,
            {"contextId": "", "page_size": "7", "pageToken": "", "status": 5, "include_artifacts": "true"},
            ListTasks(state=TaskState.CANCELED, page_size=7, include_artifacts=True),
        ),
        (Operation.CANCEL, {"id": "t", "metadata": {"why": None}}, CancelTask("t", {"why": None})),
        (Operation.SUBSCRIBE, {"id": "t"}, SubscribeToTask("t")),
        (Operation.PUSH_CREATE, {"taskId": "t", "url": "u"}, CreatePush("t", PushRequest("u"))),
        (
            Operation.PUSH_CREATE,
            {"task_id": "t", "url": "u", "token": "", "authentication": {"scheme": "Bearer", "credentials": ""}},
            CreatePush("t", PushRequest("u", scheme="Bearer")),
        ),
        (Operation.PUSH_GET, {"taskId": "t", "id": "p"}, GetPush("t", "p")),
        (Operation.PUSH_LIST, {"taskId": "t"}, ListPushes("t")),
        (Operation.PUSH_LIST, {"taskId": "t", "pageSize": 5, "pageToken": "x"}, ListPushes("t", 5, "x")),
        (Operation.PUSH_DELETE, {"taskId": "t", "id": "p"}, DeletePush("t", "p")),
        (Operation.CARD, {}, GetCard()),
    ],
)
def test_each_operation_is_read(operation: Operation, params: Json, request_: Request) -> None:
    assert v1.parse(operation, params) == request_


def test_every_operation_has_a_reader() -> None:
    assert v1.REQUESTS.keys() == set(Operation)


def test_the_tenant_is_read_from_any_request() -> None:
    assert v1.tenant({"tenant": "acme", "message": MESSAGE}) == "acme"
    assert v1.tenant({}) is None


@pytest.mark.parametrize(
    ("sent", "part"),
    [
        ({"text": ""}, Part("text", "")),
        ({"raw": "", "mediaType": "a/b", "filename": "f"}, Part("raw", "", "a/b", "f")),
        ({"raw": "_-8"}, Part("raw", "/+8=")),
        ({"url": "https://example.com", "metadata": {}}, Part("url", "https://example.com", metadata={})),
        ({"data": None}, Part("data", None)),
        ({"data": [1, {"a": False}]}, Part("data", [1, {"a": False}])),
        ({"text": "a", "data": None, "raw": None, "url": None}, Part("text", "a")),
        ({"kind": "text", "text": "a"}, Part("text", "a")),
    ],
)
def test_what_a_part_is_tells_the_member_that_is_there(sent: Json, part: Part) -> None:
    request = v1.parse(Operation.SEND, {"message": MESSAGE | {"parts": [sent]}})
    assert isinstance(request, SendRequest)
    assert request.message.parts == (part,)


@pytest.mark.requirement(35, 36, 87)
@pytest.mark.parametrize(
    ("operation", "params", "fields"),
    [
        (Operation.SEND, {}, ["message"]),
        (Operation.SEND, {"message": "hi"}, ["message"]),
        (Operation.SEND, {"message": {}}, ["message.role", "message.messageId", "message.parts"]),
        (Operation.SEND, {"message": MESSAGE | {"role": "user"}}, ["message.role"]),
        (Operation.SEND, {"message": MESSAGE | {"role": 0}}, ["message.role"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": []}}, ["message.parts"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": {}}}, ["message.parts"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{}]}}, ["message.parts[0]"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"text": "a", "url": "b"}]}}, ["message.parts[0]"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"text": 5}]}}, ["message.parts[0].text"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"raw": "?"}]}}, ["message.parts[0].raw"]),
        (Operation.SEND, {"message": MESSAGE | {"content": MESSAGE["parts"], "parts": None}}, ["message.parts"]),
        (
            Operation.SEND,
            {
                "message": MESSAGE,
                "configuration": {
                    "historyLength": -1,
                    "returnImmediately": "soon",
                    "acceptedOutputModes": [5],
                    "taskPushNotificationConfig": {"authentication": {}},
                },
                "metadata": [],
            },
            [
                "metadata",
                "configuration.returnImmediately",
                "configuration.historyLength",
                "configuration.acceptedOutputModes[0]",
                "configuration.taskPushNotificationConfig.authentication.scheme",
                "configuration.taskPushNotificationConfig.url",
            ],
        ),
        (Operation.GET, {"historyLength": -1}, ["id", "historyLength"]),
        (Operation.LIST, {"pageSize": 0}, ["pageSize"]),
        (Operation.LIST, {"pageSize": 101}, ["pageSize"]),
        (Operation.LIST, {"status": "WORKING"}, ["status"]),
        (Operation.LIST, {"status": False}, ["status"]),
        (Operation.LIST, {"status": 9}, ["status"]),
        (Operation.LIST, {"statusTimestampAfter": "soon"}, ["statusTimestampAfter"]),
        (Operation.CANCEL, {}, ["id"]),
        (Operation.SUBSCRIBE, {"id": ""}, ["id"]),
        (Operation.PUSH_CREATE, {}, ["url", "taskId"]),
        (Operation.PUSH_CREATE, {"taskId": "t", "url": "u" * 2049}, ["url"]),
        (Operation.PUSH_GET, {}, ["taskId", "id"]),
        (Operation.PUSH_LIST, {"pageSize": -1}, ["taskId", "pageSize"]),
        (Operation.PUSH_DELETE, {"id": "p"}, ["taskId"]),
    ],
)
def test_everything_that_is_wrong_is_named(operation: Operation, params: Json, fields: list[str]) -> None:
    with pytest.raises(InvalidParams) as caught:
        v1.parse(operation, params)
    assert sorted(violation.field for violation in caught.value.violations) == sorted(fields)


@pytest.mark.requirement(88)
def test_members_that_nobody_knows_are_ignored_at_every_level() -> None:
    more: dict[str, Json] = {"generation": 7, "": None}
    message = MESSAGE | {"parts": [{"text": "hello", **more}]} | more
    configuration: Json = {"returnImmediately": True, "taskPushNotificationConfig": {"url": "u", **more}, **more}
    request = v1.parse(Operation.SEND, {"message": message, "configuration": configuration, **more})
    assert request == SendRequest(HELLO, return_immediately=True, push=PushRequest("u"))
    assert v1.parse(Operation.LIST, more) == ListTasks()


DEFAULTS: dict[str, Json] = {
    "tenant": "",
    "contextId": "",
    "status": "TASK_STATE_UNSPECIFIED",
    "pageSize": "",
    "pageToken": "",
    "historyLength": "",
    "statusTimestampAfter": "1970-01-01T00:00:00Z",
    "includeArtifacts": "",
}


@pytest.mark.parametrize("more", [{}, {"status": 0}, {"status": "", "statusTimestampAfter": ""}])
def test_a_list_whose_client_prints_every_default_of_the_proto_is_a_list_of_everything(more: dict[str, Json]) -> None:
    assert v1.parse(Operation.LIST, DEFAULTS | more) == ListTasks()


@pytest.mark.requirement(29, 36)
def test_an_unknown_state_is_answered_with_the_valid_ones() -> None:
    with pytest.raises(InvalidParams, match="must be one of TASK_STATE_SUBMITTED, TASK_STATE_WORKING"):
        v1.parse(Operation.LIST, {"status": "DONE"})


def test_the_number_of_parts_is_bounded() -> None:
    params: Json = {"message": MESSAGE | {"parts": [{"text": "a"}] * 3}}
    with pytest.raises(InvalidParams, match=r"message\.parts must be a list of at most 2"):
        v1.parse(Operation.SEND, params, Limits(parts=2))


@pytest.mark.parametrize("where", ["metadata", "message.metadata", "message.parts[0].metadata"])
def test_the_size_of_metadata_is_bounded_wherever_it_is(where: str) -> None:
    def params(size: int) -> Json:
        metadata: dict[str, Any] = {"metadata": {"é": "x" * (size - len('{"é":""}'.encode()))}}
        part, message, top = (
            metadata if where == f"{at}metadata" else {} for at in ("message.parts[0].", "message.", "")
        )
        return {"message": MESSAGE | {"parts": [{"text": "a"} | part]} | message} | top

    v1.parse(Operation.SEND, params(LIMITS.metadata))
    with pytest.raises(InvalidParams) as refused:
        v1.parse(Operation.SEND, params(LIMITS.metadata + 1))
    (wrong,) = refused.value.violations
    assert (wrong.field, wrong.description) == (where, "must have at most 65536 bytes")


@given(strategies.SENDS)
@SOME
def test_a_request_that_we_print_is_read_back_unchanged(request: SendRequest) -> None:
    printed = v1.print_send(request)
    assert_v1("SendMessageRequest", printed)
    assert v1.parse(Operation.SEND, printed) == request


@pytest.mark.requirement(84, 87)
@given(strategies.TASKS)
@SOME
def test_a_task_is_printed_to_the_schema_and_read_back_unchanged(task: Task) -> None:
    printed = v1.answer(Operation.GET, task)
    assert_v1("Task", printed)
    assert v1.parse_task(printed) == task


@given(strategies.MESSAGES)
@SOME
def test_a_direct_message_is_the_message_of_a_send(message: Message) -> None:
    printed = v1.answer(Operation.SEND, message)
    assert_v1("SendMessageResponse", printed)
    assert v1.parse_stream_item(printed) == message


@pytest.mark.requirement(84, 87)
@given(strategies.EVENTS)
@SOME
def test_an_event_is_a_stream_response_and_read_back_unchanged(event: Event) -> None:
    printed = v1.stream_item(event, "t", "c")
    assert_v1("StreamResponse", printed)
    assert v1.parse_stream_item(printed) == Update("t", "c", event)


@given(strategies.TASKS)
@SOME
def test_a_snapshot_is_a_stream_response(task: Task) -> None:
    printed = v1.stream_item(task, task.task_id, task.context_id)
    assert_v1("StreamResponse", printed)
    assert v1.parse_stream_item(printed) == task


def test_a_direct_message_streams_as_one_response() -> None:
    assert v1.stream_item(HELLO, "t", "c") == v1.answer(Operation.SEND, HELLO)


def test_a_task_without_anything_has_three_members() -> None:
    assert v1.answer(Operation.GET, TASK) == {
        "id": "t",
        "contextId": "c",
        "status": {"state": "TASK_STATE_WORKING", "timestamp": "2025-10-09T08:53:20.123Z"},
    }


def test_a_send_answers_with_a_wrapped_task() -> None:
    answer = v1.answer(Operation.SEND, TASK)
    assert answer == {"task": v1.answer(Operation.GET, TASK)}
    assert_v1("SendMessageResponse", answer)


@pytest.mark.requirement(85)
def test_every_state_has_its_name() -> None:
    for state in TaskState:
        printed = v1.stream_item(StatusEvent(1, 0, "by", state), "t", "c")
        assert printed["statusUpdate"] == {
            "taskId": "t",
            "contextId": "c",
            "status": {
                "state": "TASK_STATE_" + state.name,
                "timestamp": "1970-01-01T00:00:00.000Z",
            },
        }


def test_the_message_that_caused_a_status_stays_with_its_author() -> None:
    event = StatusEvent(1, 0, "by", TaskState.SUBMITTED, incoming=Incoming(HELLO))
    assert "hello" not in str(v1.stream_item(event, "t", "c"))


def test_a_chunk_says_how_it_goes_on_only_when_it_does() -> None:
    artifact = Artifact("a", (Part("data", None),))
    assert v1.stream_item(ArtifactEvent(1, 0, "by", artifact), "t", "c") == {
        "artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": [{"data": None}]}}
    }
    chunk = v1.stream_item(ArtifactEvent(1, 0, "by", artifact, append=True, last_chunk=True), "t", "c")
    assert chunk["artifactUpdate"] == {
        "taskId": "t",
        "contextId": "c",
        "artifact": {"artifactId": "a", "parts": [{"data": None}]},
        "append": True,
        "lastChunk": True,
    }


@pytest.mark.requirement(10)
def test_a_page_has_its_four_members_even_when_it_is_empty() -> None:
    printed = v1.answer(Operation.LIST, TaskPage((), 50, 0))
    assert printed == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
    assert_v1("ListTasksResponse", printed)


def test_artifacts_are_listed_even_when_there_are_none_if_they_were_asked_for() -> None:
    printed = v1.answer(Operation.LIST, TaskPage((TASK,), 1, 9, "next", artifacts=True))
    assert_v1("ListTasksResponse", printed)
    assert isinstance(printed, dict)
    assert printed["tasks"] == [v1.DIALECT.print_task(TASK) | {"artifacts": []}]


def test_a_webhook_is_printed_without_its_secrets() -> None:
    printed = v1.answer(Operation.PUSH_CREATE, TaskPush("t", SECRETIVE))
    assert printed == {
        "id": "p",
        "taskId": "t",
        "url": "https://example.com/hook",
        "authentication": {"scheme": "Basic"},
    }
    assert_v1("TaskPushNotificationConfig", printed)


def test_webhooks_are_listed_with_the_token_of_the_next_page() -> None:
    bare = PushConfig("q", "https://example.com/q", "1.0", "i", 0)
    printed = v1.answer(Operation.PUSH_LIST, PushPage((TaskPush("t", SECRETIVE), TaskPush("t", bare)), "more"))
    assert_v1("ListTaskPushNotificationConfigsResponse", printed)
    assert isinstance(printed, dict)
    assert printed["nextPageToken"] == "more"
    assert v1.answer(Operation.PUSH_LIST, PushPage(())) == {"configs": []}


def test_a_deletion_has_no_result_and_a_card_is_passed_on() -> None:
    assert v1.answer(Operation.PUSH_DELETE, None) is None
    assert v1.answer(Operation.CARD, {"name": "a"}) == {"name": "a"}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"task": {}},
        {"task": {"id": "t", "status": {"state": "TASK_STATE_UNSPECIFIED"}}},
        {"statusUpdate": {"taskId": "t", "contextId": "c"}},
        {"artifactUpdate": {"taskId": "t", "contextId": "c"}},
        {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": []}},
        [],
        None,
    ],
)
def test_a_peers_nonsense_is_the_peers_fault(value: Json) -> None:
    with pytest.raises(InvalidAgentResponse):
        v1.parse_stream_item(value)


def test_a_peers_task_may_lack_context_and_time() -> None:
    task = v1.parse_task({"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}})
    assert task == Task("t", "", TaskStatus(TaskState.COMPLETED, 0), 0)
