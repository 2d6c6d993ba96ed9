"""Each statement about AWS names what shows it, and the page shows what was seen there, or that nobody has looked."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from a2a_serverless_tools.cli.check import CHECKS
from aws_proof import JOURNEY
from tests.docs.documents import ROOT
from tests.docs.evidence import NOT_RUN, claims, table

if TYPE_CHECKING:
    from pathlib import Path

OF_THE_PROJECT = {"mirrors"}  # it says nothing about AWS
STEPS = {"deploy", "delete", *JOURNEY, *(f"check: {name}" for name in CHECKS if name not in OF_THE_PROJECT)}


def test_every_step_of_the_proof_shows_a_statement_and_every_statement_names_a_step_that_there_is() -> None:
    assert {step for claim in claims() for step in claim.aws} == STEPS


def test_every_test_and_page_that_a_statement_names_is_there() -> None:
    for claim in claims():
        for path in filter(None, (claim.emulator, claim.transformed)):
            assert (ROOT / path).is_file(), claim.says
        assert (ROOT / "docs" / claim.page.partition("#")[0]).is_file(), claim.says
        assert not claim.documents or claim.documents.startswith("https://docs.aws.amazon.com/")


def test_until_somebody_has_run_it_the_column_is_empty_and_says_so(tmp_path: Path) -> None:
    drawn = table(tmp_path / "none.json")
    assert drawn.startswith(NOT_RUN)
    rows = [line.split(" | ") for line in drawn.splitlines() if line.startswith("| [")]
    assert len(rows) == len(claims())
    assert {row[1] for row in rows} == {"", "**none**"}


def test_the_table_of_evidence_shows_verdict_and_numbers_beside_each_statement(tmp_path: Path) -> None:
    results = tmp_path / "evidence.json"
    steps = {"killed worker": {"verdict": "PASS", "seconds": 61.2, "recovered_after_s": 40}}
    results.write_text(json.dumps({"date": "2026-12-01", "where": "eu-central-1", "commit": "abc", "steps": steps}))
    drawn = table(results)
    assert drawn.startswith("Run on 2026-12-01 in eu-central-1, at commit abc.")
    (row,) = [line for line in drawn.splitlines() if "A killed worker" in line]
    assert "killed worker: PASS (61 s), recovered after s 40" in row
    assert len(re.findall("PASS", drawn)) == 1
