"""The demo after the first setup: seconds from `make demo` to a finished chain with verified webhooks (N13).

The first run builds the functions and does not count. The ports are those of the local stack (`A2A_EMULATOR_PORT` and
so on), so no other stack may run there. After the chain the demo makes two pictures and stops its stack.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from measuring import ROOT, Report, figure, goal, main

LIMIT_S: Final = 20
THE_END: Final = "the end"


def measure(rounds: int) -> Report:
    """Runs the demo several times."""
    runs = [_played() for _ in range(rounds + 1)][1:]
    chains, wholes = [chain for chain, _ in runs], [whole for _, whole in runs]
    return Report(
        "The demo",
        __doc__ or "",
        [
            figure("to the end of the chain", "s", chains, ours=True),
            figure("with both pictures, and everything stopped", "s", wholes, ours=True),
        ],
        [goal("N13", "from the command to a finished chain, seconds", "<=", LIMIT_S, chains)],
    )


def _played() -> tuple[float, float]:
    """Runs a demo; returns the seconds to the end of the chain, and in all."""
    with TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("a2a-serverless")), "demo", "--json", "--out", folder]
        start = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        whole = time.monotonic() - start
    phases = json.loads(done.stdout)["phases"]
    last = next(number for number, phase in enumerate(phases) if phase["name"] == THE_END)
    return whole - sum(phase["seconds"] for phase in phases[last + 1 :]), whole


if __name__ == "__main__":
    main(measure, rounds=2)
