"""Durable work under faults, on our library and on others (N33): what the kit in `bench/side_by_side` has recorded.

The kit takes hours, so it is no part of this run: `make prove KIND=side-by-side`. A peer is better in a play if its
result is right and that of `dev`, `work` or `up`, in the same setting, is not. A stored effect that happens again is
doubled.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from measuring import ROOT, Figure, Report, figure, goal, main, unmeasured

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KIT: Final = ROOT / "bench/side_by_side"
COMMAND: Final = "make prove KIND=side-by-side"


class Play(NamedTuple):
    """How a play has ended: ``result`` is right, wrong, lost or waits."""

    system: str
    is_ours: bool
    setting: str
    name: str
    result: str
    doubled: int


def measure(_rounds: int) -> Report:
    """Reads the results of the kit."""
    plays = list(read_plays()) if (KIT / "results.json").exists() else []
    ours = [play for play in plays if play.is_ours]
    counts = {
        "wrong plays of ours": sum(play.result == "wrong" for play in ours),
        "lost plays of ours": sum(play.result == "lost" for play in ours),
        "doubled effects of ours": sum(play.doubled for play in ours),
        "plays in which a peer is better": count_better(plays),
    }
    return Report(
        "Durable work under faults",
        __doc__ or "",
        [_figure(system, plays) for system in dict.fromkeys(play.system for play in plays)],
        [
            goal("N33", what, "<=", 0, [count]) if ours else unmeasured("N33", what, "<=", 0, COMMAND)
            for what, count in counts.items()
        ],
    )


def _figure(system: str, plays: Sequence[Play]) -> Figure:
    results = [play.result for play in plays if play.system == system]
    return figure(f"{system}, {len(results)} plays", "right", [results.count("right")])


def read_plays() -> Iterator[Play]:
    """Yields the plays of the kit's results. Plays that a system cannot play are left out."""
    systems = tomllib.loads((KIT / "systems.toml").read_text())
    results: dict[str, Any] = json.loads((KIT / "results.json").read_text())
    for system, settings in results.items():
        for setting, recorded in settings.items():
            for play in recorded.get("plays", {}).values():
                if play["result"] != "cannot":
                    doubled = play.get("repeated", {}).get("stored", 0)
                    is_ours = systems[system].get("ours", False)
                    yield Play(system, is_ours, setting, play["name"], play["result"], doubled)


def count_better(plays: Sequence[Play]) -> int:
    """Counts the plays, by setting, that are right on a peer and not on each of ours."""
    right = {(play.setting, play.name) for play in plays if not play.is_ours and play.result == "right"}
    return len(right & {(play.setting, play.name) for play in plays if play.is_ours and play.result != "right"})


if __name__ == "__main__":
    main(measure, rounds=1)
