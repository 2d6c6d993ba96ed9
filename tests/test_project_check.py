"""The process that imports a project's agents: how long it may calculate, and how long it may wait."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from a2a_serverless_tools.project_check import function_environment, run_import

AGENTS = "\nprint('[1]')"
WAITS = "import time; time.sleep(2)"
CALCULATES = "while True: pass"
UNSHAKEN = f"import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n{CALCULATES}"


def imported(code: str, **limits: Any) -> Any:
    return run_import([sys.executable, "-c", code + AGENTS], function_environment(), ValueError, **limits)


def test_an_import_that_gets_no_processor_for_a_while_is_not_refused() -> None:
    assert imported(WAITS, cpu_s=1) == [1]


def test_an_import_that_calculates_for_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^importing the agents takes more than 1 s of CPU time$"):
        imported(CALCULATES, cpu_s=1)


@pytest.mark.parametrize("code", ["import time; time.sleep(600)", UNSHAKEN])
def test_an_import_that_never_comes_to_an_end_is_refused_by_the_clock(code: str) -> None:
    with pytest.raises(ValueError, match=r"^importing the agents takes longer than 3 s$"):
        imported(code, cpu_s=1, longest_s=3)
