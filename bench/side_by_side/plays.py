"""The plays: three workflows, and what goes wrong with each. A play is a number, a workflow, and a fault."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from verdict import STORED_S, Expected

if TYPE_CHECKING:
    from collections.abc import Callable

    from player import Scene

SHIPS: Final = ["ship-1", "ship-2", "ship-3"]
ITEMS: Final = [f"item-{number}" for number in range(50)]
ROUNDS: Final = ("1", "2", "3")
STORE_AWAY_S: Final = 20.0
NAP_S, LONG_NAP_S = 2, 12


@dataclass(frozen=True)
class Workflow:
    """``at`` is the effect at which faults come, ``after`` those that are asked for when ``at`` is stored.

    ``signals`` are the events: the effect a second after which each is due, its name, and its value.
    """

    expected: Expected
    at: str
    after: list[str]
    nap: tuple[str, str]
    signals: tuple[tuple[str, str, str], ...] = ()


WORKFLOWS: Final = {
    "order": Workflow(
        Expected(
            "reserve pay ship-1 ship-2 ship-3 yes confirm",
            ["reserve", "pay", *SHIPS, "rested", "ask", "confirm"],
            ["check", "thank"],
        ),
        "pay",
        SHIPS,
        ("ship-3", "rested"),
        (("ask", "approval", "yes"),),
    ),
    "map": Workflow(Expected("1225", [*ITEMS, "total"], ["thank"]), "item-20", ["total"], ("", "")),
    "loop": Workflow(
        Expected("1 2 3", [f"{name}-{number}" for number in ROUNDS for name in ("round", "tick", "took")], ["thank"]),
        "took-1",
        ["round-2"],
        ("round-2", "tick-2"),
        tuple((f"tick-{number}", f"event-{number}", number) for number in ROUNDS),
    ),
}


def calm(scene: Scene) -> None:
    """Nothing goes wrong."""
    scene.start()


def before(scene: Scene) -> None:
    """The process dies when it asks for an effect, which does not happen; it is started again."""
    at(scene)
    scene.restart()


def during(scene: Scene) -> None:
    """The process dies when the effect has happened and is not answered; it is started again."""
    at(scene, happened=True)
    scene.restart()


def after(scene: Scene) -> None:
    """The process dies when the effect is stored and the next is asked for; it is started again."""
    kill_at(scene, scene.workflow.after)
    scene.restart()


def siblings(scene: Scene) -> None:
    """The process dies when some parallel effects are stored and others are asked for; it is started again."""
    names = SHIPS if scene.play.workflow == "order" else ITEMS
    kill_at(scene, names[2:] if names is SHIPS else names[20:])
    scene.restart()


def another(scene: Scene) -> None:
    """The machine is lost when some effects are stored. After that another machine starts, and only that."""
    kill_at(scene, scene.workflow.after)
    scene.start_worker("b")


def stall(scene: Scene) -> None:
    """The process stands still for longer than its lease, and another machine works. Then it goes on."""
    scene.start_worker("b")
    hold(scene, [scene.workflow.at], happened=True)
    scene.freeze(scene.lease_s + 10)


def five(scene: Scene) -> None:
    """The process dies five times in a row at the same effect."""
    at(scene)
    for _ in range(4):
        scene.hold([scene.workflow.at])
        scene.restart()
        scene.wait_for([scene.workflow.at])
        scene.kill()
    scene.restart()


def code_ahead(scene: Scene) -> None:
    """The process dies; until it is started, its code gets one more step at the end, where no run has been."""
    kill_at(scene, scene.workflow.after)
    scene.change_code("ahead")
    scene.restart()


def code_behind(scene: Scene) -> None:
    """The process dies; until it is started, its code gets one more step where this run has been."""
    kill_at(scene, scene.workflow.after)
    scene.change_code("behind")
    scene.restart()


def away(scene: Scene) -> None:
    """The store stands still for 20 seconds while an effect is under way, which then ends."""
    hold(scene, [scene.workflow.at], happened=True)
    scene.stop_store(STORE_AWAY_S)


def early(scene: Scene) -> None:
    """The first event comes before the workflow waits for it."""
    scene.signal_early = True
    scene.start()


def doubled(scene: Scene) -> None:
    """Each event comes twice."""
    scene.signal_twice = True
    scene.start()


def due(scene: Scene) -> None:
    """The process dies while the workflow sleeps, and is down when the timer is due."""
    scene.nap_s = LONG_NAP_S
    scene.start()
    scene.wait_for([scene.workflow.nap[0]], "answered")
    scene.let(STORED_S + 1)
    scene.kill()
    scene.let(LONG_NAP_S)
    scene.restart()


def moment(scene: Scene) -> None:
    """The process dies at a random moment: an effect, of a second each, and an offset. All systems get the same."""
    random = Random(scene.play.number)  # noqa: S311 - the same for all
    scene.effects.takes_s = 1.0
    name, offset = random.choice(["reserve", "pay", "ship-2", "rested", "ask", "confirm"]), random.uniform(0, 1)
    scene.start()
    scene.wait_for([name])
    scene.let(offset)
    scene.kill()
    scene.restart()


def hold(scene: Scene, names: list[str], *, happened: bool = False) -> None:
    """Starts the workflow, and returns when all named effects have been at their gate for a while."""
    scene.hold(names, behind=happened)
    scene.start()
    scene.wait_for(names, "done" if happened else "asked")
    scene.let(STORED_S)


def kill_at(scene: Scene, names: list[str]) -> None:
    """Kills the process when the named effects have been asked for, and all before them are stored."""
    scene.hold(names)
    scene.start()
    scene.wait_for(names[:1])
    scene.let(STORED_S + 0.5)
    scene.kill()


def at(scene: Scene, *, happened: bool = False) -> None:
    """Kills the process at the workflow's effect."""
    hold(scene, [scene.workflow.at], happened=happened)
    scene.kill()


@dataclass(frozen=True)
class Play:
    """Its number, its workflow, and what goes wrong."""

    number: int
    workflow: str
    fault: Callable[[Scene], None]

    @property
    def name(self) -> str:
        """Workflow and fault."""
        return f"{self.workflow} {self.fault.__name__.replace('_', ' ')}"


KILLS: Final = (before, during, after, another, stall, five, code_ahead, away)
PLAYS: Final = tuple(
    Play(number, workflow, fault)
    for number, (workflow, fault) in enumerate(
        (
            *(("order", fault) for fault in (calm, *KILLS, siblings, code_behind, early, doubled, due)),
            *(("order", moment) for _ in range(3)),
            *(("map", fault) for fault in (calm, *KILLS, siblings)),
            *(("loop", fault) for fault in (calm, *KILLS, early, doubled, due)),
        ),
        1,
    )
)
