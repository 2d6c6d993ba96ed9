"""What the tasks of an owner may still spend on a day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent_errors import BudgetExceeded
from a2a_serverless.domain.usage import MILLION

if TYPE_CHECKING:
    from a2a_serverless.engine.run_session import RunSession

MEMORY_MS: Final = 10_000


class OwnerBudget:
    """The most USD that an owner's tasks may spend on a day (UTC); 0 is no bound, and costs nothing.

    What other tasks spend is read again after ``MEMORY_MS``.
    """

    def __init__(self, session: RunSession, usd: int) -> None:
        self._session, self._usd = session, usd
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
