"""Keys turn while webhooks are delivered: the receiver that we publish, with its key cache, refuses none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.kinds import keys_down, revocation, rotation
from tests.faults.trial import WAITS, Trial

if TYPE_CHECKING:
    from a2a_serverless.domain.key_ring import KeyRing


def ring_of(trial: Trial) -> KeyRing:
    ring = trial.rotation.store.load()
    assert ring is not None
    return ring


def test_a_rotation_under_load_rejects_no_delivery() -> None:
    trial = rotation(seed=1, tasks=6)
    assert trial.strangers.refused == {}
    assert trial.result().extra == 0
    kids = {attempt.kid for key in trial.keys for attempt in trial.world.table.list_attempts(key)}
    assert len(kids) >= 2, "both keys have signed"
    trial.strangers.close()


def test_a_key_that_is_not_public_for_long_enough_is_not_promoted_whoever_asks() -> None:
    trial = Trial(1, 1)
    first = ring_of(trial)
    trial.rotate()
    assert ring_of(trial) == first
    trial.world.now += WAITS.publish_ms
    trial.rotate()
    assert ring_of(trial).current == first.next
    assert [old.kid for old in ring_of(trial).previous] == [first.current.kid]
    trial.strangers.close()


def test_a_revocation_under_load_loses_nothing_and_the_key_signs_no_more() -> None:
    trial = revocation(seed=1, tasks=4)
    revoked_at = trial.world.now
    assert trial.result().sound
    attempts = [attempt for key in trial.keys for attempt in trial.world.table.list_attempts(key)]
    last = max(attempts, key=lambda attempt: attempt.at)
    assert last.kid == ring_of(trial).current.kid
    assert last.at <= revoked_at
    trial.strangers.close()


def test_receivers_that_cannot_fetch_keys_hear_everything_later() -> None:
    trial = keys_down(seed=1, tasks=3)
    assert trial.result().sound
    late = [attempt for key in trial.keys for attempt in trial.world.table.list_attempts(key) if attempt.status == 503]
    assert late
    trial.strangers.close()
