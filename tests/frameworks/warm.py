"""A process that runs one task after another, as a worker does: each run has an event loop of its own, in real time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from a2a_serverless import TaskState
from a2a_serverless.engine.loop import play
from tests.foreign.model_server import model_server
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from a2a_serverless import Agent

T = TypeVar("T")


class WarmWorld(World):
    """A world whose runs have the loops of the worker."""

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        return play(work)


def assert_two_tasks_end_well(make: Callable[[str], Agent]) -> None:
    """Two tasks of an agent that is made once, with the URL of a model's server, which keeps connections open."""
    with model_server(lambda _: ["Hello"]) as server:
        agent = make(server.url)
        world = WarmWorld([agent])
        ids = []
        for _ in range(2):
            ids.append(world.send("go", push=False, agent=agent.id).id)
            world.settle()
        tasks = [world.get(task_id, agent.id) for task_id in ids]
    assert [task.status.state for task in tasks] == [TaskState.COMPLETED] * 2
    said = [[artifact.text() for artifact in task.artifacts] for task in tasks]
    assert said == [["Hello"]] * 2


async def ask_model(client: Any, url: str) -> str:
    """What the model's server says to the client of a library."""
    response = await client.post(f"{url}/responses", json={"input": []})
    return str(response.json()["output"][0]["content"][0]["text"])
