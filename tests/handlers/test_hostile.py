"""Whatever comes in, the edge answers in the form of the protocol, and it is never our fault.

``tests.edge`` holds each answer against the schema of its binding and version. ``make prove KIND=fuzz`` looks longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given

from a2a_serverless.testing.memory import MemoryCallbackVerifier, MemoryMetrics
from tests.echo import Asker
from tests.edge import Edge
from tests.handlers.hostile import LOOK, TASK, mutations, strangers
from tests.handlers.test_runtime import Mine
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless.http.messages import HttpRequest
    from tests.edge import HttpResponse


class Place:
    """A deployment with one task, which waits for its client. All ids in it are the same each time."""

    def __init__(self) -> None:
        self.world = World([Asker().agent])
        assert self.world.send("hello").id == TASK
        self.world.settle()
        self.metrics = MemoryMetrics()
        service = self.world.service._replace(metrics=self.metrics)
        self.edge = Edge(service, self.world.engine.agents, Mine(), MemoryCallbackVerifier(), 60)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """The answer; of a stream, the first event has been read."""
        answer = self.edge.answer(request)
        if answer.stream is not None:
            self.world.play(_first(answer.stream))
        return answer


async def _first(stream: Any) -> None:
    await anext(stream)
    await stream.aclose()


def assert_not_our_fault(request: HttpRequest) -> None:
    place = Place()
    assert place.answer(request).status not in {500, 502}
    assert "ServerErrors" not in [name for name, _ in place.metrics.counted]


@given(mutations())
@LOOK
def test_a_valid_request_with_anything_in_it_is_answered_in_its_own_form(request: HttpRequest) -> None:
    assert_not_our_fault(request)


@given(strangers())
@LOOK
def test_any_verb_path_header_and_body_is_answered(request: HttpRequest) -> None:
    assert_not_our_fault(request)
