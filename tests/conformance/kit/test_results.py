from pathlib import Path

from tests.conformance.kit import results
from tests.conformance.kit.results import Case

REPORT = """<testsuites><testsuite>
<testcase classname="tests.core" name="test_kept"/>
<testcase classname="tests.core" name="test_streams"><skipped type="pytest.skip" message="Agent streams"/></testcase>
<testcase classname="tests.core" name="test_grows"><skipped type="pytest.xfail" message="HTTPS only"/></testcase>
<testcase classname="tests.core" name="test_breaks"><failure message="expected 1,&#10;got 2|3"/></testcase>
<testcase classname="tests.core" name="test_starts"><error message="no card"/></testcase>
</testsuite></testsuites>"""

BROKEN = Case("A", "core.test_breaks", "failed", "expected 1, got 2|3")
SKIPPED = Case("A", "core.test_streams", "skipped", "Agent streams")
PASSES_IN_B = Case("B", "core.test_streams", "passed")


def test_a_report_is_read_with_every_kind_of_end(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    cases = results.read("A", tmp_path / "report.xml")
    assert [case.outcome for case in cases] == ["passed", "skipped", "expected failure", "failed", "failed"]
    assert cases[3] == BROKEN


def test_a_skip_is_explained_by_a_run_in_which_the_test_passes() -> None:
    assert results.unexplained([SKIPPED]) == [SKIPPED]
    assert results.unexplained([SKIPPED, PASSES_IN_B]) == []


def test_a_failure_is_not_explained_by_a_run_in_which_the_test_passes() -> None:
    passes = Case("B", BROKEN.test, "passed")
    assert results.unexplained([BROKEN, passes]) == [BROKEN]


def test_the_reason_of_a_skip_explains_no_failure() -> None:
    skipped = Case("A", "core.test_grpc_calls", "skipped", "no gRPC")
    failed = Case("A", "core.test_grpc_calls", "failed", "no gRPC")
    assert results.unexplained([skipped, failed]) == [failed]


def test_every_reason_has_a_row_with_its_runs_that_names_what_failed_and_counts_what_was_skipped() -> None:
    again = Case("A (1.0.1)", SKIPPED.test, "skipped", SKIPPED.text)
    assert [*results.table([SKIPPED, again, PASSES_IN_B, BROKEN])][2:] == [
        "| failed | `test_breaks` | A | **expected 1, got 2/3** |",
        "| skipped | 1 | A, A (1.0.1) | passes in B |",
    ]


def test_the_table_counts_the_results_of_each_run() -> None:
    assert [*results.figures([BROKEN, SKIPPED, PASSES_IN_B])][2:] == ["| A | 1 | 0 | 1 | 0 |", "| B | 0 | 0 | 0 | 1 |"]


def test_a_reason_can_be_read_without_the_row_above_it() -> None:
    assert [why for _, why in (*results.DEFECTS, *results.SKIPS) if "the same" in why] == []


def test_a_method_that_a_binding_lacks_is_not_explained_by_the_run_of_that_binding() -> None:
    """The kit names its transport in both: where a test does not belong, and where there is nothing to test."""
    elsewhere = Case("0.3 REST", "t.test_headers", "skipped", "Test specific to JSON-RPC transport")
    nowhere = Case("0.3 JSON-RPC", "t.test_tasks_list", "skipped", "tasks/list not supported on JSON-RPC transport")
    assert results.reason(elsewhere, {elsewhere.place: set()}) == "runs in the JSON-RPC run"
    assert results.reason(nowhere, {nowhere.place: set()}) == "A2A 0.3 has no `tasks/list` over JSON-RPC"
