"""What looking for API keys costs, whoever tries them."""

from __future__ import annotations

from collections import Counter

import pytest

from a2a_serverless.domain.access import ApiKey, digest_of, encode_key
from a2a_serverless.domain.errors import Unauthenticated
from a2a_serverless.domain.model import Principal
from a2a_serverless.http.api import OidcOrApiKey
from a2a_serverless.store.api_keys import ABSENT_MS, FRESH, KEPT, KEPT_MS, CachedApiKeyStore
from tests.doubles import MemoryApiKeyStore

KEY = encode_key(b"k" * 32)
ALICE = Principal("acme", "alice")
NOW = 1_790_000_000_000


class Counting(MemoryApiKeyStore):
    """Keys that know how often they were looked for, and how. What is not fresh does not show ``new``."""

    def __init__(self) -> None:
        super().__init__()
        self.new: set[str] = set()
        self.looked: Counter[bool] = Counter()

    def find(self, digest: str, *, fresh: bool = True) -> ApiKey | None:
        self.looked[fresh] += 1
        return super().find(digest, fresh=fresh) if fresh or digest not in self.new else None


def test_invented_keys_cost_a_bounded_number_of_strongly_consistent_reads_a_second() -> None:
    keys, now = Counting(), [0]
    remembered = CachedApiKeyStore(keys, lambda: now[0])
    for second in range(3):
        now[0] = NOW + second * 1_000
        assert [remembered.find(f"{second}/{number}") for number in range(500)] == [None] * 500
    assert keys.looked == {False: 1_500, True: 3 * FRESH}


def test_the_limit_of_lookups_holds_for_a_second_of_a_thousand_milliseconds() -> None:
    keys, now = Counting(), [0]
    remembered = CachedApiKeyStore(keys, lambda: now[0])
    second = 1_001 * 1_000 * 1_788_000
    for at, reads in ((0, FRESH), (999, FRESH), (1_000, 2 * FRESH)):
        now[0] = second + at
        for number in range(2 * FRESH):
            remembered.find(f"{at}/{number}")
        assert keys.looked[True] == reads


def test_a_thousand_keys_are_remembered_and_one_that_was_is_again() -> None:
    keys, now = Counting(), [NOW]
    remembered = CachedApiKeyStore(keys, lambda: now[0])
    for number in range(KEPT + 1):
        keys.add(ApiKey(f"{number:04}", ALICE, "laptop", 0))
        assert remembered.find(f"{number:04}")

    def looks(number: int) -> int:
        before = keys.looked.total()
        assert remembered.find(f"{number:04}")
        return keys.looked.total() - before

    assert [looks(0), looks(KEPT - 1), looks(KEPT)] == [0, 0, 1]
    now[0] = NOW + KEPT_MS
    assert [looks(0), looks(0), looks(KEPT)] == [1, 0, 1]


def test_the_same_invented_key_is_looked_for_once_in_a_while() -> None:
    keys, now = Counting(), [0]
    remembered = CachedApiKeyStore(keys, lambda: now[0])
    for _ in range(100):
        assert remembered.find("invented") is None
    assert keys.looked.total() == 2
    now[0] = ABSENT_MS
    assert remembered.find("invented") is None
    assert keys.looked.total() == 4


def test_of_invented_keys_the_last_thousand_are_remembered() -> None:
    keys = Counting()
    remembered = CachedApiKeyStore(keys, lambda: 0)
    for number in range(KEPT + 1):
        remembered.find(f"invented {number}", fresh=False)
    for number in (1, KEPT):
        remembered.find(f"invented {number}", fresh=False)
    assert keys.looked.total() == KEPT + 1
    remembered.find("invented 0", fresh=False)
    assert keys.looked.total() == KEPT + 2, "the first one was forgotten"


def test_a_key_that_was_just_made_admits_at_once() -> None:
    keys = Counting()
    key = ApiKey(digest_of(KEY), ALICE, "laptop", 0)
    keys.add(key)
    keys.new.add(key.digest)
    assert CachedApiKeyStore(keys, lambda: 0).find(key.digest) == key


def test_a_revoked_key_admits_until_what_is_kept_of_it_is_too_old() -> None:
    keys, now = Counting(), [0]
    keys.add(ApiKey(digest_of(KEY), ALICE, "laptop", 0))
    remembered = CachedApiKeyStore(keys, lambda: now[0])
    assert remembered.find(digest_of(KEY))
    keys.revoke(digest_of(KEY))
    now[0] = KEPT_MS - 1
    assert remembered.find(digest_of(KEY))
    assert keys.looked.total() == 1
    now[0] = KEPT_MS
    assert remembered.find(digest_of(KEY)) is None


@pytest.mark.parametrize("key", ["guess", "x" * 43, "A2A_" + "x" * 43, "", " " + KEY])
def test_text_in_another_form_than_our_keys_is_not_looked_up(key: str) -> None:
    keys = Counting()
    with pytest.raises(Unauthenticated):
        OidcOrApiKey(keys.find).authenticate({"x-api-key": key})
    assert keys.looked.total() == 0
