"""Plays durable workflows under faults, on our library and on others: `make prove KIND=side-by-side`.

    make prove KIND=side-by-side SYSTEMS="dbos work" PLAYS="1 4 order"

Each play that ends replaces its earlier result in `results.json`; from all of them `results.md` and `results.svg` are
written. Raw logs are in `logs/`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import report
from player import play_once
from plays import PLAYS, Play
from systems import HERE, ROOT, System, read

if TYPE_CHECKING:
    from collections.abc import Sequence

RESULTS, LOGS, FOLDER = HERE / "results.json", HERE / "logs", ROOT / ".a2a/side"

VERSIONS = """import importlib.metadata, sqlite3, sys
told = [f"{name} {importlib.metadata.version(name)}" for name in sys.argv[1:]]
print(*told, f"SQLite {sqlite3.sqlite_version}", sep=", ")"""


def main() -> None:
    """Plays what is asked for, one system after the other."""
    systems = read()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", nargs="*", default=list(systems), choices=list(systems))
    parser.add_argument("--plays", nargs="*", default=[], help="numbers, workflows or faults; all by default")
    parser.add_argument("--settings", nargs="*", default=["default", "target"])
    parser.add_argument("--jobs", type=int, default=2, help="plays of a system at the same time")
    parser.add_argument("--table", action="store_true", help="only write the table anew")
    asked = parser.parse_args()
    for name in [] if asked.table else asked.systems or list(systems):
        system = systems[name]
        for setting in [one for one in system.lease_s if one in asked.settings]:
            if system.program and not system.found:
                print(f"{name}: skipped. {system.command}", flush=True)
                _store(system, setting, [], skipped=system.command)
                continue
            plays = [one for one in PLAYS if not asked.plays or {str(one.number), *one.name.split()} & {*asked.plays}]
            with ThreadPoolExecutor(asked.jobs) as pool:
                for done in as_completed(pool.submit(_play, system, setting, play) for play in plays):
                    _store(system, setting, [done.result()])
    report.write(systems)


def _play(system: System, setting: str, play: Play) -> dict[str, Any]:
    if why := system.why_not(play):
        return {"play": play.number, "name": play.name, "result": "cannot", "errors": [why]}
    return play_once(system, setting, play, FOLDER / f"{system.name}-{setting}-{play.number}")


def _store(system: System, setting: str, played: list[dict[str, Any]], skipped: str = "") -> None:
    """Replaces the plays of a system and setting, and their log: a line for each effect."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    mine = results.setdefault(system.name, {}).setdefault(setting, {})
    mine.pop("skipped", None)
    if skipped:
        mine["skipped"] = skipped
    else:
        mine |= {"versions": _versions(system), "day": f"{datetime.now(UTC):%Y-%m-%d}", "cores": os.cpu_count()}
    LOGS.mkdir(exist_ok=True)
    path = LOGS / f"{system.name}-{setting}.txt"
    logs = path.read_text().split("\n\n") if path.exists() else []
    kept = {one.split(" ", 1)[0]: one.strip() for one in logs if one.strip()}
    plays = mine.setdefault("plays", {})
    for one in played:
        rows = one.pop("log", [])
        plays[str(one["play"])] = one
        pids = list(dict.fromkeys(row[1] for row in rows))
        head = f"{one['play']} {one['name']}: faults {one.get('faults', [])}; effect, process, asked, done, answered"
        kept[str(one["play"])] = "\n".join([head, *(_line(row, pids) for row in rows)])
    mine["plays"] = dict(sorted(plays.items(), key=lambda item: int(item[0])))
    if kept:
        path.write_text("\n\n".join(kept[key] for key in sorted(kept, key=int)) + "\n")
    text = json.dumps(dict(sorted(results.items())), indent=1)
    RESULTS.write_text(text.replace(str(ROOT), ".") + "\n")  # no path of this machine


def _line(row: Sequence[Any], pids: list[int]) -> str:
    times = ("-" if one is None else f"{one:.2f}" for one in row[2:])
    return " ".join((str(row[0]), f"p{pids.index(row[1]) + 1}", *times))


def _versions(system: System) -> str:
    names = system.packages or ["a2a-serverless"]
    told = subprocess.run([system.python, "-c", VERSIONS, *names], stdout=subprocess.PIPE, text=True, check=True)
    return f"{told.stdout.strip()}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
