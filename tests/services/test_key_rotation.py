"""The key ring's life: made, turned, revoked; whatever dies in between, no delivery is refused for it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_serverless.adapters.es256 import Es256Keys
from a2a_serverless.domain.key_ring import KeyRing, RotationTimes, SigningKey
from a2a_serverless.domain.publications import AGENTS, JWKS, card_name
from a2a_serverless.services.key_rotation import (
    KeyRingError,
    KeyRotation,
    describe,
    ensure_ring,
    revoke_key,
    rotate_ring,
    rotate_when_old,
)
from a2a_serverless.services.publish import CardPublisher, strip_signatures
from a2a_serverless.testing.memory import MemoryKeyRingStore, MemoryStores
from a2a_serverless.testing.simulated_loop import START
from tests.echo import Writer
from tests.faults.plans import At, Count, Faults, Frail, NoFaults, die, kill_at
from tests.simulated import Killed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.domain.agent import Agent

HOUR, DAY = 3_600_000, 86_400_000
MAX_AGE = HOUR
WAITS = RotationTimes(publish_ms=MAX_AGE + 120_000, retire_ms=MAX_AGE + 720_000)
AGENT = Writer().agent


class Keys:
    """Keys in order. Their signatures name them, and differ each time, as those of ES256 do."""

    def __init__(self) -> None:
        self.made = self.signed = 0

    def make(self, now: int) -> SigningKey:
        self.made += 1
        kid = f"key-{self.made}"
        return SigningKey(kid, {"kty": "EC", "kid": kid}, f"private {kid}", now)

    def sign(self, key: SigningKey, content: bytes) -> bytes:
        del content
        self.signed += 1
        return f"{key.kid} {self.signed}".encode()


@dataclass
class Now:
    ms: int = START

    def now(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


class Shop:
    """A rotator, what it keeps and what it publishes."""

    def __init__(self, faults: Faults | None = None, agents: Sequence[Agent] = (AGENT,)) -> None:
        self.agents = {agent.id: agent for agent in agents}
        self.clock = Now()
        self.store = MemoryKeyRingStore()
        self.public = MemoryStores(self.clock.now)
        self.maker = Keys()
        self.use(faults or NoFaults())

    def use(self, faults: Faults) -> None:
        store: Any = Frail(self.store, "vault", faults)
        public: Any = Frail(self.public, "table", faults)
        publisher = CardPublisher(public, self.clock, self.agents, "https://api.example.com")
        self.rotation = KeyRotation(store, self.maker, publisher, WAITS, age_ms=30 * DAY)

    @property
    def ring(self) -> KeyRing:
        assert self.store.ring
        return self.store.ring

    def document(self, name: str) -> dict[str, Any]:
        published: Any = self.public.get_document(name)
        return dict(published)

    @property
    def listed(self) -> list[str]:
        """The keys that anybody can know of."""
        return [key["kid"] for key in json.loads(self.document(JWKS)["body"])["keys"]]


# ---- What somebody else has written where the rotator publishes


def altered(shop: Shop, name: str, body: dict[str, Any]) -> None:
    """A forger writes a document, with the marks of the genuine one."""
    shop.public.publish(name, shop.document(name) | {"body": json.dumps(body)})


def test_a_key_that_is_not_in_the_ring_is_taken_off_the_key_set_and_told_of() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    altered(shop, JWKS, {"keys": [{"kty": "EC", "kid": "forged"}]})
    with pytest.raises(KeyRingError, match="jwks"):
        rotate_when_old(shop.rotation)
    assert shop.listed == ["key-1", "key-2"]
    assert rotate_when_old(shop.rotation) == shop.ring


@pytest.mark.parametrize("body", [{}, {"agents": [], "url": "https://forger.example.com"}])
@pytest.mark.parametrize("name", [card_name("echo"), AGENTS])
def test_a_document_that_was_altered_is_published_anew_and_told_of(name: str, body: Any) -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    before = strip_signatures(json.loads(shop.document(name)["body"]))
    altered(shop, name, body)
    with pytest.raises(KeyRingError, match=name):
        rotate_when_old(shop.rotation)
    assert strip_signatures(json.loads(shop.document(name)["body"])) == before
    rotate_when_old(shop.rotation)


@pytest.mark.parametrize("body", [{}, {"keys": {"kid": "key-1"}}, {"keys": ["key-1"]}, [{"kid": "key-1"}]])
def test_a_key_set_of_another_form_is_replaced_and_told_of(body: Any) -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    altered(shop, JWKS, body)
    with pytest.raises(KeyRingError, match="jwks"):
        rotate_when_old(shop.rotation)
    assert shop.listed == ["key-1", "key-2"]


def test_a_document_that_is_no_json_any_more_is_published_anew_and_told_of() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    before = json.loads(shop.document(AGENTS)["body"])
    for name in (AGENTS, JWKS):
        shop.public.publish(name, shop.document(name) | {"body": "forged"})
    with pytest.raises(KeyRingError, match=f"{JWKS}, {AGENTS}$"):
        rotate_when_old(shop.rotation)
    assert json.loads(shop.document(AGENTS)["body"]) == before
    assert shop.listed == ["key-1", "key-2"]


def test_a_document_that_is_missing_is_published_and_nobody_is_alarmed() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    shop.public = MemoryStores(shop.clock.now)
    shop.use(NoFaults())
    rotate_when_old(shop.rotation)
    assert shop.listed == ["key-1", "key-2"]


# ---- First keys


def test_the_first_ring_is_made_kept_and_published_once() -> None:
    shop = Shop()
    ring = ensure_ring(shop.rotation)
    assert (ring.current.kid, ring.next.kid, ring) == ("key-1", "key-2", shop.ring)
    assert shop.listed == ["key-1", "key-2"]
    assert ensure_ring(shop.rotation) == ring
    assert shop.maker.made == 2


@pytest.mark.requirement(122, 126)
def test_the_documents_that_a_rotation_publishes_hold_no_private_key() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    documents = [shop.document(name) for name in (JWKS, AGENTS, card_name("echo"))]
    assert "private" not in json.dumps(documents)


def test_the_schedule_makes_the_first_ring_if_nobody_else_has() -> None:
    shop = Shop()
    assert rotate_when_old(shop.rotation) == shop.ring
    assert shop.listed == ["key-1", "key-2"]


def test_a_ring_is_described_with_its_times_and_without_its_private_keys() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    made = shop.clock.ms
    shop.clock.ms = turned = made + DAY
    rotate_ring(shop.rotation)
    shop.clock.ms += HOUR
    assert describe(shop.rotation) == {
        "current": {"kid": "key-2", "madeAt": made, "signsSince": turned},
        "next": {"kid": shop.ring.next.kid, "madeAt": turned, "promotableAt": turned + WAITS.publish_ms},
        "previous": [{"kid": "key-1", "until": turned + WAITS.retire_ms}],
    }


# ---- Rotation


@pytest.mark.requirement(121)
def test_a_rotation_promotes_the_next_key_and_lists_a_new_one() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    shop.clock.ms += WAITS.publish_ms
    assert rotate_ring(shop.rotation).current.kid == "key-2"
    assert shop.listed == [shop.ring.current.kid, shop.ring.next.kid, "key-1"]


def test_a_rotation_that_comes_too_early_changes_nothing() -> None:
    shop = Shop()
    before = ensure_ring(shop.rotation)
    shop.clock.ms += WAITS.publish_ms - 1
    assert rotate_ring(shop.rotation) == before == shop.ring
    assert shop.listed == ["key-1", "key-2"]


def test_the_schedule_turns_only_a_ring_that_is_old() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    currents = []
    for _ in range(62):
        shop.clock.ms += DAY
        currents.append(rotate_when_old(shop.rotation).current.kid)
    changes = [day for day in range(1, 62) if currents[day] != currents[day - 1]]
    assert changes == [29, 59]


def test_an_old_key_leaves_the_list_once_nothing_signed_by_it_can_live() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    shop.clock.ms += DAY
    rotate_ring(shop.rotation)
    shop.clock.ms += WAITS.retire_ms - 1
    rotate_when_old(shop.rotation)
    assert "key-1" in shop.listed
    shop.clock.ms += 1
    rotate_when_old(shop.rotation)
    assert "key-1" not in shop.listed


# ---- Emergencies


@pytest.mark.requirement(121)
@pytest.mark.parametrize(("kid", "current"), [("key-1", "key-2"), ("key-2", "key-1")])
def test_a_revoked_key_is_out_of_the_vault_and_off_the_list_at_once(kid: str, current: str) -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    assert revoke_key(shop.rotation, kid).current.kid == current
    assert kid not in shop.listed
    assert kid not in {shop.ring.current.kid, shop.ring.next.kid}


def test_revoking_a_key_that_is_not_in_the_ring_says_so() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    with pytest.raises(KeyRingError, match="no key of the ring is named 'key-9'; there are key-1, key-2"):
        revoke_key(shop.rotation, "key-9")
    assert shop.listed == ["key-1", "key-2"]


# ---- Cards


def signers(shop: Shop) -> list[str]:
    """Which key each published card says that it was signed by."""
    from base64 import urlsafe_b64decode

    card = json.loads(shop.document(card_name("echo"))["body"])
    headers = [json.loads(urlsafe_b64decode(entry["protected"] + "==")) for entry in card["signatures"]]
    return [header["kid"] for header in headers]


def test_cards_are_signed_anew_when_the_key_turns_and_not_before() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    first = shop.document(card_name("echo"))
    shop.clock.ms += DAY
    ensure_ring(shop.rotation)
    assert shop.document(card_name("echo")) == first
    assert set(signers(shop)) == {"key-1"}
    rotate_ring(shop.rotation)
    assert set(signers(shop)) == {"key-2"}
    assert shop.document(card_name("echo"))["etag"] != first["etag"]


def test_a_rotation_without_a_change_writes_no_key_and_no_document() -> None:
    calls = Count(frozenset({"vault", "table"}))
    shop = Shop(calls, [replace(AGENT, extended_skills=AGENT.skills)])
    ensure_ring(shop.rotation)
    calls.calls.clear()
    shop.clock.ms += DAY
    rotate_when_old(shop.rotation)
    assert not {call for call in calls.calls if call.endswith((".save", ".publish"))}


def test_every_agent_is_listed_with_its_card() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    assert json.loads(shop.document(AGENTS)["body"]) == {
        "agents": [
            {
                "id": "echo",
                "name": "echo",
                "url": "https://api.example.com/echo",
                "card": "https://api.example.com/echo/.well-known/agent-card.json",
            }
        ]
    }


def test_a_document_keeps_its_date_while_it_stays_the_same() -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    first = shop.document(JWKS)
    shop.clock.ms += DAY
    ensure_ring(shop.rotation)
    assert shop.document(JWKS) == first
    rotate_ring(shop.rotation)
    assert shop.document(JWKS)["modified"] != first["modified"]


# ---- Several rotators

SECOND = 1_000


class Watched:
    """A shop in which every call takes a second, and all that was ever published and stored is written down.

    ``during`` are what happens at calls of rotators, by the call's number, counted over all of them.
    """

    def __init__(self) -> None:
        self.shop = Shop(agents=())
        self.rings: list[tuple[int, str]] = []
        self.lists: list[tuple[int, set[str]]] = []

    def before(self, port: str, call: str) -> None:
        del port, call
        self.shop.clock.ms += SECOND

    def after(self, port: str, call: str) -> None:
        if (port, call) == ("vault", "save") and (not self.rings or self.rings[-1][1] != self.shop.ring.current.kid):
            self.rings.append((self.shop.clock.ms, self.shop.ring.current.kid))
        if (port, call) == ("table", "publish") and self.shop.public.get_document(JWKS):
            self.lists.append((self.shop.clock.ms, set(self.shop.listed)))

    def too_early(self) -> list[tuple[str, int]]:
        """Keys that have signed while somebody may have had a list without them, and the time of that list."""
        end = self.shop.clock.ms
        signed = zip(self.rings, [at for at, _ in self.rings[1:]] + [end], strict=True)
        lists = [*zip(self.lists, [at for at, _ in self.lists[1:]] + [end], strict=True)]
        return [
            (kid, at)
            for (since, kid), until in signed
            for (at, kids), gone in lists
            if kid not in kids and at < until and gone > since - MAX_AGE
        ]


class Both:
    """Two plans: what one does not end, the other may."""

    def __init__(self, *plans: Faults) -> None:
        self.plans = plans

    def before(self, port: str, call: str) -> None:
        for plan in self.plans:
            plan.before(port, call)

    def after(self, port: str, call: str) -> None:
        for plan in self.plans:
            plan.after(port, call)


PORTS = frozenset({"vault", "table"})
WORK: dict[str, Callable[[KeyRotation], object]] = {"first": ensure_ring, "rotate": rotate_ring}


def story(work: str, meets: int, theirs: int | None, ours: int | None, *, late: bool) -> Watched:
    """Two rotators at once: the other runs at our call ``meets``. They die at calls of their own, or live (None).

    Then the hours go by, with a command to rotate in every other.
    """
    watched = Watched()
    shop = watched.shop
    if work != "first":
        shop.use(watched)
        ensure_ring(shop.rotation)
        shop.clock.ms += DAY
    their_end = At(*([theirs] if theirs else []), late=late, what=die, ports=PORTS)

    def meet() -> None:
        run(other, WORK[work])

    our_end = At(*([ours] if ours else []), late=late, what=die, ports=PORTS)
    shop.use(Both(watched, their_end))
    other = shop.rotation
    shop.use(Both(watched, our_end, At(meets, late=late, what=meet, ports=PORTS)))
    run(shop.rotation, WORK[work])
    shop.use(watched)
    for _ in range(3):
        shop.clock.ms += 2 * HOUR
        rotate_ring(shop.rotation)
    return watched


def calls_of(work: str) -> int:
    shop, calls = Shop(agents=()), Count(PORTS)
    if work != "first":
        ensure_ring(shop.rotation)
        shop.clock.ms += DAY
    shop.use(calls)
    WORK[work](shop.rotation)
    return len(calls.calls)


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("work", WORK)
def test_two_rotators_at_once_and_a_death_let_no_key_sign_before_everybody_has_it(work: str, late: bool) -> None:  # noqa: FBT001
    calls = calls_of(work)
    for meets in range(1, calls + 1):
        deaths: list[tuple[int | None, int | None]] = [(None, None)]
        deaths += [(call, None) for call in range(1, calls + 3)]
        deaths += [(None, call) for call in range(meets, calls + 3)]
        for theirs, ours in deaths:
            watched = story(work, meets, theirs, ours, late=late)
            case = f"the other comes at call {meets} and dies at {theirs}, we die at {ours}"
            assert watched.too_early() == [], case
            assert set(watched.shop.ring.kids) == set(watched.shop.listed), case
            assert len(watched.rings) >= 3, f"{case}: keys go on turning"


@pytest.mark.parametrize("number", range(1, calls_of("rotate") + 1))
def test_a_revocation_is_not_undone_by_a_rotation_at_the_same_time(number: int) -> None:
    shop = Shop(agents=())
    ensure_ring(shop.rotation)
    shop.clock.ms += DAY
    other = shop.rotation

    def meet() -> None:
        revoke_key(other, "key-2")

    shop.use(At(number, late=False, what=meet, ports=PORTS))
    rotate_ring(shop.rotation)
    assert "key-2" not in {*shop.ring.kids, *shop.listed}
    assert set(shop.ring.kids) == set(shop.listed)


def test_a_rotator_whom_others_are_always_ahead_of_says_so() -> None:
    class Taken(MemoryKeyRingStore):
        def save(self, ring: KeyRing, before: KeyRing | None) -> bool:
            del ring, before
            return False

    shop = Shop()
    ensure_ring(shop.rotation)
    shop.store = Taken(shop.ring)
    shop.use(NoFaults())
    shop.clock.ms += DAY
    with pytest.raises(KeyRingError, match="has changed at every attempt"):
        rotate_ring(shop.rotation)
    with pytest.raises(KeyRingError, match="has changed at every attempt"):
        revoke_key(shop.rotation, "key-1")


# ---- Deaths


def run(rotation: KeyRotation, work: Callable[[KeyRotation], object]) -> bool:
    """Whether the rotator lived through it."""
    try:
        work(rotation)
    except Killed:
        return False
    return True


def calls_of_a_rotation() -> list[str]:
    shop = Shop()
    ensure_ring(shop.rotation)
    shop.clock.ms += 30 * DAY
    calls = Count(frozenset({"vault", "table"}))
    shop.use(calls)
    rotate_ring(shop.rotation)
    return calls.calls


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, len(calls_of_a_rotation()) + 1))
def test_a_death_during_a_rotation_leaves_no_live_token_without_its_key(number: int, late: bool) -> None:  # noqa: FBT001
    """Runs each day, one of which dies somewhere, and the next may already be due to turn the ring again."""
    shop = Shop()
    ensure_ring(shop.rotation)
    seen: list[tuple[int, set[str]]] = [(shop.clock.ms, set(shop.listed))]
    for day in range(5):
        shop.clock.ms += DAY
        faults = kill_at(number, late=late)
        faults.ports = frozenset({"vault", "table"})
        shop.use(faults if day == 1 else NoFaults())
        assert run(shop.rotation, rotate_ring) is (day != 1)
        seen.append((shop.clock.ms, set(shop.listed)))
        known_to_the_slowest = [kids for at, kids in seen if at <= shop.clock.ms - MAX_AGE][-1]
        assert shop.ring.current.kid in known_to_the_slowest, "a verifier's list is up to an hour old"
        assert shop.ring.current.kid in shop.listed, "and a fresh one is complete"


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, 8))
def test_a_death_during_a_revocation_never_leaves_the_revoked_key_signing_for_good(number: int, late: bool) -> None:  # noqa: FBT001
    shop = Shop()
    ensure_ring(shop.rotation)
    faults = kill_at(number, late=late)
    faults.ports = frozenset({"vault", "table"})
    shop.use(faults)
    run(shop.rotation, lambda rotation: revoke_key(rotation, "key-1"))
    shop.use(NoFaults())
    if shop.ring.current.kid == "key-1":
        revoke_key(shop.rotation, "key-1")
    else:
        ensure_ring(shop.rotation)
    assert "key-1" not in {shop.ring.current.kid, shop.ring.next.kid, *shop.listed}
    assert shop.ring.current.kid in shop.listed


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(["day", "hour", "rotate", "schedule", "ensure"]), max_size=40))
def test_the_current_key_was_public_long_enough_after_any_calls_of_the_rotator(steps: list[str]) -> None:
    shop = Shop()
    ensure_ring(shop.rotation)
    since = dict.fromkeys(shop.listed, shop.clock.ms)
    first = shop.ring.current.kid
    work = {"rotate": rotate_ring, "schedule": rotate_when_old, "ensure": ensure_ring}
    for step in steps:
        shop.clock.ms += {"day": DAY, "hour": HOUR}.get(step, 0)
        if step in work:
            work[step](shop.rotation)
        since = {kid: since.get(kid, shop.clock.ms) for kid in shop.listed}
        current = shop.ring.current.kid
        assert current == first or shop.clock.ms - since[current] >= MAX_AGE


def test_the_rotation_makes_and_retires_real_es256_keys() -> None:
    shop = Shop()
    publisher = CardPublisher(shop.public, shop.clock, {AGENT.id: AGENT}, "https://api.example.com")
    rotation = KeyRotation(shop.store, Es256Keys(), publisher, WAITS, age_ms=DAY)
    first = ensure_ring(rotation)
    shop.clock.ms += DAY
    second = rotate_when_old(rotation)
    assert second.current == first.next
    assert shop.listed == [second.current.kid, second.next.kid, first.current.kid]
    assert set(signers(shop)) == {second.current.kid}
