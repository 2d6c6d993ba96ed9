"""A hostile owner cannot starve another: neither work nor webhooks of the modest wait for its backlog."""

from __future__ import annotations

import pytest

from tests.docs.chinese import in_chinese
from tests.docs.documents import ROOT
from tests.docs.drawn import drawn_in
from tests.fairness.run import WORK_S, Size, played, table, worst

pytestmark = pytest.mark.xdist_group("fairness")  # what was played is kept in the process


def test_behind_fair_queues_nobody_waits_for_the_backlog_of_a_hostile_owner() -> None:
    in_line, fair = (played(Size(), fair=fair) for fair in (False, True))
    assert worst(in_line.work)[0] > 10 * WORK_S
    assert worst(fair.work)[0] <= WORK_S
    assert worst(fair.webhooks)[0] <= worst(in_line.webhooks)[0] / 10


def test_the_table_in_the_documents_is_as_the_run_is() -> None:
    drawn = table(Size())
    assert drawn_in(ROOT / "docs" / "access.md", "fairness") == drawn, "make drawings writes it anew"
    assert drawn_in(ROOT / "docs/zh" / "access.md", "fairness in Chinese") == in_chinese(drawn), "the same"
