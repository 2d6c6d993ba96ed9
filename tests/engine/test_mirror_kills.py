"""A mirror's process dies before and after each call of the store, the queue and the remote agent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.protocol.v1 import TaskState
from tests.engine.mirrored import LINES, RemoteAgent, said, status, world_of
from tests.faults.plans import At, Count, die

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.faults.plans import Faults

PORTS: Final = frozenset({"table", "queue", "remote"})
QUESTION: Final = (*LINES[:4], status("input-required", said("More?")), *LINES[4:])
SOME: Final = 50
SENDS: Final = {"remote.SendMessage", "remote.SendStreamingMessage"}


@dataclass(frozen=True)
class Journey:
    """A task of a mirror: what the remote agent is like, and the answers to its questions."""

    remote: dict[str, Any]
    answers: Sequence[str] = ()


JOURNEYS: Final = {
    "a stream": Journey({}),
    "a stream that breaks": Journey({"breaks_after": 3}),
    "looks": Journey({"streaming": False, "event_ms": 500}),
    "a stream with a question": Journey({"script": QUESTION}, ["yes"]),
    "looks with a question": Journey({"script": QUESTION, "streaming": False}, ["yes"]),
    "a message": Journey({"answer": said("Counted")}),
}
every_journey = pytest.mark.parametrize("journey", JOURNEYS.values(), ids=JOURNEYS)


def played(journey: Journey, faults: Faults) -> RemoteAgent:
    """Plays the journey to its end, and checks what the client has got."""
    remote = RemoteAgent(**journey.remote)
    world = world_of(remote, faults)
    task = world.send("count", agent="far", push=False)
    world.settle()
    for answer in journey.answers:
        assert world.client(lambda: world.get(task.id, "far")).status.state is TaskState.INPUT_REQUIRED
        world.send(answer, agent="far", push=False, task_id=task.id, context_id=task.context_id)
        world.settle()
    ended, events = world.client(lambda: world.get(task.id, "far")), world.events(task.id)
    assert ended.status.state is TaskState.COMPLETED, ended.status
    assert ended.status.message
    assert ended.status.message.text() == "Counted"
    assert {artifact.text() for artifact in ended.artifacts} == (set() if remote.answer else {"0\n1\n2\n3\n4\n"})
    if len(remote.tasks) < 2:
        pieces = [event.artifact.text() for event in events if isinstance(event, ArtifactEvent)]
        assert "".join(pieces) == "".join(artifact.text() for artifact in ended.artifacts), "nothing comes twice"
    states = [event.state for event in events if isinstance(event, StatusEvent)]
    assert states.count(TaskState.COMPLETED) == 1
    assert states.count(TaskState.INPUT_REQUIRED) == len(journey.answers)
    return remote


def sends(remote: RemoteAgent) -> list[int]:
    """How often each message was sent."""
    return [*Counter(one["message"]["messageId"] for one in remote.sent).values()]


@every_journey
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_death_at_any_call_sends_no_message_twice_and_loses_nothing(journey: Journey, *, late: bool) -> None:
    undisturbed = Count(PORTS)
    once = sends(played(journey, undisturbed))
    assert once == [1] * (1 + len(journey.answers))
    step = 2 if len(undisturbed.calls) > SOME else 1  # of a long journey, before each second call and after the others
    for number, call in [*enumerate(undisturbed.calls, 1)][late % step :: step]:
        faults = At(number, late=late, what=die, ports=PORTS)
        remote = played(journey, faults)
        assert faults.met == [call], number
        # The remote agent has the message, and nothing of ours is stored yet: it gets the same message once more.
        unknown = call in SENDS if late else undisturbed.calls[max(0, number - 2)] in SENDS
        assert sends(remote) == once or (unknown and max(sends(remote)) == 2), (number, call)


@every_journey
@pytest.mark.parametrize("seed", range(8))
def test_two_or_three_deaths_of_a_mirror_send_no_message_twice(journey: Journey, seed: int) -> None:
    undisturbed, chance = Count(PORTS), Random(seed)  # noqa: S311 - a seed, not a secret
    played(journey, undisturbed)
    numbers = chance.sample(range(1, len(undisturbed.calls) + 1), chance.choice([2, 3]))
    faults = At(*numbers, late=chance.random() < 0.5, what=die, ports=PORTS)
    remote = played(journey, faults)
    assert faults.met
    assert len(sends(remote)) == 1 + len(journey.answers)
