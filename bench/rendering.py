"""Formats reports: Markdown tables, and SVG bar charts that are readable on light and dark pages."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OURS, OTHERS, INK, WHISKER = "#2f81f7", "#8b949e", "#768390", "#d29922"
NAME_WIDTH, BAR_WIDTH, ROW, MARGIN = 360, 330, 26, 12


def as_markdown(report: Mapping[str, Any]) -> str:
    """Formats one report: its method, goals, figures and notes."""
    blocks = [f"## {report['title']}", report["method"]]
    if report["goals"]:
        blocks.append(goals_table([report]))
    if report["figures"]:
        blocks.append(_figures_table(report["figures"]))
    blocks += [f"- {note}" for note in report["notes"]]
    return "\n\n".join(blocks) + "\n"


def goals_table(reports: Sequence[Mapping[str, Any]]) -> str:
    """Formats the goals of several reports, in the order of their numbers."""
    goals = sorted((goal for report in reports for goal in report["goals"]), key=lambda goal: int(goal["number"][1:]))
    lines = ["| # | what | goal | measured | reached |", "|---|---|---|---|---|"]
    lines += [
        f"| {goal['number']} | {goal['what']} | {goal['sense']} {number(goal['limit'])} | {result(goal)} "
        f"| {'yes' if goal['met'] else '**no**'} |"
        for goal in goals
    ]
    return "\n".join(lines)


def result(goal: Mapping[str, Any]) -> str:
    """Formats the result of a goal, or the command that measures it."""
    command = goal["command"].replace("|", "\\|")  # a bar ends the cell of a table
    return spread(goal["value"]) if goal["value"] else f"not measured: `{command}`"


def _figures_table(figures: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| | median | quartiles | rounds |", "|---|---|---|---|"]
    for one in figures:
        value = one["value"]
        quartiles = f"{number(value['low'])} to {number(value['high'])}" if value["count"] > 1 else ""
        lines.append(f"| {one['name']} | {number(value['median'])} {one['unit']} | {quartiles} | {value['count']} |")
    return "\n".join(lines)


def spread(value: Mapping[str, Any]) -> str:
    """Formats the median, and the quartiles if they differ from it."""
    middle = number(value["median"])
    quartiles = f"{number(value['low'])} to {number(value['high'])}"
    return middle if quartiles == f"{middle} to {middle}" else f"{middle} ({quartiles})"


def number(value: float) -> str:
    """Formats a number with three significant digits, or more if it has more before the point."""
    for least, digits in ((100, 0), (10, 1), (1, 2)):
        if abs(value) >= least:
            return f"{value:,.{digits}f}".removesuffix(".0").removesuffix(".00")
    return f"{value:.3g}"


def as_svg(report: Mapping[str, Any]) -> str:
    """Draws the figures as horizontal bars, ours in colour, quartiles as whiskers; one scale per unit."""
    rows: list[str] = []
    top = MARGIN
    for unit, same in groupby(report["figures"], key=lambda one: one["unit"]):
        figures = list(same)
        longest = max(one["value"]["high"] for one in figures) or 1
        rows.append(_text(NAME_WIDTH, top + 14, unit, "start", bold=True))
        top += ROW
        for one in figures:
            rows.append(_bar(one, top, BAR_WIDTH / longest))
            top += ROW
    width = NAME_WIDTH + BAR_WIDTH + 130
    style = "font-family='system-ui,sans-serif' font-size='13'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {top + MARGIN}' width='{width}' {style}>"
    return "\n".join([head, f"<title>{escape(report['title'])}</title>", *rows, "</svg>"]) + "\n"


def _bar(figure: Mapping[str, Any], top: int, scale: float) -> str:
    value, middle = figure["value"], top + 9
    width, low, high = (value[name] * scale for name in ("median", "low", "high"))
    colour = OURS if figure["ours"] else OTHERS
    parts = [
        _text(NAME_WIDTH - 10, top + 14, figure["name"], "end", bold=figure["ours"]),
        f"<rect x='{NAME_WIDTH}' y='{top}' width='{width:.1f}' height='18' rx='2' fill='{colour}'/>",
        _text(NAME_WIDTH + max(width, high) + 8, top + 14, number(value["median"]), "start"),
    ]
    if high > low:
        line = f"x1='{NAME_WIDTH + low:.1f}' x2='{NAME_WIDTH + high:.1f}' y1='{middle}' y2='{middle}'"
        parts.append(f"<line {line} stroke='{WHISKER}' stroke-width='2'/>")
    return "".join(parts)


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = " font-weight='600'" if bold else ""
    return f"<text x='{x:.1f}' y='{y}' fill='{INK}' text-anchor='{anchor}'{weight}>{escape(text)}</text>"
