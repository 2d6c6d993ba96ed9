"""The journal of a task: what its runs have stored, by name, and the order in which steps, waits and calls ended.

Every result that a run stores goes through here, so that what is in the journal is in the store.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from a2a_serverless.domain.record_names import call_of, ended_steps, is_optional, names_inside
from a2a_serverless.domain.step_results import StepResult

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterator

    from a2a_serverless.domain.model import Json
    from a2a_serverless.engine.run_session import RunSession


class Journal(Mapping[str, StepResult]):
    """The stored results of the task of a session, those of earlier runs included."""

    def __init__(self, session: RunSession) -> None:
        self._session, self._results = session, session.steps()
        self._canceled = set[str]()
        self._unread = dict.fromkeys(self._results)
        self._last = max((result.sequence for result in self._results.values()), default=0)
        for name, result in self._results.items():
            self._count(name, result)

    def __getitem__(self, name: str) -> StepResult:
        self._unread.pop(name, None)
        return self._results[name]

    def items(self) -> ItemsView[str, StepResult]:
        """See ``Mapping.items``. It does not count as reading the results."""
        return self._results.items()

    @property
    def results(self) -> Mapping[str, StepResult]:
        """The stored results. To look here does not count as reading them."""
        return self._results

    @property
    def unread(self) -> list[str]:
        """The names of the results of earlier runs that no code of this run has asked for."""
        return [*self._unread]

    def missed(self) -> list[str]:
        """The names of the results of earlier runs that the code of this run, at its end, had to ask for and did not.

        They are in the order in which they were stored. Those that a retry has copied may be of other code.
        """
        over = self.names_inside_of_ended()
        missed = (name for name in self._unread if name not in over and self._is_asked_for(name))
        return sorted(missed, key=lambda name: self._results[name].moment)

    def note_canceled(self, path: str) -> None:
        """The code of this run has canceled the step of this path, perhaps before its work came to what is stored."""
        self._canceled.add(path)

    def names_inside_of_ended(self) -> set[str]:
        """The names of the results that lie in steps that have ended, or were canceled: their code runs no more."""
        moments = {name: result.moment for name, result in self._results.items()}
        return names_inside(moments, ended_steps(moments) | dict.fromkeys(self._canceled, sys.maxsize))

    def _is_asked_for(self, name: str) -> bool:
        copied = self._session.head.copied
        is_copied = bool(copied) and self._results[name].moment <= copied
        return not (is_copied or is_optional(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def next_number(self) -> int:
        """The number of the next ending."""
        self._last += 1
        return self._last

    def store(self, name: str, result: StepResult) -> StepResult:
        """Stores a result unless one is stored under this name; returns the stored one."""
        entry = self._session.store_step(name, result)
        self.note(name, entry)
        return entry

    def store_once(self, name: str, value: Json, sequence: int = 0) -> Json:
        """As ``store`` with a value; without a write if the journal has the name."""
        return (self.get(name) or self.store(name, StepResult("", value, sequence=sequence))).value

    def read(self, name: str) -> None:
        """Reads a result that is stored from outside the run, unless the journal has it."""
        if name not in self and (result := self._session.read_step(name)):
            self.note(name, result)

    def note(self, name: str, result: StepResult) -> None:
        """Adds a result that is stored already, in another transaction."""
        is_new, self._results[name] = name not in self._results, result
        if is_new:
            self._count(name, result)

    def _count(self, name: str, result: StepResult) -> None:
        """Lets the task's budget count a result, unless it is a copy: the task that this one repeats has paid for it.

        The records of a copied call, too: its first one tells whether the call was copied.
        """
        call = call_of(name)
        first = self._results.get(call.opened, result) if call else result
        if first.moment > self._session.head.copied:
            self._session.budget.count(name, result, self._results)
