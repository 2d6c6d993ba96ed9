"""How many messages of a task are told (specification 3.2.4): in every binding, in answers and in streams.

1.0 says 0 for none; 0.3 has no such word, and its proto says 0 for all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.protocol.operations import Operation
from tests.client.deployment import Deployment
from tests.echo import Asker
from tests.handlers.requests import BINDINGS, Names

if TYPE_CHECKING:
    from a2a_serverless.http.messages import HttpRequest

NEW, OLD = ("1.0 JSON-RPC", "1.0 REST"), ("0.3 JSON-RPC", "0.3 REST")
MOST = [(binding, most, told) for binding in NEW for most, told in ((None, 3), (0, 0), (1, 1), (2, 2), (9, 3))]
MOST += [(binding, most, told) for binding in OLD for most, told in ((None, 3), (0, 3), (1, 1), (2, 2), (9, 3))]
EACH = pytest.mark.parametrize(("binding", "most", "told"), MOST)


class Place:
    """A task that has asked its client something: its history is the client's message; an answer makes it three."""

    def __init__(self) -> None:
        self.deployment = Deployment(Asker().agent)
        self.task = str(self._first(self.ask("1.0 JSON-RPC", Operation.SEND, Names(), None))["task"]["id"])
        self.deployment.world.settle()

    def answer(self, binding: str, operation: Operation, most: int | None) -> Any:
        """The first thing that is told to who answers the task's question, and wants so many messages."""
        names = Names(task=self.task, message="message-2")
        return task_in(self._first(self.ask(binding, operation, names, most)))

    def get(self, binding: str, most: int | None) -> Any:
        return task_in(self._first(self.ask(binding, Operation.GET, Names(task=self.task), most)))

    def ask(self, binding: str, operation: Operation, names: Names, most: int | None) -> Any:
        return self.deployment.edge.answer(wanting(BINDINGS[binding][operation](names), operation, most))

    def _first(self, answer: Any) -> Any:
        body = answer.body
        if answer.stream is not None:
            frame = self.deployment.world.play(first_of(answer.stream))
            (body,) = [line.removeprefix(b"data: ") for line in frame.splitlines() if line.startswith(b"data: ")]
        document = json.loads(body)
        return document.get("result", document)


async def first_of(stream: Any) -> bytes:
    frame: bytes = await anext(stream)
    await stream.aclose()
    return frame


def task_in(told: Any) -> Any:
    return told.get("task", told)


def wanting(request: HttpRequest, operation: Operation, most: int | None) -> HttpRequest:
    """The request for a task with so many messages."""
    if most is None:
        return request
    if not request.body:
        return request._replace(query=(("historyLength", str(most)),))
    document = json.loads(request.body)
    params = document.get("params", document)
    place = params if operation is Operation.GET else params["configuration"]
    place["historyLength"] = most
    return request._replace(body=json.dumps(document).encode())


def texts(task: Any) -> list[str]:
    """What the messages say, the oldest first; a history that is told is not empty."""
    assert task.get("history") != []
    said = [message.get("parts") or message["content"] for message in task.get("history", [])]
    return [part[0]["text"] for part in said]


@pytest.mark.requirement(23, 24)
@EACH
def test_a_task_is_read_with_the_newest_of_its_messages(binding: str, most: int | None, told: int) -> None:
    place = Place()
    place.answer("1.0 JSON-RPC", Operation.SEND, None)
    whole = ["hello", "Which colour?", "hello"]
    assert texts(place.get(binding, most)) == whole[len(whole) - told :]


@pytest.mark.requirement(23, 24)
@EACH
@pytest.mark.parametrize("operation", [Operation.SEND, Operation.STREAM])
def test_a_send_and_the_task_that_begins_a_stream_have_no_more_messages_than_were_asked_for(
    operation: Operation, binding: str, most: int | None, told: int
) -> None:
    whole = ["hello", "Which colour?", "hello"]
    assert texts(Place().answer(binding, operation, most)) == whole[len(whole) - told :]
