"""The three workflows on a2a-serverless: docs/steps.md, docs/waiting.md, docs/approval.md."""

from __future__ import annotations

import asyncio

from effect import effect

from a2a_serverless import Skill, TaskContext, agent

SKILL = Skill("flow", "Flow", "Has effects.", ("bench",))


@agent(id="order", name="Order", description="An order.", skills=[SKILL])
async def order(task: TaskContext) -> str:
    """Reserves, pays, ships three parcels, sleeps, asks for approval, confirms."""
    run, nap = task.text().split()
    done = [await have(task, run, "reserve")]
    # behind: await have(task, run, "check")
    done.append(await have(task, run, "pay"))
    done += await asyncio.gather(*(have(task, run, f"ship-{number}") for number in (1, 2, 3)))
    await task.sleep("nap", float(nap))
    await have(task, run, "rested")
    await have(task, run, "ask")
    done.append((await task.ask("May I order?")).text())
    done.append(await have(task, run, "confirm"))
    # ahead: await have(task, run, "thank")
    return " ".join(done)


@agent(id="map", name="Map", description="Fifty items.", skills=[SKILL])
async def items(task: TaskContext) -> str:
    """Has an effect for each of fifty items, and adds up their numbers."""
    run, _ = task.text().split()

    async def item(number: int) -> int:
        return int((await happen(run, f"item-{number}")).removeprefix("item-"))

    total = sum(await task.map("item", item, range(50)))
    await have(task, run, "total")
    # ahead: await have(task, run, "thank")
    return str(total)


@agent(id="loop", name="Loop", description="A timer and events.", skills=[SKILL])
async def loop(task: TaskContext) -> str:
    """Three times: makes an address for an event, sleeps, waits for the event, and takes it."""
    run, nap = task.text().split()
    got = []
    for number in (1, 2, 3):
        event = await task.callback(f"event-{number}")
        await have(task, run, f"round-{number}", event.url)
        await task.sleep(f"nap-{number}", float(nap))
        await have(task, run, f"tick-{number}")
        got.append(str((await event.received()).json()))
        await have(task, run, f"took-{number}")
    # ahead: await have(task, run, "thank")
    return " ".join(got)


async def have(task: TaskContext, run: str, name: str, address: str = "") -> str:
    """A step with an effect."""
    return await task.step(name, happen, run, name, address)


async def happen(run: str, name: str, address: str = "") -> str:
    """The effect, in a thread."""
    return await asyncio.to_thread(effect, run, name, address)
