"""The models read and print what the hand-written codecs before them did, as recorded in ``golden/``.

A line of ``requests.json`` with ``now`` is a listed difference: both refuse, and name the wrong fields in another way.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent, update_of
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.codecs import codec
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.peers import read_item
from a2a_serverless.store.stored_forms import load_event, load_snapshot

GOLDEN = Path(__file__).with_name("golden")
AT = 1_790_000_000_000


def lines(name: str) -> list[Any]:
    read: list[Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return read


def refusal(error: A2AError) -> dict[str, Any]:
    return {
        "error": type(error).__name__,
        "violations": sorted([one.field, one.description] for one in error.violations),
    }


@pytest.mark.parametrize("line", lines("requests"), ids=lambda line: f"{line['binding']} {line['operation']}")
def test_a_request_is_read_or_refused_as_before(line: Any) -> None:
    expected = line.get("now", line)
    found: dict[str, Any]
    try:
        found = {
            "is": said(codec(line["binding"], line["version"], AT).read(Operation(line["operation"]), line["params"]))
        }
    except A2AError as error:
        found = refusal(error)
    assert found == {name: expected[name] for name in ("error", "violations", "is") if name in expected}


def test_the_listed_differences_are_refusals_on_both_sides() -> None:
    listed = [line for line in lines("requests") if "now" in line]
    assert 0 < len(listed) < 20
    assert all(line["error"] == line["now"]["error"] for line in listed)


@pytest.mark.parametrize("line", lines("printed"), ids=lambda line: "/".join(line["stored"]))
def test_a_stored_event_is_printed_as_before_in_every_form(line: Any) -> None:
    item = stored(line["stored"])
    for form, expected in line["printed"].items():
        binding, version, name = form.split(" ")
        used = codec(binding, version, AT)
        printed = used.stream_item(item) if name == "item" else used.answer(Operation(name), item)
        assert json.loads(printed) == expected, form


@pytest.mark.parametrize(
    "line", [line for line in lines("printed") if "digest" in line], ids=lambda line: line["digest"]
)
def test_digests_stay_what_idempotency_records_and_steps_hold(line: Any) -> None:
    item = stored(line["stored"])
    value = [item, item.artifacts, {"status": item.status}] if isinstance(item, v1.Task) else item
    assert digest(value) == line["digest"]


@pytest.mark.parametrize("line", lines("peers"), ids=lambda line: line["version"])
def test_an_item_of_a_peer_is_read_or_refused_as_recorded(line: Any) -> None:
    found: Any
    try:
        found = json.loads(v1.stream_response(read_item(line["version"], line["item"])).json_bytes())
    except A2AError as error:
        found = type(error).__name__
    assert found == line.get("is", line.get("error"))


def stored(text: Any) -> Any:
    """The object that a stored text holds."""
    if "snapshot" in text:
        return load_snapshot(text["snapshot"]).task
    event = load_event(text["event"], 1, "")
    if "message" in text:
        assert isinstance(event, StatusEvent)
        return event.message
    assert isinstance(event, StatusEvent | ArtifactEvent)
    return update_of(event, "t", "c")


def said(request: Any) -> Any:
    """The request as the recordings say it."""
    printed = {
        name: value for name, value in json.loads(request.json_bytes()).items() if value != {} or name == "metadata"
    }
    match request:
        case v1.SendMessageRequest():
            if push := request.configuration.task_push_notification_config:
                config = printed["configuration"]["taskPushNotificationConfig"]
                _tidy(config)
                config.pop("taskId", None)
                printed["at"] = push.path
            return printed
        case v1.TaskPushNotificationConfig():
            _tidy(printed)
            return printed | {"at": request.path}
        case v1.ListTasksRequest():
            values = {name: getattr(request, old) for name, old in _LIST.items()}
            return {
                name: value
                for name, value in values.items()
                if value not in (None, 0) or (name != "since" and value is not None)
            }
        case v1.GetTaskPushNotificationConfigRequest() if not request.id:
            del printed["id"]
    renamed = {"historyLength": "history_length", "pageSize": "page_size", "pageToken": "page_token"}
    return {renamed.get(name, name): value for name, value in printed.items()}


_LIST = {name: name for name in ("tenant", "context_id", "page_size", "page_token", "history_length")} | {
    "state": "status",
    "since": "status_timestamp_after",
    "include_artifacts": "include_artifacts",
}


def _tidy(config: Any) -> None:
    """Without the scheme that a client has not named: 1.0 requires the member."""
    if config.get("authentication", {}).get("scheme") == "":
        del config["authentication"]["scheme"]
    if config.get("authentication") == {}:
        del config["authentication"]
