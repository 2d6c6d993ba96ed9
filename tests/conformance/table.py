"""The table of docs/clients.md, from the outcomes of tests/conformance/test_official_clients.py.

``make clients`` runs these tests with this plugin, which writes ``clients.json``; tests/docs/drawn.py draws the table.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.conformance.official import OFFICIAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

FILE: Final = Path(__file__).with_name("clients.json")
PLACES: Final = ("laptop", "dev", "streaming loop", "deployed")
BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
COLUMNS: Final = {
    "card": "card",
    "signature": "card's signature",
    "send": "send, waiting",
    "at once": "send, not waiting",
    "stream": "send and stream",
    "subscribe": "subscribe",
    "get": "get",
    "list": "list",
    "cancel": "cancel",
    "webhooks": "webhooks: register and read",
    "delivery": "webhook received, verified",
    "errors": "typed errors",
}
NOT_OF_0_3: Final = {"signature", "list"}  # 0.3's cards of this project are signed for 1.0; it lists no tasks
YES: Final = "✓"
CANNOT: Final = " cannot do it itself: "

Rows = dict[str, dict[str, dict[str, list[str]]]]  # client and binding, column, place: outcomes ("" passed, or why not)


class Plugin:
    """Collects the outcome of each marked test."""

    def __init__(self) -> None:
        self.rows: Rows = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: Any = dict(report.user_properties).get("client")
        if told is None or (report.when != "call" and report.passed):
            return
        name, binding, place, columns = told
        for column in columns:
            self.rows[f"{name} {binding}"][column][place].append(_outcome(report))

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Notes at the item which cell it fills."""
        params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        marker = item.get_closest_marker("operation")
        client = params.get("seen") or params.get("seen_by_old")
        if marker and client:
            item.user_properties.append(("client", (*client, params["clients"], marker.args)))

    def pytest_sessionfinish(self) -> None:
        FILE.write_text(json.dumps(self.rows, indent=1, ensure_ascii=False) + "\n")


def _outcome(report: pytest.TestReport) -> str:
    if report.passed:
        return ""
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return "FAILED"


def pytest_configure(config: pytest.Config) -> None:
    """Registers the plugin in the process that runs the tests."""
    config.pluginmanager.register(Plugin(), "clients-table")


def draw() -> str:
    """The table, a row for each client with each binding, and under it why a cell is empty."""
    return "\n".join(_lines(json.loads(FILE.read_text())))


def _lines(rows: Rows) -> Iterator[str]:
    notes: dict[str, int] = {}
    yield f"| client | binding | {' | '.join(COLUMNS.values())} |"
    yield "|---|---|" + ":---:|" * len(COLUMNS)
    for name, official in OFFICIAL.items():
        for binding in BINDINGS:
            told: Any = rows[f"{name} {binding}"]
            cells = [draw_cell(told.get(column, {}), column, official.versions[0], notes) for column in COLUMNS]
            yield f"| {name} | {binding} | {' | '.join(cells)} |"
    yield ""
    yield from (f"{number}. {text}" for text, number in notes.items())


def draw_cell(places: dict[str, list[str]], column: str, version: str, notes: dict[str, int]) -> str:
    """A tick if it works in every place; otherwise the places where it does. The numbers are those of the reasons.

    A tick has the reasons for what the client cannot do of it.
    """
    if version == "0.3" and column in NOT_OF_0_3:
        return "–"
    works = [place for place in PLACES if "" in places.get(place, ()) and "FAILED" not in places[place]]
    missing = [place for place in PLACES if place not in works]
    lacking = [[one for one in places[place] if CANNOT in one] for place in works]
    outcomes = [*(places.get(place, ["not run"]) for place in missing), *filter(None, lacking)]
    reasons = dict.fromkeys(map(_reason, outcomes))
    numbers = ", ".join(str(notes.setdefault(reason, len(notes) + 1)) for reason in reasons)
    where = f"{YES}, not {', '.join(missing)}" if works and missing else YES if works else ""
    return " ".join(filter(None, [where, numbers and f"({numbers})"]))


def _reason(outcomes: list[str]) -> str:
    """Why a place is not served, without the client's name."""
    return "; ".join(dict.fromkeys(outcome.split(CANNOT)[-1] for outcome in outcomes if outcome))


if __name__ == "__main__":
    from tests.docs.drawn import DRAWINGS, write

    write("clients", *DRAWINGS["clients"])
