"""The fault run: every kind of fault, for as many seeds as wanted, as a table. ``make prove KIND=faults SEEDS=n``."""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console
from rich.table import Table

from tests.faults.kinds import KINDS
from tests.faults.trial import Result

TASKS = {"20 configurations each": 50, "one dead host": 100}
COLUMNS = tuple(Result.__dataclass_fields__)


def counted(name: str, seed: int, tasks: int) -> Result:
    """What came of one trial."""
    trial = KINDS[name](seed, tasks)
    trial.strangers.close()
    return trial.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--only", default="", help="part of a kind's name")
    wanted = parser.parse_args()
    started, table = time.monotonic(), Table(title=f"{len(KINDS)} kinds of fault, {wanted.seeds} seed(s)")
    for column in ("fault", *COLUMNS, "sound"):
        table.add_column(column.replace("_", " "), justify="left" if column == "fault" else "right")
    total = Result()
    for name in (name for name in KINDS if wanted.only in name):
        result = sum(
            (counted(name, seed, TASKS.get(name, wanted.tasks)) for seed in range(1, wanted.seeds + 1)), Result()
        )
        total += result
        table.add_row(name, *(f"{getattr(result, column):,}" for column in COLUMNS), _mark(result))
    table.add_section()
    table.add_row("all", *(f"{getattr(total, column):,}" for column in COLUMNS), _mark(total))
    console = Console(width=160)
    console.print(table)
    console.print(f"{time.monotonic() - started:.0f} s")
    sys.exit(0 if total.sound else 1)


def _mark(result: Result) -> str:
    return "yes" if result.sound else "NO"


if __name__ == "__main__":
    main()
