from typing import TYPE_CHECKING

import pytest

from a2a_serverless.client import Client, text_message
from a2a_serverless.domain.errors import InvalidAgentResponse, UnsupportedOperation
from a2a_serverless.domain.task_context import TaskContext
from a2a_serverless.protocol.v1 import Artifact, Part, SendMessageRequest, Task, TaskState, TaskStatus
from a2a_serverless_tools.cli.versions import by_name, versions
from tests.client.deployment import BASE, Deployment, answering, rpc
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json


async def paint(task: TaskContext) -> None:
    await task.emit("boat.png", task.text())


def made(client: Client, text: str, context: str | None = None) -> Task:
    task = client.send(SendMessageRequest(message=text_message(text, context_id=context)))
    assert isinstance(task, Task)
    return task


def task(name: str, at: int, *artifacts: Artifact) -> Task:
    return Task(
        id=name, context_id="c", status=TaskStatus(state=TaskState.COMPLETED, timestamp=at), artifacts=artifacts
    )


def test_the_tasks_of_a_context_keep_each_version_of_an_artifact_under_its_name() -> None:
    client = Client(f"{BASE}/echo", Deployment(agent_of(paint)).transport)
    first = made(client, "white")
    second = made(client, "red", first.context_id)
    made(client, "a boat of another context")
    found = versions(client, first.context_id)
    assert [(one.number, one.task_id, one.artifact.text()) for one in found["boat.png"]] == [
        (1, first.id, "white"),
        (2, second.id, "red"),
    ]
    assert found.keys() == {"boat.png"}
    assert len({one.artifact.artifact_id for one in found["boat.png"]}) == 2


def test_more_tasks_than_a_page_holds_are_all_found() -> None:
    page: list[Json] = [{"id": name, "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}} for name in "abc"]
    transport, calls = answering(
        rpc({"tasks": page[:2], "nextPageToken": "more", "pageSize": 2, "totalSize": 3}),
        rpc({"tasks": page[2:], "nextPageToken": "", "pageSize": 2, "totalSize": 3}),
    )
    assert [*Client(BASE, transport).task_ids("c")] == ["a", "b", "c"]
    assert b'"pageToken":"more"' in (calls[1].body or b"")


def test_an_agent_that_always_says_that_there_is_more_is_left() -> None:
    same = rpc({"tasks": [], "nextPageToken": "again"})
    transport, _ = answering(same, same)
    with pytest.raises(InvalidAgentResponse, match="same page"):
        [*Client(BASE, transport).task_ids("c")]


def test_an_answer_that_is_no_list_is_refused() -> None:
    transport, _ = answering(rpc({"tasks": "none"}))
    with pytest.raises(InvalidAgentResponse):
        [*Client(BASE, transport).task_ids("c")]


def test_the_older_version_of_the_protocol_has_no_list() -> None:
    client = Client(BASE, Deployment(agent_of(paint)).transport, version="0.3")
    with pytest.raises(UnsupportedOperation, match="only"):
        [*client.task_ids("c")]


def test_versions_are_in_the_order_of_their_tasks_and_a_nameless_artifact_goes_by_its_id() -> None:
    late = task(
        "late",
        2,
        Artifact(artifact_id="a2", parts=(Part(text="two"),), name="x"),
        Artifact(artifact_id="alone", parts=(Part(text="?"),)),
    )
    early = task("early", 1, Artifact(artifact_id="a1", parts=(Part(text="one"),), name="x"))
    found = by_name([late, early])
    assert [one.artifact.artifact_id for one in found["x"]] == ["a1", "a2"]
    assert [one.task_id for one in found["alone"]] == ["late"]
