"""What can go wrong, and when. A plan is asked at every call of a port, before the call and after it took effect."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from tests.simulated import Killed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.ports.system import Queues

# Looking for what is due changes nothing: a sweeper that dies there has done nothing.
HARMLESS: Final = frozenset({"table.list_due"})
LOOK: Final = "table.read_head"  # of a worker at work, once a second
STORES: Final = frozenset({"table", "queue", "sealer", "signer"})
OUTSIDE: Final = frozenset({"table", "queue", "receiver"})


class Broken(Exception):
    """A service did not answer, or its answer got lost on the way."""


class Faults(Protocol):
    """Decides at every call of a port what goes wrong there."""

    def before(self, port: str, call: str) -> None: ...

    def after(self, port: str, call: str) -> None: ...


class NoFaults:
    def before(self, port: str, call: str) -> None:
        pass

    def after(self, port: str, call: str) -> None:
        pass


class Count(NoFaults):
    """Nothing goes wrong; the calls at which something could are written down."""

    def __init__(self, ports: frozenset[str] = OUTSIDE) -> None:
        self.ports = ports
        self.calls: list[str] = []

    def before(self, port: str, call: str) -> None:
        if port in self.ports and f"{port}.{call}" not in HARMLESS:
            self.calls.append(f"{port}.{call}")


class At:
    """Something happens at some calls, counted from 1: before the call, or after it took effect.

    Counted are the calls of these ports, or of the one function that ``only`` names (``table.append``).
    """

    def __init__(
        self,
        *counts: int,
        late: bool,
        what: Callable[[], None],
        ports: frozenset[str] = OUTSIDE,
        only: str | None = None,
    ) -> None:
        self.counts = set(counts)
        self.only = only
        self.late = late
        self.what = what
        self.ports = ports
        self.met: list[str] = []
        self._calls = 0
        self._hit = False

    def after_now(self, *counts: int) -> None:
        """The calls that are still to come, counted from here, and no others."""
        self.counts = {self._calls + count for count in counts}

    def before(self, port: str, call: str) -> None:
        self._hit = False
        if not self._counts(port, f"{port}.{call}"):
            return
        self._calls += 1
        self._hit = self._calls in self.counts
        if self._hit:
            self.met.append(f"{port}.{call}")
        if self._hit and not self.late:
            self._happen()

    def after(self, port: str, call: str) -> None:
        del port, call
        if self._hit and self.late:
            self._happen()

    def _counts(self, port: str, name: str) -> bool:
        return name == self.only if self.only else port in self.ports and name not in HARMLESS

    def _happen(self) -> None:
        self._hit = False
        self.what()


def die() -> None:
    raise Killed


def fail() -> None:
    raise Broken


def kill_at(*counts: int, late: bool, only: str | None = None, ports: frozenset[str] = OUTSIDE) -> At:
    return At(*counts, late=late, what=die, only=only, ports=ports)


def break_at(*counts: int, late: bool) -> At:
    return At(*counts, late=late, what=fail, ports=STORES)


class Frail:
    """A port at whose calls things go wrong."""

    def __init__(self, inner: object, name: str, faults: Faults) -> None:
        self._inner = inner
        self._name = name
        self._faults = faults

    def __getattr__(self, call: str) -> Callable[..., object]:
        function = getattr(self._inner, call)

        def called(*args: object, **kwargs: object) -> object:
            self._faults.before(self._name, call)
            result: object = function(*args, **kwargs)
            self._faults.after(self._name, call)
            return result

        return called


class UnreliableQueue:
    """A queue that loses, doubles and delays messages, and so brings them out of order; the same way for one seed."""

    def __init__(self, queue: Queues, seed: int) -> None:
        self._queue = queue
        self._chance = Random(seed)  # noqa: S311 - a seed, not a secret
        self.lost = 0

    def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
        for message in queues:
            self.enqueue(message)

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        fate = self._chance.choice(["lost", "doubled", "late", "late", "in time", "in time"])
        if fate == "lost":
            self.lost += 1
            return
        late_s = self._chance.randint(1, 120) if fate == "late" else 0
        self._queue.enqueue(message, min(900, delay_s + late_s))
        if fate == "doubled":
            self._queue.enqueue(message, min(900, delay_s + self._chance.randint(0, 60)))
