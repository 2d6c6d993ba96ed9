"""The requests that were printed before 1.0, sent as they are printed, over real HTTP.

What is sent stands in ``tests/data/examples``; every answer is held to the schema of its shape by the edge.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sample_agents.image import image
from tests.conformance.live import serving
from tests.echo import agent_of
from tests.stack.local import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.task_context import TaskContext

pytestmark = [pytest.mark.enable_socket, pytest.mark.xdist_group("older requests")]

EXAMPLES: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data/examples/older-requests.json").read_text()
)
PRINTED: Final[list[Any]] = EXAMPLES["life-of-a-task, JSON-RPC at POST /{agent}, no A2A-Version header"]
FILES: Final[list[Any]] = EXAMPLES["file parts that were printed for it (accept on input)"]
SHAPES: Final[dict[str, Any]] = EXAMPLES["older HTTP shapes, under /legacy/{agent}"]
ENDED: Final = {"completed", "failed", "canceled"}


async def echoes(task: TaskContext) -> None:
    """Gives back what it was told, as an artifact."""
    await task.emit("echo.txt", task.text(), last=True)


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """A deployment with the agent that draws, and one that takes anything."""
    with serving([image, replace(agent_of(echoes), input_modes=("*/*",))]) as url:
        yield url


def asked(url: str, body: Any = None) -> Any:
    """The answer to a POST of the body, or to a GET."""
    data = None if body is None else json.dumps(body).encode()
    headers = {} if body is None else {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.load(answer)


def filled(printed: Any, **values: str) -> Any:
    """A printed body, its ``<placeholders>`` replaced."""
    text = json.dumps(printed)
    for name, value in values.items():
        text = text.replace(f"<{name.replace('_', ' ')}>", value)
    assert "<" not in text
    return json.loads(text)


def ended(base: str, agent: str, task: Any) -> Any:
    """The task at its end."""

    def read() -> Any:
        call = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": task["id"]}}
        found = asked(f"{base}/{agent}", call)["result"]
        return found if found["status"]["state"] in ENDED else None

    return eventually(read)


def test_the_life_of_a_task_works_as_it_is_printed(base: str) -> None:
    first = asked(f"{base}/image", PRINTED[0])["result"]
    drawn = ended(base, "image", first)
    again = asked(f"{base}/image", PRINTED[0])["result"]
    assert again["id"] == first["id"], "the same message, sent once more"
    values = {"contextId of the first answer": first["contextId"], "task id of the first answer": first["id"]}
    refined = ended(base, "image", asked(f"{base}/image", filled(PRINTED[2], **values))["result"])
    assert refined["contextId"] == first["contextId"]
    assert refined["id"] != first["id"]
    (old,), (new,) = drawn["artifacts"], refined["artifacts"]
    assert (new["name"], new["artifactId"] != old["artifactId"]) == (old["name"], True)


def test_a_part_without_kind_and_one_with_it_are_the_same_part(base: str) -> None:
    bare, named = (
        json.loads(json.dumps(printed).replace("msg-user-001", f"bare-or-named-{number}"))
        for number, printed in enumerate(PRINTED[:2])
    )
    answers = [asked(f"{base}/image", body)["result"] for body in (bare, named)]
    parts = [ended(base, "image", answer)["history"][0]["parts"] for answer in answers]
    assert parts[0] == parts[1] == [{"kind": "text", "text": "Generate an image of a sailboat on the ocean."}]


@pytest.mark.parametrize("printed", FILES, ids=["as printed later", "as printed first"])
def test_a_file_is_read_under_each_of_its_printed_names(base: str, printed: Any) -> None:
    content = base64.b64encode(b"not a picture").decode()
    part = filled(printed, base64=content)
    message = {"role": "user", "messageId": f"file-{sorted(part)}", "parts": [{"text": "hello"}, part]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "message.send", "params": {"message": message}}
    task = asked(f"{base}/echo", call)["result"]
    kept = ended(base, "echo", task)["history"][0]["parts"][1]
    assert kept["file"] == {"name": "sailboat_image.png", "mimeType": "image/png", "bytes": content}


def test_a_card_of_the_early_shape_is_found_where_it_was(base: str) -> None:
    card = asked(f"{base}/legacy/echo/.well-known/agent.json")
    assert {"name", "description", "url", "version", "skills", "capabilities", "authentication"} <= card.keys()
    assert card["url"] == f"{base}/legacy/echo"
    assert card["capabilities"].keys() >= {"streaming", "pushNotifications"}
    assert {"id", "name", "description", "inputModes", "outputModes", "examples"} <= card["skills"][0].keys()
    assert "schemes" in card["authentication"]


def test_the_early_send_and_get_work_as_they_are_printed(base: str) -> None:
    body = filled(SHAPES["POST /tasks/send"], base64=base64.b64encode(b"notes").decode())
    sent = asked(f"{base}/legacy/echo/tasks/send", body)
    assert sent["contextId"] == "c1"

    def read() -> Any:
        found = asked(f"{base}/legacy/echo/tasks/{sent['id']}")
        return found if found["status"]["state"] in ENDED else None

    found = eventually(read)
    assert found["status"]["state"] == "completed"
    assert [part["type"] for part in found["artifacts"][0]["parts"]] == ["text"]
    assert [part["type"] for part in found["history"][0]["parts"]] == ["text", "data", "file"]


def test_the_early_stream_tells_tasks_and_artifacts_and_ends_with_the_task_completed(base: str) -> None:
    body = filled(SHAPES["POST /tasks/send"], base64=base64.b64encode(b"notes").decode())
    body["message"]["messageId"] = "m2"
    request = urllib.request.Request(
        f"{base}/legacy/echo/tasks/sendSubscribe", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        told = [json.loads(line.removeprefix(b"data: ")) for line in answer if line.startswith(b"data: ")]
    assert told[0]["task"]["status"]["state"] in {"submitted", "working"}
    assert told[-1]["task"]["status"]["state"] == "completed"
    assert any({"taskId", "contextId", "artifact"} <= item.keys() for item in told)
    assert all("task" in item or "artifact" in item for item in told)
