"""Whoever reads a task walks its log: by polling, by pages, by a webhook, all see the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from a2a_serverless.domain.replay import replay
from a2a_serverless.protocol.v1 import TaskState
from tests.echo import Writer
from tests.world import ME, World


class Reader:
    """A client that reads on from the last number that it saw, a few events at a time, and is often away."""

    def __init__(self, world: World, task_id: str, seed: int) -> None:
        self.world = world
        self.key = ME.key(task_id)
        self.chance = Random(seed)  # noqa: S311 - a seed, not a secret
        self.seen: list[object] = []
        self.come_back()

    def come_back(self) -> None:
        self.world.plan(self.chance.randint(0, 1500), self.read)

    def read(self) -> None:
        self.seen += self.world.table.read(self.key, len(self.seen), self.chance.randint(1, 3))
        if (
            not self.world.table.read_head(self.key).head.is_terminal
            or len(self.seen) < self.world.table.read_head(self.key).last
        ):
            self.come_back()


@pytest.mark.requirement(58, 59, 113)
@pytest.mark.parametrize("seed", range(8))
def test_rule_04_a_reader_that_comes_back_with_its_last_number_misses_nothing_and_sees_nothing_twice(seed: int) -> None:
    world = World([Writer().agent])
    task_id = world.send("hello").id
    readers = [Reader(world, task_id, 10 * seed + number) for number in range(3)]
    world.settle()
    assert [reader.seen for reader in readers] == [world.events(task_id)] * 3


def test_rule_04_at_every_moment_a_poll_shows_what_the_log_adds_up_to() -> None:
    world = World([Writer().agent])
    task_id = world.send("hello").id
    shown = []

    def poll() -> None:
        shown.append(world.get(task_id))
        if shown[-1].status.state is not TaskState.COMPLETED:
            world.plan(300, poll)

    world.plan(0, poll)
    world.settle()
    log = world.events(task_id)
    assert shown == [replay(task_id, shown[0].context_id, log[: task.n]) for task in shown]
    assert len({task.n for task in shown}) > 3


def test_rule_04_the_chunks_of_a_webhook_add_up_to_the_artifact_of_a_poll() -> None:
    world = World([Writer().agent])
    task_id = world.send("hello").id
    world.settle()
    bodies: list[Any] = [got.body for got in world.receiver.effects()]
    heard = [part["text"] for body in bodies for part in chunk_of(body)]
    assert ["".join(heard)] == [part.value for part in world.get(task_id).artifacts[0].parts]


def chunk_of(body: Any) -> list[Any]:
    return list(body["artifactUpdate"]["artifact"]["parts"]) if "artifactUpdate" in body else []
