"""Caches the issuer's keys, so that neither an outage of the issuer nor a flood of invented key ids does harm.

* One URL, from configuration. At most one fetch per cool-down, whether it succeeds or fails.
* A known key is always answered from memory, at once. When the set has aged, it is fetched again in the background.
* An unknown key waits for the fetch in progress; only a few may wait, so invented ids cannot occupy all threads.
* When a fetch fails, the cached keys stay valid for a day. A fetch that lasts until the next cool-down is given up.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, NamedTuple

from a2a_webhook_receiver.errors import KeysUnavailable
from a2a_webhook_receiver.keys import BadKeySet, KeySet, parse_key_set
from a2a_webhook_receiver.outbound import Unreachable

logger = logging.getLogger(__name__)

COOL_DOWN = 30_000
REFRESH_AFTER = 240_000
STALE_AFTER = 86_400_000
WAITERS = 4
WAIT_SECONDS = 5.0


class Moment(NamedTuple):
    """A moment on both clocks, in milliseconds. ``wall`` counts from the epoch, ``steady`` from anywhere.

    Somebody may set the wall clock, also back. The steady clock stands still while a machine is frozen. So the longer
    of the two times has passed.
    """

    wall: int
    steady: int

    def since(self, earlier: "Moment") -> int:
        """The time that has passed since then."""
        return max(self.wall - earlier.wall, self.steady - earlier.steady)


NEVER: Final = Moment(-STALE_AFTER, -STALE_AFTER)


def tell_steady_time() -> int:
    """Milliseconds of the monotonic clock."""
    return time.monotonic_ns() // 1_000_000


Fetch = Callable[[], bytes]
"""Returns the JWK set as bytes, within a deadline of its own. Raises Unreachable."""
Spawn = Callable[[Callable[[], None]], None]
"""Runs something in the background."""


def spawn_thread(work: Callable[[], None]) -> None:
    """Runs ``work`` in a thread that does not keep the process alive."""
    threading.Thread(target=work, name="jwks", daemon=True).start()


class JwksCache:
    """The key set of one issuer. The caller passes the time in milliseconds since the epoch."""

    def __init__(self, fetch: Fetch, spawn: Spawn = spawn_thread, steady: Callable[[], int] = tell_steady_time) -> None:
        self._fetch = fetch
        self._spawn = spawn
        self._steady = steady
        self._keys = KeySet({})
        self._fetched = self._tried = NEVER
        self._last_fetch = self._tries = 0
        self._pending_fetch: Future[None] | None = None
        self._lock = threading.Lock()
        self._waiters = threading.Semaphore(WAITERS)

    def keys_for(self, kid: str, now: int) -> KeySet:
        """The current keys. ``kid`` is missing only if the issuer did not publish it at the last fetch.

        Raises KeysUnavailable when the keys cannot be fetched and the cached ones do not have ``kid``.
        """
        moment = Moment(now, self._steady())
        keys = self._usable(moment)
        if kid in keys:
            self._refresh_beside(moment)
            return keys
        flight = self._join_or_start(moment)
        if flight is not None:
            self._wait(flight)
        return self._answer(kid, moment)

    def _usable(self, now: Moment) -> KeySet:
        with self._lock:
            return self._keys if now.since(self._fetched) < STALE_AFTER else KeySet({})

    def _refresh_beside(self, now: Moment) -> None:
        with self._lock:
            due = now.since(self._fetched) >= REFRESH_AFTER and self._may_try(now)
            flight = self._start_fetch(now) if due else None
            number = self._tries
        if flight is not None:
            self._spawn(lambda: self._run_fetch(flight, number, now))

    def _join_or_start(self, now: Moment) -> "Future[None] | None":
        """The fetch to wait for; None when there is none."""
        with self._lock:
            if not self._may_try(now):
                return self._pending_fetch
            flight = self._start_fetch(now)
            number = self._tries
        self._run_fetch(flight, number, now)
        return None

    def _may_try(self, now: Moment) -> bool:
        return now.since(self._tried) >= COOL_DOWN

    def _start_fetch(self, now: Moment) -> "Future[None]":
        self._tried = now
        self._tries += 1
        self._pending_fetch = Future()
        return self._pending_fetch

    def _run_fetch(self, flight: "Future[None]", number: int, now: Moment) -> None:
        keys = None
        try:
            keys = parse_key_set(self._fetch())
        except (Unreachable, BadKeySet) as error:
            logger.warning("the issuer's keys could not be fetched: %s", error)
        finally:
            self._finish_fetch(flight, number, keys, now)

    def _finish_fetch(self, flight: "Future[None]", number: int, keys: KeySet | None, now: Moment) -> None:
        with self._lock:
            if keys is not None and number > self._last_fetch:
                self._keys, self._fetched, self._last_fetch = keys, now, number
            if self._pending_fetch is flight:
                self._pending_fetch = None
        flight.set_result(None)

    def _wait(self, flight: "Future[None]") -> None:
        if not self._waiters.acquire(blocking=False):
            raise KeysUnavailable("the issuer's keys are being fetched", 1)
        try:
            flight.result(WAIT_SECONDS)
        except TimeoutError as error:
            raise KeysUnavailable("the issuer answers too slowly with its keys", 1) from error
        finally:
            self._waiters.release()

    def _answer(self, kid: str, now: Moment) -> KeySet:
        with self._lock:
            is_failing = self._last_fetch < self._tries
            wait = max(1, (COOL_DOWN - now.since(self._tried)) // 1000)
        keys = self._usable(now)
        if is_failing and kid not in keys:
            raise KeysUnavailable("the issuer's keys cannot be fetched", wait)
        return keys
