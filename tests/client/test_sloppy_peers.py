"""What other people's agents send, in both versions and bindings: what can be used is used, and the rest is said."""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.client import Client, HttpError, PeerError, discover, text_message
from a2a_serverless.client.client import MOST_SKIPPED
from a2a_serverless.domain.errors import A2AError, InvalidAgentResponse, TaskNotFound, UnsupportedOperation
from a2a_serverless.protocol.v1 import Message, Role, SendMessageRequest, Task, TaskState
from tests.client.deployment import answering, documents
from tests.peers.forms import FORMS, STREAM, URL, Form

if TYPE_CHECKING:
    from a2a_serverless.domain.remotes import Binding
    from a2a_serverless.protocol.versions import ProtocolVersion

HELLO: Final = SendMessageRequest(message=text_message("hello"))


everywhere = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.version} {form.binding}")


@everywhere
@pytest.mark.parametrize("place", ["status", "history", "artifact", "send"])
def test_a_message_or_artifact_without_parts_leaves_the_rest_of_the_task_readable(form: Form, place: str) -> None:
    role = "agent" if form.kind("x") else "ROLE_AGENT"
    empty = {**form.kind("message"), "messageId": "m", "role": role, "parts": []}
    good = form.artifact("a", "answer")
    members: dict[str, Any] = {"artifacts": [good]}
    if place == "artifact":
        members["artifacts"] = [good, form.artifact("b")]
    elif place == "history":
        members["history"] = [empty]
    elif place == "status":
        members["status"] = {"message": empty}
    task = form.task(**members)
    got = form.client(form.item("task", task)).send(HELLO) if place == "send" else form.client(task).get("t")
    assert isinstance(got, Task)
    assert got.status.state is TaskState.COMPLETED
    assert got.artifacts[0].text() == "answer"


@everywhere
def test_base64_with_line_ends_and_a_data_uri_in_its_place_are_read(form: Form) -> None:
    parts = [form.file("iVBO\r\nRw0K"), form.file("data:image/png;base64,iVBORw0K")]
    task = form.client(form.task(artifacts=[form.artifact("a", *parts)])).get("t")
    assert [(part.raw, part.media_type) for part in task.artifacts[0].parts] == [("iVBORw0K", "image/png")] * 2


PNG: Final = base64.b64encode(b"\x89PNG\r\n").decode()
TWICE: Final = base64.b64encode(PNG.encode()).decode()


@pytest.mark.parametrize(
    ("raw", "media_type", "read"),
    [
        (TWICE, "image/png", PNG),
        (PNG, "image/png", PNG),
        (TWICE, "text/plain", TWICE),
        (TWICE, "application/octet-stream", TWICE),
        ("dGVzdA==", "audio/ogg", "test"),
        ("dGVzdCE=", "audio/ogg", "dGVzdCE="),
    ],
)
def test_bytes_that_are_encoded_twice_are_read_where_they_cannot_be_a_text(
    raw: str, media_type: str, read: str
) -> None:
    """Python's and Go's SDKs encode so over HTTP+JSON of 0.3."""
    part = {"file": {"fileWithBytes": raw, "mimeType": media_type}}
    form = Form("0.3", "HTTP+JSON")
    task = form.client(form.task(artifacts=[form.artifact("a", part)])).get("t")
    assert task.artifacts[0].parts[0].raw == read


@everywhere
def test_parts_that_the_client_does_not_understand_are_skipped_and_logged(
    form: Form, caplog: pytest.LogCaptureFixture
) -> None:
    artifact = form.artifact("a", "answer", {"hologram": 7})
    with caplog.at_level(logging.WARNING):
        task = form.client(form.task(artifacts=[artifact, 7], history="none", metadata=[1])).get("t")
    assert [artifact.text() for artifact in task.artifacts] == ["answer"]
    (record,) = caplog.records
    about = vars(record)
    method = {"1.0": "GetTask", "0.3": "tasks/get"}[form.version]
    assert (about["method"], about["version"], about["address"]) == (method, form.version, URL)
    assert "artifacts[0].parts[1]" in str(about["skipped"])
    assert "metadata" in str(about["skipped"])
    assert str(about["beginning"]).startswith("{")


@everywhere
def test_items_of_another_form_in_a_stream_are_read_and_unknown_items_are_said(
    form: Form, caplog: pytest.LogCaptureFixture
) -> None:
    ids: dict[str, Any] = {"taskId": "t", "contextId": "c"}
    chunk: Any = {"kind": "artifact-update", **ids, "artifact": {"artifactId": "a", "parts": [{"text": "x"}]}}
    end: Any = {"kind": "status-update", **ids, "status": {"state": "completed"}, "final": True}
    wrapped: Any = {"statusUpdate": {**ids, "status": {"state": "TASK_STATE_COMPLETED"}}}
    first = form.item("task", form.task("working"))
    with caplog.at_level(logging.WARNING):
        events = list(form.stream(first, {"kind": "sparkle"}, chunk, end, wrapped).stream(HELLO))
    assert [event.state for event in events] == ["working", None, "completed", "completed"]
    assert "sparkle" in str(vars(caplog.records[0])["skipped"])


