"""Every requirement of A2A for a server has a test or a written deviation, and each of those names its requirements.

A test names the rows of ``requirements.toml`` that it tests: ``@pytest.mark.requirement(9, 12)``. A deviation names
them in the last column of docs/deviations.md.
"""

from __future__ import annotations

import pytest

from tests.requirements import DEVIATIONS, Requirement, marked_tests, requirements, rows_by_deviation

ROWS = {one.number: one for one in requirements()}
OURS = [one for one in requirements() if one.ours]
OTHERS = [one for one in requirements() if not one.ours]


def number(row: Requirement) -> str:
    return str(row.number)


def test_the_rows_are_numbered_from_1_to_128_and_none_is_missing() -> None:
    assert [one.number for one in requirements()] == list(range(1, 129))
    assert all(one.section and one.says for one in requirements())
    assert {one.level for one in requirements()} <= {"MUST", "SHOULD", "MUST and SHOULD", "SHOULD and MUST"}


@pytest.mark.parametrize("row", OURS, ids=number)
def test_each_requirement_for_a_server_has_a_test_or_a_written_deviation(row: Requirement) -> None:
    assert marked_tests().get(row.number) or row.deviations, row.says
    assert not row.because


@pytest.mark.parametrize("row", OTHERS, ids=number)
def test_each_requirement_for_another_party_names_the_party_and_the_reason(row: Requirement) -> None:
    assert row.of in {"client", "custom binding", "sdk", "specification"}
    assert row.because
    assert not row.deviations


def test_no_test_names_a_row_that_there_is_not() -> None:
    assert {number: names for number, names in marked_tests().items() if number not in ROWS} == {}


def test_no_test_names_a_row_that_does_not_concern_a_server() -> None:
    assert {number: names for number, names in marked_tests().items() if not ROWS[number].ours} == {}


def test_rows_and_deviations_name_each_other() -> None:
    named = {(one.number, key) for one in requirements() for key in one.deviations}
    assert named == {(number, key) for key, numbers in rows_by_deviation().items() for number in numbers}


def test_every_deviation_has_a_key_of_its_own() -> None:
    lines = [line for line in DEVIATIONS.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows_by_deviation()) == len(lines)
