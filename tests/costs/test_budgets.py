"""Work grows as its budget says: in a line, and no faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.costs.budgets import BUDGETS, SHOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.costs.budgets import Budget

SIZES: Final = (1, 2, 4)
LOOSE: Final = 0.1  # a line that is more than this above what is counted says nothing


def counted(budget: Budget) -> dict[int, Mapping[str, int]]:
    return {times * budget.n: budget.count(times * budget.n) for times in SIZES}


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.what)
def test_work_grows_in_the_line_of_its_budget(budget: Budget) -> None:
    for n, used in counted(budget).items():
        assert {name for name in SHOWN if used.get(name)} <= set(budget.most), "what no budget names is not used"
        above = {name: (used.get(name, 0), n) for name, line in budget.most.items() if used.get(name, 0) > line.at(n)}
        assert above == {}, "more than its budget"
        loose = {
            name: (used.get(name, 0), n)
            for name, line in budget.most.items()
            if line.at(n) > used.get(name, 0) * (1 + LOOSE) + 1
        }
        assert loose == {}, "less than its budget, which should be lower"


@pytest.mark.parametrize("budget", [one for one in BUDGETS if one.goal], ids=lambda budget: budget.what)
def test_a_budget_is_within_the_goal_of_the_project(budget: Budget) -> None:
    assert budget.goal
    for name, limit in budget.goal.most.items():
        assert all(budget.most[name].at(n) <= limit.at(n) for n in (4 * budget.n, 1000)), budget.goal.number
