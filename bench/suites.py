"""How long the tests take, by the clock (N26): `make test`, and all of `.ci/run` as the last one in this checkout.

`.ci/run` takes nearly as long as all the benchmarks, so this script reads the end of its log. There unit tests and
integration tests run beside each other; `make test` alone is run here. Opted out are the tests that turn off the
replays of their harness.
"""

from __future__ import annotations

import re
import subprocess
import time
from typing import Final

from measuring import ROOT, Goal, Report, figure, goal, main, unmeasured

LOG: Final = ROOT / ".a2a/ci.log"
END: Final = re.compile(r"^All checks in (\d+) seconds\.$", re.MULTILINE)
OPTED_OUT: Final = re.compile(r"mark\.replay\(False\)|replay=False")
TEST_MINUTES: Final = 5.5
CI_MINUTES: Final = 15


def measure(_rounds: int) -> Report:
    """Runs `make test`. Raises CalledProcessError if a test fails."""
    began = time.monotonic()
    subprocess.run(["make", "--silent", "test"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S607
    minutes = (time.monotonic() - began) / 60
    out = sum(len(OPTED_OUT.findall(path.read_text())) for path in (ROOT / "tests").rglob("test_*.py"))
    return Report(
        "The tests",
        __doc__ or "",
        [figure("make test", "minutes", [minutes], ours=True)],
        [
            goal("N26", "make test, minutes", "<=", TEST_MINUTES, [minutes]),
            goal("N26", "places that opt out of replays", "<=", 20, [out]),
            _ci(),
        ],
    )


def _ci() -> Goal:
    what = ".ci/run, minutes"
    ended = END.findall(LOG.read_text()) if LOG.exists() else []
    if not ended:
        return unmeasured("N26", what, "<=", CI_MINUTES, ".ci/run")
    return goal("N26", what, "<=", CI_MINUTES, [int(ended[-1]) / 60])


if __name__ == "__main__":
    main(measure, rounds=1)
