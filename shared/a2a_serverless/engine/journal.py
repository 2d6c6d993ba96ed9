"""The journal of a task: what its runs have stored, by name, and the order in which steps, waits and calls ended.

Every result that a run stores goes through here, so that what is in the journal is in the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.record_names import (
    CALL,
    CARD,
    FAILED,
    GOT,
    LEFT,
    OUTSIDE,
    OVER,
    RAISED,
    RAW,
    SEPARATOR,
    SIGNED,
    SPENT,
    TAGS,
    UNFINISHED,
    WAIT,
    call_of,
    path_of,
)
from a2a_serverless.domain.step_results import StepResult

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterator

    from a2a_serverless.domain.model import Json
    from a2a_serverless.engine.run_session import RunSession

_UNASKED: Final = (CARD, FAILED, GOT, LEFT, OUTSIDE, OVER, RAW, SIGNED, SPENT, TAGS, UNFINISHED, f"{WAIT}{CALL}")
"""Records that a later run need not ask for. A card that a step has read is not read again when the step has ended."""


class Journal(Mapping[str, StepResult]):
    """The stored results of the task of a session, those of earlier runs included."""

    def __init__(self, session: RunSession) -> None:
        self._session, self._results = session, session.steps()
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
        missed = (name for name in self._unread if self._is_asked_for(name))
        return sorted(missed, key=lambda name: self._results[name].moment)

    def _is_asked_for(self, name: str) -> bool:
        call, copied = call_of(name), self._session.head.copied
        is_part = call is not None and name != call.opened
        is_copied = bool(copied) and self._results[name].moment <= copied
        return not (is_part or is_copied or name.startswith(_UNASKED) or self._is_inside(name))

    def _is_inside(self, name: str) -> bool:
        """Whether the result lies in a step that has ended: its code does not run again."""
        parts = path_of(name).split(SEPARATOR)
        outer = {SEPARATOR.join(parts[:number]) for number in range(1, len(parts))}
        raised = tuple(f"{RAISED}{path}/" for path in outer)
        return bool(outer & self._results.keys()) or any(other.startswith(raised) for other in self._results)

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
