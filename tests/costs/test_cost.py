"""The calculator's counts are the code's, and a million tasks stay below the goal."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

import cost
import idle
from tests.costs.usage import USAGE, counted
from tests.functions.template import resources


def flat(usage: Any, name: str = "") -> dict[str, float]:
    if isinstance(usage, dict):
        return {one: value for key, inner in usage.items() for one, value in flat(inner, f"{name}.{key}").items()}
    return {name: usage}


def test_the_usage_that_is_priced_is_what_the_code_uses_to_within_a_tenth() -> None:
    priced = flat(json.loads(USAGE.read_text()))
    assert flat(counted()) == pytest.approx(priced, rel=0.1, abs=1), "python -m tests.costs.usage counts anew"


def test_n12_a_million_queued_tasks_cost_46_and_a_half_dollars_at_most() -> None:
    assert cost.total(cost.bill(cost.Scale())) <= cost.N12_USD


def test_n17_a_deployment_that_nobody_calls_costs_4_dollars_a_month_at_most() -> None:
    assert idle.usd(idle.basic()) <= idle.N17_USD


def test_the_bill_grows_with_tasks_posts_and_waiting_and_not_otherwise() -> None:
    one, ten = (cost.total(cost.bill(cost.Scale(tasks))) for tasks in (1, 10))
    assert ten == pytest.approx(10 * one)
    more = cost.total(cost.bill(cost.Scale(posts=10)))
    slow = cost.total(cost.bill(cost.Scale(agent_seconds=30)))
    plain = cost.total(cost.bill(cost.Scale()))
    assert plain < more
    second = cost.MEMORY_GB["worker"] * cost.PRICES["per_unit"]["lambda_gb_second_arm64"]
    assert slow == pytest.approx(plain + 30 * 1_000_000 * second)


def test_a_waiting_task_costs_the_same_on_lambda_at_any_rate_and_less_in_a_busy_container() -> None:
    rare, even, busy = map(cost.waiting, (1, 100, 6000))
    assert [one.on_lambda for one in (rare, even, busy)] == [pytest.approx(0.0002, rel=0.001)] * 3
    assert rare.in_containers > rare.on_lambda
    assert even.in_containers < even.on_lambda
    assert (busy.in_containers <= 0.00002, busy.containers) == (True, 2)
    assert cost.waiting(60_000).containers == pytest.approx(cost.waiting(59_999).containers)


def test_the_memory_that_is_priced_is_that_of_the_template() -> None:
    functions = resources("AWS::Serverless::Function")
    for name, gigabytes in cost.MEMORY_GB.items():
        assert functions[f"{name.title()}Function"].get("MemorySize", 512) == gigabytes * 1024


def test_the_free_part_of_a_bill_is_smaller_than_the_bill() -> None:
    items = cost.bill(cost.Scale(tasks=1))
    assert 0 < cost.free(items) < cost.total(items)


def test_each_price_is_of_a_page_with_the_day_on_which_it_was_read_there() -> None:
    known = [name for kind in ("per_million", "per_unit", "per_month") for name in cost.PRICES[kind]]
    assert sorted(name for one in cost.PRICES["pages"] for name in one["prices"]) == sorted(known)
    for one in cost.PRICES["pages"]:
        assert one["page"].startswith("https://")
        assert one["read"] is None or date.fromisoformat(one["read"]) >= date(2026, 1, 1)
