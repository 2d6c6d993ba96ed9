from a2a_serverless.adapters.api_keys import MemoryApiKeys
from a2a_serverless.adapters.passes import LIFE_MS, USED_MS, Passes
from a2a_serverless.domain.access import Caller, digest_of
from a2a_serverless.domain.model import Principal

ALICE, BOB = Principal("acme", "alice"), Principal("acme", "bob")


class Counting:
    """Passes over a clock, with entropy that counts."""

    def __init__(self) -> None:
        self.now = 1_790_000_000_000
        self.keys = MemoryApiKeys(lambda: self.now)
        self.made = 0
        self.passes = Passes(self.keys, lambda: self.now, self._entropy)

    def _entropy(self, count: int) -> bytes:
        self.made += 1
        return bytes([self.made] * count)

    def admits(self, headers: dict[str, str]) -> Principal | None:
        found = self.keys.find(digest_of(headers["X-API-Key"]))
        return found.who if found else None


def test_a_pass_admits_whom_it_was_made_for_and_is_made_once() -> None:
    counting = Counting()
    assert counting.admits(counting.passes.headers(Caller(ALICE))) == ALICE
    assert counting.admits(counting.passes.headers(Caller(BOB))) == BOB
    counting.passes.headers(Caller(ALICE))
    assert counting.made == 2


def test_a_new_pass_is_made_before_the_old_one_ends_which_it_does_within_the_hour() -> None:
    counting = Counting()
    first = counting.passes.headers(Caller(ALICE))
    counting.now += USED_MS
    second = counting.passes.headers(Caller(ALICE))
    assert (counting.admits(first), counting.admits(second)) == (ALICE, ALICE)
    counting.now += LIFE_MS - USED_MS
    assert (counting.admits(first), counting.admits(second)) == (None, ALICE)
