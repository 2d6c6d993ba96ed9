"""The three workflows on LangGraph's functional API with SQLite: docs.langchain.com/oss/python/langgraph."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from threading import Thread
from typing import Any

import lines
from effect import effect
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, interrupt

FILE = Path(os.environ["FOLDER"]) / "langgraph.db"
SAVER = SqliteSaver(sqlite3.connect(FILE, check_same_thread=False))


@task
def have(run: str, name: str) -> str:
    """A task with an effect."""
    return effect(run, name)


@task
def nap(seconds: float) -> None:
    """There are no timers: it sleeps in a task."""
    time.sleep(seconds)


@entrypoint(checkpointer=SAVER)
def order(given: dict[str, Any]) -> str:
    """Reserves, pays, ships three parcels, sleeps, waits for approval, confirms."""
    run = given["run"]
    done = [have(run, "reserve").result()]
    # behind: have(run, "check").result()
    done.append(have(run, "pay").result())
    ships = [have(run, f"ship-{number}") for number in (1, 2, 3)]
    done += [ship.result() for ship in ships]
    nap(given["nap"]).result()
    have(run, "rested").result()
    have(run, "ask").result()
    done.append(interrupt("May I order?"))
    done.append(have(run, "confirm").result())
    # ahead: have(run, "thank").result()
    return " ".join(done)


@entrypoint(checkpointer=SAVER)
def items(given: dict[str, Any]) -> str:
    """Has an effect for each of fifty items, and adds up their numbers."""
    futures = [have(given["run"], f"item-{number}") for number in range(50)]
    total = sum(int(future.result().removeprefix("item-")) for future in futures)
    have(given["run"], "total").result()
    # ahead: have(given["run"], "thank").result()
    return str(total)


@entrypoint(checkpointer=SAVER)
def loop(given: dict[str, Any]) -> str:
    """Three times: sleeps, waits for an event, and takes it."""
    run, got = given["run"], []
    for number in (1, 2, 3):
        have(run, f"round-{number}").result()
        nap(given["nap"]).result()
        have(run, f"tick-{number}").result()
        got.append(interrupt(f"event-{number}"))
        have(run, f"took-{number}").result()
    # ahead: have(run, "thank").result()
    return " ".join(got)


GRAPHS = {"order": order, "map": items, "loop": loop}


class Caller:
    """The program that calls a graph: it starts it, resumes it after a death, and answers its interrupts."""

    def __init__(self) -> None:
        self.name_file = Path(os.environ["FOLDER"]) / "workflow"  # which graph a thread is of, it has to know itself
        self.thread = Thread()

    def start(self, workflow: str, run: str, nap: float) -> None:
        """Invokes the graph with its input."""
        self.name_file.write_text(workflow)
        self.invoke({"run": run, "nap": nap}, run)

    def resume(self, run: str) -> None:
        """Invokes the graph again without input, if this process does not run it."""
        self.invoke(None, run)

    def signal(self, run: str, name: str, value: str, _: str) -> None:
        """Answers the interrupt, if there is one."""
        state = GRAPHS[self.name_file.read_text()].get_state(configuration(run))
        if not state.interrupts:
            raise RuntimeError(f"no interrupt waits for {name}")
        self.invoke(Command(resume=value), run)

    def result(self, run: str) -> str | None:
        """What the graph has returned."""
        state = GRAPHS[self.name_file.read_text()].get_state(configuration(run))
        return str(state.values) if state.values and not state.next else None

    def invoke(self, given: Any, run: str) -> None:  # noqa: ANN401 - LangGraph's own
        """Runs the graph in a thread: a line of the player must not wait for it."""
        if self.thread.is_alive():
            raise RuntimeError("it runs")
        graph = GRAPHS[self.name_file.read_text()]
        more = {"durability": "sync"} if os.environ["SETTING"] == "target" else {}
        self.thread = Thread(target=graph.invoke, args=(given, configuration(run)), kwargs=more, daemon=True)
        self.thread.start()


def configuration(run: str) -> Any:  # noqa: ANN401 - LangGraph's own
    """The thread of a run."""
    return {"configurable": {"thread_id": run}}


def worker(_: str) -> None:
    """Calls the graph as the player says."""
    caller = Caller()
    lines.ready()
    lines.serve(start=caller.start, resume=caller.resume, signal=caller.signal, result=caller.result)


def store() -> None:
    """The store is a file."""
    lines.ready()
    lines.serve()


if __name__ == "__main__":
    lines.main(store=store, worker=worker)
