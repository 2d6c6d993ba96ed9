"""The three workflows on Temporal: docs.temporal.io/develop/python."""

from __future__ import annotations

import asyncio
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from temporalio import activity, workflow

with workflow.unsafe.imports_passed_through():
    import lines
    from effect import effect
    from temporalio.client import Client, WorkflowExecutionStatus
    from temporalio.worker import Worker

QUEUE = "side"
TEN_S = timedelta(seconds=10)


@activity.defn
def have(run: str, name: str) -> str:
    """An activity with an effect."""
    return effect(run, name)


async def happen(run: str, name: str) -> str:
    """Executes the activity."""
    return str(await workflow.execute_activity(have, args=[run, name], start_to_close_timeout=TEN_S))


@workflow.defn(name="order")
class Order:
    """Reserves, pays, ships three parcels, sleeps, waits for approval, confirms."""

    def __init__(self) -> None:
        self.events: dict[str, str] = {}

    @workflow.run
    async def run(self, run: str, nap: float) -> str:
        done = [await happen(run, "reserve")]
        # behind: await happen(run, "check")
        done.append(await happen(run, "pay"))
        done += await asyncio.gather(*(happen(run, f"ship-{number}") for number in (1, 2, 3)))
        await asyncio.sleep(nap)
        await happen(run, "rested")
        await happen(run, "ask")
        await workflow.wait_condition(lambda: "approval" in self.events)
        done += [self.events["approval"], await happen(run, "confirm")]
        # ahead: await happen(run, "thank")
        return " ".join(done)

    @workflow.signal
    def event(self, name: str, value: str) -> None:
        self.events.setdefault(name, value)


@workflow.defn(name="map")
class Items:
    """Has an effect for each of fifty items, and adds up their numbers."""

    @workflow.run
    async def run(self, run: str, _: float) -> str:
        results = await asyncio.gather(*(happen(run, f"item-{number}") for number in range(50)))
        await happen(run, "total")
        # ahead: await happen(run, "thank")
        return str(sum(int(result.removeprefix("item-")) for result in results))


@workflow.defn(name="loop")
class Loop:
    """Three times: sleeps, waits for an event, and takes it."""

    def __init__(self) -> None:
        self.events: dict[str, str] = {}

    @workflow.run
    async def run(self, run: str, nap: float) -> str:
        for number in (1, 2, 3):
            await happen(run, f"round-{number}")
            await asyncio.sleep(nap)
            await happen(run, f"tick-{number}")
            await workflow.wait_condition(lambda name=f"event-{number}": name in self.events)
            await happen(run, f"took-{number}")
        # ahead: await happen(run, "thank")
        return " ".join(self.events[f"event-{number}"] for number in (1, 2, 3))

    @workflow.signal
    def event(self, name: str, value: str) -> None:
        self.events.setdefault(name, value)


def store() -> None:
    """Starts the server, which says its address and namespace."""
    with subprocess.Popen(
        [os.environ["TEMPORAL_SERVER"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout  # noqa: S101 - it is a pipe
        lines.ready(server.stdout.readline().strip())
        lines.serve()
        server.kill()


async def connect() -> Client:
    """A client of the server."""
    address, namespace = os.environ["STORE"].split()
    return await Client.connect(address, namespace=namespace)


async def work() -> None:
    """Runs workflows and activities."""
    with ThreadPoolExecutor(100) as pool:
        workflows, client = [Order, Items, Loop], await connect()
        async with Worker(client, task_queue=QUEUE, workflows=workflows, activities=[have], activity_executor=pool):
            lines.ready()
            await asyncio.Event().wait()


def worker(_: str) -> None:
    """Runs them in this thread's loop."""
    asyncio.run(work())


def drive() -> None:
    """Starts, signals and looks, as any client."""
    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(connect())

    def start(workflow: str, run: str, nap: float) -> None:
        loop.run_until_complete(client.start_workflow(workflow, args=[run, nap], id=run, task_queue=QUEUE))

    def signal(run: str, name: str, value: str, _: str) -> None:
        loop.run_until_complete(client.get_workflow_handle(run).signal("event", args=[name, value]))

    def result(run: str) -> str | None:
        handle = client.get_workflow_handle(run)
        status = loop.run_until_complete(handle.describe()).status
        if status == WorkflowExecutionStatus.RUNNING:
            return None
        done = status == WorkflowExecutionStatus.COMPLETED
        return str(loop.run_until_complete(handle.result())) if done else f"failed: {status}"

    lines.ready()
    lines.serve(start=start, signal=signal, result=result)


if __name__ == "__main__":
    lines.main(store=store, worker=worker, drive=drive)
