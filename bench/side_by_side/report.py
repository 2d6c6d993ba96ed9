"""Writes `results.md` and `results.svg` from `results.json`."""

from __future__ import annotations

import json
from html import escape
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from plays import PLAYS
from systems import HERE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from systems import System

HEAD: Final = """# Durable work under faults, side by side

Written by `make prove KIND=side-by-side`, by the rules in [README.md](README.md). {count} plays each: an order (with
parallel ships, a sleep, an approval), a map of fifty items, a loop with a timer and events. [The plot](results.svg) has
the seconds until work goes on. `logs/` has every effect.
"""
LEGEND: Final = """
*right*: of the plays that were played. *lost*: not ended 150 s after the fault, or failed. *repeated*: effects of all
plays that happened again, under way / answered within three seconds / **stored**. *goes on*: seconds from the fault to
the next effect, in the plays in which the same machine starts again (median, longest), another machine (longest), and
of a stall. *late*: seconds that a sleep ended too late, at most, without a fault.
"""
AGAIN: Final = frozenset({"before", "during", "after", "siblings", "moment"})
WIDTH, ROW, NAME, SCALE_S = 720, 22, 250, 150
FONT: Final = "font-family='system-ui,sans-serif' font-size='13'"
OURS, OTHERS, INK = "#2f81f7", "#8b949e", "#768390"

COLUMNS: Final = (
    *("system", "setting", "right", "wrong", "lost", "waits", "repeated"),
    *("goes on", "another", "stall", "late", "who must act", "load"),
)
RESULTS: Final = ("right", "wrong", "lost", "waits")

Row = tuple["System", str, dict[str, Any]]


def write(systems: Mapping[str, System]) -> None:
    """Writes both from what there is."""
    path = HERE / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    rows = [
        (system, setting, results[name][setting])
        for name, system in systems.items()
        for setting in system.lease_s
        if setting in results.get(name, {})
    ]
    played = [row for row in rows if row[2].get("plays")]
    blocks = [HEAD.format(count=len(PLAYS)), _summary(played), LEGEND]
    blocks += [f"- {one.title}: skipped. {said['skipped']}" for one, _, said in rows if said.get("skipped")]
    blocks += ["\n## Each play\n", _each(played), "\n## Our losses\n", _losses(played, ours=True)]
    blocks += ["\n## Losses of the others\n", _losses(played, ours=False)]
    blocks += [
        "\n## What waits by its documents, and what cannot be played\n",
        *_waits(played),
        "\n## Versions\n",
        *_versions(played),
    ]
    (HERE / "results.md").write_text("\n".join(blocks).rstrip() + "\n")
    (HERE / "results.svg").write_text(_plot(played))


