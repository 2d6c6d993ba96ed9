"""How much processor time a fresh process of the command line uses: `--version`, and completions of shells (N29)."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Final

from measuring import Report, cpu_ms, figure, goal, main, side_by_side

PROGRAM: Final = Path(sys.executable).with_name("a2a-serverless")
LIMIT_MS: Final = 300
COMPLETE: Final = "_A2A_SERVERLESS_COMPLETE"
STARTS: Final[dict[str, tuple[tuple[str, ...], dict[str, str]]]] = {
    "--version": (("--version",), {}),
    "completion, bash": ((), {COMPLETE: "complete_bash", "COMP_WORDS": "a2a-serverless ca", "COMP_CWORD": "1"}),
    "completion, zsh": ((), {COMPLETE: "complete_zsh", "_TYPER_COMPLETE_ARGS": "a2a-serverless send --f"}),
}


def measure(rounds: int) -> Report:
    """Starts each in each round."""
    candidates = {
        name: partial(cpu_ms, [PROGRAM, *arguments], {**os.environ, **variables})
        for name, (arguments, variables) in STARTS.items()
    }
    values = side_by_side(candidates, rounds)
    return Report(
        "The command line starts",
        __doc__ or "",
        [figure(name, "ms", times, ours=True) for name, times in values.items()],
        [goal("N29", f"{name}, CPU ms", "<=", LIMIT_MS, times) for name, times in values.items()],
    )


if __name__ == "__main__":
    main(measure, rounds=11)
