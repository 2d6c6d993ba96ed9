"""A small run of every kind of fault; ``make prove KIND=faults SEEDS=n`` is the large one."""

from __future__ import annotations

import pytest

from tests.faults.kinds import KINDS, killed_on_the_wire
from tests.faults.run import counted
from tests.faults.wire import PHASES, Wire

SEED = 7
TASKS = {"one dead host": 6, "20 configurations each": 1, "receiver away for long": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_rule_08_no_fault_loses_doubles_or_disorders_what_webhooks_are_told(kind: str) -> None:
    result = counted(kind, SEED, TASKS.get(kind, 3))
    assert result.events >= 5
    assert result.sound, result


def test_without_faults_each_event_is_one_post_after_one_challenge() -> None:
    result = counted("nothing goes wrong", SEED, 3)
    assert (result.posts, result.extra, result.skipped) == (result.events + 3, 0, 0)


def test_every_moment_of_a_post_is_died_at() -> None:
    trial = killed_on_the_wire(SEED, 12)
    wire = trial.world.post.sender
    trial.strangers.close()
    assert isinstance(wire, Wire)
    assert set(wire.died) == set(PHASES)


def test_the_run_knows_more_than_25_kinds_of_fault() -> None:
    assert len(KINDS) > 25
