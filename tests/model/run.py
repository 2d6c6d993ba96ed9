"""Explores the models, then again without each guard, and prints the counterexamples: ``make prove KIND=model``.

The counts are compared with ``counts.json``, from which docs/guarantees.md is drawn; ``--write`` writes them anew.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import typer

from tests.model import key_rings, logs, runs, webhooks
from tests.model.explorer import Explorer, Model, Result
from tests.model.guards import GUARDS, Guard
from tests.model.ports import Ports

COUNTS = Path(__file__).with_name("counts.json")


def models() -> dict[str, Model]:
    """All models by name."""
    found = [*logs.models(), *runs.models(), *webhooks.models(), *key_rings.models()]
    return {model.name: model for model in found}


def explore(model: Model) -> Result:
    """Explores a model to its end, or to its first counterexample."""
    return Explorer(model, Ports).run()


def explore_without(guard: Guard) -> Result:
    """Explores the model of a guard without the guard."""
    with guard.removed():
        return explore(models()[guard.model])


def counts() -> dict[str, Any]:
    """The counts that were written last: of each model, and of each guard's counterexample."""
    found: dict[str, Any] = json.loads(COUNTS.read_text())
    return found


def table() -> str:
    """The models by what they are of, their states, and how many guards they need, as docs/guarantees.md has it."""
    known = counts()
    lines = [
        "| models of | models | states | steps | guards: without any one of them, a model fails |",
        "|---|---:|---:|---:|---:|",
    ]
    topics = dict.fromkeys(_topic(name) for name in known["models"])
    return "\n".join([*lines, *(_row(topic, topic, known) for topic in topics), _row("all", "", known)])


def _topic(name: str) -> str:
    return name.partition(":")[0].removesuffix(" and head")


def _row(title: str, topic: str, known: dict[str, Any]) -> str:
    found = [one for name, one in known["models"].items() if topic in {"", _topic(name)}]
    needed = sum(topic in {"", _topic(guard["model"])} for guard in known["guards"].values())
    states, steps = (sum(one[what] for one in found) for what in ("states", "steps"))
    return f"| {title} | {len(found)} | {states:,} | {steps:,} | {needed} |"


def _explore_models() -> tuple[dict[str, Any], bool]:
    found, fine = {}, True
    for name, model in models().items():
        result = explore(model)
        found[name] = {"states": result.states, "steps": result.steps}
        typer.echo(f"{name}: {result.states:,} states, {result.steps:,} steps. {result.wrong or 'Nothing is wrong.'}")
        if result.wrong:
            fine = False
            _show(result)
    return found, fine


def _explore_guards() -> tuple[dict[str, Any], bool]:
    found, fine = {}, True
    for guard in GUARDS:
        result = explore_without(guard)
        found[guard.says] = {"model": guard.model, "states": result.states, "steps": len(result.trace)}
        fine = fine and bool(result.wrong)
        typer.echo(f"\nWithout: {guard.says} ({guard.model})\n  {result.wrong or 'NOTHING IS WRONG: it is no guard'}")
        _show(result)
    return found, fine


def _show(result: Result) -> None:
    for number, step in enumerate(result.trace, 1):
        typer.echo(f"  {number:3} {step}")


def main(*, write: bool) -> int:
    """Returns the exit status: 1 if a model fails, a guard is not needed, or a count is not the written one."""
    logging.disable(logging.CRITICAL)
    (of_models, fine), (of_guards, needed) = _explore_models(), _explore_guards()
    found = {"models": of_models, "guards": of_guards}
    if write:
        COUNTS.write_text(json.dumps(found, indent=1) + "\n")
    same = found == counts()
    typer.echo("\n" + table() if same else "\ncounts.json has other counts: make prove KIND=model ARGS=--write")
    return 0 if fine and needed and same else 1


if __name__ == "__main__":
    sys.exit(main(write="--write" in sys.argv))
