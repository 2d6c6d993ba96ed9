"""The three workflows on absurd and Postgres: docs of github.com/earendil-works/absurd."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import lines
import postgres
from absurd_sdk import Absurd, TaskContext
from effect import effect

# docs/sdks/python.md: `claim_timeout=120` by default.
CLAIM_S = {"default": 120, "target": 10}[os.environ["SETTING"]]


def have(ctx: TaskContext, run: str, name: str) -> str:
    """A step with an effect."""
    return ctx.step(name, lambda: effect(run, name))


def one(params: Any, ctx: TaskContext) -> str:  # noqa: ANN401 - JSON
    """A task of one step, of which many are spawned."""
    return have(ctx, params["run"], params["name"])


def spawned(ctx: TaskContext, app: Absurd, run: str, names: list[str]) -> list[str]:
    """Spawns a child for each name in a queue of their own, and waits for their results."""

    def spawn() -> list[str]:
        given = [({"run": run, "name": name}, f"{run}:{name}") for name in names]
        return [str(app.spawn("one", params, queue="items", idempotency_key=key)["task_id"]) for params, key in given]

    children = ctx.step(f"spawn {names[0]}", spawn)
    ended = [ctx.await_task_result(child, queue_name="items") for child in children]
    if lost := [child.state for child in ended if child.state != "completed"]:
        raise RuntimeError(f"a child is {lost[0]}")
    return [str(child.result) for child in ended]


def order(app: Absurd, params: Any, ctx: TaskContext) -> str:  # noqa: ANN401 - JSON
    """Reserves, pays, ships three parcels, sleeps, waits for approval, confirms."""
    run = params["run"]
    done = [have(ctx, run, "reserve")]
    # behind: have(ctx, run, "check")
    done.append(have(ctx, run, "pay"))
    done += spawned(ctx, app, run, ["ship-1", "ship-2", "ship-3"])
    ctx.sleep_for("nap", params["nap"])
    have(ctx, run, "rested")
    have(ctx, run, "ask")
    done.append(ctx.await_event(f"approval:{run}"))
    done.append(have(ctx, run, "confirm"))
    # ahead: have(ctx, run, "thank")
    return " ".join(done)


def items(app: Absurd, params: Any, ctx: TaskContext) -> str:  # noqa: ANN401 - JSON
    """Has an effect for each of fifty items, and adds up their numbers."""
    results = spawned(ctx, app, params["run"], [f"item-{number}" for number in range(50)])
    total = sum(int(result.removeprefix("item-")) for result in results)
    have(ctx, params["run"], "total")
    # ahead: have(ctx, params["run"], "thank")
    return str(total)


def loop(_: Absurd, params: Any, ctx: TaskContext) -> str:  # noqa: ANN401 - JSON
    """Three times: sleeps, waits for an event, and takes it."""
    run, got = params["run"], []
    for number in (1, 2, 3):
        have(ctx, run, f"round-{number}")
        ctx.sleep_for(f"nap-{number}", params["nap"])
        have(ctx, run, f"tick-{number}")
        got.append(ctx.await_event(f"event-{number}:{run}"))
        have(ctx, run, f"took-{number}")
    # ahead: have(ctx, run, "thank")
    return " ".join(got)


def client(queue: str) -> Absurd:
    """A client of a queue, with a connection of its own."""
    return Absurd(os.environ["STORE"], queue_name=queue)


def worker(name: str) -> None:
    """Runs the tasks of both queues."""
    runs, children, spawner = client("runs"), client("items"), client("runs")
    for workflow, work in {"order": order, "map": items, "loop": loop}.items():
        runs.register_task(workflow)(lambda params, ctx, work=work: work(spawner, params, ctx))
    children.register_task("one")(one)
    lines.ready()
    settings = {"worker_id": name, "claim_timeout": CLAIM_S}
    Thread(target=children.start_worker, kwargs=settings | {"concurrency": 10}).start()
    runs.start_worker(**settings)


def drive() -> None:
    """Spawns, emits and looks, as any client."""
    absurdctl = Path(sys.executable).with_name("absurdctl")
    subprocess.run([absurdctl, "init", "-d", os.environ["STORE"]], check=True, stdout=sys.stderr)
    app = client("runs")
    for queue in ("runs", "items"):
        app.create_queue(queue)
    tasks: dict[str, str] = {}

    def start(workflow: str, run: str, nap: float) -> None:
        tasks[run] = app.spawn(workflow, {"run": run, "nap": nap}, queue="runs")["task_id"]

    def signal(run: str, name: str, value: str, _: str) -> None:
        app.emit_event(f"{name}:{run}", value)

    def result(run: str) -> str | None:
        snapshot = app.fetch_task_result(tasks[run])
        if snapshot is None or snapshot.state not in ("completed", "failed", "cancelled"):
            return None
        if snapshot.state == "completed":
            return str(snapshot.result)
        return f"failed: {snapshot.state} {(snapshot.failure or {}).get('message', '')}"

    lines.ready()
    lines.serve(start=start, signal=signal, result=result)


if __name__ == "__main__":
    lines.main(store=postgres.serve, worker=worker, drive=drive)
