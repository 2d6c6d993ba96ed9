"""The deployment of a history in the simulation: a seed decides what every instance does, sees and suffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.echo import agent_of
from tests.histories.deployment import Wrap, count_aloud
from tests.histories.history import Recorder, log_of
from tests.simulated import Killed
from tests.simulation.deployment import HOUR_MS, MINUTE_MS, Receivers, Simulation
from tests.simulation.store import SimulatedItems, SimulatedTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from a2a_serverless.domain.outcomes import Outcome
    from a2a_serverless.store.items import Item
    from a2a_serverless.testing.memory import MemoryTable

HOURS: Final = 12
CALM_MS: Final = 11 * HOUR_MS


class MonotoneItems(SimulatedItems):
    """What one reader has seen of a transaction all later ones see, too, as DynamoDB's consistent reads promise."""

    is_torn = False

    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        found = super().get(pk, sk, consistent=consistent)
        self._torn = [one for one in self._torn if one[:2] != (pk, sk)]
        return found

    def query_range(
        self, pk: str, first: str, last: str, *, limit: int = 0, newest_first: bool = False
    ) -> Iterator[Item]:
        found = [*super().query_range(pk, first, last, newest_first=newest_first)]
        shown = {item["sk"]["S"]: item for item in found}
        self._torn = [one for one in self._torn if one[0] != pk or shown.get(one[1]) is not one[3]]
        return iter(found[:limit] if limit else found)

    def _show_torn(self, before: list[tuple[str, str, Item | None]]) -> None:
        if not self.is_torn:
            return
        torn = [(pk, sk, old, self.item_at(pk, sk)) for pk, sk, old in before]
        self._torn += torn
        try:
            if torn:
                self._faults.tear()
        finally:
            self._torn = [one for one in self._torn if not any(one is mine for mine in torn)]


class MonotoneTable(SimulatedTable):
    items: MonotoneItems

    def __init__(self, simulation: Simulation, *, is_torn: bool) -> None:
        super().__init__(simulation.faults, lambda: simulation.scheduler.now)
        self.items.is_torn = is_torn

    def make_table(self, now: Callable[[], int], on_put: Callable[[Item], None]) -> MemoryTable:
        return MonotoneItems(self._faults, now, on_put)


class RecordingReceivers(Receivers):
    """The simulation's receivers, whose notifications are recorded."""

    def __init__(self, simulation: SimulatedHistory) -> None:
        super().__init__(simulation)
        self._recorder, self._posted = simulation.recorder, simulation.seen.posted

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        at, count = self._recorder.tick(), len(self._posted)
        outcome = super().post(url, headers, body, deadline_ms)
        mine = next(one for one in self._posted[count:] if one.url == url)
        self._recorder.received(at, url, headers, body, accepted=mine.accepted)
        return outcome


class SimulatedHistory(Simulation):
    """One seed's deployment. ``inject`` wraps its ports, once more.

    With ``is_torn`` queries may see a part of a transaction that is under way. Then a task that is read during a write
    may be older than what a stream, a webhook or an idempotency record shows already, for milliseconds.
    """

    death = Killed

    def __init__(self, seed: int, inject: Wrap, *, is_torn: bool = False) -> None:
        self.recorder, self._inject, self._is_torn = Recorder(lambda: 0), inject, is_torn
        super().__init__(seed, [agent_of(count_aloud)], HOURS, MINUTE_MS, None)
        self.sleep, self.count = self.clock.sleep, 0

    def make_table(self) -> SimulatedTable:
        return MonotoneTable(self, is_torn=self._is_torn)

    def make_receivers(self) -> Receivers:
        return RecordingReceivers(self)

    def wrap(self, port: Any, name: str) -> Any:
        return self._inject(super().wrap(port, name), name)

    def note(self, error: BaseException) -> None:
        """A client goes on when the instance that served it has died."""
        self.scheduler.current.is_dead = False
        self._note_crash(error)

    def start_client(self, work: Callable[[], object]) -> None:
        self.count += 1
        self.spawn(f"client-{self.count}", work)

    def settle(self, look: Callable[[], None]) -> None:
        """Runs until nothing is left to do, and looks at what is there then."""
        self.start()
        self.scheduler.spawn("last", lambda: self._end(look), after_ms=CALM_MS)
        self.run_all()
        waiting = self.queue.waiting
        self.recorder.history.settled = not waiting and self.items.next_due() > self.scheduler.now + HOUR_MS
        self.recorder.history.errors += self.seen.wrong

    def _end(self, look: Callable[[], None]) -> None:
        look()
        loaded = {key.task: self.table.read_log(key) for key, _ in self.table.feed}
        self.recorder.history.logs = {task: log_of(found[1]) for task, found in loaded.items() if found}
