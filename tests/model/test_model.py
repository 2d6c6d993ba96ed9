"""A sample of the models and of the guards; ``make prove KIND=model`` explores all."""

from __future__ import annotations

import pytest

from tests.model.guards import GUARDS, Guard
from tests.model.run import counts, explore, explore_without, models

FEW = 700
COUNTS = counts()


def test_the_counts_are_of_these_models_and_guards() -> None:
    assert [*COUNTS["models"]] == [*models()]
    assert {name: one["model"] for name, one in COUNTS["guards"].items()} == {one.says: one.model for one in GUARDS}


@pytest.mark.parametrize("name", [name for name, one in COUNTS["models"].items() if one["states"] < FEW])
def test_no_order_of_the_calls_breaks_a_model(name: str) -> None:
    result = explore(models()[name])
    assert not result.wrong, "\n".join([result.wrong, *result.trace])
    assert {"states": result.states, "steps": result.steps} == COUNTS["models"][name]


@pytest.mark.parametrize(
    "guard", [one for one in GUARDS if COUNTS["guards"][one.says]["states"] < FEW], ids=lambda one: one.says
)
def test_without_a_guard_a_model_has_a_counterexample(guard: Guard) -> None:
    result = explore_without(guard)
    assert result.wrong
    assert len(result.trace) == COUNTS["guards"][guard.says]["steps"]


def test_every_guard_stands_in_the_library() -> None:
    for guard in GUARDS:
        with guard.removed():
            pass
