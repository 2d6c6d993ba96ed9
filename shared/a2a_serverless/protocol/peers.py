"""What a client sends to another agent and reads from it, in the version that the agent speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from a2a_serverless.protocol import v1
from a2a_serverless.protocol.protojson import Ident, LongText, ProtoModel, finite, items
from a2a_serverless.protocol.validation import read_peer

if TYPE_CHECKING:
    from a2a_serverless.domain.push import WireVersion


class ListedId(ProtoModel):
    """A task in a list, of which only the id is read."""

    id: Ident


class TaskIdPage(ProtoModel):
    """A page of tasks, of which only the ids are read."""

    tasks: Annotated[tuple[ListedId, ...], items("items")] = ()
    next_page_token: LongText = None


def params(version: WireVersion, request: ProtoModel) -> bytes:
    """The JSON of the parameters of a request of 1.0. Raises ValueError for a number that JSON does not have (NaN)."""
    if version != "1.0":
        from a2a_serverless.protocol.v0_3 import REQUESTS

        request = REQUESTS.of(request)
    return finite(request.json_bytes())


def read_item(version: WireVersion, value: object) -> v1.StreamContent:
    """The answer to a send, or an item of a stream. Raises InvalidAgentResponse."""
    if version == "1.0":
        return read_peer(v1.StreamResponse, value).content
    from a2a_serverless.protocol.v0_3 import StreamItem

    return read_peer(StreamItem, value).to_v1()


def read_task(version: WireVersion, value: object) -> v1.Task:
    """A task. Raises InvalidAgentResponse."""
    if version == "1.0":
        return read_peer(v1.Task, value)
    from a2a_serverless.protocol import v0_3

    task: v1.Task = read_peer(v0_3.Task, value).to_v1()
    return task
