"""Keeps runs from writing after they have lost their task, and after it was erased.

A sleeping run may still finish the writes that it began before; a result of a step that comes so late does not count
once a later run has stored something (``domain/step_results.py``). While its lease lasts by its own clock, no other run
has the task, and the erasure waits until the lease and every write that began in it are over
(``a2a_serverless_tools/operators/erasure.py``). So before the end of the lease the clock fences a write, which is one
conditional put. After the lease the same transaction checks the head, which costs four times as much. An erasure
removes the head, so no run writes after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.store import items, keys
from a2a_serverless.store.table import Check

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head
    from a2a_serverless.store.table import Action, Table


class Fence:
    """The fence of the run that wrote ``head`` last. Without ``of_run`` it only checks that the task still exists."""

    def __init__(self, table: Table, head: Head, *, of_run: bool = True) -> None:
        self._table, self._head = table, head
        self._has_ended = of_run and head.is_terminal
        of_this_run = {"fence": {"N": str(head.fence)}, "state": {"S": head.state.value}}
        self._expected = of_this_run if of_run else {"created_at": {"N": str(head.created_at)}}
        self._place: Final = items.make_place(keys.task(head.key), keys.HEAD)

    @property
    def check(self) -> Action:
        """An action that fails the others of its transaction if the run has lost the task."""
        return Check(self._place, self._expected)

    def checks(self) -> list[Action]:
        """The check, unless the run's lease lasts."""
        return [] if self._head.is_leased(self._table.now()) else [self.check]

    def is_lost(self) -> bool:
        """Whether the head says that the run has ended or lost the task: then it may store nothing."""
        if self._has_ended:
            return True
        if self._head.is_leased(self._table.now()):
            return False
        item = self._table.get(self._place["pk"]["S"], self._place["sk"]["S"])
        return item is None or any(item.get(name) != value for name, value in self._expected.items())
