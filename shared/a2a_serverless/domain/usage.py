"""The usage of models by a task: named numbers by model, such as tokens and cost."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeAlias

from a2a_serverless.domain.model import is_utf8

if TYPE_CHECKING:
    from collections.abc import Mapping

Usage: TypeAlias = "Mapping[str, Mapping[str, float]]"
"""Amounts by their names, by model."""
METADATA_KEY: Final = "a2a-serverless/usage"
"""The member of a task's metadata that holds its usage."""
LIMIT: Final = 32
"""The most models of a task, and the most amounts of a model."""
LARGEST: Final = 1e15
COST: Final = "cost_usd"
MILLION: Final = 1_000_000


def check_usage(usage: Usage) -> Usage:
    """Returns the usage; raises ValueError for too many amounts, or an amount outside of 0 to ``LARGEST``."""
    if not all(is_utf8(name) for name in chain(usage, *usage.values())):
        raise ValueError("the names of a model and of amounts have no lone surrogate")
    for amounts in usage.values():
        if len(amounts) > LIMIT or not all(0 <= amount <= LARGEST for amount in amounts.values()):
            raise ValueError(f"usage has at most {LIMIT} amounts, each from 0 to {LARGEST:g}")
    return usage


def with_cost(model: str, amounts: Mapping[str, float], prices: Usage) -> Mapping[str, float]:
    """The amounts with ``cost_usd``, unless it is there or none has a price. Prices are for a million of an amount."""
    priced = prices.get(model, {})
    if COST in amounts or not priced.keys() & amounts.keys():
        return amounts
    return {**amounts, COST: sum(amounts.get(name, 0) * price for name, price in priced.items()) / MILLION}


def add_usage(first: Usage, second: Usage) -> Usage:
    """The sums, of the first ``LIMIT`` models with ``LIMIT`` amounts each."""
    if not second:
        return first
    models = islice(dict.fromkeys(chain(first, second)), LIMIT)
    return {model: _add(first.get(model, {}), second.get(model, {})) for model in models}


def _add(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    names = islice(dict.fromkeys(chain(first, second)), LIMIT)
    return {name: first.get(name, 0) + second.get(name, 0) for name in names}
