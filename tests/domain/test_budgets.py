"""Budgets as values."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_serverless.domain.budgets import METADATA_KEY, Budget, micro_usd, read_budget, usage_amounts


def test_usage_is_counted_over_all_models_and_of_its_own_amounts_only() -> None:
    usage: dict[str, dict[str, float]] = {
        "a": {"input_tokens": 5, "cost_usd": 0.25},
        "b": {"output_tokens": 7, "cache_read_tokens": 9, "x": 1},
    }
    assert usage_amounts(usage) == {"usd": 0.25, "tokens": 12}
    assert usage_amounts({}) == {"usd": 0, "tokens": 0}


@pytest.mark.parametrize(
    ("usd", "micro"), [(0, 0), (1, 1_000_000), (0.1, 100_000), (0.0000001, 1), (0.3, 300_000), (0.0000011, 2)]
)
def test_a_cost_is_counted_in_millionths_and_rounded_up(usd: float, micro: int) -> None:
    assert micro_usd({"model": {"cost_usd": usd}}) == micro


@pytest.mark.parametrize("metadata", [None, {}, {METADATA_KEY: {}}, {"other": 3}])
def test_a_message_may_have_no_budget(metadata: Any) -> None:
    assert read_budget(metadata) == Budget()


def test_a_budget_is_read_from_a_message() -> None:
    given: Any = {METADATA_KEY: {"usd": 0.5, "tokens": 3.0, "steps": 0}}
    assert read_budget(given) == Budget(0.5, 3, 0)
    assert isinstance(read_budget(given).tokens, int)
