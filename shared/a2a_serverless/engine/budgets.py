"""What a task may still spend: the bounds of its agent and its caller, and its spending, from its stored results.

The spending of a called agent counts when its answer is stored. Until then the call's own budget is reserved: it was
stored before the call was sent, so a later run knows of it. It stays reserved if the agent drops the call. What the
steps under way spend is not known. They may exceed a bound, and nothing begins after them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent_errors import BudgetExceeded
from a2a_serverless.domain.budgets import DIGITS, NO_BUDGET, Budget, add, budget_of, reported_amounts, usage_amounts
from a2a_serverless.domain.call_records import OpenedCall
from a2a_serverless.domain.record_names import call_of, is_try

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.budgets import Amounts
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.step_results import StepResult

AGENT: Final = "agent"
CALLER: Final = "caller"


class TaskBudget:
    """The spending of a task, and its bounds: those of its agent and of its caller."""

    def __init__(self, agent: Budget = NO_BUDGET, caller: Budget = NO_BUDGET) -> None:
        self._bounds = {kind: (bound, CALLER) for kind, bound in caller.bounds.items()}
        for kind, bound in agent.bounds.items():
            self._bounds[kind] = min((bound, AGENT), self._bounds.get(kind, (bound, AGENT)))
        self._spent: Amounts = add({}, {})
        self._reservations: dict[str, Amounts] = {}

    @property
    def is_bounded(self) -> bool:
        """Whether there is a bound."""
        return bool(self._bounds)

    def check(self, running_steps: int = 0) -> None:
        """Raises BudgetExceeded if nothing may begin. So many steps are under way, and count as if they had ended."""
        if not self._bounds:
            return
        spent = add(self.spent(), {"steps": running_steps})
        for kind, (bound, whose) in self._bounds.items():
            if spent.get(kind, 0) >= bound:
                raise BudgetExceeded(whose, kind, spent.get(kind, 0), bound)

    def spent(self) -> Amounts:
        """What the task has spent so far, by its stored results."""
        return {kind: round(amount, DIGITS) for kind, amount in self._spent.items()}

    def count(self, name: str, result: StepResult, results: Mapping[str, StepResult]) -> None:
        """Counts a stored result of the task, once. ``results`` has the others that are known.

        The records of a call are counted by what is known of the call, so their order does not matter.
        """
        if not self._bounds:
            return
        call = call_of(name)
        usage = usage_amounts(result.usage) | {"steps": int(is_try(name))}
        if call:
            if name == call.opened:
                self._reservations[name] = OpenedCall.of(result.value).budget or {}
            elif name == call.done:
                self._reservations.pop(call.opened, None)
                usage = reported_amounts(result.value)
            elif {call.failed, call.canceled} & results.keys():
                if {call.sent, call.told} & results.keys():
                    usage = self._reservations.pop(call.opened, {})  # the spending is unknown
                elif name == call.failed:
                    self._reservations.pop(call.opened, None)
        self._spent = add(self._spent, usage)

    def count_unstored(self) -> None:
        """Counts a try of a step whose error is not stored. A later run repeats it, and counts it itself."""
        self._spent = add(self._spent, {"steps": 1})

    def left(self) -> Budget:
        """What is neither spent nor reserved."""
        amounts = self._spent_or_reserved()
        return budget_of({kind: max(0, bound - amounts[kind]) for kind, (bound, _) in self._bounds.items()})

    def share(self, request: Budget | None, *, may_wait: bool) -> Budget | None:
        """The budget of a new call, which wants that much. If nothing is left: None, or BudgetExceeded."""
        rest, wish = self.left().bounds, request.bounds if request else {}
        if all(rest.values()):
            return budget_of({kind: min(one[kind] for one in (rest, wish) if kind in one) for kind in rest | wish})
        if may_wait:
            return None
        kind = next(kind for kind, amount in rest.items() if not amount)
        bound, whose = self._bounds[kind]
        raise BudgetExceeded(whose, kind, self._spent_or_reserved()[kind], bound)

    def describe(self, *, is_over: bool) -> JsonObject | None:
        """The spending and the bounds, as the client reads them; None without a bound.

        When the task is over, the spending of its calls under way stays unknown: their shares count.
        """
        bounds: JsonObject = {kind: bound for kind, (bound, _) in self._bounds.items()}
        return (
            {"spent": {**(self._spent_or_reserved() if is_over else self.spent())}, "bounds": bounds}
            if bounds
            else None
        )

    def _spent_or_reserved(self) -> Amounts:
        amounts = reduce(add, self._reservations.values(), self.spent())
        return {kind: round(amount, DIGITS) for kind, amount in amounts.items()}
