"""The memory of a notifier: heavy deliveries share a budget, and light ones never wait for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.services import webhooks
from a2a_serverless.services.deliver import BUSY_S, DeliveryOutcome
from a2a_serverless.services.memory_budget import WAIT_MS, MemoryBudget, MemoryBusy
from tests.echo import Writer
from tests.world import ME, World, webhook

HEAVY = 40_000


class Clock:
    """A clock on which only sleeping takes time."""

    def __init__(self) -> None:
        self.ms = 0

    def now(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


def test_a_share_that_finds_no_room_waits_for_a_moment_and_is_refused() -> None:
    budget, clock = MemoryBudget(total=100, light=10), Clock()
    with budget.share(clock) as first, budget.share(clock) as second:
        assert first.take(60)
        with pytest.raises(MemoryBusy):
            second.take(41)
        assert clock.ms == WAIT_MS
        assert second.take(40)
    with budget.share(clock) as third:
        assert third.take(100)


def test_light_shares_are_always_admitted_and_a_share_that_grows_heavy_counts_whole() -> None:
    budget, clock = MemoryBudget(total=100, light=10), Clock()
    with budget.share(clock) as heavy, budget.share(clock) as light:
        assert heavy.take(95)
        assert light.take(10)
        with pytest.raises(MemoryBusy):
            light.take(1)
        heavy.release()
        assert light.take(1)
        with pytest.raises(MemoryBusy):
            heavy.take(90)


def test_the_budget_is_used_to_its_last_byte_and_no_further() -> None:
    budget, clock = MemoryBudget(total=100, light=10), Clock()
    with budget.share(clock) as one, budget.share(clock) as two, budget.share(clock) as three:
        assert one.take(60)
        assert two.take(40)
        assert three.take(10)
        with pytest.raises(MemoryBusy):
            three.take(1)
        two.release()
        assert three.take(1)
        with pytest.raises(MemoryBusy):
            two.take(30)
        assert two.take(29)
        assert (one.size, two.size, three.size) == (60, 29, 11)


def test_a_share_larger_than_the_budget_is_admitted_alone() -> None:
    budget, clock = MemoryBudget(total=100, light=10), Clock()
    with budget.share(clock) as large:
        assert large.take(60)
        assert large.take(1_000)
        with budget.share(clock) as other, pytest.raises(MemoryBusy):
            other.take(11)
    with budget.share(clock) as other:
        assert other.take(11)


def hooked(world: World, text: str, host: str) -> DeliveryMessage:
    """A task with a webhook at a host of its own, of which nothing was delivered yet."""
    key = ME.key(world.send(text, push=False).id)
    webhooks.add(world.service.webhooks(), key, "echo", webhook(f"https://{host}.example.com/", id="hook"), "1.0")
    return DeliveryMessage(key, "hook")


def test_a_heavy_delivery_that_finds_no_memory_comes_again_and_light_ones_go_on() -> None:
    world = World([Writer().agent], policy=EgressPolicy(trusted_domains=("example.com",)))
    first, second, light = hooked(world, "x" * HEAVY, "a"), hooked(world, "x" * HEAVY, "b"), hooked(world, "hello", "c")
    world.queue.clear()
    world.post = replace(world.post, memory=MemoryBudget(total=HEAVY + HEAVY // 2, light=HEAVY // 2))
    world.receiver.takes = 10_000
    began = world.now
    endings = world.together(world.notifier(first), world.notifier(second), world.notifier(light))
    assert endings == [DeliveryOutcome.CAUGHT_UP, DeliveryOutcome.NOT_YET, DeliveryOutcome.CAUGHT_UP]
    ((again_at, again),) = world.queue.waiting
    assert (again, again_at) == (second, began + WAIT_MS + BUSY_S * 1000)
    assert world.table.get_cursor(second.key, "hook").lease_until == 0
    assert world.together(world.notifier(second)) == [DeliveryOutcome.CAUGHT_UP]


def test_a_page_of_events_ends_where_its_bytes_do_and_all_are_delivered_in_order() -> None:
    world = World([Writer().agent], policy=EgressPolicy(trusted_domains=("example.com",)))
    message = hooked(world, "x" * HEAVY, "a")
    world.run(message.key)
    held: list[int] = []

    class Noted(MemoryBudget):
        def reserve(self, before: int, size: int) -> bool:
            held.append(before + size)
            return super().reserve(before, size)

    world.post = replace(world.post, memory=Noted(), page_bytes=HEAVY)
    assert world.together(world.notifier(message)) == [DeliveryOutcome.CAUGHT_UP]
    delivered = [got.n for got in world.receiver.posts]
    assert delivered == sorted(delivered)
    assert delivered[-1] == len(world.events(message.key.task))
    assert HEAVY < max(held) < HEAVY + 1_000
