"""From an empty folder and the wheels to an agent whose task survives its process: commands and seconds (N32).

`tests/journeys/first_minute.py` plays the way twice. The first one fills the package cache; the second one counts.
"""

from __future__ import annotations

import sys
from typing import Final

from measuring import ROOT, Report, figure, goal, main

sys.path.insert(0, str(ROOT))

from tests.journeys.first_minute import play_twice

COMMANDS: Final = 3
SECONDS: Final = 60


def measure(_rounds: int) -> Report:
    """Plays the way with a warm cache."""
    _, lines = play_twice()
    kill = next(number for number, line in enumerate(lines) if line.text.startswith("kill"))
    seconds = sum(line.seconds for line in lines)
    return Report(
        "The first minute",
        __doc__ or "",
        [figure(line.text.partition("a2a-serverless ")[2], "s", [line.seconds], ours=True) for line in lines],
        [
            goal("N32", "commands to the first answer", "<=", COMMANDS, [kill]),
            goal("N32", "until the killed task has ended, s", "<=", SECONDS, [seconds]),
        ],
    )


if __name__ == "__main__":
    main(measure, rounds=1)
