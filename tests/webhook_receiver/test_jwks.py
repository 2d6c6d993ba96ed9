import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice

import pytest

from a2a_webhook_receiver.errors import KeysUnavailable
from a2a_webhook_receiver.jwks import COOL_DOWN, REFRESH_AFTER, STALE_AFTER, WAITERS, JwksCache, spawn_thread
from a2a_webhook_receiver.outbound import Unreachable
from tests.webhook_receiver.sending import JWKS
from vectors.cases import KID, NEXT, NOW
from vectors.forge import to_json, to_jwk

NEXT_KID = to_jwk(NEXT)["kid"]
ONLY_NEXT = to_json({"keys": [to_jwk(NEXT)]})


class Issuer:
    """Answers as it is told, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: bytes | None = JWKS

    def fetch(self) -> bytes:
        self.asked += 1
        if self.answer is None:
            raise Unreachable("down")
        return self.answer


class SlowIssuer(Issuer):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.let = threading.Event()

    def fetch(self) -> bytes:
        self.reached.set()
        assert self.let.wait(60)
        return super().fetch()


def at_once(work: Callable[[], None]) -> None:
    work()


def never(work: Callable[[], None]) -> None:
    del work


def test_a_key_is_fetched_once_and_then_remembered() -> None:
    issuer = Issuer()
    cache = JwksCache(issuer.fetch, at_once)
    for age in (0, 1, COOL_DOWN, REFRESH_AFTER - 1):
        assert KID in cache.keys_for(KID, NOW + age)
    assert issuer.asked == 1


def test_a_flood_of_unknown_keys_makes_one_fetch_in_thirty_seconds() -> None:
    issuer = Issuer()
    cache = JwksCache(issuer.fetch, at_once)
    for at in range(10 * COOL_DOWN // 100):
        assert "unknown" not in cache.keys_for("unknown", NOW + at * 100)
        assert KID in cache.keys_for(KID, NOW + at * 100)
    assert issuer.asked == 10


def test_a_failing_issuer_is_asked_once_in_thirty_seconds() -> None:
    issuer = Issuer()
    issuer.answer = None
    cache = JwksCache(issuer.fetch, at_once)
    for at in range(10 * COOL_DOWN // 100):
        with pytest.raises(KeysUnavailable) as refusal:
            cache.keys_for(KID, NOW + at * 100)
        assert 1 <= refusal.value.retry_after <= 30
    assert issuer.asked == 10


def test_a_new_key_is_found_after_the_cool_down() -> None:
    issuer = Issuer()
    issuer.answer = to_json({"keys": [to_jwk(NEXT)]})
    cache = JwksCache(issuer.fetch, at_once)
    assert KID not in cache.keys_for(KID, NOW)
    issuer.answer = JWKS
    assert KID not in cache.keys_for(KID, NOW + COOL_DOWN - 1)
    assert KID in cache.keys_for(KID, NOW + COOL_DOWN)


class Steady:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms


def test_a_wall_clock_that_somebody_sets_back_stops_no_fetch() -> None:
    issuer, steady, day = Issuer(), Steady(), STALE_AFTER
    issuer.answer = ONLY_NEXT
    cache = JwksCache(issuer.fetch, at_once, steady)
    assert KID not in cache.keys_for(KID, NOW)
    issuer.answer = JWKS
    steady.ms += COOL_DOWN
    assert KID in cache.keys_for(KID, NOW - day)
    issuer.answer = ONLY_NEXT
    steady.ms += REFRESH_AFTER
    cache.keys_for(KID, NOW - day)
    assert KID not in cache.keys_for(KID, NOW - day)


def test_a_monotonic_clock_that_stands_still_keeps_no_old_key() -> None:
    issuer = Issuer()
    cache = JwksCache(issuer.fetch, at_once, Steady())
    cache.keys_for(KID, NOW)
    issuer.answer = None
    with pytest.raises(KeysUnavailable):
        cache.keys_for(KID, NOW + STALE_AFTER)


def test_known_keys_outlive_an_outage_of_a_day() -> None:
    issuer = Issuer()
    cache = JwksCache(issuer.fetch, at_once)
    cache.keys_for(KID, NOW)
    issuer.answer = None
    assert KID in cache.keys_for(KID, NOW + STALE_AFTER - 1)
    with pytest.raises(KeysUnavailable):
        cache.keys_for("unknown", NOW + STALE_AFTER - 1)
    with pytest.raises(KeysUnavailable):
        cache.keys_for(KID, NOW + STALE_AFTER)
    issuer.answer = JWKS
    assert KID in cache.keys_for(KID, NOW + STALE_AFTER + COOL_DOWN)


@pytest.mark.parametrize("answer", [b"", b"<html>", b'{"keys":[]}', b"x" * 100_000])
def test_an_answer_that_is_no_key_set_changes_nothing(answer: bytes) -> None:
    issuer = Issuer()
    cache = JwksCache(issuer.fetch, at_once)
    cache.keys_for(KID, NOW)
    issuer.answer = answer
    assert KID in cache.keys_for(KID, NOW + REFRESH_AFTER)
    assert issuer.asked == 2
    assert KID in cache.keys_for(KID, NOW + REFRESH_AFTER + COOL_DOWN)


def test_a_key_that_was_withdrawn_is_forgotten_when_the_set_is_fetched_again() -> None:
    issuer = Issuer()
    cache = JwksCache(issuer.fetch, at_once)
    cache.keys_for(KID, NOW)
    issuer.answer = ONLY_NEXT
    cache.keys_for(KID, NOW + REFRESH_AFTER)
    assert KID not in cache.keys_for(KID, NOW + REFRESH_AFTER)
    assert NEXT_KID in cache.keys_for(NEXT_KID, NOW + REFRESH_AFTER)


def test_a_known_key_does_not_wait_for_a_refresh() -> None:
    issuer = Issuer()
    cache = JwksCache(issuer.fetch, never)
    cache.keys_for(KID, NOW)
    assert KID in cache.keys_for(KID, NOW + REFRESH_AFTER)
    assert KID in cache.keys_for(KID, NOW + REFRESH_AFTER + 10 * COOL_DOWN)
    assert issuer.asked == 1


def test_a_refresh_runs_beside_the_request() -> None:
    issuer = SlowIssuer()
    issuer.let.set()
    cache = JwksCache(issuer.fetch)
    cache.keys_for(KID, NOW)
    issuer.let.clear()
    issuer.reached.clear()
    assert KID in cache.keys_for(KID, NOW + REFRESH_AFTER)
    assert issuer.reached.wait(60)
    issuer.let.set()


def test_a_known_key_is_answered_while_unknown_ones_wait_for_a_slow_issuer() -> None:
    issuer = SlowIssuer()
    issuer.let.set()
    cache = JwksCache(issuer.fetch)
    cache.keys_for(KID, NOW)
    issuer.let.clear()
    issuer.reached.clear()
    later = NOW + COOL_DOWN
    with ThreadPoolExecutor(20) as threads:
        first = threads.submit(cache.keys_for, "unknown", later)
        assert issuer.reached.wait(60)
        flood = [threads.submit(cache.keys_for, f"unknown-{number}", later) for number in range(WAITERS + 10)]
        turned_away = [future.exception() for future in islice(as_completed(flood, 60), 10)]
        assert KID in cache.keys_for(KID, later)
        issuer.let.set()
        assert "unknown" not in first.result(60)
    assert [*map(type, turned_away)] == [KeysUnavailable] * 10
    assert issuer.asked == 2


def test_many_first_requests_share_one_fetch() -> None:
    issuer = SlowIssuer()
    cache = JwksCache(issuer.fetch)
    with ThreadPoolExecutor(WAITERS + 1) as threads:
        requests = [threads.submit(cache.keys_for, KID, NOW) for _ in range(WAITERS + 1)]
        assert issuer.reached.wait(60)
        issuer.let.set()
        assert all(KID in request.result(60) for request in requests)
    assert issuer.asked == 1


def test_a_defect_in_fetching_does_not_block_the_next_fetch() -> None:
    answers = [JWKS]

    def fetch() -> bytes:
        answers.append(JWKS)
        if len(answers) == 2:
            raise RuntimeError("a defect")
        return answers[0]

    cache = JwksCache(fetch, at_once)
    with pytest.raises(RuntimeError):
        cache.keys_for(KID, NOW)
    assert KID in cache.keys_for(KID, NOW + COOL_DOWN)


def test_a_fetch_that_never_ends_is_given_up_after_the_cool_down() -> None:
    """As on Lambda, which freezes an instance between requests, and with it a thread in mid-fetch."""
    issuer, lost = Issuer(), list[Callable[[], None]]()
    issuer.answer = ONLY_NEXT
    cache = JwksCache(issuer.fetch, lost.append)
    aged = NOW + REFRESH_AFTER
    assert NEXT_KID in cache.keys_for(NEXT_KID, NOW)
    for now in (aged, aged + COOL_DOWN - 1):
        assert NEXT_KID in cache.keys_for(NEXT_KID, now), "answered from memory, and fetched beside"
    assert (len(lost), issuer.asked) == (1, 1)
    assert NEXT_KID in cache.keys_for(NEXT_KID, aged + COOL_DOWN)
    assert len(lost) == 2, "another thread has been sent"

    issuer.answer = JWKS
    assert KID in cache.keys_for(KID, aged + 2 * COOL_DOWN), "nor does an unknown key wait for either"
    assert issuer.asked == 2
    issuer.answer = ONLY_NEXT
    for work in lost:  # the threads go on after all, and bring sets that are older than what is there
        work()
    assert KID in cache.keys_for(KID, aged + 2 * COOL_DOWN + 1)


def test_work_beside_runs_in_a_thread_that_ends_with_the_process() -> None:
    seen: list[bool] = []
    done = threading.Event()

    def work() -> None:
        seen.append(threading.current_thread().daemon)
        done.set()

    spawn_thread(work)
    assert done.wait(60)
    assert seen == [True]
