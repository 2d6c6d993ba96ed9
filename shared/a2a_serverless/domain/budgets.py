"""Budgets: the most that a task may spend in USD, tokens and steps, and the amounts that it has spent."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from a2a_serverless.domain.usage import COST, LARGEST, MILLION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.usage import Usage

Amounts: TypeAlias = "dict[str, float]"
"""Amounts by the names of ``KINDS``; what is missing is 0."""
METADATA_KEY: Final = "a2a-serverless/budget"
"""The member of a message's metadata that holds a budget, and of a task's metadata that says what it has spent."""
KINDS: Final = ("usd", "tokens", "steps")
TOKENS: Final = ("input_tokens", "output_tokens")
DIGITS: Final = 9  # after the point: sums of floats in another order differ after them


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a task may spend; None is no bound.

    ``usd`` bounds the sum of ``cost_usd``, and ``tokens`` that of ``input_tokens`` and ``output_tokens``, in the usage
    that the task records; ``steps`` bounds the number of its steps. The spending of called agents counts, too. Raises
    ValueError for a bound that is negative or not finite, and for a fraction of a token or step.
    """

    usd: float | None = None
    tokens: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        for kind, bound in self.bounds.items():
            if not is_amount(bound) or (kind != "usd" and bound != int(bound)):
                raise ValueError(f"{kind} must be a {'number' if kind == 'usd' else 'whole number'} of 0 or more")

    @property
    def bounds(self) -> Amounts:
        """The bounds that there are."""
        return {kind: bound for kind, bound in asdict(self).items() if bound is not None}


NO_BUDGET: Final = Budget()


def is_amount(value: object) -> bool:
    """Whether the value is a number from 0 to ``LARGEST``."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST


def budget_of(amounts: Mapping[str, float]) -> Budget:
    """The budget with these bounds."""
    return Budget(**{kind: round(amount, DIGITS) if kind == "usd" else int(amount) for kind, amount in amounts.items()})  # type: ignore[arg-type]


def read_budget(metadata: JsonObject | None) -> Budget:
    """The budget in the metadata of a message; no bounds without one. Raises ValueError as ``Budget``."""
    value: Any = (metadata or {}).get(METADATA_KEY, {})
    if not isinstance(value, dict) or not value.keys() <= {*KINDS}:
        raise ValueError(f"must be an object with the members {', '.join(KINDS)}, or some of them")
    whole = {kind: int(bound) for kind, bound in value.items() if kind != "usd" and is_amount(bound) and bound % 1 == 0}
    return Budget(**value | whole)


def usage_amounts(usage: Usage) -> Amounts:
    """What a budget counts of a usage."""
    used = usage.values()
    tokens = sum(amounts.get(name, 0) for amounts in used for name in TOKENS)
    return {"usd": sum(amounts.get(COST, 0) for amounts in used), "tokens": tokens}


def micro_usd(usage: Usage) -> int:
    """The cost of a usage in millionths of a USD, rounded up."""
    return -int(-round(usage_amounts(usage)["usd"] * MILLION, 3) // 1)


def reported_amounts(answer: Json) -> Amounts:
    """What a called agent says in its task's metadata that the task has spent; ``answer`` is the stored answer."""
    task: Any = answer.get("task") if isinstance(answer, dict) else None
    metadata = (task.get("metadata") if isinstance(task, dict) else None) or {}
    report = metadata.get(METADATA_KEY)
    spent = report.get("spent") if isinstance(report, dict) else None
    return {kind: spent[kind] for kind in KINDS if is_amount(spent.get(kind))} if isinstance(spent, dict) else {}


def add(first: Mapping[str, float], second: Mapping[str, float]) -> Amounts:
    """The sums of the amounts."""
    return {kind: first.get(kind, 0) + second.get(kind, 0) for kind in KINDS}
