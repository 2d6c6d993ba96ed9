"""How long the tests take, by the clock (N26): as `.ci/run` measured it last in this checkout.

The suites take nearly as long as all the benchmarks, so this one does not run them. `.ci/run` sets up from a fresh
clone, and calls `make test` and `make integration`; another run at the same time would make it slower.
"""

from __future__ import annotations

import json
from typing import Final

from measuring import ROOT, Report, figure, goal, main

RECORD: Final = ROOT / ".a2a/ci.json"
MINUTES: Final = {"make test": 5, ".ci/run": 15}


def measure(_rounds: int) -> Report:
    """Reads the times. Raises SystemExit if `.ci/run` has not come to its end here."""
    if not RECORD.exists():
        raise SystemExit("There are no times yet: call .ci/run first.")
    minutes = {name: seconds / 60 for name, seconds in json.loads(RECORD.read_text()).items()}
    return Report(
        "The tests",
        __doc__ or "",
        [figure(name, "minutes", [minutes[name]], ours=True) for name in MINUTES],
        [goal("N26", f"{name}, minutes", "<=", most, [minutes[name]]) for name, most in MINUTES.items()],
    )


if __name__ == "__main__":
    main(measure, rounds=1)
