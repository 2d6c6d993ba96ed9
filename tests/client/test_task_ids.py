from typing import TYPE_CHECKING

import pytest

from a2a_serverless.client import Client
from a2a_serverless.domain.errors import InvalidAgentResponse, UnsupportedOperation
from a2a_serverless.domain.task_context import TaskContext
from tests.client.deployment import BASE, Deployment, answering, rpc
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json


async def paint(task: TaskContext) -> None:
    await task.emit("boat.png", task.text())


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