def _summary(rows: Sequence[Row]) -> str:
    lines = [
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
    ]
    for system, setting, said in rows:
        plays = [one for one in said["plays"].values() if one["result"] != "cannot"]
        count = {
            result: sum(one["result"] == result for one in plays) for result in ("right", "wrong", "lost", "waits")
        }
        kinds = ("under way", "recent", "stored")
        repeated = [sum(one.get("repeated", {}).get(kind, 0) for one in plays) for kind in kinds]
        again = _seconds(plays, AGAIN)
        loads = [one["load"] for one in plays if "load" in one]
        cells = [
            f"**{system.title}**" if system.ours else system.title,
            setting,
            f"{count['right']}/{len(plays)}",
            *(str(count[result]) for result in RESULTS[1:]),
            f"{repeated[0]} / {repeated[1]} / **{repeated[2]}**",
            f"{median(again):.1f}, {max(again):.1f}" if again else "-",
            _longest(_seconds(plays, {"another"})),
            _longest(_seconds(plays, {"stall"})),
            _longest([one["late"] for one in plays if one.get("late") is not None and "calm" in one["name"]]),
            system.acts,
            f"{median(loads):.1f}" if loads else "-",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _seconds(plays: Iterable[dict[str, Any]], faults: Iterable[str]) -> list[float]:
    wanted = set(faults)
    return [
        one["goes on"]
        for one in plays
        if one.get("goes on") is not None and one["result"] == "right" and wanted & set(one["name"].split()[1:])
    ]


def _longest(seconds: Sequence[float]) -> str:
    return f"{max(seconds):.1f}" if seconds else "-"


def _each(rows: Sequence[Row]) -> str:
    names = [f"{system.name}<br>{setting}" for system, setting, _ in rows]
    lines = [f"| # | play | {' | '.join(names)} |", f"|---:|---|{'---|' * len(rows)}"]
    for play in PLAYS:
        cells = [_cell(said["plays"].get(str(play.number))) for _, _, said in rows]
        lines.append(f"| {play.number} | {play.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return ""
    result = one["result"] if one["result"] == "right" else f"**{one['result']}**"
    return f"{result} {one['goes on']:.1f}" if one.get("goes on") is not None and one.get("faults") else result


def _losses(rows: Sequence[Row], *, ours: bool) -> str:
    lines = []
    for system, setting, said in rows:
        bad = [one for one in said["plays"].values() if one["result"] in ("wrong", "lost", "broken")]
        if system.ours != ours:
            continue
        for one in bad:
            why = one.get("answer") or "; ".join(one.get("errors", ())) or "it does not go on"
            stored = one.get("repeated", {}).get("stored")
            why = f"{stored} stored effects happened again" if stored else why
            what = f"{system.title}, {setting}, {one['play']} {one['name']}: {one['result']}"
            known = system.known.get("_".join(one["name"].split()[1:]), "")
            lines.append(f"- {what}. {' '.join(str(why).split())[:160]}{known and f' Its documents: {known}'}")
    return "\n".join(lines) or "None."


def _waits(rows: Sequence[Row]) -> Iterator[str]:
    for system in {one.name: one for one, _, _ in rows}.values():
        for fault, how in system.waiting.items():
            yield f"- {system.title}, `{fault}` ({', '.join(how['settings'])}): {how['because']}"
        for fault, why in system.cannot.items():
            yield f"- {system.title}, `{fault}` cannot be played: {why}"


def _versions(rows: Sequence[Row]) -> Iterator[str]:
    for system, setting, said in rows:
        when = f"{said['day']}, {said['cores']} cores"
        yield f"- {system.title}, {setting}: {said['versions']}; licence {system.licence}; {when}"
        if setting == "default":
            yield from (f"    - {one}" for one in system.documents)


def _plot(rows: Sequence[Row]) -> str:
    """A line for each system and setting, from the shortest to the longest time, with a mark for each play."""
    height, scale = ROW * (len(rows) + 2), (WIDTH - NAME - 40) / SCALE_S
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' {FONT}>"
    parts = [head, "<title>Seconds until work goes on after a fault</title>"]
    for seconds in range(0, SCALE_S + 1, 30):
        at = f"{NAME + seconds * scale:.0f}"
        line = f"x1='{at}' x2='{at}' y1='{ROW}' y2='{height - 6}'"
        parts.append(f"<line {line} stroke='{INK}' stroke-opacity='0.2'/>")
        parts.append(f"<text x='{at}' y='15' fill='{INK}' text-anchor='middle'>{seconds} s</text>")
    for number, (system, setting, said) in enumerate(rows):
        y, colour = ROW * (number + 1) + 16, OURS if system.ours else OTHERS
        title = escape(f"{system.title}, {setting}")
        parts.append(f"<text x='{NAME - 10}' y='{y + 4}' fill='{INK}' text-anchor='end'>{title}</text>")
        for took in _seconds(said["plays"].values(), AGAIN | {"another", "five"}):
            x = NAME + min(took, SCALE_S) * scale
            parts.append(f"<circle cx='{x:.1f}' cy='{y}' r='4' fill='{colour}' fill-opacity='0.5'/>")
    return "\n".join([*parts, "</svg>"]) + "\n"
