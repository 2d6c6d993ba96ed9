from typing import Any

import pytest

from a2a_webhook_receiver.body import Part, read_challenge, read_content, read_task
from a2a_webhook_receiver.errors import Unreadable, UnsupportedVersion
from vectors.forge import to_json

PARTS = [
    {"text": "hello", "mediaType": "text/markdown", "filename": "a.md"},
    {"data": {"a": [1]}},
    {"url": "https://example.com/x"},
    {"raw": "aGk="},
]
READ = (
    Part("text", "hello", "text/markdown", "a.md"),
    Part("data", {"a": [1]}, "", ""),
    Part("link", "https://example.com/x", "", ""),
    Part("file", "aGk=", "", ""),
)


def test_every_kind_of_part_of_1_0_is_read() -> None:
    artifact = {"artifactId": "a-1", "name": "all", "parts": PARTS}
    content = read_content(to_json({"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": artifact}}), "1.0")
    assert content.artifacts[0].parts == READ
    assert (content.task_id, content.context_id, content.kind) == ("t", "c", "artifactUpdate")


def test_every_kind_of_part_of_0_3_is_read() -> None:
    old = [
        {"kind": "text", "text": "hello"},
        {"kind": "data", "data": {"a": 1}},
        {"kind": "file", "file": {"uri": "https://example.com/x", "name": "x", "mimeType": "image/png"}},
        {"kind": "file", "file": {"bytes": "aGk="}},
    ]
    task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "auth-required"}}
    content = read_content(to_json(task | {"artifacts": [{"artifactId": "a", "parts": old}]}), "0.3")
    assert [part.kind for part in content.artifacts[0].parts] == ["text", "data", "link", "file"]
    assert content.artifacts[0].parts[2] == Part("link", "https://example.com/x", "image/png", "x")
    assert content.state == "auth-required"


@pytest.mark.parametrize(
    ("changes", "finished"), [({}, False), ({"lastChunk": False}, False), ({"lastChunk": True}, True)], ids=repr
)
def test_an_artifact_is_finished_with_its_last_chunk(changes: dict[str, Any], finished: bool) -> None:  # noqa: FBT001
    artifact = {"artifactId": "a-1", "parts": [{"text": "x"}]}
    body = {"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": artifact} | changes}
    assert read_content(to_json(body), "1.0").finished is finished


def test_a_status_brings_its_message() -> None:
    message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Which colour?"}]}
    status = {"state": "TASK_STATE_INPUT_REQUIRED", "message": message}
    content = read_content(to_json({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}}), "1.0")
    assert content.state == "input-required"
    assert content.message == (Part("text", "Which colour?", "", ""),)
    assert content.finished


def test_a_message_has_no_state() -> None:
    message = {"messageId": "m", "role": "ROLE_AGENT", "taskId": "t", "parts": [{"text": "hi"}]}
    content = read_content(to_json({"message": message}), "1.0")
    assert (content.state, content.artifacts, content.message[0].value) == (None, (), "hi")


def test_a_version_that_we_do_not_read_is_named_and_cut() -> None:
    with pytest.raises(UnsupportedVersion, match="'99999999") as refusal:
        read_content(b"{}", "9" * 1000)
    assert len(str(refusal.value)) < 60


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"id": "t"}, "status"),
        ({"id": "t", "status": {"state": "TASK_STATE_UNKNOWN"}}, "state is unknown"),
        ({"status": {"state": "TASK_STATE_WORKING"}}, "id"),
    ],
)
def test_a_task_that_is_none_is_refused_with_what_is_missing(task: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        read_task(task)


def test_a_challenge_of_512_letters_is_the_longest() -> None:
    body = {"type": "a2a.webhook.challenge", "challenge": "x" * 512}
    assert read_challenge(to_json(body)) == "x" * 512
