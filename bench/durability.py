"""What `make prove KIND=side-by-side` found last (N33): our library and others under the same kills, stalls, outages.

The plays take hours, so this one does not play them. Their table and their plot are in [side_by_side](side_by_side).
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from measuring import ROOT, Report, figure, goal, main

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE: Final = ROOT / "bench/side_by_side"
sys.path.insert(1, str(HERE))


def measure(_rounds: int) -> Report:
    """Reads the results. Raises SystemExit if there are none."""
    from systems import read

    path, systems = HERE / "results.json", read()
    if not path.exists():
        raise SystemExit("There are no results yet: call `make prove KIND=side-by-side` first.")
    played = {
        (name, setting): list(said["plays"].values())
        for name, settings in json.loads(path.read_text()).items()
        for setting, said in settings.items()
        if said.get("plays")
    }
    ours = [one for (name, _), plays in played.items() if systems[name].ours for one in plays]
    others = [one for (name, _), plays in played.items() if not systems[name].ours for one in plays]
    theirs = {one["name"] for one in others if one["result"] == "right"}
    behind = [one for one in ours if one["result"] in ("wrong", "lost") and one["name"] in theirs]
    values = {
        "plays with a wrong end": _count(ours, "wrong"),
        "plays that are lost": _count(ours, "lost"),
        "stored effects that happened again": sum(one.get("repeated", {}).get("stored", 0) for one in ours),
        "plays that only others end well": len(behind),
    }
    return Report(
        "Durable work beside other systems",
        __doc__ or "",
        [
            figure(
                f"{systems[name].title}, {setting}",
                "plays that end well",
                [_count(plays, "right")],
                ours=systems[name].ours,
            )
            for (name, setting), plays in played.items()
        ],
        [goal("N33", what, "<=", 0, [value]) for what, value in values.items()],
    )


def _count(plays: Sequence[Mapping[str, Any]], result: str) -> int:
    return sum(one["result"] == result for one in plays)


if __name__ == "__main__":
    main(measure, rounds=1)