def test_items_that_follow_without_an_envelope_are_read() -> None:
    form = Form("1.0", "JSONRPC")
    bare = {"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "completed"}}
    body = b"data: %b\n\ndata: %b\n\n" % (
        json.dumps(form.envelope({"task": form.task("working")})).encode(),
        json.dumps(bare).encode(),
    )
    events = list(form.client(body, headers=STREAM).stream(HELLO))
    assert [event.state for event in events] == ["working", "completed"]


@everywhere
def test_a_stream_in_which_nothing_can_be_used_says_so(form: Form) -> None:
    with pytest.raises(InvalidAgentResponse, match=f"A2A {form.version} at {URL}.*sparkle"):
        list(form.stream({"kind": "sparkle"}, {"kind": "sparkle"}).stream(HELLO))


def test_a_stream_with_too_many_items_that_cannot_be_read_ends(caplog: pytest.LogCaptureFixture) -> None:
    form = Form("1.0", "JSONRPC")
    first = form.item("task", form.task("working"))
    unknown: Any = {"kind": "sparkle"}
    events = form.stream(first, *[unknown] * (MOST_SKIPPED + 1)).stream(HELLO)
    assert next(events).state == "working"
    with caplog.at_level(logging.WARNING), pytest.raises(InvalidAgentResponse, match="sparkle"):
        next(events)
    assert len(caplog.records) == MOST_SKIPPED


@everywhere
@pytest.mark.parametrize("role", ["user", "ROLE_USER", 1])
def test_the_role_of_a_message_is_read(form: Form, role: Any) -> None:
    message = {"messageId": "m", "role": role, "parts": [form.text("my own words")]}
    task = form.client(form.task("working", status={"message": message})).get("t")
    assert task.status.message
    assert task.status.message.role is Role.USER


@everywhere
@pytest.mark.parametrize("message", [{"parts": [{"text": "hi"}]}, {"content": [{"text": "hi"}], "role": "assistant"}])
def test_a_message_without_ids_or_with_an_unknown_role_is_the_agents(form: Form, message: dict[str, Any]) -> None:
    answer = form.client(form.item("message", {"kind": "message", **message})).send(HELLO)
    assert isinstance(answer, Message)
    assert (answer.role, answer.text()) == (Role.AGENT, "hi")


@everywhere
@pytest.mark.parametrize("state", ["unknown", "TASK_STATE_UNSPECIFIED", "TASK_STATE_PAUSED", 0, None, ["x"], {}])
def test_a_state_that_is_not_known_ends_no_task(form: Form, state: Any) -> None:
    task = form.client({**form.task(), "status": {"state": state}}).get("t")
    assert task.status.state is TaskState.WORKING


UNUSABLE: Final[list[tuple[Any, str]]] = [
    ({"result": None}, "result is null"),
    ({}, "neither result nor error"),
    ({"result": 7}, "is not an object"),
    ({"result": {"kind": "sparkle"}}, "sparkle"),
]


@pytest.mark.parametrize(("body", "why"), UNUSABLE)
@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_an_answer_that_cannot_be_used_names_method_version_and_address(
    version: ProtocolVersion, body: Any, why: str
) -> None:
    client = Form(version, "JSONRPC").client(json.dumps({"jsonrpc": "2.0", "id": 1, **body}).encode())
    method = {"1.0": "SendMessage", "0.3": "message/send"}[version]
    with pytest.raises(InvalidAgentResponse, match=why) as error:
        client.send(HELLO)
    assert f"{method} of A2A {version} at {URL}" in str(error.value)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        ("Out of paint", PeerError, "Out of paint"),
        ({"code": -32001.0, "message": "Gone"}, TaskNotFound, "Gone"),
        ({"code": "-32001", "message": "Gone"}, TaskNotFound, "Gone"),
        (["Out of paint"], PeerError, "Out of paint"),
        ({"code": -32050, "data": "Out of paint"}, PeerError, "Out of paint"),
    ],
)
def test_an_error_in_any_shape_keeps_its_text(version: ProtocolVersion, error: Any, kind: type, text: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()
    with pytest.raises(kind, match=text):
        Form(version, "JSONRPC").client(body).get("t")


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_an_answer_without_the_name_of_its_protocol_is_read(version: ProtocolVersion) -> None:
    form = Form(version, "JSONRPC")
    assert form.client(json.dumps({"id": 1, "result": form.task()}).encode()).get("t").id == "t"
    body = json.dumps({"id": 1, "error": {"code": -32001, "message": "Gone"}}).encode()
    with pytest.raises(TaskNotFound, match="Gone"):
        form.client(body).get("t")


@everywhere
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_its_target_is_named(form: Form, status: int) -> None:
    transport, calls = answering((status, {"location": "https://new.example.com/agent?key=s"}, b""))
    client = Client(URL, transport, version=form.version, binding=form.binding)
    with pytest.raises(HttpError, match=r"https://new\.example\.com/agent\b.*not followed") as error:
        client.send(HELLO)
    assert "key" not in str(error.value)
    assert len(calls) == 1


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_an_address_with_a_query_keeps_it_behind_the_path(version: ProtocolVersion, binding: Binding) -> None:
    transport, calls = answering((404, {}, b""))
    client = Client(f"{URL}?qualifier=DEFAULT", transport, version=version, binding=binding)
    for ask in (lambda: client.get("t", 0), lambda: client.send(HELLO), lambda: discover(client.url, transport)):
        with pytest.raises((HttpError, A2AError)):
            ask()
    prefix = "/v1" if version == "0.3" else ""
    rest = [f"{URL}{prefix}/tasks/t?qualifier=DEFAULT&historyLength=0", f"{URL}{prefix}/message:send?qualifier=DEFAULT"]
    own = [f"{URL}?qualifier=DEFAULT"] * 2 if binding == "JSONRPC" else rest
    assert [call.url for call in calls] == [*own, f"{URL}/.well-known/agent-card.json?qualifier=DEFAULT"]


@everywhere
@pytest.mark.parametrize(
    "content_type", ["Text/Event-Stream", "text/event-stream; charset=UTF-8", " TEXT/EVENT-STREAM ;x=y", ""]
)
def test_a_stream_is_known_by_its_type_in_any_case_and_without_a_type_by_its_beginning(
    form: Form, content_type: str
) -> None:
    headers = {"content-type": content_type} if content_type else {}
    client = form.stream(form.item("task", form.task("working")), form.item("task", form.task()), **headers)
    if not content_type:
        client = Client(URL, answering((200, {}, _bytes_of(client)))[0], version=form.version, binding=form.binding)
    assert [event.state for event in client.stream(HELLO)] == ["working", "completed"]


def _bytes_of(client: Client) -> bytes:
    from a2a_serverless.client import ClientRequest

    with client.transport(ClientRequest(URL)) as answer:
        return answer.body.read(1_000_000)


@everywhere
def test_an_answer_with_the_status_202_is_an_answer(form: Form) -> None:
    body = json.dumps(form.envelope(form.item("task", form.task("working")))).encode()
    transport, _ = answering((202, {"content-type": "application/json"}, body))
    answer = Client(URL, transport, version=form.version, binding=form.binding).send(HELLO)
    assert isinstance(answer, Task)
    items = b"data: %b\n\n" % body
    transport, _ = answering((202, STREAM, items * 2))
    client = Client(URL, transport, version=form.version, binding=form.binding)
    assert len(list(client.stream(HELLO))) == 2


@everywhere
def test_an_empty_stream_raises_nothing_and_has_no_item(form: Form) -> None:
    assert list(form.stream().stream(HELLO)) == []


@pytest.mark.parametrize("interfaces", [[], None, [7], [{"url": URL}], [{"url": URL, "protocolBinding": "GRPC"}]])
def test_the_members_of_0_3_are_used_where_those_of_1_0_are_of_no_use(interfaces: Any) -> None:
    card = {"name": "Far", "url": URL, "preferredTransport": "JSONRPC", "supportedInterfaces": interfaces}
    client = discover(URL, documents({f"{URL}/.well-known/agent-card.json": card})).client
    assert (client.url, client.version, client.binding) == (URL, "0.3", "JSONRPC")


def test_a_card_is_read_as_far_as_it_can_be_used(caplog: pytest.LogCaptureFixture) -> None:
    interface = {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    skills = [{"id": "s", "name": "S", "tags": ["", "good", 7], "examples": [3, "e"]}, {"name": "no id"}, 7]
    card = {"name": "Far", "supportedInterfaces": [interface], "skills": skills, "defaultInputModes": "text"}
    with caplog.at_level(logging.WARNING):
        agent = discover(URL, documents({f"{URL}/.well-known/agent-card.json": card | {"capabilities": []}}))
    (skill,) = agent.card.skills
    assert (skill.tags, skill.examples) == (("good",), ("e",))
    assert "skills[1]" in str(vars(caplog.records[0])["skipped"])


@everywhere
def test_a_refused_stream_is_an_error_of_the_protocol(form: Form) -> None:
    error = {"code": -32004, "message": "No streams"}
    body = {"jsonrpc": "2.0", "id": 1, "error": error} if form.binding == "JSONRPC" else error
    transport, _ = answering((400, {}, json.dumps(body).encode()))
    client = Client(URL, transport, version=form.version, binding=form.binding)
    with pytest.raises(UnsupportedOperation, match="No streams"):
        list(client.stream(HELLO))
