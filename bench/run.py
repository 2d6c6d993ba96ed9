"""Runs the benchmarks one after the other and writes their reports: `make bench`, or `make bench ARGS="cold_start"`.

`bench/results/` has each script's JSON and plot; `bench/results.md` and `bench/results.json` are written anew from all
of them. When a script fails, the others still run, and its name is printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from measuring import ROOT
from rendering import as_markdown, as_svg, goals_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Each script, with the numbers of its goals. N27, the lines of code, is reported and has no goal.
SCRIPTS: Final = {
    "cold_start": ("N1",),
    "zips": ("N2", "N3"),
    "warm": ("N4",),
    "capacity": ("N5", "N6", "N11"),
    "inline": ("N7",),
    "latency": ("N8",),
    "hotkey": ("N8",),
    "sender": ("N9",),
    "blackhole": ("N10",),
    "million": ("N12", "N21"),
    "demo": ("N13",),
    "steps": ("N14",),
    "idle": ("N17",),
    "saving": ("N18",),
    "frameworks": ("N19",),
    "sweeping": ("N20",),
    "waking": ("N22", "N23", "N24"),
    "called": ("N25",),
    "suites": ("N26",),
    "sizes": (),
    "questions": ("N28",),
    "startup": ("N29",),
    "worst_requests": ("N30",),
    "replaying": ("N31",),
    "first_minute": ("N32",),
    "durability": ("N33",),
}
HERE = Path(__file__).parent
RESULTS = HERE / "results"
HEAD = """# Measured

Written by `make bench`. [docs/performance.md](../docs/performance.md) explains how they are measured.
A value is the median of the rounds, with its quartiles; ratios are taken within a round."""


def main(wanted: list[str]) -> int:
    """Runs the named scripts, or all; returns how many failed. Raises SystemExit for an unknown name."""
    unknown = set(wanted) - set(SCRIPTS)
    if unknown:
        raise SystemExit(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(SCRIPTS)}")
    RESULTS.mkdir(exist_ok=True)
    began = time.monotonic()
    failed = [name for name in wanted or SCRIPTS if not _run(name)]
    print(f"all: {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
    write()
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


def write() -> None:
    """Writes the page, the plots and the JSON of all results."""
    reports = {name: _read(name) for name in SCRIPTS if (RESULTS / f"{name}.json").exists()}
    (HERE / "results.json").write_text(json.dumps(reports, indent=1) + "\n")
    for name, report in reports.items():
        if report["figures"]:
            (RESULTS / f"{name}.svg").write_text(as_svg(report))
    goals = "\n\n".join([goals_table(list(reports.values())), *_missing(reports)])
    blocks = [HEAD, goals, *(_section(name, report) for name, report in reports.items())]
    (HERE / "results.md").write_text("\n\n".join(blocks).rstrip() + "\n")
    print(goals)


def _missing(reports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yields a line for each script without a result."""
    for name, numbers in SCRIPTS.items():
        if name not in reports:
            yield f'**Not measured**: {", ".join(numbers)} (`make bench ARGS="{name}"`)'


def _run(name: str) -> bool:
    started = time.monotonic()
    command = [sys.executable, str(HERE / f"{name}.py"), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    result = RESULTS / f"{name}.json"
    if done.returncode == 0:
        result.write_text(done.stdout)
    else:
        result.unlink(missing_ok=True)  # an old result would pass for one of this run
    print(f"{name}: {'done' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - started:.0f} s", flush=True)
    return done.returncode == 0


def _read(name: str) -> dict[str, Any]:
    return dict(json.loads((RESULTS / f"{name}.json").read_text()))


def _section(name: str, report: dict[str, Any]) -> str:
    command = f'`make bench ARGS="{name}"` ({report["machine"]})'
    plot = f"![{report['title']}](results/{name}.svg)" if report["figures"] else ""
    without_goals = {**report, "goals": ()}  # they are in the table above
    return f"{as_markdown(without_goals)}\n{command}\n\n{plot}"


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
