"""A notifier's lease on a webhook's cursor. It outlasts a POST.

Only the notifier that has the lease POSTs, and every result moves the cursor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import cursors
from a2a_serverless.domain.cursors import POST_DEADLINE_MS, Cursor, CursorState
from a2a_serverless.services.delivery_context import DeliveryContext, count_exhausted
from a2a_serverless.services.task_changes import check_written

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.model import TaskKey

STOPPED: Final = frozenset({CursorState.CLOSED, CursorState.PAUSED})


class CursorLost(Exception):
    """The notifier has lost the cursor: the cursor was deleted, replaced or paused, or the lease expired."""


class TooLittleTime(Exception):
    """Too little time is left for a POST. The notifier still has its lease."""


class CursorLease:
    """A webhook's cursor, and this notifier's lease on it.

    ``cursor`` is the last cursor that this notifier has read or written. ``verification`` is stored with the next move.
    """

    def __init__(self, context: DeliveryContext, key: TaskKey, cursor: Cursor, remaining_ms: Callable[[], int]) -> None:
        self._context, self._key, self._remaining_ms = context, key, remaining_ms
        self.cursor, self.verification = cursor, cursor.verification

    def take(self, now: int) -> None:
        """Stores a new lease. Raises Conflict if the stored cursor has changed."""
        leased_cursor = cursors.claim_lease(self.cursor, self._context.ids.new(), now=now)
        check_written(self._context.store.move_cursor(self._key, self.cursor, leased_cursor))
        self.cursor = leased_cursor

    def extend(self) -> None:
        """Makes the lease outlast a POST; raises CursorLost or TooLittleTime.

        So nothing is sent after a deletion has returned. It is called right before each attempt, because the work
        before it (storage, keys, a challenge) may have taken any time. So may the renewal itself: it is repeated if its
        answer came late, while the time suffices for the POST.
        """
        # tests/services/test_deliver.py: test_rule_08_a_renewal_that_is_answered_late_sends_nothing_under_an_old_lease
        while not cursors.covers_attempt(self.cursor, now := self._context.clock.now()):
            self.move(cursors.renew_lease(self.cursor, now=now))
            if self._remaining_ms() < POST_DEADLINE_MS:
                raise TooLittleTime

    def move(self, after: Cursor) -> None:
        """Moves the cursor; raises CursorLost."""
        if not self.try_to_move(after):
            raise CursorLost

    def try_to_move(self, after: Cursor) -> bool:
        """Moves the cursor and stores the verification state with it; False if the stored cursor has changed.

        If the cursor was closed or paused meanwhile, this stores the move, releases the lease and keeps the new state.
        If the cursor was replaced, the replacement still has our lease and waits for its end, so this releases the
        lease too. If the sweeper has postponed its next look meanwhile, this moves the cursor all the same.
        """
        store, before, after = self._context.store, self.cursor, replace(after, verification=self.verification)
        if store.move_cursor(self._key, before, after):
            self.cursor = after
            count_exhausted(self._context, self._key, after)
            return True
        stored = store.get_cursor(self._key, before.config_id)
        # A sweeper is no other notifier: if its move counted as a loss, a delivered event would be sent again.
        # tests/services/test_deliver.py: test_rule_05_a_sweep_during_a_post_changes_nothing_of_the_delivery
        if stored and stored != before and replace(stored, due_at=before.due_at) == before:
            self.cursor = stored
            return self.try_to_move(after)
        # Whoever stops a webhook waits for the end of the lease. A later lease is another notifier's: it stays.
        # test_rule_08_a_webhook_that_is_stopped_during_a_failed_attempt_is_free_and_not_due
        # test_rule_08_a_slow_notifier_leaves_a_stopped_webhook_that_another_one_is_sending_to
        if stored and stored.state in STOPPED and self.is_of(stored):
            store.move_cursor(self._key, stored, replace(after, state=stored.state, lease_until=0, due_at=None))
        elif stored and stored.incarnation != before.incarnation and cursors.same_lease(stored, before):
            store.move_cursor(self._key, stored, cursors.release_lease(stored))
        return False

    def is_of(self, stored: Cursor) -> bool:
        """Whether ``stored`` is a cursor of the same webhook, and no other lease of it was taken since."""
        return (stored.incarnation, stored.lease_no) == (self.cursor.incarnation, self.cursor.lease_no)
