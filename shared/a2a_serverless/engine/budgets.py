"""What a task may still spend: the bounds of its agent and its caller, and its spending, from its stored results.

The spending of a called agent counts when its answer is stored. Until then the call's own budget is reserved: it was
stored before the call was sent, so a later run knows of it. It stays reserved if the agent drops the call. What the
steps under way spend is not known. They may exceed a bound, and nothing begins after them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent_errors import BudgetExceeded
from a2a_serverless.domain.budgets import DIGITS, Budget, add, budget_of, reported_amounts, usage_amounts
from a2a_serverless.domain.call_records import OpenedCall
from a2a_serverless.domain.record_names import call_of, is_try
from a2a_serverless.domain.usage import MILLION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sized

    from a2a_serverless.domain.budgets import Amounts
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.step_results import StepResult
    from a2a_serverless.engine.run_session import RunSession

AGENT: Final = "agent"
CALLER: Final = "caller"
MEMORY_MS: Final = 10_000


class OwnerBudget:
    """The most USD that an owner's tasks may spend on a day (UTC); 0 is no bound, and costs nothing.

    What other tasks spend is read again after ``MEMORY_MS``.
    """

    def __init__(self, session: RunSession, usd: int) -> None:
        self._session, self._usd = session, usd
        session.counts_spending = usd > 0
        self._read_at = session.now() - MEMORY_MS
        self._others = 0

    def check(self) -> None:
        """Raises BudgetExceeded if nothing may begin."""
        if not self._usd:
            return
        session = self._session
        if session.now() - self._read_at >= MEMORY_MS:
            self._others, self._read_at = session.read_spent() - session.spent, session.now()
        if (spent := (self._others + session.spent) / MILLION) >= self._usd:
            raise BudgetExceeded("owner and day", "usd", spent, self._usd)


class TaskBudget:
    """The spending of a task with these stored ``results``, and its bounds. ``running`` are the steps under way.

    Results up to the moment ``copied`` do not count: the task that this one repeats has paid for them.
    """

    def __init__(
        self, agent: Budget, caller: Budget, results: Mapping[str, StepResult], running: Sized, copied: int = 0
    ) -> None:
        self._bounds = {kind: (bound, CALLER) for kind, bound in caller.bounds.items()}
        for kind, bound in agent.bounds.items():
            self._bounds[kind] = min((bound, AGENT), self._bounds.get(kind, (bound, AGENT)))
        self._results, self._running, self._copied = results, running, copied
        self._counted = 0
        self._spent: Amounts = add({}, {})
        self._reserved: dict[str, Amounts] = {}

    @property
    def is_bounded(self) -> bool:
        """Whether there is a bound."""
        return bool(self._bounds)

    def check(self, *, for_step: bool = False) -> None:
        """Raises BudgetExceeded if nothing may begin. For a step, the steps under way count as steps."""
        if not self._bounds:
            return
        spent = add(self.spent(), {"steps": len(self._running) if for_step else 0})
        for kind, (bound, whose) in self._bounds.items():
            if spent.get(kind, 0) >= bound:
                raise BudgetExceeded(whose, kind, spent.get(kind, 0), bound)

    def spent(self) -> Amounts:
        """What the task has spent so far, by its stored results."""
        for name, result in [*self._results.items()][self._counted :]:
            self._counted += 1
            self._count(name, result)
        return {kind: round(amount, DIGITS) for kind, amount in self._spent.items()}

    def count_unstored(self) -> None:
        """Counts a try of a step whose error is not stored. A later run repeats it, and counts it itself."""
        self._spent = add(self._spent, {"steps": 1})

    def left(self) -> Budget:
        """What is neither spent nor reserved."""
        taken = self._taken()
        return budget_of({kind: max(0, bound - taken[kind]) for kind, (bound, _) in self._bounds.items()})

    def share(self, wanted: Budget | None, *, may_wait: bool) -> Budget | None:
        """The budget of a new call, which wants that much. If nothing is left: None, or BudgetExceeded."""
        left, wish = self.left().bounds, wanted.bounds if wanted else {}
        if all(left.values()):
            return budget_of({kind: min(one[kind] for one in (left, wish) if kind in one) for kind in left | wish})
        if may_wait:
            return None
        kind = next(kind for kind, amount in left.items() if not amount)
        bound, whose = self._bounds[kind]
        raise BudgetExceeded(whose, kind, self._taken()[kind], bound)

    def describe(self, *, is_over: bool) -> JsonObject | None:
        """The spending and the bounds, as the client reads them; None without a bound.

        When the task is over, the spending of its calls under way stays unknown: their shares count.
        """
        bounds: JsonObject = {kind: bound for kind, (bound, _) in self._bounds.items()}
        return {"spent": {**(self._taken() if is_over else self.spent())}, "bounds": bounds} if bounds else None

    def _taken(self) -> Amounts:
        taken = reduce(add, self._reserved.values(), self.spent())
        return {kind: round(amount, DIGITS) for kind, amount in taken.items()}

    def _count(self, name: str, result: StepResult) -> None:
        call = call_of(name)
        if 0 < self._results.get(call.opened if call else name, result).moment <= self._copied:
            return
        used = usage_amounts(result.usage) | {"steps": int(is_try(name))}
        if call:
            if name == call.opened:
                self._reserved[name] = OpenedCall.of(result.value).budget or {}
            elif name == call.done:
                self._reserved.pop(call.opened, None)
                used = reported_amounts(result.value)
            elif {call.failed, call.canceled} & self._results.keys():
                if {call.sent, call.told} & self._results.keys():
                    used = self._reserved.pop(call.opened, {})  # the spending is unknown
                elif name == call.failed:
                    self._reserved.pop(call.opened, None)
        self._spent = add(self._spent, used)
