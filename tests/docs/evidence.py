"""What the documents say about AWS (``docs/evidence.toml``), and what ``make prove KIND=aws`` has seen there."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.docs.documents import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CLAIMS: Final = ROOT / "docs/evidence.toml"
RESULTS: Final = ROOT / "docs/evidence.json"
NOT_RUN: Final = (
    'Nobody has run `make prove KIND=aws` yet, so the column "run there" is empty: '
    "**no statement here has been seen on AWS.**"
)


@dataclass(frozen=True)
class Claim:
    """One statement. ``aws`` are steps of the proof, ``emulator`` and ``transformed`` tests, ``documents`` a URL."""

    says: str
    page: str
    aws: tuple[str, ...] = ()
    emulator: str = ""
    transformed: str = ""
    documents: str = ""


def claims() -> list[Claim]:
    """The statements, in their order."""
    rows = tomllib.loads(CLAIMS.read_text())["claim"]
    return [Claim(**{**row, "aws": _listed(row.get("aws", []))}) for row in rows]


def _listed(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def table(results: Path = RESULTS) -> str:
    """The table of the page, with what the proof has written, if it has."""
    found: dict[str, Any] | None = json.loads(results.read_text()) if results.exists() else None
    said = f"Run on {found['date']} in {found['where']}, at commit {found['commit']}." if found else NOT_RUN
    lines = [said, "", "| | run there | in the emulator | transformed | AWS's documents |", "|---|---|---|---|---|"]
    steps = found["steps"] if found else {}
    return "\n".join([*lines, *(_row(claim, steps) for claim in claims())])


def _row(claim: Claim, steps: dict[str, Any]) -> str:
    there = "<br>".join(f"{name}: {_told(steps[name])}" for name in claim.aws if name in steps)
    cells = [f"[{claim.says}]({claim.page})", there, _test(claim.emulator), _test(claim.transformed)]
    cells.append(f"[page]({claim.documents})" if claim.documents else "")
    return f"| {' | '.join(cells)} |" if any(cells[1:]) else f"| {cells[0]} | **none** | | | |"


def _told(step: dict[str, Any]) -> str:
    numbers = [
        f"{name.replace('_', ' ')} {value}" for name, value in step.items() if name not in {"verdict", "seconds"}
    ]
    return ", ".join([f"{step['verdict']} ({step['seconds']:.0f} s)", *numbers])


def _test(path: str) -> str:
    return f"`{path}`" if path else ""
