"""Where challenges go is for whoever registers webhooks to say; a host that wants none of them gets few."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.cursors import CursorState, Verification
from a2a_serverless.domain.errors import TooManyRequests
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig, TaskState
from a2a_serverless.services import webhooks
from tests.echo import Writer, agent_of
from tests.faults.plans import Count, kill_at
from tests.world import HOUR_MS, ME, World, echoing

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

HOST = "stranger.example.com"
NOTHING = Outcome(status=404)


class Stranger:
    """A host, the webhooks of one owner there, and how many challenges it was sent."""

    def __init__(self, answer: Outcome = NOTHING, **fields: object) -> None:
        self.world = World([Writer(seconds=0).agent], **fields)  # type: ignore[arg-type]
        self.answer: Outcome | None = answer
        self.posts = 0
        self.refused = 0
        self.world.receiver.echoes = self._echoes

    def _echoes(self, challenge: str) -> Outcome:
        self.posts += 1
        return self.answer or echoing(challenge)

    def register(self, count: int, host: str = HOST, principal: Principal = ME) -> list[str]:
        """Registers webhooks for new tasks, as many as can be; gives the tasks."""
        hooks, tasks = self.world.service.webhooks(), list[str]()
        for number in range(count):
            task = self.world.send("hello", push=False).id if principal == ME else "somebody else's"
            try:
                if principal == ME:
                    webhooks.add(
                        hooks,
                        principal.key(task),
                        "echo",
                        TaskPushNotificationConfig(url=f"https://{host}/{number}", id="hook"),
                        "1.0",
                    )
                else:
                    webhooks.new_config(
                        hooks, principal.key(task), TaskPushNotificationConfig(url=f"https://{host}/{number}"), "1.0"
                    )
                tasks.append(task)
            except TooManyRequests:
                self.refused += 1
        return tasks


@pytest.mark.parametrize(("count", "answer"), [(20, NOTHING), (60, Outcome(status=500))], ids=["20", "60"])
def test_rule_09_a_host_that_answers_no_challenge_gets_thirty_and_not_a_thousand(count: int, answer: Outcome) -> None:
    stranger = Stranger(answer)
    tasks = stranger.register(count)
    assert stranger.refused == count - 20
    stranger.world.wait(HOUR_MS)
    assert stranger.posts <= 25
    stranger.world.settle(100 * HOUR_MS)
    assert stranger.posts <= 32
    found = [stranger.world.table.get_cursor(ME.key(task), "hook") for task in tasks]
    assert {cursor.state for cursor in found} == {CursorState.EXHAUSTED}


def test_the_refusal_of_the_21st_registration_says_why() -> None:
    stranger = Stranger()
    (task, *_) = stranger.register(20)
    request = TaskPushNotificationConfig(url=f"https://{HOST}/more", id="more")
    with pytest.raises(
        TooManyRequests, match=f"20 webhooks at {HOST} have not answered their challenge yet"
    ) as refused:
        webhooks.add(stranger.world.service.webhooks(), ME.key(task), "echo", request, "1.0")
    assert refused.value.retry_after_s == 600


def test_other_owners_and_other_hosts_are_not_held_back() -> None:
    stranger = Stranger()
    stranger.register(21)
    assert stranger.refused == 1
    stranger.register(2, host="another.example.com")
    stranger.register(2, host=f"{HOST}:8443")
    stranger.register(2, principal=Principal("tenant", "somebody else"))
    assert stranger.refused == 1


def test_one_answer_lets_all_webhooks_at_the_host_be_asked_and_more_be_registered() -> None:
    stranger = Stranger(Outcome(status=503))
    tasks = stranger.register(20)
    stranger.world.wait(HOUR_MS)
    stranger.answer = None
    stranger.world.wait(2 * HOUR_MS)
    table = stranger.world.table
    found = [table.get_cursor(ME.key(task), "hook") for task in tasks]
    assert {cursor.verification for cursor in found} == {Verification.VERIFIED}
    assert {cursor.position for cursor in found} == {7}
    tasks = stranger.register(40)
    assert stranger.refused == 0
    stranger.world.settle()
    assert {table.get_cursor(ME.key(task), "hook").verification for task in tasks} == {Verification.VERIFIED}


def test_a_webhook_among_many_is_verified_within_ten_minutes_of_another_s_answer() -> None:
    stranger = Stranger(Outcome(status=503))
    tasks = stranger.register(20)
    stranger.world.wait(HOUR_MS)
    stranger.answer = None
    table, world = stranger.world.table, stranger.world

    def verified() -> int:
        found = [table.get_cursor(ME.key(task), "hook").verification for task in tasks]
        return found.count(Verification.VERIFIED)

    while not verified():
        world.wait(60_000)
    world.wait(13 * 60_000)  # ten minutes, and the fifth that a wait may be longer
    assert verified() == 20


def test_a_deployment_that_only_warns_of_owners_holds_nobody_back() -> None:
    stranger = Stranger()
    world = stranger.world
    hooks = replace(world.service.webhooks(), enforce_ownership=False)
    world.service = world.service._replace(webhooks=lambda: hooks)
    world.post = replace(world.post, enforce_ownership=False)
    stranger.register(40)
    world.settle()
    assert (stranger.refused, stranger.posts) == (0, 40)
    assert len(world.receiver.effects()) == 40 * 6


def test_an_instance_reads_the_challenge_state_of_a_host_once_and_writes_nothing() -> None:
    calls = Count(frozenset({"table"}))
    stranger = Stranger(faults=calls)
    stranger.answer = None
    stranger.register(1)
    stranger.world.settle()
    world = stranger.world
    world.now += 600_000
    calls.calls.clear()
    stranger.register(30)
    world.wait(60_000)
    about = [call for call in calls.calls if "challenge_state" in call]
    assert about == ["table.get_challenge_state"] * 2, "one at a registration and one at a challenge"
    assert stranger.posts == 31


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_notifier_that_dies_at_the_count_sends_a_challenge_at_most_twice(late: bool) -> None:  # noqa: FBT001
    for number in range(1, 4):
        faults = kill_at(number, late=late, only="table.store_challenge_state")
        stranger = Stranger(faults=faults)
        stranger.answer = None
        world = stranger.world
        task = world.send("hello", push=False)
        key = ME.key(task.id)
        wanted = TaskPushNotificationConfig(url=f"https://{HOST}/", id="hook")
        world.client(partial(webhooks.add, world.service.webhooks(), key, "echo", wanted, "1.0"))
        world.settle()
        assert world.table.get_cursor(key, "hook").position == 7
        assert stranger.posts <= 2
        assert world.table.get_challenge_state(key, HOST).answered


def test_agents_of_the_deployment_are_no_strangers_to_each_other_however_many_a_new_owner_calls() -> None:
    async def fan_out(task: TaskContext) -> None:
        await asyncio.gather(*(task.call(f"call {number}", "echo", "hello") for number in range(100)))

    policy = EgressPolicy(allowed_domains=("customer.example.net",))
    world = World([agent_of(fan_out, "parent"), Writer(seconds=0).agent], policy=policy)
    hooks = replace(world.service.webhooks(), per_day=1)
    world.service = world.service._replace(webhooks=lambda: hooks)
    task, began = world.send("hello", agent="parent", push=False), world.now
    world.settle()
    done = world.get(task.id, "parent").status
    assert (done.state, world.receiver.challenges) == (TaskState.COMPLETED, [])
    assert (done.timestamp or 0) - began < 60_000
