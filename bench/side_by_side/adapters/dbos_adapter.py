"""The three workflows on DBOS and Postgres: docs.dbos.dev/python."""

from __future__ import annotations

import os
import time

import lines
import postgres
from dbos import DBOS, DBOSClient, DBOSConfig
from effect import effect

WAIT_S = 600


@DBOS.step()
def have(run: str, name: str) -> str:
    """A step with an effect."""
    return effect(run, name)


@DBOS.workflow()
def one(run: str, name: str) -> str:
    """A workflow of one step, of which many are enqueued."""
    return have(run, name)


@DBOS.workflow()
def order(run: str, nap: float) -> str:
    """Reserves, pays, ships three parcels, sleeps, waits for approval, confirms."""
    done = [have(run, "reserve")]
    # behind: have(run, "check")
    done.append(have(run, "pay"))
    ships = [DBOS.enqueue_workflow("items", one, run, f"ship-{number}") for number in (1, 2, 3)]
    done += [ship.get_result() for ship in ships]
    DBOS.sleep(nap)
    have(run, "rested")
    have(run, "ask")
    done.append(DBOS.recv("approval", timeout_seconds=WAIT_S))
    done.append(have(run, "confirm"))
    # ahead: have(run, "thank")
    return " ".join(done)


@DBOS.workflow()
def items(run: str, _: float) -> str:
    """Has an effect for each of fifty items, and adds up their numbers."""
    handles = [DBOS.enqueue_workflow("items", one, run, f"item-{number}") for number in range(50)]
    total = sum(int(handle.get_result().removeprefix("item-")) for handle in handles)
    have(run, "total")
    # ahead: have(run, "thank")
    return str(total)


@DBOS.workflow()
def loop(run: str, nap: float) -> str:
    """Three times: sleeps, waits for an event, and takes it."""
    got = []
    for number in (1, 2, 3):
        have(run, f"round-{number}")
        DBOS.sleep(nap)
        have(run, f"tick-{number}")
        got.append(DBOS.recv(f"event-{number}", timeout_seconds=WAIT_S))
        have(run, f"took-{number}")
    # ahead: have(run, "thank")
    return " ".join(got)


def worker(name: str) -> None:
    """Recovers what it began before, and runs what is enqueued."""
    # With `target` a machine that replaces a lost one has its name, as in a StatefulSet.
    lost = os.environ.get("LOST") if os.environ["SETTING"] == "target" else None
    config: DBOSConfig = {"name": "side", "system_database_url": os.environ["STORE"], "executor_id": lost or name}
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue("runs")
    DBOS.register_queue("items")
    lines.ready()
    while True:
        time.sleep(60)


def drive() -> None:
    """Enqueues, sends and looks, as a client outside of the application."""
    client = DBOSClient(system_database_url=os.environ["STORE"])

    def start(workflow: str, run: str, nap: float) -> None:
        name = {"map": "items"}.get(workflow, workflow)
        client.enqueue({"workflow_name": name, "queue_name": "runs", "workflow_id": run}, run, nap)

    def signal(run: str, name: str, value: str, _: str) -> None:
        client.send(run, value, name)

    def result(run: str) -> str | None:
        status = client.retrieve_workflow(run).get_status()
        if status.status in ("PENDING", "ENQUEUED"):
            return None
        return str(status.output) if status.status == "SUCCESS" else f"failed: {status.status} {status.error}"

    lines.ready()
    lines.serve(start=start, signal=signal, result=result)


if __name__ == "__main__":
    lines.main(store=postgres.serve, worker=worker, drive=drive)
