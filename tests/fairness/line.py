"""A queue before a bounded number of consumers, as SQS documents its standard queues: in line, or fair.

A fair queue calls an owner noisy that has more than a tenth of the messages in flight and at least 30 of them, or that
has taken more than a tenth of the consumers' time of late; then messages of quiet owners go first (Amazon SQS Developer
Guide, "How fair queues work").
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.sqs import group_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.domain.queue_messages import QueueMessage

LATELY_MS: Final = 60_000
SHARE: Final = 0.1
IN_FLIGHT: Final = 30


class Line:
    """``ports.Queues``. ``fair`` is whether messages are told apart by their groups."""

    def __init__(self, now: Callable[[], int], *, fair: bool) -> None:
        self._now = now
        self._fair = fair
        self._lock = RLock()
        self._order = count()
        self._waiting: list[tuple[int, int, QueueMessage]] = []
        self._in_flight: dict[int, tuple[str, int]] = {}
        self._spent: list[tuple[int, str, int]] = []

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        with self._lock:
            self._waiting.append((self._now() + delay_s * 1000, next(self._order), message))

    def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
        for message in queues:
            self.enqueue(message)

    def take(self, kind: type[QueueMessage]) -> tuple[int, QueueMessage] | None:
        """The next message of a kind, and the number by which it is said to be done."""
        with self._lock:
            ready = [row for row in self._waiting if row[0] <= self._now() and isinstance(row[2], kind)]
            if not ready:
                return None
            chosen = min(ready, key=lambda row: (self._fair and self._noisy(group_of(row[2].key)), row[0], row[1]))
            self._waiting.remove(chosen)
            self._in_flight[chosen[1]] = group_of(chosen[2].key), self._now()
            return chosen[1], chosen[2]

    def done(self, number: int) -> None:
        """A message has been answered."""
        with self._lock:
            group, since = self._in_flight.pop(number)
            self._spent.append((self._now(), group, self._now() - since))

    def _noisy(self, group: str) -> bool:
        flying = Counter(name for name, _ in self._in_flight.values())
        if flying[group] >= IN_FLIGHT and flying[group] > SHARE * flying.total():
            return True
        spent: Counter[str] = Counter()
        for at, name, ms in self._spent:
            if at > self._now() - LATELY_MS:
                spent[name] += ms
        for name, since in self._in_flight.values():
            spent[name] += self._now() - since
        return spent[group] > SHARE * max(1, spent.total())
