"""What the foreign agents need of ours, and what became of them: a table of the last ``make foreign``, or JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

from tests.foreign.cases import CASES, Case

LINES: Final = Path(__file__).parent / "lines"
FIGURES: Final = ("kills", "wrong", "completed", "failed")
RESULTS: Final = "FOREIGN_RESULTS"
"""The variable with the file of the results, one JSON object a line."""


def note(case: Case, **figures: int) -> None:
    """Adds figures of an agent to the results, if there is a file for them."""
    if place := os.environ.get(RESULTS):
        with Path(place).open("a") as file:
            file.write(f"{json.dumps({'agent': case.id, **figures})}\n")


def flows_of(case: Case) -> list[str]:
    """What a client does with the agent."""
    possible = {
        "answer": True,
        "question": bool(case.answers),
        "stream": bool(case.streams),
        "cancel": case.has_model,
        "second task": True,
    }
    return [flow for flow, offers in possible.items() if offers]


def rows(results: Path) -> list[dict[str, Any]]:
    """A row for each agent. ``lines`` are those of ours, without blank ones."""
    figures: dict[str, Counter[str]] = defaultdict(Counter)
    for line in results.read_text().splitlines() if results.exists() else ():
        noted = json.loads(line)
        figures[noted.pop("agent")].update(noted)
    return [
        {
            "agent": case.id,
            "framework": case.framework,
            "lines": sum(map(bool, map(str.strip, (LINES / f"{case.name}.py").read_text().splitlines()))),
            "flows": flows_of(case),
            **{name: figures[case.id][name] for name in FIGURES},
        }
        for case in CASES
    ]


def main() -> int:
    """Prints the table; returns how many effects were wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    table = rows(asked.results)
    if asked.json:
        print(json.dumps(table, indent=1))
        return sum(row["wrong"] for row in table)
    print("| agent | framework | lines of ours | flows | kills | wrong effects | with a hostile model |")
    print("|---|---|---|---|---|---|---|")
    for row in table:
        hostile = f"{row['completed']} completed, {row['failed']} failed"
        figures = (row["lines"], ", ".join(row["flows"]), row["kills"], row["wrong"])
        cells = (row["agent"], row["framework"], *figures, hostile)
        print(f"| {' | '.join(map(str, cells))} |")
    return sum(row["wrong"] for row in table)


if __name__ == "__main__":
    sys.exit(main())
